/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The first error in a perf.data file, for a message. One thread. */
#ifndef OP_PERF_TROUBLE_H
#define OP_PERF_TROUBLE_H

#include "libop/base/compiler.h"

#define OP_PERF_FILE_NAME_BYTES 16

struct op_perf_trouble {
	const char *what; /* in words; NULL: no error */
	/* in the file; that of the compressed record when the error is inside one */
	uint64_t offset;
	int err;          /* -errno of reading; 0: the file is damaged */
	uint64_t nr_more; /* further errors */
	char file[OP_PERF_FILE_NAME_BYTES]; /* of a directory; empty: there is only one file */
};

/* Records an error, or counts it when there was one before. */
void op_perf_trouble_note(struct op_perf_trouble *trouble, const char *file, uint64_t offset, const char *what, int err) OP_NONNULL;

#endif
