/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Source lines of addresses, through libbfd. opr_lines_* belong in a child process (bfd_file.h);
 * opr_line_table_* run one and keep what it found.
 */
#ifndef OPR_LINES_H
#define OPR_LINES_H

#include "libop/base/compiler.h"

/* ---- in the child ---- */

struct opr_lines;

/*
 * Opens the debugging information of the image at `path`, else of its debug file; the arguments are
 * those of struct opr_debug_search. 0 with *ret_lines, which is NULL when there is no debugging
 * information; -ENOEXEC: no object file; -ENOMEM.
 */
int opr_lines_open(const char *path, const char *name, const char *root,
		   struct opr_lines **ret_lines) OP_NONNULL_ARGS(1, 2, 4) OP_MUST_CHECK;

/* False: the line is not known. *ret_file is valid until the lines are closed. */
bool opr_lines_find(struct opr_lines *lines, uint64_t vma, const char **ret_file, unsigned int *ret_line) OP_NONNULL;

/*
 * What is wrong with the debugging information, in words; NULL: nothing is known to be wrong. Call
 * it after the lookups: libbfd reports damage when it meets it. libbfd does not report that it
 * cannot follow the units of .debug_info, so when no lookup succeeded (`found` is false) their
 * headers are checked. The text is valid until the next call, *ret_path until the lines are closed.
 */
const char *opr_lines_damage(const struct opr_lines *lines, bool found, const char **ret_path) OP_NONNULL OP_MUST_CHECK;

/* The damage after a lookup of some addresses. Large debugging information is not checked. */
struct bfd;
const char *opr_lines_probe(struct bfd *abfd) OP_NONNULL OP_MUST_CHECK;

/* NULL is allowed. */
void opr_lines_close(struct opr_lines *lines);

/* ---- in the parent ---- */

struct opr_line_row {
	uint64_t vma;
	uint32_t file; /* offset in the strings */
	uint32_t line;
};

struct opr_line_table {
	struct opr_line_row *rows; /* sorted by address; addresses without a line have none */
	size_t nr_rows;
	char *strings;
	bool has_debug_info;	      /* the image or its debug file has it */
	/* what is wrong with it, and in which file; NULL: nothing is known to be wrong */
	const char *damage, *damaged;
};

/*
 * Looks up the addresses, which are sorted here, in the image at `path` or its debug file; path,
 * name and root are those of struct opr_debug_search. 0 with *ret_table, freed with
 * opr_line_table_free; another result is for opr_child_reason.
 */
int opr_line_table_make(const char *path, const char *name, const char *root, uint64_t *vmas, size_t nr_vmas,
			struct opr_line_table **ret_table) OP_NONNULL_ARGS(1, 2, 6) OP_MUST_CHECK;

/* False: the line is not known. *ret_file is valid as long as the table. */
bool opr_line_table_find(const struct opr_line_table *table, uint64_t vma, const char **ret_file,
			 unsigned int *ret_line) OP_NONNULL;

void opr_line_table_free(struct opr_line_table *table);

/* Warns the user of damaged debugging information. */
void opr_lines_warn_damage(const char *path, const char *damage) OP_NONNULL;

#endif
