/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pipeline/resolve/proc_scan.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <sys/sysmacros.h>

#include "libop/base/sys.h"
#include "pipeline/files/locate.h"
#include "pipeline/files/proc_maps.h"
#include "pipeline/resolve/image.h"
#include "pipeline/resolve/jit_lookup.h"

#define MAX_PENDING 64

/* A mapped segment of a file. */
struct segment {
	uint64_t start, end, offset, device, inode; /* inode 0: none */
	bool is_exec;
};

/* Executable memory whose image is known only after the next segment of a file. */
struct pending {
	uint64_t start, end;
	bool is_memfd; /* it has a name of its own */
	struct opd_mapped mapped;
};

struct scan {
	uint32_t tid; /* for /proc/PID: the process, or a thread when the main thread has ended */
	struct opd_processes *processes;
	struct op_dcookie_table *table;
	struct opd_process *process;
	const char *exe;  /* path of the executable; "": none */
	uint64_t from_ns; /* since when new mappings hold */
	uint64_t now_ns;
	struct segment below;
	struct pending pending[MAX_PENDING];
	size_t nr_pending;
};

/* "start-end perms offset maj:min inode   name". False: another form. */
static bool parse_line(char *line, struct opd_mapped *ret_mapped, bool *ret_is_exec)
{
	unsigned long long start, end, offset, inode;
	unsigned int maj, min;
	char perms[5];
	int name_at = 0;

	if (sscanf(line, "%llx-%llx %4s %llx %x:%x %llu%n", &start, &end, perms, &offset, &maj, &min, &inode, &name_at) < 7)
		return false;
	if (strlen(perms) < 3 || start >= end)
		return false;
	line[strcspn(line, "\n")] = '\0';
	line += name_at;
	line += strspn(line, " ");
	opd_decode_newlines(line);
	*ret_is_exec = perms[2] == 'x';
	*ret_mapped = (struct opd_mapped){
		.start = start,
		.end = end,
		.offset = offset,
		.name = line,
		.name_is_ours = true,
		.device = makedev(maj, min),
		.inode = inode,
	};
	return true;
}

static struct segment segment_of(const struct opd_mapped *mapped, bool is_exec)
{
	return (struct segment){
		.start = mapped->start,
		.end = mapped->end,
		.offset = mapped->offset,
		.device = mapped->device,
		.inode = mapped->inode,
		.is_exec = is_exec,
	};
}

/*
 * True for two segments of one loaded file. False for the end of one copy and the start of another.
 */
static bool enclose(const struct segment *below, const struct segment *above)
{
	return below->inode && below->inode == above->inode && below->device == above->device && below->offset <= above->offset;
}

static int add(struct scan *scan, struct opd_mapping *mapping)
{
	mapping->from_ns = scan->from_ns;
	return opd_process_map(scan->processes, scan->process->pid, scan->process->mm, mapping);
}

static int cookie_of(struct scan *scan, struct opd_mapped *mapped, bool *ret_is_file, uint64_t *ret_cookie)
{
	mapped->pid = scan->tid;
	mapped->time_ns = scan->now_ns;
	mapped->mount_views = &scan->processes->mount_views;
	mapped->stat_cache = &scan->processes->stat_cache;
	mapped->build_ids = scan->processes->build_ids;
	mapped->mount_view = scan->process->mm->mount_view;
	*ret_cookie = opd_image_of_mapping(scan->table, mapped, ret_is_file);
	return *ret_cookie == OP_DCOOKIE_NONE ? -ENOMEM : 0;
}

/* Notes the executable, which may have no other text than a copy in memory. */
static void note_application(struct scan *scan, const struct opd_mapped *mapped, uint64_t cookie)
{
	if (!strcmp(mapped->name, scan->exe))
		scan->process->mm->app_cookie = cookie;
}

static int add_memory(struct scan *scan, const struct pending *pending)
{
	struct opd_mapped mapped = { .start = pending->start, .end = pending->end, .name = "" };
	struct opd_mapping mapping = { .start = pending->start, .end = pending->end, .region_end = pending->end };
	bool is_file;
	int err = cookie_of(scan, &mapped, &is_file, &mapping.cookie);

	mapping.may_be_jit = true;
	return err ? err : add(scan, &mapping);
}

