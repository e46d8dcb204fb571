/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pipeline/jit/perf_map.h"

#include <ctype.h>
#include <errno.h>

#include "libop/base/clock.h"
#include "libop/base/htable.h"
#include "libop/base/sys.h"

#define CHUNK_BYTES 65536u
#define TAIL_BYTES  64u
#define WRITE_BYTES 4096u /* programs with a buffer write multiples of it, and stop in a line */
#define OPEN_LINE_NS (10u * (uint64_t)OP_NS_PER_S)

/* Values that all lines of one reading share. */
struct reading {
	struct opd_jit_map *map;
	uint64_t from_ns, horizon_ns;
	struct opd_jit_allowance *allowance;
};

static bool parse_hex(const char **at, uint64_t *ret_value)
{
	char *end;

	if (!isxdigit((unsigned char)**at))
		return false;
	errno = 0;
	*ret_value = strtoull(*at, &end, 16);
	if (errno || (*end != ' ' && *end != '\t'))
		return false;
	*at = end + strspn(end, " \t");
	return true;
}

/* Takes one line without its newline. */
static int take_line(const struct reading *reading, char *line)
{
	struct opd_jit_code code = { .from_ns = reading->from_ns, .may_be_known = true };
	const char *at = line;

	if (!parse_hex(&at, &code.start) || !parse_hex(&at, &code.bytes)) {
		reading->map->counters[OP_JIT_refused_records] += *line != '\0';
		return 0;
	}
	code.name = at;
	if (strlen(at) > OPD_JIT_NAME_MAX)
		line[at - line + OPD_JIT_NAME_MAX] = '\0';
	return opd_jit_map_add(reading->map, &code, reading->horizon_ns);
}

/*
 * Takes the complete lines of a chunk, as far as the allowance goes. *ret_used: bytes that were
 * used up.
 */
static int take_lines(const struct reading *reading, struct opd_perf_map *perf_map, char *chunk, size_t nr_bytes, size_t *ret_used)
{
	char *at = chunk, *newline;
	int err = 0;

	while (!err && !opd_jit_allowance_ends(reading->allowance, opd_jit_map_steps(reading->map)) &&
	       (newline = memchr(at, '\n', nr_bytes - (size_t)(at - chunk)))) {
		*newline = '\0';
		opd_jit_map_add_step(reading->map);
		if (!perf_map->in_long_line)
			err = take_line(reading, at);
		perf_map->in_long_line = false;
		at = newline + 1;
	}
	*ret_used = (size_t)(at - chunk);
	if (!*ret_used && nr_bytes == CHUNK_BYTES && !reading->allowance->is_spent) {
		reading->map->counters[OP_JIT_refused_records] += !perf_map->in_long_line;
		perf_map->in_long_line = true;
		*ret_used = nr_bytes;
	}
	return err;
}

/* A hash of the last bytes before the offset; 0 when they cannot be read. */
static uint64_t hash_tail(const struct opd_far_file *file, uint64_t offset)
{
	uint8_t tail[TAIL_BYTES];
	uint64_t nr_bytes = op_min_u64(offset, sizeof(tail));
	ssize_t nr = opd_far_read(file, tail, nr_bytes, (off_t)(offset - nr_bytes));

	return nr == (ssize_t)nr_bytes ? op_hash_bytes(offset, tail, nr_bytes) : 0;
}

static bool is_unchanged(const struct opd_perf_map *perf_map, const struct stat *st)
{
	return perf_map->read_ns && perf_map->device == st->st_dev && perf_map->inode == st->st_ino &&
	       perf_map->bytes == (uint64_t)st->st_size && perf_map->mtime.tv_sec == st->st_mtim.tv_sec &&
	       perf_map->mtime.tv_nsec == st->st_mtim.tv_nsec;
}

static bool is_continued(const struct opd_perf_map *perf_map, const struct opd_far_file *file, const struct stat *st)
{
	return perf_map->device == st->st_dev && perf_map->inode == st->st_ino && perf_map->offset <= (uint64_t)st->st_size &&
	       hash_tail(file, perf_map->offset) == perf_map->tail_hash;
}

/* The time of the last write on OP_CLOCK, between the last reading and now. */
static uint64_t written_ns(const struct opd_perf_map *perf_map, const struct stat *st, uint64_t now_ns)
{
	uint64_t real_now_ns = op_clock_ns(CLOCK_REALTIME);
	uint64_t mtime_ns = (uint64_t)st->st_mtim.tv_sec * OP_NS_PER_S + (uint64_t)st->st_mtim.tv_nsec;
	uint64_t age_ns = mtime_ns < real_now_ns ? real_now_ns - mtime_ns : 0;

	return op_max_u64(perf_map->read_ns, now_ns - op_min_u64(age_ns, now_ns));
}

