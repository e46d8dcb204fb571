/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The samples of a symbol report by source file and line. */
#ifndef OPR_ANNOTATION_H
#define OPR_ANNOTATION_H

#include "tools/report/symbol_rows.h"

struct opr_source_line {
	unsigned int line;
	size_t counts; /* index of its first count in the annotation's counts */
};

/* A symbol that begins in a line. */
struct opr_source_symbol {
	unsigned int line;
	const struct opr_symbol_row *row;
};

struct opr_source {
	const char *name; /* as the debugging information has it; owned by the report */
	size_t counts;
	struct opr_source_line *lines; /* lines with samples, sorted */
	size_t nr_lines;
	struct opr_source_symbol *symbols; /* sorted by line, then in the order of the report */
	size_t nr_symbols;
};

struct opr_annotation {
	size_t nr_classes;
	struct opr_source *sources; /* sorted by samples in the first class, then by name */
	size_t nr_sources, capacity;
	struct opr_counts counts;
	struct opr_source_line *lines; /* of all sources */
	struct opr_source_symbol *symbols;
};

/*
 * Adds up the details of a report by source line. The report must have details and lines, and must
 * stay as long as the annotation. Samples without a source line are left out. To be freed with
 * opr_annotation_free in any case. 0 or -errno.
 */
int opr_annotation_make(struct opr_annotation *annotation, const struct opr_symbol_report *report) OP_NONNULL OP_MUST_CHECK;

/* A line of a source; NULL: it has no samples. */
const struct opr_source_line *opr_source_find_line(const struct opr_source *source, unsigned int line) OP_NONNULL;

/* The first symbol that begins in a line or after it; source->symbols + nr_symbols: none. */
const struct opr_source_symbol *opr_source_find_symbol(const struct opr_source *source, unsigned int line) OP_NONNULL;

void opr_annotation_free(struct opr_annotation *annotation);

#endif
