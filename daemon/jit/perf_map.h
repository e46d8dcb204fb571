/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * /tmp/perf-PID.map: a process's own list of its JIT code, one line for each function, "START SIZE name", both numbers in
 * hexadecimal. It is appended to while the process runs, and a later line replaces what an earlier one says of the same
 * addresses; some agents write it anew as a whole. It has no times: a line is taken to hold since the file was last written.
 *
 * Sync thread only.
 */
#ifndef OPD_PERF_MAP_H
#define OPD_PERF_MAP_H

#include <sys/stat.h>

#include "daemon/jit/address_map.h"
#include "libop/base/compiler.h"

#define OPD_PERF_MAP_MAX_BYTES ((uint64_t)64u << 20) /* what follows is not read */

/* How far a map was read. All zero: not at all. */
struct opd_perf_map {
	dev_t device;
	ino_t inode;
	uint64_t offset;       /* of what was not read yet */
	uint64_t bytes;        /* length of the file when it was looked at last */
	struct timespec mtime; /* at that time */
	uint64_t read_ns;      /* when that was, OP_CLOCK */
	uint64_t tail_hash;    /* of the bytes before the offset: a file that was written anew has others */
	bool more;             /* the budget ended the last reading */
	bool in_long_line;
	bool limit_told;
};

/* When things are. */
struct opd_jit_times {
	uint64_t now_ns, horizon_ns;
};

/*
 * Reads what is new, at most *budget bytes, which is lowered by what was read. The descriptor stays the caller's. 0 or -ENOMEM,
 * or -errno from reading.
 */
int opd_perf_map_read(struct opd_perf_map *perf_map, int fd, const struct stat *st, struct opd_jit_map *map,
		      const struct opd_jit_times *times, uint64_t *budget) OP_NONNULL OP_MUST_CHECK;

#endif
