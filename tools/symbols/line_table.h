/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Source lines of addresses that are known beforehand, found in a process of its own (tools/common/child.h). */
#ifndef OPR_LINE_TABLE_H
#define OPR_LINE_TABLE_H

#include "tools/symbols/symbols.h"

struct opr_line_row {
	uint64_t vma;
	uint32_t file; /* in the strings */
	uint32_t line;
};

struct opr_line_table {
	struct opr_line_row *rows; /* sorted by address; those without a line are left out */
	size_t nr_rows;
	char *strings;
	bool has_debug_info;	    /* there was something to look in */
	const char *damage, *damaged; /* what is wrong with it, in words, and in which file; NULL: nothing that was seen */
};

/*
 * Finds the lines of addresses in the image at `path`, whose debug file is looked for as opr_symbols_read_bfd does; they are sorted here. 0 with *ret_table, freed with opr_line_table_free; an error as
 * of struct opr_symbol_job.
 */
int opr_line_table_make(const char *path, const char *name, const struct opr_symbol_options *options, uint64_t *vmas,
			size_t nr_vmas, struct opr_line_table **ret_table) OP_NONNULL OP_MUST_CHECK;

/* False when the line is not known. *ret_file is valid as long as the table. */
bool opr_line_table_find(const struct opr_line_table *table, uint64_t vma, const char **ret_file,
			 unsigned int *ret_line) OP_NONNULL;

void opr_line_table_free(struct opr_line_table *table);

#endif
