/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Line numbers of an object file, and the debug file that may hold them: what symbols.c and bfd_file.c share. */
#ifndef OPR_SYMBOLS_LINES_H
#define OPR_SYMBOLS_LINES_H

#include "libop/base/compiler.h"

struct opr_lines;

/* Source file and line of an address. False when they are not known. */
bool opr_lines_find(struct opr_lines *lines, uint64_t vma, const char **ret_file, unsigned int *ret_line) OP_NONNULL;

/* opr_debug_damage (debug_damage.h) with the file that it is of, which stays as long as the lines. */
const char *opr_lines_damage(const struct opr_lines *lines, bool found, const char **ret_path) OP_NONNULL OP_MUST_CHECK;

/* Closes the file; NULL is allowed. */
void opr_lines_free(struct opr_lines *lines);

#endif
