/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * opreport: shows where the samples of a profile are, by application, symbol or image.
 *
 * The steps of a report:
 *   1 select   the sample files: tools/profile/selection.h
 *   2 read     their samples: tools/profile/selection.h
 *   3 symbols  of the images: tools/profile/image_cache.h
 *   4 rows     of symbols, images or applications: tools/report/make_rows.h, image_rows.h,
 *              summary_rows.h
 *   5 write    text, CSV, JSON: tools/report/writer.h; XML: tools/report/write_xml.h
 */
#include <errno.h>

#include "tools/common/log.h"
#include "tools/common/output.h"
#include "tools/opreport/options.h"
#include "tools/profile/selection.h"
#include "tools/profile/spec.h"
#include "tools/report/diff_rows.h"
#include "tools/report/make_rows.h"
#include "tools/report/memory_rows.h"
#include "tools/report/image_rows.h"
#include "tools/report/writer.h"

#define RETRIES 10

struct run {
	struct opr_options *options;
	struct opr_selection selection;
	struct opr_output output;
};

/* Step 1: selects the sample files. */
static int select_files(struct run *run, const struct opr_words *words)
{
	const struct opr_options *options = run->options;
	const struct opr_selection_options selection_options = {
		.session_dir = options->session_dir,
		.root = options->root,
		.image_path = &options->image_path,
		.merge = options->merge.merge,
		.exclude_dependent = options->exclude_dependent,
		.cgroups = options->cgroups,
		.callgraph = options->callgraph,
		.memory = options->mem,
		.totals_only = options->images || !options->symbols,
		.any_axes = options->format == OPR_FORMAT_XML,
		.since = options->since,
		.until = options->until,
	};

	return opr_selection_open(&run->selection, &selection_options, words);
}

/* Step 3: reads the symbols of the images. */
static int read_symbols(struct run *run, struct opr_image_cache *cache)
{
	const struct opr_options *options = run->options;
	const struct opr_symbol_options symbol_options = { .demangle = options->demangle, .root = options->root };
	int err = opr_image_cache_init(cache, &run->selection.profile, &run->selection.finder, &symbol_options);

	return err ? err : opr_image_cache_read(cache);
}

/* Step 4: makes the rows, which point into the cache; with the call graph unless it is NULL. */
static int make_rows(struct run *run, struct opr_image_cache *cache, struct opr_symbol_report *report, struct opr_callgraph *graph)
{
	const struct opr_options *options = run->options;
	const struct opr_symbol_choice choice = { .include = &options->include_symbols,
						  .exclude = &options->exclude_symbols,
						  .details = options->details,
						  .facts = options->mem,
						  .lines = options->debug_info };
	size_t nr_classes = options->mem ? OPR_NR_FACTS : run->selection.classes.nr_classes;
	int err = opr_symbol_report_make(report, &run->selection.profile, nr_classes, cache, &choice);

	if (!err && graph)
		err = opr_callgraph_make(graph, report, &run->selection.profile, cache, &choice);
	return err;
}

/* ---- step 5: write ---- */

static int open_output(struct run *run)
{
	const struct opr_options *options = run->options;

	return opr_output_open(&run->output, options->output_file, options->no_pager, options->colour);
}

static const struct opr_writer_ops *writer_of(const struct run *run)
{
	switch (run->options->format) {
	case OPR_FORMAT_JSON:
		return &opr_json_writer;
	case OPR_FORMAT_CSV:
		return &opr_csv_writer;
	case OPR_FORMAT_TEXT:
	case OPR_FORMAT_XML:
		break;
	}
	return &opr_text_writer;
}

static struct opr_layout layout_of(const struct run *run)
{
	const struct opr_options *options = run->options;

	return (struct opr_layout){
		.profile = &run->selection.profile,
		.classes = &run->selection.classes,
		.no_header = options->no_header,
		.long_names = options->long_names || options->cgroups,
		.accumulated = options->accumulated,
		.debug_info = options->debug_info,
		.show_address = options->show_address,
		.global_percent = options->global_percent,
		.symbols = options->symbols,
		.callgraph = options->callgraph,
		.colour = run->output.colour,
		.nr_columns = run->output.nr_columns,
		.images = options->images,
	};
}

/* Whether a class has samples of more than one application. */
static bool has_several_applications(const struct opr_profile *profile, size_t nr_classes)
{
	const char **first_app = calloc(nr_classes, sizeof(*first_app));
	bool several = false;

	for (size_t i = 0; first_app && i < profile->nr_files; i++) {
		const struct opr_file *file = &profile->files[i];
		const char **first = &first_app[file->class_index];

		if (!*first)
			*first = file->app;
		several |= strcmp(*first, file->app) != 0;
	}
	free(first_app);
	return several;
}

/* ---- the reports ---- */

