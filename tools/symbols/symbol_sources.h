/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The sources of symbols, one file read_SOURCE.c each. A new source has its function here and
 * builds the table with opr_symbols_add, opr_symbols_finish and opr_symbols_demangle (symbols.h).
 */
#ifndef OPR_SYMBOLS_READ_H
#define OPR_SYMBOLS_READ_H

#include "tools/symbols/symbols.h"

/*
 * Reads the symbols of the object file at `path`, or of its separate debug file. `name` is the path
 * that the image had when it was sampled. 0, also without symbols; -ENOEXEC: no object file;
 * another -errno. Prints nothing. Hostile files crash or hang it: call it in a child process
 * (parallel_read.h).
 */
int opr_symbols_read_bfd(struct opr_symbols *symbols, const char *path, const char *name,
			 const struct opr_symbol_options *options) OP_NONNULL OP_MUST_CHECK;

/*
 * Reads kernel symbols in the format of /proc/kallsyms. 0; -EPERM: all addresses are hidden;
 * another -errno. Prints nothing.
 */
int opr_symbols_read_kallsyms(struct opr_symbols *symbols, const char *path, enum opr_demangle demangle) OP_NONNULL OP_MUST_CHECK;

#endif
