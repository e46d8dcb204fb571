/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Reads jit-PID.dump, which has a process's JIT functions with their code, times and source lines.
 * The process only appends to the file, and maps it executable so that profilers notice it. Source
 * of the format: the kernel's tools/perf/Documentation/jitdump-specification.txt, version 1.
 *
 * The file stays open, because the object is written with code and lines from it (object.h).
 *
 * Sync thread only.
 */
#ifndef OPD_JITDUMP_H
#define OPD_JITDUMP_H

#include "libop/base/compiler.h"
#include "pipeline/jit/perf_map.h"

#define OPD_JITDUMP_MAX_BYTES ((uint64_t)4 << 30) /* later bytes are not read */

struct opd_jitdump {
	struct opd_far_file file;
	/* where it is found when its looker has ended: the mapping, its path (owned), the file */
	uint64_t start, end;
	char *path;
	dev_t device;
	ino_t inode;
	uint64_t offset; /* of the next record; 0: the header was not read yet */
	bool arch_time;  /* its times are of another clock */
	bool other_code; /* its code is for another machine */
	bool ended;      /* nothing more is read: it is damaged, closed or too long */
	/* the last DEBUG_INFO record: address of its function, and its offset in the file */
	uint64_t lines_of, lines_at;
};

/* One source line of a function. */
struct opd_jit_line {
	uint64_t address;
	uint32_t line;
	const char *file; /* valid until the next line */
	uint64_t bytes;   /* of its entry in the dump */
};

/*
 * Reads what is new, as far as the allowance goes; the next call reads on. An incomplete record is
 * read again later. A damaged record ends the reading for good and is counted. 0 or -ENOMEM.
 */
int opd_jitdump_read(struct opd_jitdump *dump, struct opd_jit_map *map, const struct opd_jit_times *times,
		     struct opd_jit_allowance *allowance) OP_NONNULL OP_MUST_CHECK;

/*
 * Calls `take` for each line of the DEBUG_INFO record at lines_at until it returns another value
 * than 0. Returns that value, -EBADMSG when the record is damaged or cannot be read, or -ENOMEM.
 */
int opd_jitdump_lines(const struct opd_jitdump *dump, uint64_t lines_at, int (*take)(void *arg, const struct opd_jit_line *line),
		      void *arg) OP_NONNULL_ARGS(1, 3) OP_MUST_CHECK;

/* Closes it and frees the path. */
void opd_jitdump_close(struct opd_jitdump *dump) OP_NONNULL;

#endif
