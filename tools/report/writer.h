/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Writers turn a report into text. A report is: begin, then rows, then end. Rows are applications, each followed by its images, or symbols, each followed by
 * its details, or blocks of symbols with their callers and callees, or images. write_text.c is the layout of oprofile, write_csv.c and write_json.c are
 * for programs.
 */
#ifndef OPR_REPORT_WRITER_H
#define OPR_REPORT_WRITER_H

#include <math.h>

#include "tools/report/callgraph.h"
#include "tools/report/image_rows.h"
#include "tools/common/format.h"
#include "tools/report/summary_rows.h"
#include "tools/report/symbol_rows.h"

struct opr_layout {
	const struct opr_profile *profile; /* whose ledgers are shown to programs; NULL: none are */
	const struct opr_classes *classes;
	const uint64_t *totals; /* one for each class */
	bool no_header, long_names;
	bool accumulated, debug_info, show_address, global_percent; /* the last: of details and dependents */
	bool symbols, images;                                       /* rows are symbols, or images */
	bool callgraph;                                             /* with their callers and callees */
	bool diff;                                                  /* with the change since another profile */
	bool colour;
	size_t nr_columns;                                          /* of the terminal; 0: lines may be of any length */
	size_t image_width, app_width;                              /* likewise; 0: what oprofile has */
	bool image_column, app_column, wide_addresses;              /* opr_report_symbols decides these three */
};

/* In the second of two profiles a symbol has no samples: the counts of its row are those of the first. `changes` are the row's. */
static inline bool opr_is_gone(const double *changes, size_t class_index)
{
	return changes && isinf(changes[class_index]) && changes[class_index] < 0;
}

struct opr_writer;

struct opr_writer_ops {
	void (*begin)(struct opr_writer *writer);
	void (*application)(struct opr_writer *writer, const struct opr_application *application);
	void (*symbol)(struct opr_writer *writer, const struct opr_symbol_row *row, const uint64_t *counts);
	void (*detail)(struct opr_writer *writer, const struct opr_symbol_row *row, const struct opr_detail *detail,
		       const uint64_t *symbol_counts, const uint64_t *counts);
	void (*block)(struct opr_writer *writer, const struct opr_block *block, const struct opr_symbol_report *report);
	void (*image)(struct opr_writer *writer, const struct opr_image_row *row, const char *hint);
	void (*end)(struct opr_writer *writer); /* NULL: nothing is written at the end */
};

struct opr_known_percent {
	bool is_known;
	uint64_t count, total;
	struct opr_percent_text text;
};

struct opr_writer {
	const struct opr_writer_ops *ops;
	struct opr_layout layout;
	FILE *out;
	uint64_t *cumulated;        /* of the symbols so far, one for each class */
	uint64_t *detail_cumulated; /* of the details of this symbol so far */
	struct opr_known_percent *percents; /* for the back end: what it wrote last, one for each class */
	size_t nr_rows, nr_details; /* written so far; the second of this symbol */
};

extern const struct opr_writer_ops opr_text_writer, opr_json_writer, opr_csv_writer;

/* How an image is shown: the name it has in full, or without its directories; `shown` is where it was found. */
const char *opr_show_name(const struct opr_writer *writer, const char *name) OP_NONNULL;
const char *opr_show_path(const struct opr_writer *writer, const char *shown, const char *name) OP_NONNULL;

/* A string of JSON with its quotes, a field of CSV. */
void opr_write_json(FILE *out, const char *string) OP_NONNULL;
void opr_write_csv(FILE *out, const char *text) OP_NONNULL;

/* A writer of one kind to a stream; opr_writer_free frees what it holds, not the stream. 0 or -errno. */
int opr_writer_init(struct opr_writer *writer, const struct opr_writer_ops *ops, const struct opr_layout *layout,
		    FILE *out) OP_NONNULL OP_MUST_CHECK;
void opr_writer_free(struct opr_writer *writer);

/* The source file of a detail and its line there, 0 and NULL when it is not known or not asked for. */
const char *opr_detail_line(const struct opr_writer *writer, const struct opr_symbol_row *row, const struct opr_detail *detail,
			    unsigned int *ret_line) OP_NONNULL;

/* Writes a summary; applications below `percent` of the first class are left out. */
void opr_report_summary(struct opr_writer *writer, const struct opr_summary *summary, double percent) OP_NONNULL;

/* Writes the rows of a symbol report as they stand. */
void opr_report_symbols(struct opr_writer *writer, const struct opr_symbol_report *report) OP_NONNULL;

/* Writes a block for each row; callers and callees below `percent` are left out. 0 or -errno. */
int opr_report_callgraph(struct opr_writer *writer, const struct opr_symbol_report *report, const struct opr_callgraph *graph,
			 double percent) OP_NONNULL OP_MUST_CHECK;

/* Writes the rows of a report of images. 0 or -errno. */
int opr_report_images(struct opr_writer *writer, const struct opr_image_report *report) OP_NONNULL OP_MUST_CHECK;

#endif
