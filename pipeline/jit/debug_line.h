/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Source lines of JIT code as DWARF 4: one compilation unit without functions, whose line program
 * has a sequence for each function with lines. Debuggers, objdump and libbfd need no more to find
 * the file and line of an address.
 */
#ifndef OPD_JIT_LINES_H
#define OPD_JIT_LINES_H

#include "libop/base/compiler.h"
#include "libop/base/text.h"
#include "pipeline/jit/address_map.h"
#include "pipeline/jit/jitdump.h"

/* The contents of three sections. Empty when no function has lines. */
struct opd_jit_lines {
	struct op_text abbrev, info, line;
};

/*
 * Makes the sections for all sampled functions of the map. opd_jit_lines_free frees them in any
 * case. 0 or -ENOMEM.
 */
int opd_jit_lines_make(struct opd_jit_lines *lines, const struct opd_jit_map *map,
		       const struct opd_jitdump *dump) OP_NONNULL OP_MUST_CHECK;

void opd_jit_lines_free(struct opd_jit_lines *lines) OP_NONNULL;

#endif
