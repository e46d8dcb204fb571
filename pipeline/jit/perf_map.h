/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Reads /tmp/perf-PID.map, a process's own list of its JIT functions. A line is "START SIZE name",
 * both numbers in hexadecimal. The process appends to the file; a later line replaces earlier ones
 * of the same addresses. Some agents rewrite the whole file. Lines have no times: a line is taken
 * to hold since the last write of the file. A last line without a newline may be the first half of
 * a line: it counts when the process has ended, or when the file has not changed for 10 seconds and
 * does not end where a buffer of the writer would end.
 *
 * Sync thread only.
 */
#ifndef OPD_PERF_MAP_H
#define OPD_PERF_MAP_H

#include <sys/stat.h>

#include "libop/base/compiler.h"
#include "pipeline/files/far_file.h"
#include "pipeline/jit/address_map.h"
#include "pipeline/jit/budget.h"

#define OPD_PERF_MAP_MAX_BYTES ((uint64_t)64u << 20) /* later bytes are not read */

/* How far a map was read. All zero: not at all. */
struct opd_perf_map {
	dev_t device;
	ino_t inode;
	uint64_t offset;       /* of the first byte that was not read */
	uint64_t bytes;        /* length of the file at the last look */
	struct timespec mtime; /* at that time */
	uint64_t read_ns;      /* time of that look, OP_CLOCK */
	/* of the bytes before the offset; it differs after the file was rewritten */
	uint64_t tail_hash;
	uint64_t changed_ns; /* the first look at the file as it is */
	bool has_open_line;  /* the file ends without a newline, and that line does not count yet */
	bool more; /* the last reading ended before the end of the file */
	bool in_long_line;
	bool limit_counted;
};

/* True when nothing is left to read in the file as it was at the last look, *ret_stat. */
bool opd_perf_map_is_read(const struct opd_perf_map *perf_map, struct stat *ret_stat) OP_NONNULL;

/* now_ns: the time of the visit; horizon_ns: no older sample will come; has_ended: the process. */
struct opd_jit_times {
	uint64_t now_ns, horizon_ns;
	bool has_ended;
};

/*
 * Reads what is new, as far as the allowance goes; the next call reads on. The caller keeps the
 * file. 0, -ENOMEM, or -errno of reading.
 */
int opd_perf_map_read(struct opd_perf_map *perf_map, const struct opd_far_file *file, const struct stat *st,
		      struct opd_jit_map *map, const struct opd_jit_times *times,
		      struct opd_jit_allowance *allowance) OP_NONNULL OP_MUST_CHECK;

#endif
