/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pipeline/resolve/kernel_map.h"

#include <errno.h>
#include <limits.h>
#include <sys/stat.h>

#include "pipeline/resolve/image.h"

#define KALLSYMS_IMAGE        "/proc/kallsyms"
#define NO_VMLINUX_IMAGE      "no-vmlinux"
#define FOREIGN_KERNEL        "[kernel.kallsyms]"
#define FOREIGN_KERNEL_PREFIX "[kernel."
#define NAME_BYTES            256
#define SYS_PATH_BYTES        512
#define MADE_BYTES 4096u /* assumed length of run-time code with unknown length, at most */

static const struct op_build_id no_build_id;

static const struct opd_span_kind kind = { .row_bytes = sizeof(struct opd_kernel_range), .past_max = OPD_KERNEL_RANGES_MAX };

/* The range at an index among those that hold, by address. */
static struct opd_kernel_range *range_at(const struct opd_kernel_map *map, size_t index)
{
	return (struct opd_kernel_range *)map->ranges.now.rows + index;
}

/* Adds a range that begins to hold at range->from_ns. It cuts those that held there. */
static int add_range(struct opd_kernel_map *map, const struct opd_kernel_range *wanted)
{
	struct opd_kernel_range range = *wanted;

	range.bytes = range.end - range.start;
	if (range.start >= range.end || map->ranges.now.nr >= OPD_KERNEL_RANGES_MAX)
		return 0;
	if (opd_spans_reserve(&map->ranges, &range) < 0)
		return -ENOMEM;
	opd_spans_replace(&map->ranges, &range, &range, &map->ranges, 0);
	return 0;
}

/* True for a module, or for other code, that the last reading did not find. */
static bool is_unlisted(const void *row, void *arg)
{
	const struct opd_kernel_range *range = row, *last = arg;

	return range->is_module == last->is_module && range->round != last->round;
}

static void end_unlisted(struct opd_kernel_map *map, bool modules, uint64_t now_ns)
{
	struct opd_kernel_range last = { .is_module = modules, .round = map->round };

	opd_spans_end(&map->ranges, is_unlisted, &last, now_ns);
}

static bool begins_at(const struct opd_kernel_range *range, uint64_t start)
{
	return range->start - range->offset == start;
}

/*
 * Lists every part that still holds of a module or of code. False: there is none. A module can be
 * replaced by another build at the same address. Then the inode of its directory is another one.
 */
static bool list(struct opd_kernel_map *map, const struct opd_kernel_range *whole, const char *name)
{
	bool is_known = false;

	for (size_t i = 0; i < map->ranges.now.nr; i++) {
		struct opd_kernel_range *range = range_at(map, i);

		if (range->is_module != whole->is_module || !begins_at(range, whole->start) || range->inode != whole->inode ||
		    (whole->is_module && range->bytes != whole->end - whole->start) ||
		    strcmp(op_dcookie_row(map->table, range->cookie)->id.name.name, name))
			continue;
		range->round = map->round;
		is_known = true;
	}
	return is_known;
}

/* ---- code that was made at run time ---- */

static uint64_t runtime_cookie(const struct opd_kernel_map *map, const char *symbol)
{
	char name[NAME_BYTES];

	snprintf(name, sizeof(name), "%s", symbol);
	for (char *slash = strchr(name, '/'); slash; slash = strchr(slash, '/'))
		*slash = '_';
	return opd_image_of_kernel(map->table, name, &no_build_id);
}

/* The run-time code that begins there and still holds. */
static struct opd_kernel_range *find_made(struct opd_kernel_map *map, uint64_t start)
{
	size_t index = opd_spans_first(&map->ranges, sizeof(struct opd_kernel_range), start);
	struct opd_kernel_range *range = range_at(map, index);

	return index < map->ranges.now.nr && range->start == start && !range->offset && !range->is_module ? range : NULL;
}

/* Changes the length of code for all the time that it has held. There are no more ranges then. */
static void set_length(struct opd_kernel_map *map, const struct opd_kernel_range *known, uint64_t nr_bytes)
{
	struct opd_kernel_range range = *known;

	opd_spans_replace(&map->ranges, &range, NULL, &map->ranges, 0);
	range.end = range.start + nr_bytes;
	range.bytes = nr_bytes;
	if (range.start < range.end)
		opd_spans_replace(&map->ranges, &range, &range, &map->ranges, 0);
}

