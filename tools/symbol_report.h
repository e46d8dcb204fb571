/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Counts per symbol, and per address in it, of a whole profile. */
#ifndef OPR_SYMBOL_REPORT_H
#define OPR_SYMBOL_REPORT_H

#include "tools/image_cache.h"
#include "tools/profile_classes.h"

struct opr_detail {
	uint64_t vma;
	size_t counts; /* index of the first of nr_classes in detail_counts */
};

struct opr_symbol_row {
	const char *name;
	const char *app, *image;             /* in full */
	const char *app_shown, *image_shown; /* where they were found */
	const struct opr_symbols *symbols;   /* for line numbers */
	char *file;                          /* NULL: no line number is known, or none was asked for */
	unsigned int line;
	uint64_t vma;
	size_t counts; /* index of the first of nr_classes in counts */
	size_t first_detail, nr_details;
	size_t order;
};

struct opr_counts {
	uint64_t *values;
	size_t nr_values, capacity;
};

struct opr_symbol_report {
	size_t nr_classes;
	struct opr_symbol_row *rows;
	size_t nr_rows, rows_capacity;
	struct opr_detail *details; /* by address within a row; empty unless they were asked for */
	size_t nr_details, details_capacity;
	struct opr_counts counts, detail_counts;
	uint64_t *totals; /* of the rows, one for each class */
};

struct opr_symbol_choice {
	const struct opr_words *include, *exclude; /* names as the files have them; empty: no filter */
	bool details, lines;
};

/*
 * Reads all files of an arranged profile and gives each sample to a symbol. A sample that lies in none is left out. To be freed with
 * opr_symbol_report_free in any case. 0 or -errno.
 */
int opr_symbol_report_make(struct opr_symbol_report *report, const struct opr_profile *profile, size_t nr_classes,
			   struct opr_image_cache *cache, const struct opr_symbol_choice *choice) OP_NONNULL OP_MUST_CHECK;

/* Drops rows that have less than `percent` of the total in every class; totals stay. */
void opr_symbol_report_limit(struct opr_symbol_report *report, double percent) OP_NONNULL;

void opr_symbol_report_free(struct opr_symbol_report *report);

#endif
