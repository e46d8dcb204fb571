/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * gmon.out, which gprof(1) reads. Source: binutils, gprof/gmon_out.h and the manual, "File Format";
 * oprofile-format, "opgprof".
 */
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
 * Writes the file of a 64-bit object. A bin is 8 bytes of code when all addresses are multiples of
 * 4, else 2. 0 with *ret_nr_full, the number of bins whose count does not fit and is 65535; -EFBIG:
 * the addresses are too far apart; -ENOMEM. The caller checks the stream for errors.
 */
int opr_gmon_write(FILE *out, const struct opr_gmon *gmon, size_t *ret_nr_full) OP_NONNULL OP_MUST_CHECK;

/* Whether a file begins like gmon.out. */
bool opr_gmon_is(int fd) OP_MUST_CHECK;

#endif
