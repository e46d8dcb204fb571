/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * jit-PID.dump: a process's record of its JIT code with the code itself, the times of it and source lines. It is only ever
 * appended to, and the process maps it executable so that profilers hear of it. The format is the kernel's
 * tools/perf/Documentation/jitdump-specification.txt, version 1.
 *
 * The file stays open: code bytes and lines are read out of it when an object is written (daemon/jit/object.h).
 *
 * Sync thread only.
 */
#ifndef OPD_JITDUMP_H
#define OPD_JITDUMP_H

#include "daemon/jit/perf_map.h"
#include "libop/base/compiler.h"

#define OPD_JITDUMP_MAX_BYTES ((uint64_t)4 << 30) /* what follows is not read */

struct opd_jitdump {
	int fd;                      /* -1: none */
	uint64_t offset;             /* of the next record; 0: the header was not read */
	bool arch_time;              /* its times are of another clock */
	bool other_code;             /* its code is another machine's */
	bool ended;                  /* nothing more is read: broken, closed or too long */
	uint64_t lines_of, lines_at; /* the last DEBUG_INFO: address of its function, and where it is */
};

/* One source line of a function. */
struct opd_jit_line {
	uint64_t address;
	uint32_t line;
	const char *file; /* valid until the next one */
};

/*
 * Reads what is new, at most *budget bytes, which is lowered by what was read. A record that is not whole waits; one that
 * cannot be ends the reading for good, and is counted. 0 or -ENOMEM.
 */
int opd_jitdump_read(struct opd_jitdump *dump, struct opd_jit_map *map, const struct opd_jit_times *times,
		     uint64_t *budget) OP_NONNULL OP_MUST_CHECK;

/*
 * Calls `take` for each line of the DEBUG_INFO record at lines_at, until it returns something else than 0. That, or -EBADMSG
 * when the record is no good any more, or -ENOMEM.
 */
int opd_jitdump_lines(const struct opd_jitdump *dump, uint64_t lines_at, int (*take)(void *arg, const struct opd_jit_line *line),
		      void *arg) OP_NONNULL_ARGS(1, 3) OP_MUST_CHECK;

/* Closes the file. */
void opd_jitdump_close(struct opd_jitdump *dump) OP_NONNULL;

#endif