/*
 * Filters of classic BPF lie between listed code and are not listed. So code of unknown length is
 * assumed to be short.
 */
static uint64_t end_of_made(const struct opd_kallsyms *kallsyms, size_t i)
{
	uint64_t end = kallsyms->made[i].start + MADE_BYTES;

	return i + 1 < kallsyms->nr_made ? op_min_u64(end, kallsyms->made[i + 1].start) : end;
}

/* Listed code that no record reported holds since from_ns. */
static int take_made(struct opd_kernel_map *map, const struct opd_kallsyms *kallsyms, uint64_t from_ns)
{
	int err = 0;

	for (size_t i = 0; i < kallsyms->nr_made && !err; i++) {
		struct opd_kernel_range range = {
			.start = kallsyms->made[i].start,
			.end = end_of_made(kallsyms, i),
			.cookie = runtime_cookie(map, kallsyms->made[i].name),
			.from_ns = from_ns,
			.to_ns = UINT64_MAX,
			.round = map->round,
		};

		if (range.cookie == OP_DCOOKIE_NONE)
			return -ENOMEM;
		if (!list(map, &range, op_dcookie_row(map->table, range.cookie)->id.name.name))
			err = add_range(map, &range);
	}
	return err;
}

static int read_kallsyms(struct opd_kernel_map *map)
{
	struct opd_kallsyms kallsyms;
	int err = opd_kallsyms_read(map->proc_path, &kallsyms);

	if (!err)
		err = take_made(map, &kallsyms, 0);
	map->text_start = kallsyms.text_start;
	map->text_end = kallsyms.text_end;
	memcpy(map->memory_ends, kallsyms.memory_ends, sizeof(map->memory_ends));
	map->nr_memory_ends = kallsyms.nr_memory_ends;
	opd_kallsyms_free(&kallsyms);
	return err;
}

const struct opd_memory_end *opd_kernel_map_memory_end(const struct opd_kernel_map *map, uint64_t address)
{
	for (size_t i = 0; i < map->nr_memory_ends; i++)
		if (address >= map->memory_ends[i].start && address < map->memory_ends[i].end)
			return &map->memory_ends[i];
	return NULL;
}

void opd_kernel_map_learn(struct opd_kernel_map *map, const struct opd_bpf_code *code)
{
	for (size_t i = 0; i < code->nr_functions; i++) {
		struct opd_kernel_range *known = find_made(map, code->functions[i].start);

		if (known)
			set_length(map, known, code->functions[i].nr_bytes);
	}
}

int opd_kernel_map_mend(struct opd_kernel_map *map, uint64_t from_ns, uint64_t now_ns)
{
	struct opd_kallsyms kallsyms;
	int err;

	if (!map->text_start)
		return 0;
	err = opd_kallsyms_read(map->proc_path, &kallsyms);
	map->round++;
	if (!err)
		err = take_made(map, &kallsyms, from_ns);
	if (!err && kallsyms.has_bpf)
		end_unlisted(map, false, now_ns);
	opd_kallsyms_free(&kallsyms);
	return err;
}

/* ---- modules ---- */

static uint64_t module_inode(const struct opd_kernel_map *map, const char *name)
{
	char path[SYS_PATH_BYTES];
	struct stat st;

	snprintf(path, sizeof(path), "%s/module/%s", map->sys_path, name);
	return stat(path, &st) < 0 ? 0 : st.st_ino;
}

static uint64_t module_cookie(const struct opd_kernel_map *map, const char *name)
{
	char path[SYS_PATH_BYTES];
	struct op_build_id id = { .nr_bytes = 0 };

	snprintf(path, sizeof(path), "%s/" OP_MODULE_NOTES, map->sys_path, name);
	if (op_build_id_of_notes_file(path, &id) < 0)
		id = no_build_id;
	return opd_image_of_kernel(map->table, name, &id);
}

/* "name size refs deps state 0xaddress": the address is 0 when hidden. */
static int take_module(struct opd_kernel_map *map, const char *line)
{
	unsigned long long bytes, address;
	char name[256];
	struct opd_kernel_range range = {
		.from_ns = map->modules_read_ns, .to_ns = UINT64_MAX, .is_module = true, .round = map->round
	};

	if (sscanf(line, "%255s %llu %*s %*s %*s 0x%llx", name, &bytes, &address) != 3 || !address || strchr(name, '/'))
		return 0;
	range.start = address;
	range.end = address + bytes;
	range.inode = module_inode(map, name);
	if (list(map, &range, name))
		return 0;
	range.cookie = module_cookie(map, name);
	return range.cookie == OP_DCOOKIE_NONE ? -ENOMEM : add_range(map, &range);
}

