/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Counts per symbol, and per address in it, of a whole profile. */
#ifndef OPR_SYMBOL_REPORT_H
#define OPR_SYMBOL_REPORT_H

#include "libop/session/memory_view.h"
#include "tools/profile/image_cache.h"
#include "tools/profile/classes.h"

struct opr_detail {
	uint64_t vma;
	size_t counts; /* index of the first of nr_classes in detail_counts */
};

struct opr_symbol_row {
	const char *name;
	const char *app, *image;             /* in full */
	const char *app_shown, *image_shown; /* where they were found */
	const struct opr_symbols *symbols;   /* for line numbers */
	const struct opr_symbol *symbol;     /* NULL: the image as a whole */
	char *file;                          /* NULL: no line number is known, or none was asked for */
	unsigned int line;
	uint64_t vma;
	size_t counts; /* index of the first of nr_classes in counts */
	size_t first_detail, nr_details;
	const double *changes;               /* since another profile, in percent, one for each class; NULL: there is none to compare with */
	size_t order; /* index when it was made */
	bool hidden;  /* only of use as an end of calls: opr_symbol_report_limit drops it */
	bool is_self; /* in a list of callees: the samples of the symbol itself */
};

struct opr_counts {
	uint64_t *values;
	size_t nr_values, capacity;
};

struct opr_symbol_report {
	size_t nr_classes;
	struct opr_symbol_row *rows;
	size_t nr_rows, rows_capacity;
	size_t nr_made; /* rows with those that were dropped, which stand behind the others */
	size_t nr_limits; /* classes that the threshold looks at */
	struct opr_detail *details; /* by address within a row; empty unless they were asked for */
	size_t nr_details, details_capacity;
	struct opr_counts counts, detail_counts;
	uint64_t *totals; /* of the rows, one for each class */
};

#define OPR_NR_FACTS (1u << OP_MEM_FACT_BITS)

struct opr_symbol_choice {
	const struct opr_words *include, *exclude; /* names as the files have them; empty: no filter */
	bool details, lines;
	bool facts;     /* the files are of the memory view: a class is a fact, and there are OPR_NR_FACTS */
	bool demangled; /* include and exclude may name what is shown, too */
};

/*
 * Reads all files of an arranged profile and gives each sample to a symbol. A sample that lies in none is left out. To be freed with
 * opr_symbol_report_free in any case. 0 or -errno.
 */
int opr_symbol_report_make(struct opr_symbol_report *report, const struct opr_profile *profile, size_t nr_classes,
			   struct opr_image_cache *cache, const struct opr_symbol_choice *choice) OP_NONNULL OP_MUST_CHECK;

/*
 * Adds a row without samples, a copy of *row; the order and the counts are filled in. 0 with its index, or -errno.
 */
int opr_symbol_report_add(struct opr_symbol_report *report, const struct opr_symbol_row *row, size_t *ret_index) OP_NONNULL OP_MUST_CHECK;

/* Finds the source lines of rows and details. 0 or -errno. */
int opr_symbol_report_find_lines(struct opr_symbol_report *report, struct opr_image_cache *cache) OP_NONNULL OP_MUST_CHECK;

/* Room for nr_classes counts, all 0. False without memory. */
bool opr_counts_add(struct opr_counts *counts, size_t nr_classes, size_t *ret_index) OP_NONNULL OP_MUST_CHECK;

/* True when include and exclude let a symbol through; NULL: the image as a whole. */
bool opr_symbol_is_wanted(const struct opr_symbol_choice *choice, const struct opr_symbol *symbol,
			  const char *image) OP_NONNULL_ARGS(1, 3);

/* What makes a key of a file a position in its image. */
uint64_t opr_position_offset(const struct opr_image *image, bool is_kernel, uint64_t anon_start) OP_NONNULL;

/* Keeps the first nr_rows rows. */
void opr_symbol_report_top(struct opr_symbol_report *report, size_t nr_rows) OP_NONNULL;

/* Drops rows that have less than `percent` of the total in every class that counts; totals stay. */
void opr_symbol_report_limit(struct opr_symbol_report *report, double percent) OP_NONNULL;

void opr_symbol_report_free(struct opr_symbol_report *report);

#endif
