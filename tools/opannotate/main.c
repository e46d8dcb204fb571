/* SPDX-License-Identifier: GPL-3.0-or-later */
/* opannotate: source and machine code, with the samples of each line. */
#include <errno.h>

#include "tools/opannotate/forms.h"
#include "tools/opannotate/page.h"
#include "tools/common/output.h"
#include "tools/fetch/debuginfod.h"
#include "tools/common/log.h"
#include "tools/report/make_rows.h"
#include "tools/profile/selection.h"
#include "tools/profile/spec.h"

#define PAGE_NAME "page of opannotate"

struct run {
	const struct opr_annotate_options *options;
	struct opr_selection selection;
	struct opr_image_cache images;
	struct opr_symbol_report report;
	struct opr_annotation annotation;
	struct opr_inlines inlines;
	struct opr_words bases; /* names of options that no symbol has */
};

static int open_profile(struct run *run)
{
	const struct opr_annotate_options *options = run->options;
	const struct opr_selection_options selection_options = {
		.session_dir = options->session_dir,
		.root = options->root,
		.image_path = &options->image_path,
		.merge = options->merge.merge,
		.exclude_dependent = options->exclude_dependent,
		.since = options->since,
		.until = options->until,
	};
	int err = opr_selection_open(&run->selection, &selection_options, &options->words);

	return err ? err : opr_selection_read(&run->selection);
}

static int read_report(struct run *run)
{
	const struct opr_annotate_options *options = run->options;
	const struct opr_profile *profile = &run->selection.profile;
	const bool lines = options->source || options->html;
	const struct opr_symbol_choice choice = {
		.include = &options->include_symbols, .exclude = &options->exclude_symbols, .bases = &run->bases,
		.details = true, .lines = lines, .frames = lines && options->inlined
	};
	const struct opr_symbol_options symbol_options = { .demangle = options->demangle,
							   .sources = options->sources,
							   .root = options->root };
	int err = opr_image_cache_init(&run->images, profile, &run->selection.finder, &symbol_options);

	run->images.wish = (struct opr_debug_wish){ .lines = lines };
	if (!err)
		err = opr_image_cache_read(&run->images);
	if (!err)
		err = opr_symbol_names_find_bases(&options->include_symbols, &run->images, &run->bases);
	if (!err)
		err = opr_symbol_names_find_bases(&options->exclude_symbols, &run->images, &run->bases);
	if (!err)
		err = opr_symbol_report_make(&run->report, profile, run->selection.classes.nr_classes, &run->images, &choice);
	if (!err)
		err = opr_symbol_report_check_names(&run->report, &run->images, &options->include_symbols, &run->bases);
	if (!err && (options->html || !options->assembly))
		err = opr_annotation_make(&run->annotation, &run->report);
	if (!err && options->inlined)
		err = opr_inlines_make(&run->inlines, &run->report);
	return err;
}

static int write_annotated(const struct opr_annotate *annotate, FILE *out)
{
	if (annotate->options->html)
		return opr_annotate_html(annotate, out);
	return annotate->options->assembly ? opr_annotate_assembly(annotate, out) : opr_annotate_sources(annotate, out);
}

static int write_report(struct run *run)
{
	const struct opr_annotate_options *options = run->options;
	const struct opr_annotate annotate = {
		.options = options,
		.profile = &run->selection.profile,
		.classes = &run->selection.classes,
		.images = &run->images,
		.report = &run->report,
		.annotation = &run->annotation,
		.inlines = &run->inlines,
		.dirs = { &options->base_dirs, &options->search_dirs },
	};
	struct opr_output output;
	int err;

	if (options->output_dir)
		return opr_annotate_sources(&annotate, stdout);
	if (options->html)
		err = opr_output_replace(&output, options->html, opr_annotate_page_is, PAGE_NAME);
	else
		err = opr_output_open(&output, NULL, options->no_pager, "never");
	if (err)
		return err;
	err = write_annotated(&annotate, output.out);
	if (!err)
		return opr_output_close(&output);
	opr_output_drop(&output);
	return err;
}

static int annotate_profile(const struct opr_annotate_options *options)
{
	struct run run = { .options = options };
	int err = open_profile(&run);

	if (!err)
		err = read_report(&run);
	if (!err)
		err = write_report(&run);
	if (!err)
		err = opr_profile_end(&run.selection.profile);
	opr_words_free(&run.bases);
	opr_inlines_free(&run.inlines);
	opr_annotation_free(&run.annotation);
	opr_symbol_report_free(&run.report);
	opr_image_cache_free(&run.images);
	opr_selection_free(&run.selection);
	return err;
}

int main(int argc, const char **argv)
{
	struct opr_annotate_options options = { 0 };
	enum opr_request request;
	int err;

	opr_log_init("opannotate");
	err = opr_annotate_options_parse(&options, argc, argv, &request);
	if (!err && options.sources & OPR_FROM_DEBUGINFOD)
		opr_debuginfod_use(&options.debuginfod_time);
	if (!err && request == OPR_RUN && options.html)
		err = opr_spec_check_file("html", options.html) ?:
		      opr_output_check(options.html, opr_annotate_page_is, PAGE_NAME);
	if (!err && request == OPR_RUN)
		err = annotate_profile(&options);
	opr_annotate_options_free(&options);
	return err ? EXIT_FAILURE : EXIT_SUCCESS;
}
