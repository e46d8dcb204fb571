/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pipeline/jit/jitdump.h"

#include <errno.h>
#include <unistd.h>

#include "libop/base/sys.h"
#include "pipeline/jit/elf_host.h"

#define MAGIC             0x4a695444u /* "JiTD" as a number */
#define JITDUMP_VERSION   1u
#define FLAG_ARCH_TIME    1u
#define HEADER_MAX_BYTES  4096u
#define RECORD_MAX_BYTES  (256u << 20)
#define WINDOW_BYTES      65536u
#define NAME_WINDOW_BYTES 16384u /* a name must end within so many bytes */
#define SAME_FILE         "\xff" /* stands for the file name of the line before */

enum record_kind { CODE_LOAD, CODE_MOVE, CODE_DEBUG_INFO, CODE_CLOSE, CODE_UNWINDING_INFO };

struct file_header {
	uint32_t magic, version, total_size, elf_mach, pad1, pid;
	uint64_t timestamp, flags;
};

struct record_header {
	uint32_t id, total_size;
	uint64_t timestamp;
};

struct load_record {
	struct record_header header;
	uint32_t pid, tid;
	uint64_t vma, code_addr, code_size, code_index;
};

struct move_record {
	struct record_header header;
	uint32_t pid, tid;
	uint64_t vma, old_code_addr, new_code_addr, code_size, code_index;
};

struct debug_record {
	struct record_header header;
	uint64_t code_addr, nr_entries;
};

struct debug_entry {
	uint64_t address;
	uint32_t line, discriminator;
};

static_assert(sizeof(struct file_header) == 40, "jitdump");
static_assert(sizeof(struct load_record) == 56, "jitdump");
static_assert(sizeof(struct move_record) == 64, "jitdump");
static_assert(sizeof(struct debug_record) == 32, "jitdump");
static_assert(sizeof(struct debug_entry) == 16, "jitdump");

/* A part of the file in memory. */
struct window {
	const struct opd_far_file *file;
	uint64_t file_bytes; /* the length at the time of opening: later bytes are not read */
	uint64_t at, nr_bytes;
	uint64_t nr_read; /* bytes read in all */
	uint8_t bytes[WINDOW_BYTES];
};

/* 0, -ENOMEM, or -errno of the file. */
static int new_window(const struct opd_far_file *file, struct window **ret_window)
{
	struct window *window = calloc(1, sizeof(*window));
	int err = window ? opd_far_length(file, &window->file_bytes) : -ENOMEM;

	if (err) {
		free(window);
		return err;
	}
	window->file = file;
	*ret_window = window;
	return 0;
}

/* Up to nr_bytes bytes at an offset; NULL when the file ends before it. */
static const uint8_t *look(struct window *window, uint64_t offset, uint64_t nr_bytes, uint64_t *ret_nr_bytes)
{
	ssize_t nr;

	if (offset >= window->file_bytes)
		return NULL;
	nr_bytes = op_min_u64(nr_bytes, window->file_bytes - offset);
	if (offset < window->at || offset - window->at > window->nr_bytes || window->nr_bytes - (offset - window->at) < nr_bytes) {
		nr = opd_far_read(window->file, window->bytes, sizeof(window->bytes), (off_t)offset);
		window->at = offset;
		window->nr_bytes = nr > 0 ? (uint64_t)nr : 0;
		window->nr_read += window->nr_bytes;
	}
	*ret_nr_bytes = op_min_u64(nr_bytes, window->nr_bytes - (offset - window->at));
	return *ret_nr_bytes ? window->bytes + (offset - window->at) : NULL;
}

/* Copies nr_bytes out of the file; false when the file has not all of them. */
static bool copy(struct window *window, uint64_t offset, void *record, size_t nr_bytes)
{
	uint64_t nr;
	const uint8_t *bytes = look(window, offset, nr_bytes, &nr);

	if (!bytes || nr < nr_bytes)
		return false;
	memcpy(record, bytes, nr_bytes);
	return true;
}