static int write_summary(struct run *run, const struct opr_summary *summary)
{
	struct opr_layout layout = layout_of(run);
	struct opr_writer writer = { 0 };
	int err;

	layout.totals = summary->totals;
	err = opr_writer_init(&writer, writer_of(run), &layout, run->output.out);
	if (!err)
		opr_report_summary(&writer, summary, run->options->threshold);
	opr_writer_free(&writer);
	return err;
}

static int report_summary(struct run *run)
{
	struct opr_summary summary = { 0 };
	int err = opr_summary_make(&summary, &run->selection.profile, run->selection.classes.nr_classes,
				   run->options->reverse_sort);

	if (!err && summary.nr_applications > run->options->top)
		summary.nr_applications = run->options->top;
	if (!err)
		err = open_output(run);
	if (!err)
		err = write_summary(run, &summary);
	if (!err)
		err = opr_output_close(&run->output);
	opr_summary_free(&summary);
	return err;
}

static int write_rows(struct run *run, struct opr_symbol_report *report, const struct opr_callgraph *graph)
{
	struct opr_layout layout = layout_of(run);
	struct opr_writer writer = { 0 };
	int err;

	layout.totals = report->totals;
	layout.app_column = has_several_applications(&run->selection.profile, run->selection.classes.nr_classes);
	layout.diff = report->nr_rows && report->rows[0].changes;
	err = opr_writer_init(&writer, writer_of(run), &layout, run->output.out);
	if (!err && graph)
		err = opr_report_callgraph(&writer, report, graph, run->options->threshold);
	else if (!err)
		opr_report_symbols(&writer, report);
	opr_writer_free(&writer);
	return err;
}

static int write_xml(struct run *run, struct opr_symbol_report *report, const struct opr_callgraph *graph)
{
	struct opr_xml_attribute attributes[OPR_NR_XML_OPTIONS];
	struct opr_xml_values values = { 0 };
	struct opr_xml_document document = {
		.profile = &run->selection.profile,
		.classes = &run->selection.classes,
		.report = report,
		.graph = graph,
		.title = run->options->title,
		.options = attributes,
		.details = run->options->details,
		.lines = run->options->debug_info,
		.percent = run->options->threshold,
	};
	int err = opr_xml_options(run->options, &run->selection.spec, &values, attributes, &document.nr_options);

	if (!err)
		err = opr_report_xml(&document, run->output.out);
	opr_xml_values_free(&values);
	return err;
}

static int write_memory(struct run *run, const struct opr_symbol_report *report)
{
	static const enum opr_mem_format formats[] = {
		[OPR_FORMAT_TEXT] = OPR_MEM_TEXT,
		[OPR_FORMAT_JSON] = OPR_MEM_JSON,
		[OPR_FORMAT_CSV] = OPR_MEM_CSV,
	};
	struct opr_layout layout = layout_of(run);

	layout.app_column = has_several_applications(&run->selection.profile, run->selection.classes.nr_classes);
	return opr_mem_report_write(report, &layout, formats[run->options->format], run->output.out);
}

/* XML has an order of its own, but --top means the rows with most samples. */
static int sort_rows(const struct run *run, struct opr_symbol_report *report)
{
	const struct opr_options *options = run->options;
	const struct opr_words none = { 0 };
	struct opr_sort_order order = { 0 };
	const char *bad_key;
	int err = 0;

	if (options->format == OPR_FORMAT_XML && options->top < report->nr_rows && !opr_sort_order_make(&order, &none, &bad_key)) {
		err = opr_symbol_sort(report, &order);
		opr_symbol_report_top(report, options->top);
	}
	if (!err)
		err = opr_symbol_sort(report, &options->order);
	opr_symbol_report_top(report, options->top);
	return err;
}

static int write_symbols(struct run *run, struct opr_symbol_report *report, const struct opr_callgraph *graph)
{
	int err = open_output(run);

	if (err < 0)
		return err;
	opr_verbose(OPR_TOPIC_level1, "sorting and writing %zu symbols", report->nr_rows);
	err = sort_rows(run, report);
	if (!err && run->options->mem)
		err = write_memory(run, report);
	else if (!err)
		err = run->options->format == OPR_FORMAT_XML ? write_xml(run, report, graph) : write_rows(run, report, graph);
	return err ? err : opr_output_close(&run->output);
}

static int report_symbols(struct run *run)
{
	const struct opr_options *options = run->options;
	struct opr_selection *selection = &run->selection;
	struct opr_image_cache cache = { 0 };
	struct opr_symbol_report report = { 0 };
	struct opr_callgraph graph = { 0 }, *wanted_graph = options->callgraph ? &graph : NULL;
	int err = read_symbols(run, &cache);

	if (!err)
		err = make_rows(run, &cache, &report, wanted_graph);
	if (!err) {
		if (options->mem)
			report.nr_limits = OPR_MEM_NR_LIMITS;
		opr_symbol_report_limit(&report, options->threshold);
		err = write_symbols(run, &report, wanted_graph);
	}
	if (!err && !options->mem)
		err = opr_missing_symbols_warn(&selection->profile, &selection->classes, &selection->finder, &report);
	opr_callgraph_free(&graph);
	opr_symbol_report_free(&report);
	opr_image_cache_free(&cache);
	return err;
}