static int add_mapping(struct scan *scan, struct opd_mapped *mapped)
{
	struct opd_mapping mapping = { .start = mapped->start, .end = mapped->end };
	struct opd_mm *mm = scan->process->mm;
	bool is_file;
	int err;

	err = cookie_of(scan, mapped, &is_file, &mapping.cookie);
	if (err)
		return err;
	mapping.may_be_jit = opd_jit_may_be_in(mapped->name);
	opd_jit_saw_mapping(scan->processes, scan->process, mm, mapped);
	if (is_file) {
		mapping.key = mapped->offset;
		note_application(scan, mapped, mapping.cookie);
	} else {
		mapping.region_end = mapping.end;
	}
	return add(scan, &mapping);
}

static const struct opd_mapping *known_file(const struct scan *scan, const struct pending *pending, const struct segment *above)
{
	const struct opd_mapping *known = opd_mapset_find(scan->process->mm->maps, pending->start, UINT64_MAX);

	return known && !known->region_end && op_dcookie_row(scan->table, known->cookie)->id.inode == above->inode ? known : NULL;
}

/* Text from the first page of a file on: nothing of the file is below. */
static bool is_first_of(const struct scan *scan, const struct pending *pending, const struct segment *above)
{
	const struct opd_mapping *known = above->inode ? known_file(scan, pending, above) : NULL;

	return known && known->key + pending->start - known->start <= above->offset;
}

/*
 * Finds the file offset of memory that replaced a part of a file's text. It follows from what was
 * mapped there before, or from an executable segment beside it, or from both segments when they
 * agree.
 */
static bool find_key(const struct scan *scan, const struct pending *pending, const struct segment *above, uint64_t *ret_key)
{
	const struct opd_mapping *known = known_file(scan, pending, above);
	const struct segment *below = &scan->below;
	uint64_t bias_below = below->start - below->offset, bias_above = above->start - above->offset, bias;

	if (known)
		bias = known->start - known->key;
	else if (below->is_exec || bias_below == bias_above)
		bias = bias_below;
	else if (above->is_exec)
		bias = bias_above;
	else
		return false;
	*ret_key = pending->start - bias;
	return true;
}

/*
 * Adds pending memory between scan->below and this segment: as text of the file, or as anonymous
 * memory.
 */
static int add_pending(struct scan *scan, const struct segment *above, struct opd_mapped *mapped)
{
	int err = 0;

	for (size_t i = 0; i < scan->nr_pending && !err; i++) {
		struct pending *pending = &scan->pending[i];
		struct opd_mapping mapping = { .start = pending->start, .end = pending->end };
		bool is_file;

		if ((enclose(&scan->below, above) || is_first_of(scan, pending, above)) &&
		    find_key(scan, pending, above, &mapping.key)) {
			err = cookie_of(scan, mapped, &is_file, &mapping.cookie);
			if (!err)
				note_application(scan, mapped, mapping.cookie);
			if (!err)
				err = add(scan, &mapping);
		} else {
			err = pending->is_memfd ? add_mapping(scan, &pending->mapped) : add_memory(scan, pending);
		}
	}
	scan->nr_pending = 0;
	return err;
}

/* A segment of a file is below, or a file was mapped there before. */
static bool may_cover(const struct scan *scan, uint64_t start)
{
	const struct opd_mapping *known;

	if (scan->below.inode)
		return true;
	known = opd_mapset_find(scan->process->mm->maps, start, UINT64_MAX);
	return known && !known->region_end;
}

static int take_line(void *arg, struct opd_mapped *mapped, bool is_exec)
{
	struct scan *scan = arg;
	struct segment segment = segment_of(mapped, is_exec);
	int err = 0;

	if (is_exec && opd_image_may_be_text_copy(mapped->name) && may_cover(scan, mapped->start) &&
	    scan->nr_pending < MAX_PENDING) {
		scan->pending[scan->nr_pending++] = (struct pending){
			.start = mapped->start,
			.end = mapped->end,
			.is_memfd = !strncmp(mapped->name, "/memfd:", strlen("/memfd:")),
			.mapped = *mapped,
		};
		return 0;
	}
	if (mapped->inode && mapped->name[0] == '/') {
		err = add_pending(scan, &segment, mapped);
		scan->below = segment;
	}
	return !err && is_exec ? add_mapping(scan, mapped) : err;
}

