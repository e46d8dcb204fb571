/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Source lines of addresses, through libdw, or from the table of a Go program. This belongs in a
 * child process (dwarf_file.h); line_table.h starts one.
 */
#ifndef OPR_LINES_H
#define OPR_LINES_H

#include "libop/base/compiler.h"

struct opr_file_read;
struct opr_lines;

/*
 * Opens the debugging information of the image at `path`, else of its debug file; the arguments are
 * those of struct opr_debug_search. A Go program without it has lines without inlined functions.
 * `file`: the one that the addresses are of; NULL: the one at the path. 0 with *ret_lines, which is
 * NULL when nothing has lines; -ENOEXEC: no object file; -ESTALE: another file; -ENOMEM.
 */
int opr_lines_open(const char *path, const char *name, const char *root, const struct opr_file_read *file,
		   struct opr_lines **ret_lines) OP_NONNULL_ARGS(1, 2, 5) OP_MUST_CHECK;

/* False: the line is not known. *ret_file is valid until the lines are closed. */
bool opr_lines_find(struct opr_lines *lines, uint64_t vma, const char **ret_file, unsigned int *ret_line) OP_NONNULL;

/* A function, and a place in it: where the address is, or a call that the compiler inlined. */
struct opr_place {
	const char *function; /* not demangled; NULL: not known */
	const char *file;     /* NULL: not known */
	unsigned int line;    /* 0: not known */
};

#define OPR_PLACES_MAX 128 /* of one address; what is further out is left out */

/*
 * The places of an address as llvm-symbolizer shows them: the innermost inlined function with the
 * line of the address, then each function into which the one before was inlined, with the line of
 * the call. Returns their number: 0: nothing is known; 1: no inlined function. The strings are
 * valid until the lines are closed.
 */
size_t opr_lines_places(struct opr_lines *lines, uint64_t vma, struct opr_place places[OPR_PLACES_MAX]) OP_NONNULL;

/*
 * What is wrong with the debugging information, in words; NULL: nothing is known to be wrong. Call
 * it after the lookups: libbfd reports damage when it meets it. libbfd does not report that it
 * cannot follow the units of .debug_info, so when no lookup succeeded (`found` is false) their
 * headers are checked. The text is valid until the next call, *ret_path until the lines are closed.
 */
const char *opr_lines_damage(struct opr_lines *lines, bool found, const char **ret_path) OP_NONNULL OP_MUST_CHECK;

/* The damage after a lookup of some addresses. Large debugging information is not checked. */
struct bfd;
const char *opr_lines_probe(struct bfd *abfd, const char *root) OP_NONNULL_ARGS(1) OP_MUST_CHECK;

/* NULL is allowed. */
void opr_lines_close(struct opr_lines *lines);

/* Warns the user of damaged debugging information. */
void opr_lines_warn_damage(const char *path, const char *damage) OP_NONNULL;

#endif
