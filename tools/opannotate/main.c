/* SPDX-License-Identifier: GPL-3.0-or-later */
/* opannotate: source and machine code, with the samples of each line. */
#include <errno.h>

#include "tools/opannotate/forms.h"
#include "tools/opannotate/page.h"
#include "tools/opannotate/runtimes.h"
#include "tools/common/output.h"
#include "tools/fetch/debuginfod.h"
#include "tools/common/log.h"
#include "tools/report/run.h"
#include "tools/profile/spec.h"

#define PAGE_NAME "page of opannotate"

struct annotating {
	const struct opr_annotate_options *options;
	struct opr_run run;
	struct opr_annotation annotation;
	struct opr_inlines inlines;
	struct opr_annotate_runtimes runtimes;
};

static int read_report(struct annotating *annotating)
{
	const struct opr_annotate_options *options = annotating->options;
	struct opr_run *run = &annotating->run;
	int err = opr_run_to(run, OPR_STEP_ROWS);

	if (err)
		return err;
	if (options->source && !options->assembly && !options->html)
		err = opr_annotate_runtimes_read(&annotating->runtimes, &run->selection, run->query);
	if (err)
		return err;
	if (!annotating->runtimes.annotation.nr_sources)
		err = opr_symbol_report_check_names(&run->rows, &run->images, &run->query->include_symbols, &run->bases);
	if (!err && (options->html || !options->assembly))
		err = opr_annotation_make(&annotating->annotation, &run->rows);
	if (!err && options->inlined)
		err = opr_inlines_make(&annotating->inlines, &run->rows);
	return err;
}

/* Native sources, and behind them those of runtimes, which have other events. */
static int write_sources(const struct opr_annotate *annotate, struct opr_annotate_runtimes *runtimes, FILE *out)
{
	struct opr_annotate of_runtimes = *annotate;
	int err = 0;

	of_runtimes.classes = &runtimes->classes;
	of_runtimes.report = &runtimes->rows.report;
	of_runtimes.annotation = &runtimes->annotation;
	if (annotate->annotation->nr_sources || !runtimes->annotation.nr_sources)
		err = opr_annotate_sources(annotate, out);
	if (!err && runtimes->annotation.nr_sources)
		err = opr_annotate_sources(&of_runtimes, out);
	return err;
}

static int write_annotated(const struct opr_annotate *annotate, struct opr_annotate_runtimes *runtimes, FILE *out)
{
	if (annotate->options->html)
		return opr_annotate_html(annotate, out);
	return annotate->options->assembly ? opr_annotate_assembly(annotate, out) : write_sources(annotate, runtimes, out);
}

static int write_report(struct annotating *annotating)
{
	const struct opr_annotate_options *options = annotating->options;
	struct opr_run *run = &annotating->run;
	const struct opr_annotate annotate = {
		.options = options,
		.profile = &run->selection.profile,
		.classes = &run->selection.classes,
		.images = &run->images,
		.report = &run->rows,
		.annotation = &annotating->annotation,
		.inlines = &annotating->inlines,
		.dirs = { &options->base_dirs, &options->search_dirs },
	};
	struct opr_output output;
	int err;

	if (options->output_dir)
		return write_sources(&annotate, &annotating->runtimes, stdout);
	if (options->html)
		err = opr_output_replace(&output, options->html, opr_annotate_page_is, PAGE_NAME);
	else
		err = opr_output_open(&output, NULL, options->no_pager, "never");
	if (err)
		return err;
	err = write_annotated(&annotate, &annotating->runtimes, output.out);
	if (!err)
		return opr_output_close(&output);
	opr_output_drop(&output);
	return err;
}

static int annotate_profile(const struct opr_annotate_options *options)
{
	struct annotating annotating = { .options = options, .run = { .query = &options->query, .words = &options->query.words } };
	int err = read_report(&annotating);

	if (!err)
		err = write_report(&annotating);
	opr_annotate_runtimes_free(&annotating.runtimes);
	opr_inlines_free(&annotating.inlines);
	opr_annotation_free(&annotating.annotation);
	return opr_run_end(&annotating.run, err);
}

int main(int argc, const char **argv)
{
	struct opr_annotate_options options = { 0 };
	enum opr_request request;
	int err;

	opr_log_init("opannotate");
	err = opr_annotate_options_parse(&options, argc, argv, &request);
	if (err || request != OPR_RUN)
		goto out;
	if (options.query.naming.sources & OPR_FROM_DEBUGINFOD)
		opr_debuginfod_use(&options.debuginfod_time);
	if (options.html)
		err = opr_spec_check_file("html", options.html) ?:
		      opr_output_check(options.html, opr_annotate_page_is, PAGE_NAME);
	if (!err)
		err = annotate_profile(&options);
out:
	opr_annotate_options_free(&options);
	return err ? EXIT_FAILURE : EXIT_SUCCESS;
}
