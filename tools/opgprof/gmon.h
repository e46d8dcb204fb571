/* SPDX-License-Identifier: GPL-3.0-or-later */
/* gmon.out, which gprof(1) reads. Source: binutils, gprof/gmon_out.h and the manual, "File Format"; oprofile-format, "opgprof". */
#ifndef OPR_GMON_H
#define OPR_GMON_H

#include "libop/base/compiler.h"

struct opr_gmon_sample {
	uint64_t vma, count;
};

struct opr_gmon_arc {
	uint64_t from, to, count; /* addresses in the caller and of the callee */
};

struct opr_gmon {
	struct opr_gmon_sample *samples;
	size_t nr_samples;
	struct opr_gmon_arc *arcs;
	size_t nr_arcs;
};

/*
 * Writes the file, for an object of 64 bits. Bins are of 8 bytes of code when every address is a multiple of 4, else of 2. 0 with *ret_nr_full, the number of bins
 * whose count did not fit and is 65535; -EFBIG when the addresses are too far from each other; -ENOMEM. An error of the stream is for the caller to see.
 */
int opr_gmon_write(FILE *out, const struct opr_gmon *gmon, size_t *ret_nr_full) OP_NONNULL OP_MUST_CHECK;

/* True when what is read from the descriptor begins as such a file does. */
bool opr_gmon_is(int fd) OP_MUST_CHECK;

#endif
