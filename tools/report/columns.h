/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The columns of a report are a table: what each format calls a column, when it is shown, and how
 * it is written. A new column is a row of the table, and a field of struct opr_symbol_row that
 * make_rows.c sets. XML has its own writer.
 */
#ifndef OPR_REPORT_COLUMNS_H
#define OPR_REPORT_COLUMNS_H

#include "tools/report/text_line.h"

/* Where the text format has a column; columns of the same place stand in the order of the table. */
enum opr_place {
	OPR_PLACE_NONE,
	OPR_PLACE_ADDRESS, /* left of the counts */
	OPR_PLACE_CLASS,   /* once for each class */
	OPR_PLACE_ROW,     /* right of the counts */
	OPR_PLACE_IMAGE,
	OPR_PLACE_NAME, /* the last one, which the edge of a terminal cuts */
	OPR_NR_PLACES,
};

/* A row, or a detail of it, that is written. */
struct opr_cell {
	struct opr_writer *writer;
	const struct opr_symbol_row *row; /* NULL: an application or an image */
	const char *kind, *around;        /* for CSV */
	uint64_t vma;
	const char *file; /* NULL: not known */
	unsigned int line;
	const uint64_t *counts, *totals;  /* for each class */
	const uint64_t *cumulated;        /* NULL: there are none */
	const struct opr_change *changes; /* NULL: no other profile */
	size_t index;                     /* of the class */
};

#define OPR_CSV_TITLES_MAX 4

#define OPR_NOISE_MARK "~" /* behind a change in text: it is within noise */

struct opr_column {
	/* in text; in a title of a class, "samples" stands for its unit */
	enum opr_place place;
	const char *title;
	size_t width;
	/* in CSV, of one or several fields; a column of a class has the class before its title */
	const char *csv_titles[OPR_CSV_TITLES_MAX];
	/* in JSON, of columns of a class: an array with a value for each class */
	const char *json_name;
	bool is_of_class;
	bool is_of_detail;   /* details have it, too: in text and in JSON */
	bool is_of_change;   /* only rows with a change have it */
	bool is_accumulated; /* in JSON, only rows with accumulated counts have it */
	bool is_unquoted;    /* the titles in CSV */
	/* whether a report in the format has the column; NULL: always */
	bool (*is_in_text)(const struct opr_layout *layout);
	bool (*is_in_csv)(const struct opr_layout *layout);
	bool (*is_in_json)(const struct opr_layout *layout);
	/* in text, where they depend on the layout */
	const char *(*title_of)(const struct opr_layout *layout);
	size_t (*width_of)(const struct opr_layout *layout);
	/* NULL: the format does not have the column */
	void (*text)(const struct opr_cell *cell, struct opr_line *line, size_t width);
	void (*csv)(const struct opr_cell *cell, FILE *out); /* without the comma before it */
	/* of a class: the value; else members, with a comma behind each */
	void (*json)(const struct opr_cell *cell, FILE *out);
};

/* In the order of CSV and JSON. A row without any function ends the table. */
extern const struct opr_column opr_columns[];
#define OPR_EACH_COLUMN(column) \
	(const struct opr_column *column = opr_columns; column->text || column->csv || column->json; column++)

/* Whether a text has the column, its title, and its width. */
bool opr_column_is_in_text(const struct opr_column *column, const struct opr_layout *layout) OP_NONNULL;
const char *opr_column_title(const struct opr_column *column, const struct opr_layout *layout) OP_NONNULL;
size_t opr_column_width(const struct opr_column *column, const struct opr_layout *layout) OP_NONNULL;

/* Whether a CSV or a JSON has the column. */
bool opr_column_is_in_csv(const struct opr_column *column, const struct opr_layout *layout) OP_NONNULL;
bool opr_column_is_in_json(const struct opr_column *column, const struct opr_layout *layout) OP_NONNULL;

#endif