typedef int (*line_taker)(void *arg, struct opd_mapped *mapped, bool is_exec);

/* Calls `take` for every line until it returns another value than 0, and returns that. */
static int each_line(const struct opd_proc_maps *maps, line_taker take, void *arg)
{
	char *line, *rest = opd_proc_maps_lines(maps);
	int err = 0;

	while (!err && (line = strsep(&rest, "\n"))) {
		struct opd_mapped mapped;
		bool is_exec;

		if (parse_line(line, &mapped, &is_exec))
			err = take(arg, &mapped, is_exec);
	}
	return err;
}

/*
 * True when a process in doubt ended or called exec without a record. A process without an
 * executable is a zombie.
 */
static bool runs_another(const struct scan *scan)
{
	const struct opd_process *process = scan->process;
	uint64_t app_cookie = process->mm->app_cookie;

	if (!scan->exe[0] || !opd_process_missed_records(scan->processes, process))
		return false;
	return process->exit_ns != UINT64_MAX ||
	       (app_cookie != OP_DCOOKIE_NONE && strcmp(op_dcookie_row(scan->table, app_cookie)->id.name.name, scan->exe) != 0);
}

/* What the records do not tell of a process that is older than they are. */
static int note_name(struct scan *scan, const struct opd_proc_maps *maps)
{
	struct opd_process *process = scan->process;

	process->mm->is_kernel_thread = maps->is_kernel_thread;
	if (!maps->comm[0] || !(maps->is_kernel_thread || scan->processes->keeps_names))
		return 0;
	return opd_name_add(&process->name, maps->comm, scan->from_ns);
}

static int scan_process(struct scan *scan, const struct opd_proc_maps *maps, uint64_t now_ns)
{
	struct opd_process *process = scan->process;
	struct opd_mapped nothing = { .name = "" };
	struct segment none = { 0 };
	struct opd_place place;
	int err;

	scan->tid = maps->tid;
	scan->exe = opd_proc_maps_exe(maps);
	scan->now_ns = now_ns;
	err = runs_another(scan) ? opd_process_replaced(scan->processes, process, scan->from_ns) : 0;
	if (err)
		return err;
	process->snapshot_ns = process->sure_ns = now_ns;
	err = note_name(scan, maps);
	if (err)
		return err;
	if (opd_proc_maps_place(maps, &place))
		err = opd_mount_view_set(&scan->processes->mount_views, scan->tid, &place, &process->mm->mount_view);
	if (!err)
		err = each_line(maps, take_line, scan);
	return err ? err : add_pending(scan, &none, &nothing);
}

static int get_maps(struct opd_processes *processes, const struct opd_process *process, uint32_t pid,
		    struct opd_proc_maps *ret_maps)
{
	const struct opd_proc_wanted wanted = { .pid = pid, .any_thread = true, .with_place = true, .until = OPD_PROC_MAPS_ALL };

	return opd_proc_maps_get(processes->mount_views.lookers, process ? process->mm->mount_view : NULL, &wanted, ret_maps);
}

int opd_proc_scan_pid(struct opd_processes *processes, struct op_dcookie_table *table, uint32_t pid, uint64_t now_ns)
{
	struct scan scan = { .processes = processes, .table = table };
	struct opd_proc_maps maps;
	int err = get_maps(processes, opd_process_find(processes, pid), pid, &maps);

	if (err)
		return err;
	err = opd_process_get(processes, pid, 0, &scan.process);
	if (!err)
		err = scan_process(&scan, &maps, now_ns);
	opd_proc_maps_free(&maps);
	return err;
}

int opd_proc_scan_again(struct opd_processes *processes, struct op_dcookie_table *table, uint32_t pid, uint64_t now_ns,
			uint64_t since_ns)
{
	struct scan scan = { .processes = processes, .table = table, .from_ns = since_ns };
	struct opd_proc_maps maps;
	int err;

	scan.process = opd_process_find(processes, pid);
	if (!scan.process)
		return -ENOENT;
	err = get_maps(processes, scan.process, pid, &maps);
	if (err)
		return err;
	err = scan_process(&scan, &maps, now_ns);
	opd_proc_maps_free(&maps);
	return err;
}

