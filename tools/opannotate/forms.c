/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/opannotate/forms.h"

#include <inttypes.h>

#include "tools/common/formatting.h"
#include "tools/common/log.h"

#define COUNT_WIDTH 6
#define CLASS_WIDTH (COUNT_WIDTH + 1 + OPR_PERCENT_WIDTH)

void opr_annotate_cells(const struct opr_annotate *annotate, FILE *out, const uint64_t *counts)
{
	for (size_t i = 0; i < annotate->report->nr_classes; i++)
		fprintf(out, "%*" PRIu64 " %s", COUNT_WIDTH, counts[i],
			opr_format_percent(counts[i], annotate->report->totals[i]).text);
}

void opr_annotate_counts(const struct opr_annotate *annotate, FILE *out, const uint64_t *counts)
{
	int nr_classes = (int)annotate->report->nr_classes;
	bool any = false;

	for (int i = 0; counts && i < nr_classes; i++)
		any |= counts[i] != 0;
	if (any) {
		opr_annotate_cells(annotate, out, counts);
		fprintf(out, "%*s :", 2 * (nr_classes - 1), "");
	} else {
		fprintf(out, "%*s:", CLASS_WIDTH * nr_classes + 2 * (nr_classes - 1) + 1, "");
	}
}

static void write_comment(FILE *out, const char *text)
{
	fputs(" * ", out);
	opr_write_escaped(out, text);
	fputc('\n', out);
}

static void write_interpretation(const struct opr_annotate_options *options, FILE *out)
{
	write_comment(out, "Interpretation of command line:");
	if (options->assembly) {
		write_comment(out, "Output annotated assembly listing with samples");
		if (options->params) {
			fputs(" * Passing the following additional arguments to objdump ; \"", out);
			opr_write_escaped(out, options->params);
			fputs("\"\n", out);
		}
		return;
	}
	write_comment(out, "Output annotated source file with samples");
	if (options->query.threshold > 0)
		fprintf(out, " * Output files where samples count reach %g%% of the samples\n", options->query.threshold);
	else
		write_comment(out, "Output all files");
}

static void write_event_lines(const struct opr_classes *classes, FILE *out)
{
	write_comment(out, classes->cpu_line);
	if (classes->event_line)
		write_comment(out, classes->event_line);
	for (size_t i = 0; i < classes->nr_classes; i++)
		if (classes->classes[i].description)
			write_comment(out, classes->classes[i].description);
}

void opr_annotate_description(const struct opr_annotate *annotate, FILE *out)
{
	fputs("/* \n * Command line: ", out);
	opr_write_escaped(out, annotate->options->command_line);
	fputs("\n * \n", out);
	write_interpretation(annotate->options, out);
	fputs(" * \n", out);
	write_event_lines(annotate->classes, out);
	fputs(" */\n", out);
}

void opr_annotate_symbols(const struct opr_annotate *annotate, FILE *out, const struct opr_source_symbol *symbols,
			  size_t nr_symbols)
{
	size_t nr_classes = annotate->report->nr_classes;
	uint64_t *totals = calloc(nr_classes, sizeof(*totals));

	fputs("/* ", out);
	for (size_t i = 0; i < nr_symbols && totals; i++) {
		const uint64_t *counts = &annotate->report->counts.values[symbols[i].row->counts];

		for (size_t j = 0; j < nr_classes; j++)
			totals[j] += counts[j];
		opr_write_escaped(out, symbols[i].row->name);
		if (nr_symbols == 1)
			break;
		fputc(' ', out);
		opr_annotate_cells(annotate, out, counts);
		fputs(", ", out);
	}
	fputs(nr_symbols == 1 ? " total: " : "total: ", out);
	if (totals)
		opr_annotate_cells(annotate, out, totals);
	fputs(" */", out);
	free(totals);
}

bool opr_annotate_wants(const struct opr_annotate *annotate, const struct opr_source *source)
{
	const struct opr_annotate_options *options = annotate->options;
	const uint64_t *counts = &annotate->annotation->counts.values[source->counts];

	if (options->include_files.nr_words && !opr_words_match(&options->include_files, source->name))
		return false;
	if (opr_words_match(&options->exclude_files, source->name))
		return false;
	for (size_t i = 0; i < annotate->report->nr_classes; i++)
		if (counts[i] && opr_percent(counts[i], annotate->report->totals[i]) >= options->query.threshold)
			return true;
	return false;
}

void opr_annotate_warn_of_missing(const struct opr_source *source, const struct opr_source_file *file)
{
	if (file->is_private)
		opr_warn("%s is not shown: others may not read it, and any program can name it; --search-dirs=DIRECTORY shows what "
			 "is below a directory", source->name);
	else
		opr_warn("unable to open for reading: %s", source->name);
}