/* The string at an offset; it must end before `end`. NULL: it does not, or it is too long. */
static const char *look_string(struct window *window, uint64_t offset, uint64_t end)
{
	uint64_t nr;
	const uint8_t *bytes = offset < end ? look(window, offset, op_min_u64(NAME_WINDOW_BYTES, end - offset), &nr) : NULL;

	return bytes && memchr(bytes, '\0', nr) ? (const char *)bytes : NULL;
}

/* ---- records ---- */

struct reading {
	struct opd_jitdump *dump;
	struct opd_jit_map *map;
	const struct opd_jit_times *times;
	struct window *window;
	uint64_t at, end; /* bounds of the record */
};

/* 0; -EBADMSG: the record makes no sense and is skipped; -ENOMEM. */
typedef int (*handler)(const struct reading *reading);

static uint64_t time_of(const struct reading *reading, const struct record_header *header)
{
	return reading->dump->arch_time ? reading->times->now_ns : op_min_u64(header->timestamp, reading->times->now_ns);
}

static int take_load(const struct reading *reading)
{
	struct opd_jitdump *dump = reading->dump;
	struct opd_jit_code code = { 0 };
	struct load_record record;
	char name[OPD_JIT_NAME_MAX + 1];
	uint64_t name_at = reading->at + sizeof(record), name_bytes;
	const char *string;

	if (!copy(reading->window, reading->at, &record, sizeof(record)))
		return -EBADMSG;
	string = look_string(reading->window, name_at, reading->end);
	if (!string)
		return -EBADMSG;
	name_bytes = strlen(string);
	snprintf(name, sizeof(name), "%s", string);
	code.code_at = name_at + name_bytes + 1;
	if (record.code_size > reading->end - code.code_at)
		return -EBADMSG;
	if (dump->other_code)
		code.code_at = 0;
	code.start = record.code_addr;
	code.bytes = record.code_size;
	code.name = name;
	code.from_ns = time_of(reading, &record.header);
	code.is_exact = !dump->arch_time;
	if (dump->lines_at && dump->lines_of == record.code_addr)
		code.lines_at = dump->lines_at;
	dump->lines_at = 0;
	return opd_jit_map_add(reading->map, &code, reading->times->horizon_ns);
}

static int take_move(const struct reading *reading)
{
	struct move_record record;

	if (!copy(reading->window, reading->at, &record, sizeof(record)) || reading->end - reading->at < sizeof(record))
		return -EBADMSG;
	return opd_jit_map_move(reading->map, record.old_code_addr, record.new_code_addr, time_of(reading, &record.header),
				reading->times->horizon_ns);
}

static int take_debug_info(const struct reading *reading)
{
	struct debug_record record;

	if (!copy(reading->window, reading->at, &record, sizeof(record)) || reading->end - reading->at < sizeof(record))
		return -EBADMSG;
	reading->dump->lines_of = record.code_addr;
	reading->dump->lines_at = reading->at;
	return 0;
}

static int take_close(const struct reading *reading)
{
	reading->dump->ended = true;
	return 0;
}

/* opd does not unwind stacks. */
static int pass_over(const struct reading *reading OP_UNUSED)
{
	return 0;
}

static const handler handlers[] = {
	[CODE_LOAD] = take_load,   [CODE_MOVE] = take_move,           [CODE_DEBUG_INFO] = take_debug_info,
	[CODE_CLOSE] = take_close, [CODE_UNWINDING_INFO] = pass_over,
};

/* Takes one record. 0; -EAGAIN: it is not complete yet; -ENOMEM. */
static int take_record(struct reading *reading)
{
	struct opd_jitdump *dump = reading->dump;
	struct record_header header;
	int err;

	if (!copy(reading->window, dump->offset, &header, sizeof(header)))
		return -EAGAIN;
	if (header.total_size < sizeof(header) || header.total_size > RECORD_MAX_BYTES) {
		dump->ended = true;
		reading->map->counters[OP_JIT_refused_records]++;
		return 0;
	}
	if (header.total_size > reading->window->file_bytes - dump->offset)
		return -EAGAIN;
	reading->at = dump->offset;
	reading->end = dump->offset + header.total_size;
	err = header.id < op_array_size(handlers) ? handlers[header.id](reading) : 0;
	if (err == -EBADMSG) {
		reading->map->counters[OP_JIT_refused_records]++;
		err = 0;
	}
	if (!err)
		dump->offset = reading->end;
	return err;
}

