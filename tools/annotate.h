/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the forms of an annotated listing share: counts in columns, the names of symbols behind lines, the description at the top. */
#ifndef OPR_ANNOTATE_H
#define OPR_ANNOTATE_H

#include "tools/annotation.h"
#include "tools/code.h"
#include "tools/opannotate_options.h"
#include "tools/source_file.h"

struct opr_annotate {
	const struct opr_annotate_options *options;
	const struct opr_profile *profile;
	const struct opr_classes *classes;
	struct opr_image_cache *images;
	struct opr_symbol_report *report;
	const struct opr_annotation *annotation;
	struct opr_source_dirs dirs;
};

/* The columns of counts before a line: blanks when counts is NULL or has nothing but 0. */
void opr_annotate_counts(const struct opr_annotate *annotate, FILE *out, const uint64_t *counts) OP_NONNULL_ARGS(1, 2);

/* The same without an end, and 0 as it is. */
void opr_annotate_cells(const struct opr_annotate *annotate, FILE *out, const uint64_t *counts) OP_NONNULL;

/* A comment with the command line and with what was counted. */
void opr_annotate_description(const struct opr_annotate *annotate, FILE *out) OP_NONNULL;

/* What stands behind a line where symbols begin: their names and counts, in a comment. */
void opr_annotate_symbols(const struct opr_annotate *annotate, FILE *out, const struct opr_source_symbol *symbols,
			  size_t nr_symbols) OP_NONNULL;

/* Writes the annotated sources, to a stream or, with --output-dir, to files. 0 or -errno. */
int opr_annotate_sources(const struct opr_annotate *annotate, FILE *out) OP_NONNULL OP_MUST_CHECK;

/* Writes the code of the report's symbols, with --source mixed with the source. 0 or -errno. */
int opr_annotate_assembly(const struct opr_annotate *annotate, FILE *out) OP_NONNULL OP_MUST_CHECK;

/* Writes one page with both. 0 or -errno. */
int opr_annotate_html(const struct opr_annotate *annotate, FILE *out) OP_NONNULL OP_MUST_CHECK;

/*
 * Opens the code of the image that a row is of: its file, or for /proc/kallsyms the memory of the running kernel. 0, to be closed with opr_code_close; -ENOEXEC:
 * there is none, of which the user has been told; another -errno.
 */
int opr_annotate_open_code(const struct opr_annotate *annotate, const struct opr_symbol_row *row,
			   struct opr_code_reader **ret_reader) OP_NONNULL OP_MUST_CHECK;

/* Lists the code of a row. 0, also when it is too much or cannot be read, of which the user has been told, and then `code` is empty; -ENOMEM. */
int opr_annotate_list_code(const struct opr_symbol_row *row, struct opr_code_reader *reader,
			   struct opr_code *code) OP_NONNULL OP_MUST_CHECK;

/*
 * The counts of the samples between two instructions, which all belong to the first, added up in `counts`; false when there are none. *detail goes through the row's details and is
 * 0 at first; addresses of calls that follow each other rise.
 */
bool opr_annotate_sum(const struct opr_annotate *annotate, const struct opr_symbol_row *row, const struct opr_code_reader *reader,
		      uint64_t start, uint64_t end, size_t *detail, uint64_t *counts) OP_NONNULL;

/* True when --include-file and --exclude-file let a source through, and it has a share that is large enough. */
bool opr_annotate_wants(const struct opr_annotate *annotate, const struct opr_source *source) OP_NONNULL;

#endif