static void count_limit(struct opd_perf_map *perf_map, struct opd_jit_map *map)
{
	map->counters[OP_JIT_refused_size] += !perf_map->limit_counted;
	perf_map->limit_counted = true;
}

static int read_lines(struct opd_perf_map *perf_map, const struct opd_far_file *file, const struct reading *reading)
{
	struct opd_jit_allowance *allowance = reading->allowance;
	char *chunk = malloc(CHUNK_BYTES);
	int err = chunk ? 0 : -ENOMEM;

	while (!err && !allowance->is_spent) {
		ssize_t nr = opd_far_read(file, chunk, CHUNK_BYTES, (off_t)perf_map->offset);
		size_t used = 0;

		if (nr > 0)
			err = take_lines(reading, perf_map, chunk, (size_t)nr, &used);
		else
			err = (int)nr;
		perf_map->offset += used;
		allowance->bytes -= op_min_u64(allowance->bytes, used);
		if (!used || perf_map->offset >= OPD_PERF_MAP_MAX_BYTES)
			break;
		opd_jit_allowance_check_wait(allowance);
	}
	free(chunk);
	return err;
}

/* Whether the line may count at all while the process lives. */
static bool may_end(const struct opd_perf_map *perf_map)
{
	return perf_map->has_open_line && perf_map->bytes % WRITE_BYTES;
}

/* Takes the last line. The offset stays: when the line goes on, it is read as a whole. */
static int take_open_line(const struct reading *reading, struct opd_perf_map *perf_map, const struct opd_far_file *file)
{
	char *line = malloc(CHUNK_BYTES + 1);
	ssize_t nr = line ? opd_far_read(file, line, CHUNK_BYTES, (off_t)perf_map->offset) : -ENOMEM;
	int err = nr < 0 ? (int)nr : 0;

	if (nr > 0 && !memchr(line, '\n', (size_t)nr)) {
		line[nr] = '\0';
		opd_jit_map_add_step(reading->map);
		err = take_line(reading, line);
	}
	perf_map->has_open_line = false;
	free(line);
	return err;
}

bool opd_perf_map_is_read(const struct opd_perf_map *perf_map, struct stat *ret_stat)
{
	*ret_stat = (struct stat){
		.st_dev = perf_map->device,
		.st_ino = perf_map->inode,
		.st_size = (off_t)perf_map->bytes,
		.st_mtim = perf_map->mtime,
	};
	return perf_map->read_ns && !perf_map->more && !may_end(perf_map);
}

int opd_perf_map_read(struct opd_perf_map *perf_map, const struct opd_far_file *file, const struct stat *st,
		      struct opd_jit_map *map, const struct opd_jit_times *times, struct opd_jit_allowance *allowance)
{
	struct reading reading = { .map = map, .horizon_ns = times->horizon_ns, .allowance = allowance };
	bool same = is_unchanged(perf_map, st), is_settled;
	int err;

	if (!same)
		perf_map->changed_ns = times->now_ns;
	is_settled = times->has_ended || (may_end(perf_map) && times->now_ns >= perf_map->changed_ns + OPEN_LINE_NS);
	if (same && !perf_map->more && !(perf_map->has_open_line && is_settled))
		return 0;
	reading.from_ns = perf_map->read_ns ? written_ns(perf_map, st, times->now_ns) : 0;
	if (!perf_map->offset || !is_continued(perf_map, file, st)) {
		perf_map->offset = 0;
		perf_map->in_long_line = perf_map->limit_counted = false;
	}
	err = perf_map->offset < OPD_PERF_MAP_MAX_BYTES ? read_lines(perf_map, file, &reading) : 0;
	if (perf_map->offset >= OPD_PERF_MAP_MAX_BYTES && perf_map->offset < (uint64_t)st->st_size)
		count_limit(perf_map, map);
	perf_map->tail_hash = hash_tail(file, perf_map->offset);
	perf_map->device = st->st_dev;
	perf_map->inode = st->st_ino;
	perf_map->bytes = (uint64_t)st->st_size;
	perf_map->mtime = st->st_mtim;
	perf_map->more = (allowance->is_spent || err) && perf_map->offset < OPD_PERF_MAP_MAX_BYTES;
	perf_map->has_open_line = !perf_map->more && !perf_map->in_long_line && perf_map->offset < perf_map->bytes &&
				  perf_map->offset < OPD_PERF_MAP_MAX_BYTES;
	if (perf_map->has_open_line && is_settled)
		err = take_open_line(&reading, perf_map, file);
	if (!perf_map->more)
		perf_map->read_ns = times->now_ns;
	return err;
}
