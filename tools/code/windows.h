/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which parts of code that is too large to be listed whole are listed: what is around its samples. */
#ifndef OPR_CODE_WINDOWS_H
#define OPR_CODE_WINDOWS_H

#include "libop/base/compiler.h"

#define OPR_CODE_AROUND_BYTES 128 /* on each side of a sample */
#define OPR_CODE_LEAD_BYTES   256 /* taken apart before a window, and not shown: from a guessed address one soon comes to true ones */

struct opr_code_point {
	uint64_t vma, count;
};

struct opr_code_window {
	uint64_t start, end;
};

/*
 * The windows around points, which are sorted by address, that lie from `start` up to `end`; what is outside is passed over. When all of them, with what is read before each, are more than
 * bytes_max, those with most samples are taken, as many as there is room for. Sorted, none touches another; freed by the caller. 0 or -ENOMEM.
 */
int opr_code_windows(const struct opr_code_point *points, size_t nr_points, uint64_t start, uint64_t end, uint64_t bytes_max,
		     struct opr_code_window **ret_windows, size_t *ret_nr_windows) OP_NONNULL_ARGS(6, 7) OP_MUST_CHECK;

/* Bytes that are read for windows of an area that begins at `start`. */
uint64_t opr_code_windows_bytes(const struct opr_code_window *windows, size_t nr_windows, uint64_t start) OP_NONNULL;

#endif