int opd_proc_scan_doubtful(struct opd_processes *processes, struct op_dcookie_table *table, uint32_t pid, uint64_t now_ns)
{
	struct opd_process *process = opd_process_find(processes, pid);
	int err;

	if (!process)
		return opd_proc_scan_pid(processes, table, pid, now_ns);
	if (!opd_process_is_doubtful(processes, process))
		return 0;
	err = opd_proc_scan_again(processes, table, pid, now_ns, opd_process_doubtful_from_ns(processes, process));
	if (err == -ENOENT)
		process->sure_ns = now_ns;
	return err;
}

struct around {
	const struct opd_proc_covered *covered;
	struct segment below;
	uint64_t inode; /* of the file below and above; 0: not the same file */
};

static int take_around(void *arg, struct opd_mapped *mapped, bool is_exec)
{
	struct segment segment = segment_of(mapped, is_exec);
	struct around *around = arg;

	const struct opd_proc_covered *covered = around->covered;
	bool is_copy = opd_image_may_be_text_copy(mapped->name) && mapped->start >= covered->start;

	if (!mapped->inode || mapped->name[0] != '/' || (mapped->start < covered->end && is_copy))
		return 0;
	if (mapped->start < covered->end) {
		around->below = segment;
		return 0;
	}
	if (around->below.end <= covered->start && enclose(&around->below, &segment))
		around->inode = segment.inode;
	if (covered->inode == segment.inode && covered->offset <= segment.offset)
		around->inode = segment.inode;
	return 1;
}

bool opd_proc_is_inside_image(struct opd_lookers *lookers, const struct opd_mount_view *view, uint32_t tid,
			      const struct opd_proc_covered *covered, uint64_t *ret_inode)
{
	const struct opd_proc_wanted wanted = { .pid = tid, .until = covered->end };
	struct around around = { .covered = covered };
	struct opd_proc_maps maps;

	if (opd_proc_maps_get(lookers, view, &wanted, &maps) < 0)
		return false;
	(void)each_line(&maps, take_around, &around);
	opd_proc_maps_free(&maps);
	if (around.inode)
		*ret_inode = around.inode;
	return around.inode;
}

struct mapped_at {
	uint64_t address;
	const char *path;
	struct segment segment; /* end 0: none */
	bool other_name;
};

static int take_at(void *arg, struct opd_mapped *mapped, bool is_exec)
{
	struct mapped_at *at = arg;

	if (mapped->end <= at->address)
		return 0;
	if (mapped->start <= at->address) {
		at->segment = segment_of(mapped, is_exec);
		at->other_name = at->path && !opd_is_same_name(mapped->name, at->path);
	}
	return 1;
}

bool opd_proc_has_other(struct opd_lookers *lookers, const struct opd_mount_view *view, uint32_t pid,
			const struct opd_proc_expected *expected)
{
	const struct opd_proc_wanted wanted = { .pid = pid, .any_thread = true, .until = expected->address + 1 };
	struct mapped_at at = { .address = expected->address, .path = expected->path };
	struct opd_proc_maps maps;

	if (opd_proc_maps_get(lookers, view, &wanted, &maps) < 0)
		return false;
	(void)each_line(&maps, take_at, &at);
	opd_proc_maps_free(&maps);
	if (!at.segment.end)
		return false;
	return at.other_name || (expected->inode && at.segment.inode != expected->inode) ||
	       expected->address - at.segment.start + at.segment.offset != expected->offset;
}

/* The time is read after the answer: all that the process did is older. */
uint64_t opd_proc_gone_ns(uint32_t pid)
{
	return op_sys_is_gone(pid) ? op_now_ns() : 0;
}

int opd_proc_scan_all(struct opd_processes *processes, struct op_dcookie_table *table, uint64_t now_ns)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	int err = 0;

	if (!proc)
		return -errno;
	while (err != -ENOMEM && (entry = readdir(proc))) {
		if (isdigit((unsigned char)entry->d_name[0]))
			err = opd_proc_scan_pid(processes, table, (uint32_t)strtoul(entry->d_name, NULL, 10), now_ns);
	}
	closedir(proc);
	return err == -ENOMEM ? err : 0;
}
