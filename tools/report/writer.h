/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A writer formats a report: begin, rows, end. Rows are applications with their images, symbols
 * with their details, blocks of symbols with callers and callees, or images. Each format is a table
 * of functions: write_text.c, write_csv.c, write_json.c. XML is not row by row: write_xml.h.
 */
#ifndef OPR_REPORT_WRITER_H
#define OPR_REPORT_WRITER_H

#include <math.h>

#include "tools/report/call_block.h"
#include "tools/report/image_rows.h"
#include "tools/report/quote.h"
#include "tools/common/formatting.h"
#include "tools/profile/groups.h"
#include "tools/profile/image_name.h"
#include "tools/profile/recorded.h"
#include "tools/report/summary_rows.h"
#include "tools/report/symbol_rows.h"

/* What the header says of a profile. */
struct opr_origin {
	const struct opr_profile *profile;
	const struct opr_classes *classes;
	const struct opr_recorded *recorded;
	const uint64_t *totals; /* for each class */
	/* lines of the stacks that were selected; NULL: all of them, which the ledgers count */
	const char *stacks;
};

struct opr_layout {
	struct opr_origin origin;
	struct opr_origin before; /* of the first of two profiles; else its profile is NULL */
	bool is_ours;             /* opd wrote the sessions: more than the genuine tools show */
	const struct opr_classes *classes;
	const uint64_t *totals; /* for each class */
	bool no_header, long_names;
	/* global_percent: of details and dependents */
	bool accumulated, debug_info, show_address, global_percent;
	bool symbols, images; /* what the rows are; none: the summary */
	enum opr_by by;       /* applications are groups */
	bool callgraph;       /* symbols have callers and callees */
	uint64_t nr_stacks;   /* that inclusive counts of symbols are of; 0: there are none */
	const char *stack_event;
	bool diff;            /* symbols have a change since another profile */
	bool inlined;         /* inlined functions are rows */
	bool no_addresses;    /* symbols have no vma */
	bool short_cgroups;   /* in text: names of groups as container_name.h makes them */
	bool colour;
	size_t nr_columns;                             /* of the terminal; 0: not cut */
	/* without nr_columns: arguments of templates are cut in longer names; 0: never */
	size_t name_bytes;
	size_t image_width, app_width;                 /* of the columns; 0: as in oprofile */
	bool image_column, app_column, wide_addresses; /* set by the functions that write symbols */
	const struct opr_short_names *short_names; /* set by opr_writer_init */
};

/*
 * Whether the second of two profiles has no samples of a symbol: the counts of its row are those of
 * the first. `changes`: of the row.
 */
static inline bool opr_is_gone(const struct opr_change *changes, size_t class_index)
{
	return changes && isinf(changes[class_index].percent) && changes[class_index].percent < 0;
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
	void (*end)(struct opr_writer *writer); /* may be NULL */
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
	uint64_t *cumulated;                /* of the symbols so far, for each class */
	uint64_t *detail_cumulated;         /* of the details of this symbol so far */
	struct opr_short_names names;       /* that the short names of the layout point at */
	struct opr_known_percent *percents; /* for the format: the last text of each class */
	size_t nr_rows, nr_details;         /* written so far; details: of this symbol */
};

extern const struct opr_writer_ops opr_text_writer, opr_json_writer, opr_csv_writer;

/*
 * The name of an image as the layout shows it: full, or without directories but for those that tell
 * it from another image. `shown`: the path where its file was found.
 */
const char *opr_show_name(const struct opr_writer *writer, const char *name) OP_NONNULL;
const char *opr_show_path(const struct opr_writer *writer, const char *shown, const char *name) OP_NONNULL;
const char *opr_show_app(const struct opr_writer *writer, const struct opr_symbol_row *row) OP_NONNULL;

/* Makes a writer to a stream. opr_writer_free does not close the stream. 0 or -errno. */
int opr_writer_init(struct opr_writer *writer, const struct opr_writer_ops *ops, const struct opr_layout *layout,
		    FILE *out) OP_NONNULL OP_MUST_CHECK;
void opr_writer_free(struct opr_writer *writer);

/* The source file and line of a detail; NULL and 0: not known, or not wanted. */
const char *opr_detail_line(const struct opr_writer *writer, const struct opr_symbol_row *row, const struct opr_detail *detail,
			    unsigned int *ret_line) OP_NONNULL;

/* Writes a summary, without applications below `percent` of the first class. */
void opr_report_summary(struct opr_writer *writer, const struct opr_summary *summary, double percent) OP_NONNULL;

/* Writes the rows of a symbol report in their order. */
void opr_report_symbols(struct opr_writer *writer, const struct opr_symbol_report *report) OP_NONNULL;

/* Writes a block for each row. 0 or -errno. */
int opr_report_callgraph(struct opr_writer *writer, const struct opr_symbol_report *report, const struct opr_callgraph *graph,
			 const struct opr_block_limits *limits) OP_NONNULL OP_MUST_CHECK;

/* Writes the rows of a report of images. 0 or -errno. */
int opr_report_images(struct opr_writer *writer, const struct opr_image_report *report) OP_NONNULL OP_MUST_CHECK;

#endif