static int take_header(struct reading *reading)
{
	struct opd_jitdump *dump = reading->dump;
	struct file_header header;

	if (!copy(reading->window, 0, &header, sizeof(header)))
		return -EAGAIN;
	if (header.magic != MAGIC || header.version != JITDUMP_VERSION || header.total_size < sizeof(header) ||
	    header.total_size > HEADER_MAX_BYTES) {
		dump->ended = true;
		reading->map->counters[OP_JIT_refused_files]++;
		return 0;
	}
	dump->arch_time = header.flags & FLAG_ARCH_TIME;
	dump->other_code = header.elf_mach != OPD_ELF_MACHINE;
	dump->offset = header.total_size;
	return 0;
}

int opd_jitdump_read(struct opd_jitdump *dump, struct opd_jit_map *map, const struct opd_jit_times *times,
		     struct opd_jit_allowance *allowance)
{
	struct reading reading = { .dump = dump, .map = map, .times = times };
	uint64_t nr_read = 0;
	int err = 0;

	if (dump->file.fd < 0 || dump->ended || allowance->is_spent)
		return 0;
	err = new_window(&dump->file, &reading.window);
	if (err)
		return err;
	if (!dump->offset)
		err = take_header(&reading);
	while (!err && !dump->ended && !allowance->is_spent && !opd_jit_allowance_ends(allowance, opd_jit_map_steps(map))) {
		if (dump->offset >= OPD_JITDUMP_MAX_BYTES) {
			map->counters[OP_JIT_refused_size]++;
			dump->ended = true;
			break;
		}
		err = take_record(&reading);
		opd_jit_map_add_step(map);
		if (reading.window->nr_read != nr_read)
			opd_jit_allowance_check_wait(allowance);
		allowance->bytes -= op_min_u64(allowance->bytes, reading.window->nr_read - nr_read);
		nr_read = reading.window->nr_read;
	}
	free(reading.window);
	return err == -EAGAIN ? 0 : err;
}

/* ---- lines ---- */

static int take_entries(struct window *window, uint64_t at, uint64_t end, uint64_t nr_entries,
			int (*take)(void *arg, const struct opd_jit_line *line), void *arg)
{
	char file[OPD_JIT_NAME_MAX + 1] = "";
	int result = 0;

	for (uint64_t i = 0; i < nr_entries && !result; i++) {
		struct debug_entry entry;
		struct opd_jit_line line = { .file = file };
		const char *name;

		if (end - at < sizeof(entry) || !copy(window, at, &entry, sizeof(entry)))
			return -EBADMSG;
		name = look_string(window, at + sizeof(entry), end);
		if (!name)
			return -EBADMSG;
		line.bytes = sizeof(entry) + strlen(name) + 1;
		at += line.bytes;
		if (strcmp(name, SAME_FILE) != 0)
			snprintf(file, sizeof(file), "%s", name);
		line.address = entry.address;
		line.line = entry.line;
		result = take(arg, &line);
	}
	return result;
}

int opd_jitdump_lines(const struct opd_jitdump *dump, uint64_t lines_at, int (*take)(void *arg, const struct opd_jit_line *line),
		      void *arg)
{
	struct window *window = NULL;
	struct debug_record record;
	int result = -EBADMSG, err = dump->file.fd < 0 ? -EBADMSG : new_window(&dump->file, &window);

	/* A dump that cannot be read any more is as good as a damaged one. */
	if (err)
		return err == -ENOMEM ? err : -EBADMSG;
	if (copy(window, lines_at, &record, sizeof(record)) && record.header.id == CODE_DEBUG_INFO &&
	    record.header.total_size >= sizeof(record) && record.header.total_size <= window->file_bytes - lines_at)
		result = take_entries(window, lines_at + sizeof(record), lines_at + record.header.total_size, record.nr_entries,
				      take, arg);
	free(window);
	return result;
}

void opd_jitdump_close(struct opd_jitdump *dump)
{
	opd_far_close(&dump->file);
	free(dump->path);
	dump->path = NULL;
}