int opd_kernel_map_refresh(struct opd_kernel_map *map, uint64_t now_ns)
{
	/* of any length: it names all modules that use this one */
	char path[PATH_MAX], *line = NULL;
	size_t capacity = 0;
	FILE *file;
	int err = 0;

	map->round++;
	snprintf(path, sizeof(path), "%s/modules", map->proc_path);
	file = fopen(path, "re");
	while (file && !err && getline(&line, &capacity, file) > 0)
		err = take_module(map, line);
	if (file && !err && !feof(file))
		err = -ENOMEM;
	free(line);
	if (file && !err)
		end_unlisted(map, true, now_ns);
	if (file)
		fclose(file);
	map->modules_read_ns = now_ns;
	return err;
}

int opd_kernel_map_init(struct opd_kernel_map *map, struct op_dcookie_table *table, const char *proc_path, const char *sys_path,
			const char *vmlinux)
{
	char notes[SYS_PATH_BYTES];

	*map = (struct opd_kernel_map){
		.table = table, .ranges = { .kind = &kind, .account = &map->account }, .proc_path = proc_path, .sys_path = sys_path
	};
	snprintf(notes, sizeof(notes), "%s/" OP_KERNEL_NOTES, sys_path);
	if (read_kallsyms(map) < 0)
		return -ENOMEM;
	if (op_build_id_of_notes_file(notes, &map->build_id) < 0)
		map->build_id = no_build_id;
	map->text_cookie = opd_image_of_kernel(table, vmlinux ? vmlinux : KALLSYMS_IMAGE, &map->build_id);
	map->no_vmlinux_cookie = opd_image_of_kernel(table, NO_VMLINUX_IMAGE, &no_build_id);
	if (map->text_cookie == OP_DCOOKIE_NONE || map->no_vmlinux_cookie == OP_DCOOKIE_NONE)
		return -ENOMEM;
	if (!map->text_start)
		map->note = "addresses are hidden (kernel.kptr_restrict): kernel samples are filed as no-vmlinux";
	else
		map->note = vmlinux ? "kernel samples are filed under the vmlinux file"
				    : "kernel samples are filed under /proc/kallsyms";
	return opd_kernel_map_refresh(map, 0);
}

/* ---- a kernel that is not this host's ---- */

int opd_kernel_map_init_foreign(struct opd_kernel_map *map, struct op_dcookie_table *table, const char *vmlinux)
{
	*map = (struct opd_kernel_map){
		.table = table,
		.ranges = { .kind = &kind, .account = &map->account },
		.proc_path = "",
		.sys_path = "",
		.note = "kernel samples are filed as the records name them",
	};
	map->no_vmlinux_cookie = opd_image_of_kernel(table, NO_VMLINUX_IMAGE, &no_build_id);
	return map->no_vmlinux_cookie == OP_DCOOKIE_NONE ? -ENOMEM
							 : opd_kernel_map_name_foreign(map, vmlinux ? vmlinux : FOREIGN_KERNEL);
}

int opd_kernel_map_name_foreign(struct opd_kernel_map *map, const char *vmlinux)
{
	map->text_cookie = opd_image_of_kernel(map->table, vmlinux, &no_build_id);
	return map->text_cookie == OP_DCOOKIE_NONE ? -ENOMEM : 0;
}

/* "/lib/modules/.../kernel/fs/fuse/fuse-x.ko.xz" and "[fuse_x]" are fuse_x. */
static void name_module(const char *file_name, char name[NAME_BYTES])
{
	const char *last = strrchr(file_name, '/'), *from = last ? last + 1 : file_name, *suffix;
	size_t length;

	from += *from == '[';
	suffix = last ? strstr(from, ".ko") : NULL;
	length = suffix ? (size_t)(suffix - from) : strcspn(from, "]");
	snprintf(name, NAME_BYTES, "%.*s", (int)op_min_u64(length, NAME_BYTES - 1), from);
	for (char *c = name; *c; c++)
		if (*c == '-')
			*c = '_';
}

