/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The three forms of an annotated profile, what they are made from, and the pieces of text that
 * they share: counts in columns, the names of symbols behind lines, the description at the top.
 */
#ifndef OPR_ANNOTATE_FORMS_H
#define OPR_ANNOTATE_FORMS_H

#include "tools/opannotate/annotation.h"
#include "tools/opannotate/inlines.h"
#include "tools/opannotate/options.h"
#include "tools/code/image_code.h"
#include "tools/code/source_file.h"
#include "tools/profile/classes.h"
#include "tools/symbols/image_cache.h"

struct opr_annotate {
	const struct opr_annotate_options *options;
	const struct opr_profile *profile;
	const struct opr_classes *classes;
	struct opr_image_cache *images;
	struct opr_symbol_report *report;
	const struct opr_annotation *annotation;
	const struct opr_inlines *inlines; /* empty without --inline */
	struct opr_source_dirs dirs;
};

/* The code that the forms list. */
static inline struct opr_code_query opr_annotate_code(const struct opr_annotate *annotate)
{
	const struct opr_annotate_options *options = annotate->options;

	return (struct opr_code_query){ .images = annotate->images,
				       .report = annotate->report,
				       .style = &options->code_style,
				       .lines = options->source || options->html || options->inlined };
}

/* Writes the columns of counts before a line: blanks when `counts` is NULL or all 0. */
void opr_annotate_counts(const struct opr_annotate *annotate, FILE *out, const uint64_t *counts) OP_NONNULL_ARGS(1, 2);

/* The same without the colon behind them, and with zeros. */
void opr_annotate_cells(const struct opr_annotate *annotate, FILE *out, const uint64_t *counts) OP_NONNULL;

/* Writes a comment with the command line and the events. */
void opr_annotate_description(const struct opr_annotate *annotate, FILE *out) OP_NONNULL;

/* Writes a comment with the names and counts of symbols, behind the line in which they begin. */
void opr_annotate_symbols(const struct opr_annotate *annotate, FILE *out, const struct opr_source_symbol *symbols,
			  size_t nr_symbols) OP_NONNULL;

/* Says that a source is not shown, and why. */
void opr_annotate_warn_of_missing(const struct opr_source *source, const struct opr_source_file *file) OP_NONNULL;

/* Writes the annotated sources, to a stream or, with --output-dir, to files. 0 or -errno. */
int opr_annotate_sources(const struct opr_annotate *annotate, FILE *out) OP_NONNULL OP_MUST_CHECK;

/* Writes the code of the symbols, with --source mixed with the source. 0 or -errno. */
int opr_annotate_assembly(const struct opr_annotate *annotate, FILE *out) OP_NONNULL OP_MUST_CHECK;

/* Writes a page with source and code. 0 or -errno. */
int opr_annotate_html(const struct opr_annotate *annotate, FILE *out) OP_NONNULL OP_MUST_CHECK;

/* True when --include-file, --exclude-file and --threshold select a source. */
bool opr_annotate_wants(const struct opr_annotate *annotate, const struct opr_source *source) OP_NONNULL;

#endif
