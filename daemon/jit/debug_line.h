/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Source lines of JIT code as DWARF 4: one compilation unit without functions, whose line program has a sequence for each
 * function that has lines. What debuggers, objdump and libbfd need to find file and line of an address, and no more.
 */
#ifndef OPD_JIT_LINES_H
#define OPD_JIT_LINES_H

#include "daemon/jit/address_map.h"
#include "daemon/jit/jitdump.h"
#include "libop/base/compiler.h"
#include "libop/base/text.h"

/* The contents of three sections; empty when no function has lines. */
struct opd_jit_lines {
	struct op_text abbrev, info, line;
};

/* Of all functions of the map that have a place. To be freed with opd_jit_lines_free in any case. 0 or -ENOMEM. */
int opd_jit_lines_make(struct opd_jit_lines *lines, const struct opd_jit_map *map,
		       const struct opd_jitdump *dump) OP_NONNULL OP_MUST_CHECK;

void opd_jit_lines_free(struct opd_jit_lines *lines) OP_NONNULL;

#endif
