/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The rows of a symbol report: the counts of each symbol and, for details, of each address in it.
 */
#ifndef OPR_SYMBOL_ROWS_H
#define OPR_SYMBOL_ROWS_H

#include "libop/session/memory_view.h"
#include "tools/common/words.h"
#include "tools/symbols/image_cache.h"
#include "tools/profile/query.h"
#include "tools/symbols/symbols.h"

/* Counts stand in one array for all rows: `counts` is the index of the first of nr_classes. */
struct opr_counts {
	uint64_t *values;
	size_t nr_values, capacity;
};

/* One address in a symbol. */
struct opr_detail {
	uint64_t vma;
	size_t counts; /* in detail_counts of the report */
};

/* What became of a symbol since another profile, in one class. */
struct opr_change {
	/* of its share, in percent of the share before; INFINITY: new; -INFINITY: gone */
	double percent;
	double points; /* the same in points of percent of all samples */
	bool is_noise; /* no more than two standard errors of the difference of the shares */
};

#define OPR_REST_NAME "(other functions)"

struct opr_symbol_row {
	const char *name;
	const char *app, *image;             /* full names */
	const char *app_shown, *image_shown; /* where the files were found */
	const struct opr_symbols *symbols;   /* for source lines */
	const struct opr_symbol *symbol;     /* NULL: the image as a whole */
	const struct opr_frame *inlined;     /* the inlined function of the row; NULL: none */
	char *file;                          /* source file; NULL: not known, or not wanted */
	uint64_t vma;
	const struct opr_change *changes; /* for each class; NULL: no other profile */
	uint64_t inclusive; /* stack samples that have the symbol; of a call graph with nr_stacks */
	size_t counts; /* in counts of the report */
	size_t first_detail;
	uint32_t nr_details; /* of one symbol: 2^32 would take 64 GB */
	/* index at the time when the row was made; opr_symbol_sort takes no more */
	uint32_t order;
	uint32_t line;
	bool hidden;         /* the row is only an end of calls: opr_symbol_report_limit drops it */
	bool is_self;        /* in a list of callees: the samples of the symbol itself */
	bool is_rest;        /* of functions that a minute does not keep apart: OPR_REST_NAME */
};

struct opr_symbol_report {
	size_t nr_classes;
	struct opr_symbol_row *rows;
	size_t nr_rows, rows_capacity;
	size_t nr_made;             /* all rows; those that were dropped stand behind the others */
	size_t nr_limits;           /* classes that the threshold applies to */
	struct opr_detail *details; /* by address within a row; only where details are wanted */
	size_t nr_details, details_capacity;
	struct opr_counts counts, detail_counts;
	uint64_t *totals; /* of all rows that were made, for each class */
	bool no_addresses; /* the rows have no vma */
};

#define OPR_NR_FACTS (1u << OP_MEM_FACT_BITS)

/* Adds a copy of a row, with counts of 0 and its order. 0 and the index of the row, or -errno. */
int opr_symbol_report_add(struct opr_symbol_report *report, const struct opr_symbol_row *row,
			  size_t *ret_index) OP_NONNULL OP_MUST_CHECK;

/* Adds nr_classes counts of 0. False without memory. */
bool opr_counts_add(struct opr_counts *counts, size_t nr_classes, size_t *ret_index) OP_NONNULL OP_MUST_CHECK;

/*
 * Adds to `bases` the words that no symbol of the cache's images has as a name. Reads the symbols
 * that were not read yet. 0 or -ENOMEM.
 */
int opr_symbol_names_find_bases(const struct opr_words *names, struct opr_image_cache *cache,
				struct opr_words *bases) OP_NONNULL OP_MUST_CHECK;

/* Whether one of the names is that of a function of a chain; `frame` NULL: there is no chain. */
bool opr_frame_is_named(const struct opr_words *names, const struct opr_words *bases, const struct opr_frame *frame)
	OP_NONNULL_ARGS(1);

/* Whether one of the names is that of a symbol; `symbol` NULL: of the image as a whole. */
bool opr_symbol_is_named(const struct opr_words *names, const struct opr_words *bases, const struct opr_symbol *symbol,
			 const char *image) OP_NONNULL_ARGS(1, 4);

/* Whether the query selects a symbol; the arguments are those of opr_symbol_is_named. */
bool opr_symbol_is_wanted(const struct opr_query *query, const struct opr_words *bases, const struct opr_symbol *symbol,
			  const char *image) OP_NONNULL_ARGS(1, 4);

/*
 * Looks for names of `include` that no row has. Each is a warning, with the symbol of the cache's
 * images that comes near. 0; -ENOENT after a message: no row has any of the names.
 */
int opr_symbol_report_check_names(const struct opr_symbol_report *report, const struct opr_image_cache *cache,
				  const struct opr_words *include, const struct opr_words *bases) OP_NONNULL OP_MUST_CHECK;

/*
 * Drops all rows but the first nr_rows, and of each row all details but the nr_rows with most
 * samples. 0 or -ENOMEM.
 */
int opr_symbol_report_top(struct opr_symbol_report *report, size_t nr_rows) OP_NONNULL OP_MUST_CHECK;

/* Drops rows below `percent` of the total in each of the first nr_limits classes. Totals stay. */
void opr_symbol_report_limit(struct opr_symbol_report *report, double percent) OP_NONNULL;

void opr_symbol_report_free(struct opr_symbol_report *report);

/*
 * Makes opr_symbols_line answer for the rows and details, with_frames opr_symbols_frame, too. 0 or
 * -errno.
 */
int opr_symbol_report_find_lines(struct opr_symbol_report *report, struct opr_image_cache *cache,
				 bool with_frames) OP_NONNULL OP_MUST_CHECK;

/* After that: sets file and line of the rows. 0 or -errno. */
int opr_symbol_report_set_lines(struct opr_symbol_report *report) OP_NONNULL OP_MUST_CHECK;

#endif
