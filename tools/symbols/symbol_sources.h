/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The sources of symbols, one file read_SOURCE.c each; --symbols-from chooses them (source_set.h).
 *
 * An object file has several, and opr_symbols_read_bfd merges them:
 *   1 symbols of .symtab, of the debug file or of the image. Each reaches to the next symbol or to
 *     the end of its section, as in oprofile.
 *   2 symbols with a size, of .dynsym, .gnu_debugdata and .gopclntab, then entries of the PLT. Each
 *     ends at its size or at the next symbol, whichever comes first.
 *   Of two symbols at one address the one that comes first in this list is kept; within a source
 *   the one with the smaller rank (opr_symbol_rank).
 *   3 function ranges of .eh_frame. They have only what no symbol has.
 *
 * A new source of an object file is a function opr_symbols_add_X, which add_others of read_object.c
 * calls before opr_symbols_finish. opr_symbols_read_table is a source for images
 * without an object file: opr_image_load of tools/symbols/image_cache.c calls it.
 */
#ifndef OPR_SYMBOLS_READ_H
#define OPR_SYMBOLS_READ_H

#include "tools/elf/frame_ranges.h"
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

/*
 * Opens the row table that opd kept below table_dir for the image with this build-id, full digits.
 * A descriptor, which the caller closes; -ENOENT: there is none.
 */
int opr_table_open(const char *table_dir, const char *build_id) OP_NONNULL OP_MUST_CHECK;

/*
 * Reads the functions of the image with this build-id, full digits, from the row table that opd
 * kept below table_dir. 0; -ENOENT: there is none; -EBADMSG: it is damaged; another -errno. Prints
 * nothing.
 */
int opr_symbols_read_table(struct opr_symbols *symbols, const char *table_dir, const char *build_id,
			   enum opr_demangle demangle) OP_NONNULL OP_MUST_CHECK;

/*
 * ---- sources of an object file ----
 *
 * 0, also when the file has none; -errno. The sections must be set before. A damaged table is noted
 * in is_damaged.
 */

#define OPR_DEBUGDATA ".gnu_debugdata" /* gdb(1), "MiniDebugInfo" */
#define OPR_FRAMES    ".eh_frame"

/* .dynsym and .gnu_debugdata; the ranges end functions that have no size. */
int opr_symbols_add_exported(struct opr_symbols *symbols, const struct opr_elf *elf,
			     const struct opr_ranges *ranges) OP_NONNULL OP_MUST_CHECK;
int opr_symbols_add_debugdata(struct opr_symbols *symbols, const struct opr_elf *elf,
			      const struct opr_ranges *ranges) OP_NONNULL OP_MUST_CHECK;

/* Functions of a Go program without .symtab, which has their names for its runtime. */
int opr_symbols_add_go(struct opr_symbols *symbols, const struct opr_elf *elf) OP_NONNULL OP_MUST_CHECK;

/* Entries of the PLT. `table`: .symtab with its nr_symbols; NULL: none. */
struct bfd;
struct bfd_symbol;
int opr_symbols_add_plt(struct opr_symbols *symbols, struct bfd *image, struct bfd_symbol **table, long nr_symbols)
	OP_NONNULL_ARGS(1, 2) OP_MUST_CHECK;

/* Then, after opr_symbols_finish: names the entries that libbfd names by an address alone. */
int opr_symbols_name_chosen(struct opr_symbols *symbols) OP_NONNULL OP_MUST_CHECK;

/* Functions without a name, after opr_symbols_finish. */
int opr_symbols_add_ranges(struct opr_symbols *symbols, const struct opr_ranges *ranges) OP_NONNULL OP_MUST_CHECK;

#endif