static int write_images(struct run *run, const struct opr_image_report *report)
{
	struct opr_layout layout = layout_of(run);
	struct opr_writer writer = { 0 };
	int err;

	layout.totals = report->totals;
	err = opr_writer_init(&writer, writer_of(run), &layout, run->output.out);
	if (!err)
		err = opr_report_images(&writer, report);
	opr_writer_free(&writer);
	return err;
}

static int report_images(struct run *run)
{
	struct opr_image_report report = { 0 };
	size_t nr_rows;
	int err = opr_image_report_make(&report, &run->selection.profile, run->selection.classes.nr_classes,
					&run->selection.finder, run->options->threshold, run->options->reverse_sort);

	nr_rows = report.nr_rows;
	if (nr_rows > run->options->top)
		report.nr_rows = run->options->top;
	if (!err)
		err = open_output(run);
	if (!err)
		err = write_images(run, &report);
	if (!err)
		err = opr_output_close(&run->output);
	report.nr_rows = nr_rows;
	opr_image_report_free(&report);
	return err;
}

static int compare_symbols(struct run runs[2])
{
	struct opr_image_cache caches[2] = { { 0 } };
	struct opr_symbol_report reports[2] = { { 0 } };
	struct opr_diff diff = { 0 };
	int err = 0;

	for (size_t i = 0; i < 2 && !err; i++) {
		err = read_symbols(&runs[i], &caches[i]);
		if (!err)
			err = make_rows(&runs[i], &caches[i], &reports[i], NULL);
	}
	if (!err)
		err = opr_diff_make(&diff, &reports[0], &reports[1]);
	if (!err) {
		opr_diff_limit(&diff, runs[0].options->threshold);
		err = write_symbols(&runs[0], &diff.report, NULL);
	}
	opr_diff_free(&diff);
	for (size_t i = 0; i < 2; i++) {
		opr_symbol_report_free(&reports[i]);
		opr_image_cache_free(&caches[i]);
	}
	return err;
}

static int report_change(struct opr_options *options, const struct opr_spec_words *words)
{
	struct run runs[2] = { { .options = options }, { .options = options } };
	int err = 0;

	if (!options->symbols || options->details || options->callgraph || options->format == OPR_FORMAT_XML)
		return opr_error(-EINVAL,
				 "differential profiles need --symbols, and do not go with --details, --callgraph and --xml");
	for (size_t i = 0; i < 2 && !err; i++)
		err = select_files(&runs[i], &words->sides[i]);
	for (size_t i = 0; i < 2 && !err; i++)
		err = opr_selection_read(&runs[i].selection);
	if (!err)
		err = opr_diff_check(&runs[0].selection.classes, &runs[1].selection.classes);
	if (!err)
		err = compare_symbols(runs);
	for (size_t i = 0; i < 2 && !err; i++)
		err = opr_profile_end(&runs[i].selection.profile);
	opr_selection_free(&runs[0].selection);
	opr_selection_free(&runs[1].selection);
	return err;
}

static int report_profile(struct opr_options *options, const struct opr_words *words)
{
	struct run run = { .options = options };
	int err = select_files(&run, words);

	if (!err)
		err = opr_selection_read(&run.selection); /* step 2: reads the samples */
	if (!err)
		err = options->images ? report_images(&run) : options->symbols ? report_symbols(&run) : report_summary(&run);
	if (!err)
		err = opr_profile_end(&run.selection.profile);
	opr_selection_free(&run.selection);
	return err;
}

static int report_once(struct opr_options *options)
{
	struct opr_spec_words words = { 0 };
	int err = opr_spec_words_split(&words, &options->words);

	if (!err)
		err = words.differential ? report_change(options, &words) : report_profile(options, &words.sides[0]);
	opr_spec_words_free(&words);
	return err;
}

/*
 * -ESTALE: a file was removed while it was read. Nothing was written yet, so the report is made
 * again of what is left.
 */
static int report(struct opr_options *options)
{
	int err = report_once(options);

	for (int i = 0; i < RETRIES && err == -ESTALE; i++)
		err = report_once(options);
	return err;
}

int main(int argc, const char **argv)
{
	struct opr_options options = { 0 };
	enum opr_request request;
	int err;

	opr_log_init("opreport");
	err = opr_options_parse(&options, argc, argv, &request);
	if (!err && request == OPR_RUN)
		err = report(&options);
	opr_options_free(&options);
	return err ? EXIT_FAILURE : EXIT_SUCCESS;
}
