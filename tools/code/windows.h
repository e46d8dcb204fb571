/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which parts of large code are listed: the surroundings of its samples. */
#ifndef OPR_CODE_WINDOWS_H
#define OPR_CODE_WINDOWS_H

#include "libop/base/compiler.h"

#define OPR_CODE_AROUND_BYTES 128 /* on each side of a sample */

/*
 * Disassembled before a window and not shown: the start may lie within an instruction, and after a
 * few instructions the addresses are right.
 */
#define OPR_CODE_LEAD_BYTES 256

struct opr_code_point {
	uint64_t vma, count;
};

struct opr_code_window {
	uint64_t start, end;
};

/*
 * Chooses the windows around those points that lie from `start` to `end`, exclusive; points are
 * sorted by address. When all windows with their leads have more than bytes_max, the points with
 * the most samples come first. The windows are sorted and do not touch. Freed by the caller. 0 or
 * -ENOMEM.
 */
int opr_code_windows(const struct opr_code_point *points, size_t nr_points, uint64_t start, uint64_t end, uint64_t bytes_max,
		     struct opr_code_window **ret_windows, size_t *ret_nr_windows) OP_NONNULL_ARGS(6, 7) OP_MUST_CHECK;

/* How many bytes the windows of an area, which begins at `start`, have with their leads. */
uint64_t opr_code_windows_bytes(const struct opr_code_window *windows, size_t nr_windows, uint64_t start) OP_NONNULL;

#endif