/* In records of old kernels the text reaches to the end of the address space, over the modules. */
static void cut_text(struct opd_kernel_map *map)
{
	for (size_t i = 0; i < map->ranges.now.nr; i++)
		if (range_at(map, i)->is_module && range_at(map, i)->start > map->text_start)
			map->text_end = op_min_u64(map->text_end, range_at(map, i)->start);
}

int opd_kernel_map_part(struct opd_kernel_map *map, const struct op_mmap_record *part)
{
	struct opd_kernel_range range = {
		.start = part->start, .end = part->start + part->bytes, .to_ns = UINT64_MAX, .is_module = true
	};
	struct op_build_id id = { .nr_bytes = part->build_id_bytes };
	char name[NAME_BYTES];
	int err = 0;

	if (!strncmp(part->file_name, FOREIGN_KERNEL_PREFIX, strlen(FOREIGN_KERNEL_PREFIX))) {
		map->text_start = range.start;
		map->text_end = range.end;
		range.cookie = map->text_cookie;
	} else {
		name_module(part->file_name, name);
		if (!*name)
			return 0;
		memcpy(id.bytes, part->build_id, part->build_id_bytes);
		range.cookie = opd_image_of_kernel(map->table, name, &id);
		err = range.cookie == OP_DCOOKIE_NONE ? -ENOMEM : add_range(map, &range);
	}
	if (!err && range.cookie == map->text_cookie)
		err = op_dcookie_set_build_id(map->table, range.cookie, part->build_id, part->build_id_bytes);
	cut_text(map);
	return err;
}

/* ---- records ---- */

static bool is_made_at(const void *range, void *start)
{
	return !((const struct opd_kernel_range *)range)->is_module && begins_at(range, *(uint64_t *)start);
}

int opd_kernel_map_ksymbol(struct opd_kernel_map *map, const struct op_ksymbol_record *ksymbol)
{
	struct opd_kernel_range range = {
		.start = ksymbol->start,
		.end = ksymbol->start + ksymbol->bytes,
		.from_ns = ksymbol->who.time_ns,
		.to_ns = UINT64_MAX,
	};
	struct opd_kernel_range *known;

	if (ksymbol->unregister) {
		opd_spans_end(&map->ranges, is_made_at, &range.start, range.from_ns);
		return 0;
	}
	if (!ksymbol->name[0])
		return 0;
	range.cookie = runtime_cookie(map, ksymbol->name);
	known = find_made(map, range.start);
	if (known && known->cookie == range.cookie) {
		set_length(map, known, ksymbol->bytes);
		return 0;
	}
	opd_spans_end(&map->ranges, is_made_at, &range.start, range.from_ns);
	return range.cookie == OP_DCOOKIE_NONE ? -ENOMEM : add_range(map, &range);
}

struct op_location opd_kernel_map_find(const struct opd_kernel_map *map, uint64_t address, uint64_t time_ns)
{
	const struct opd_kernel_range *range;

	if (op_likely(map->text_start <= address && address < map->text_end))
		return (struct op_location){ .cookie = map->text_cookie, .offset = address - map->text_start };
	range = opd_spans_find(&map->ranges, sizeof(*range), address, time_ns);
	if (range && range->from_ns <= time_ns)
		return (struct op_location){ .cookie = range->cookie, .offset = address - range->start + range->offset };
	return (struct op_location){ .cookie = map->no_vmlinux_cookie, .offset = address };
}

void opd_kernel_map_visit_cookies(const struct opd_kernel_map *map, void (*visit)(uint64_t cookie, void *arg), void *arg)
{
	visit(map->text_cookie, arg);
	visit(map->no_vmlinux_cookie, arg);
	for (size_t i = 0; i < map->ranges.now.nr; i++)
		visit(range_at(map, i)->cookie, arg);
	for (size_t i = 0; i < map->ranges.past.nr; i++)
		visit(((const struct opd_kernel_range *)map->ranges.past.rows)[i].cookie, arg);
}

void opd_kernel_map_prune(struct opd_kernel_map *map, uint64_t horizon_ns)
{
	opd_spans_forget(&map->ranges, horizon_ns);
}

void opd_kernel_map_free(struct opd_kernel_map *map)
{
	if (!map || !map->ranges.kind)
		return;
	opd_spans_free(&map->ranges);
	*map = (struct opd_kernel_map){ 0 };
}
