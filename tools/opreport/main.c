/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * opreport: shows where the samples of a profile are, by application, symbol or image.
 *
 * The steps of a report:
 *   1 select   the sample files: tools/profile/selection.h
 *   2 read     their samples: tools/profile/selection.h
 *   3 symbols  of the images: tools/profile/image_cache.h
 *   4 rows     of symbols, images or applications: tools/report/make_rows.h, image_rows.h,
 *              summary_rows.h; for --stacks a tree of calls: tools/stacks/call_tree.h
 *   5 write    text, CSV, JSON: tools/report/writer.h; XML: tools/report/write_xml.h
 */
#include <errno.h>

#include "tools/common/log.h"
#include "tools/common/output.h"
#include "tools/common/progress.h"
#include "tools/export/bolt.h"
#include "tools/export/export.h"
#include "tools/fetch/debuginfod.h"
#include "tools/opreport/options.h"
#include "tools/page/code.h"
#include "tools/page/pack.h"
#include "tools/page/write_page.h"
#include "tools/profile/selection.h"
#include "tools/profile/spec.h"
#include "tools/report/diff_rows.h"
#include "tools/report/make_rows.h"
#include "tools/report/memory_rows.h"
#include "tools/report/image_rows.h"
#include "tools/report/writer.h"
#include "tools/stacks/arrange.h"
#include "tools/stacks/count_stacks.h"
#include "tools/stacks/inclusive.h"
#include "tools/stacks/short_images.h"
#include "tools/stacks/write_stacks.h"

#define RETRIES 100 /* each time a session fewer is left */

struct run {
	struct opr_options *options;
	const struct opr_words *words; /* the profile specification */
	struct opr_selection selection;
	struct opr_output output;
	struct opr_origin before; /* of the profile that this one is compared to */
	struct opr_words bases;   /* names of options that no symbol has */
	struct op_text stacks;    /* the lines of those that were selected */
	bool is_filtered;
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
		.by = options->by,
		.callgraph = options->callgraph,
		.memory = options->mem,
		.totals_only = options->images || !options->symbols,
		.any_axes = options->format == OPR_FORMAT_XML,
		.sessions_only = options->stacks,
		.since = options->since,
		.until = options->until,
	};

	run->words = words;
	return opr_selection_open(&run->selection, &selection_options, words);
}

static struct opr_symbol_options symbol_options_of(const struct run *run)
{
	return (struct opr_symbol_options){ .demangle = run->options->demangle,
					    .sources = run->options->sources,
					    .root = run->options->root };
}

/* Step 3: reads the symbols of the images. */
static int read_symbols(struct run *run, struct opr_image_cache *cache)
{
	const struct opr_options *options = run->options;
	const struct opr_symbol_options symbol_options = symbol_options_of(run);
	int err = opr_image_cache_init(cache, &run->selection.profile, &run->selection.finder, &symbol_options);

	/* A caller below the threshold stands beside a callee above it. */
	cache->wish.lines = options->debug_info || options->inlined;
	cache->wish.percent = options->callgraph ? 0 : options->threshold;
	if (!err)
		err = opr_image_cache_read(cache);
	if (!err)
		err = opr_symbol_names_find_bases(&options->include_symbols, cache, &run->bases);
	return err ? err : opr_symbol_names_find_bases(&options->exclude_symbols, cache, &run->bases);
}

/* Step 4: makes the rows, which point into the cache; with the call graph unless it is NULL. */
static int make_rows(struct run *run, struct opr_image_cache *cache, struct opr_symbol_report *report, struct opr_callgraph *graph)
{
	const struct opr_options *options = run->options;
	const struct opr_symbol_choice choice = { .include = &options->include_symbols,
						  .exclude = &options->exclude_symbols,
						  .bases = &run->bases,
						  .details = options->details || options->format == OPR_FORMAT_BOLT,
						  .facts = options->mem,
						  .inlined = options->inlined,
						  .lines = options->debug_info };
	size_t nr_classes = options->mem ? OPR_NR_FACTS : run->selection.classes.nr_classes;
	int err = opr_symbol_report_make(report, &run->selection.profile, nr_classes, cache, &choice);

	if (!err && graph)
		err = opr_callgraph_make(graph, report, &run->selection.profile, cache, &choice);
	return err;
}

/* Groups are no applications; and the genuine tools have no such column. */
static int count_inclusive(struct run *run, struct opr_callgraph *graph, struct opr_symbol_report *report)
{
	const struct opr_symbol_options options = symbol_options_of(run);

	if (run->options->by || run->before.profile || opr_sources_are_genuine(options.sources))
		return 0;
	return opr_inclusive_count(graph, report, &run->selection, &options);
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
	case OPR_FORMAT_BOLT:
	case OPR_FORMAT_FOLDED:
	case OPR_FORMAT_PPROF:
	case OPR_FORMAT_PERF:
	case OPR_FORMAT_SPEEDSCOPE:
	case OPR_FORMAT_FIREFOX:
	case OPR_FORMAT_CALLGRIND:
		break;
	}
	return &opr_text_writer;
}

static struct opr_origin origin_of(const struct run *run, const uint64_t *totals)
{
	const struct opr_selection *selection = &run->selection;

	return (struct opr_origin){ &selection->profile, &selection->classes, &selection->recorded, totals,
				    run->is_filtered ? op_text_get(&run->stacks) : NULL };
}

static struct opr_layout layout_of(const struct run *run, const uint64_t *totals)
{
	const struct opr_options *options = run->options;

	return (struct opr_layout){
		.origin = origin_of(run, totals),
		.is_ours = opr_profile_is_ours(&run->selection.profile),
		.classes = &run->selection.classes,
		.totals = totals,
		.no_header = options->no_header,
		.long_names = options->long_names || (options->by && !options->symbols),
		.by = options->by,
		.accumulated = options->accumulated,
		.debug_info = options->debug_info,
		.show_address = options->show_address,
		.global_percent = options->global_percent,
		.symbols = options->symbols,
		.callgraph = options->callgraph,
		.colour = run->output.colour,
		.nr_columns = run->output.nr_columns,
		.images = options->images,
		.inlined = options->inlined,
	};
}

static struct opr_block_limits limits_of(const struct run *run)
{
	return (struct opr_block_limits){ run->options->threshold, run->options->top };
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
	const struct opr_layout layout = layout_of(run, summary->totals);
	struct opr_writer writer = { 0 };
	int err = opr_writer_init(&writer, writer_of(run), &layout, run->output.out);

	if (!err)
		opr_report_summary(&writer, summary, run->options->threshold);
	opr_writer_free(&writer);
	return err;
}

static int report_summary(struct run *run)
{
	struct opr_summary summary = { 0 };
	int err =
		opr_summary_make(&summary, &run->selection.profile, run->selection.classes.nr_classes, run->options->reverse_sort);

	if (!err) {
		opr_summary_top(&summary, run->options->top);
		err = open_output(run);
	}
	if (!err)
		err = write_summary(run, &summary);
	if (!err)
		err = opr_output_close(&run->output);
	opr_summary_free(&summary);
	return err;
}

static int write_rows(struct run *run, struct opr_symbol_report *report, const struct opr_callgraph *graph)
{
	const struct opr_block_limits limits = limits_of(run);
	struct opr_layout layout = layout_of(run, report->totals);
	struct opr_writer writer = { 0 };
	int err;

	layout.before = run->before;
	layout.app_column = layout.by || has_several_applications(&run->selection.profile, run->selection.classes.nr_classes);
	layout.diff = report->nr_rows && report->rows[0].changes;
	layout.nr_stacks = graph ? graph->nr_stacks : 0;
	layout.stack_event = graph ? graph->stack_event : NULL;
	err = opr_writer_init(&writer, writer_of(run), &layout, run->output.out);
	if (!err && graph)
		err = opr_report_callgraph(&writer, report, graph, &limits);
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
		.origin = origin_of(run, report->totals),
		.classes = &run->selection.classes,
		.report = report,
		.graph = graph,
		.title = run->options->title,
		.options = attributes,
		.details = run->options->details,
		.lines = run->options->debug_info,
		.limits = limits_of(run),
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
	struct opr_layout layout = layout_of(run, report->totals);

	layout.app_column = has_several_applications(&run->selection.profile, run->selection.classes.nr_classes);
	return opr_mem_report_write(report, &layout, formats[run->options->format], run->output.out);
}

/* XML and --by have an order of their own, but --top means the rows with most samples. */
static int sort_rows(const struct run *run, struct opr_symbol_report *report)
{
	const struct opr_options *options = run->options;
	const struct opr_words none = { 0 };
	struct opr_sort_order order = { 0 };
	const char *bad_key;
	int err = 0;

	if ((options->format == OPR_FORMAT_XML || options->by) && options->top < report->nr_rows &&
	    !opr_sort_order_make(&order, &none, &bad_key)) {
		err = opr_symbol_sort(report, &order);
		if (!err)
			err = opr_symbol_report_top(report, options->top);
	}
	if (!err)
		err = opr_symbol_sort(report, &options->order);
	return err ? err : opr_symbol_report_top(report, options->top);
}

static int write_symbols(struct run *run, struct opr_symbol_report *report, const struct opr_callgraph *graph)
{
	int err = run->options->format == OPR_FORMAT_BOLT ? opr_export_bolt_check(report) : 0;

	if (!err)
		err = open_output(run);
	if (err < 0)
		return err;
	opr_verbose(OPR_TOPIC_level1, "sorting and writing %zu symbols", report->nr_rows);
	err = sort_rows(run, report);
	if (!err && run->options->mem)
		err = write_memory(run, report);
	else if (!err && run->options->format == OPR_FORMAT_BOLT)
		opr_export_bolt(report, run->selection.classes.classes[0].event, run->output.out);
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
	if (!err && wanted_graph)
		err = count_inclusive(run, wanted_graph, &report);
	if (!err)
		err = opr_symbol_report_check_names(&report, &cache, &options->include_symbols, &run->bases);
	if (!err) {
		if (options->mem)
			report.nr_limits = OPR_MEM_NR_LIMITS;
		opr_symbol_report_limit(&report, options->threshold);
		err = write_symbols(run, &report, wanted_graph);
	}
	if (!err && !options->mem)
		err = opr_missing_symbols_warn(&selection->profile, &selection->classes, &selection->finder, &report,
					       options->sources);
	opr_callgraph_free(&graph);
	opr_symbol_report_free(&report);
	opr_image_cache_free(&cache);
	return err;
}

static int write_images(struct run *run, const struct opr_image_report *report)
{
	const struct opr_layout layout = layout_of(run, report->totals);
	struct opr_writer writer = { 0 };
	int err = opr_writer_init(&writer, writer_of(run), &layout, run->output.out);

	if (!err)
		err = opr_report_images(&writer, report);
	opr_writer_free(&writer);
	return err;
}

static int report_images(struct run *run)
{
	struct opr_image_report report = { .sources = run->options->sources };
	size_t nr_rows;
	int err = opr_image_report_make(&report, &run->selection.profile, run->selection.classes.nr_classes, &run->selection.finder,
					run->options->threshold, run->options->reverse_sort);

	nr_rows = report.nr_rows;
	if (nr_rows > run->options->top)
		report.nr_rows = run->options->top;
	if (!err)
		err = open_output(run);
	if (!err)
		err = write_images(run, &report);
	if (!err)
		err = opr_output_close(&run->output);
	for (size_t i = 0; i < report.nr_rows && !err; i++)
		opr_image_row_note_archive(&report.rows[i], &run->selection.finder);
	report.nr_rows = nr_rows;
	opr_image_report_free(&report);
	return err;
}

/* ---- stacks ---- */

/* How a form for another tool is written; NULL: it is none. */
static int (*const exports[])(const struct opr_stack_report *report, FILE *out) = {
	[OPR_FORMAT_PPROF] = opr_export_pprof,
	[OPR_FORMAT_PERF] = opr_export_perf,
	[OPR_FORMAT_SPEEDSCOPE] = opr_export_speedscope,
	[OPR_FORMAT_FIREFOX] = opr_export_firefox,
	[OPR_FORMAT_CALLGRIND] = opr_export_callgrind,
};

static bool is_export(enum opr_format format)
{
	return format < op_array_size(exports) && exports[format];
}

static int compile(const char *text, const char *option, regex_t *ret_regex, const regex_t **ret_used)
{
	char why[128];
	int err;

	*ret_used = NULL;
	if (!text)
		return 0;
	err = regcomp(ret_regex, text, REG_EXTENDED | REG_NOSUB);
	if (err) {
		regerror(err, ret_regex, why, sizeof(why));
		return opr_error(-EINVAL, "--%s=%s: %s", option, text, why);
	}
	*ret_used = ret_regex;
	return 0;
}

static int write_stacks(struct run *run, struct opr_call_tree *all, const struct opr_stack_sums *sums,
			const struct opr_arranging *arranging)
{
	static const enum opr_stack_form forms[] = {
		[OPR_FORMAT_TEXT] = OPR_STACKS_TEXT,
		[OPR_FORMAT_JSON] = OPR_STACKS_JSON,
		[OPR_FORMAT_CSV] = OPR_STACKS_CSV,
		[OPR_FORMAT_FOLDED] = OPR_STACKS_FOLDED,
	};
	struct opr_call_tree tree = { 0 };
	struct opr_stack_report report = { .tree = &tree,
					   .sums = sums,
					   .recorded = &run->selection.recorded,
					   .invert = arranging->invert,
					   .no_header = run->options->no_header };
	int err = opr_call_tree_arrange(&tree, all, arranging, &report.nr_left_out);

	if (err)
		opr_no_memory();
	else if (!tree.root.total)
		err = opr_error(-ENOENT, "no stack is left by --focus and --ignore");
	if (!err)
		err = open_output(run);
	opr_progress("writing stacks");
	if (!err && is_export(run->options->format))
		err = exports[run->options->format](&report, run->output.out);
	else if (!err)
		opr_stacks_write(&report, forms[run->options->format], run->output.out);
	if (!err)
		err = opr_output_close(&run->output);
	opr_call_tree_free(&tree);
	return err;
}

static int report_stacks(struct run *run)
{
	const struct opr_options *options = run->options;
	const struct opr_symbol_options symbol_options = symbol_options_of(run);
	const struct opr_stack_choice choice = { .by = options->by,
						 .inlined = options->inlined,
						 .places = opr_format_has_places(options->format) };
	struct opr_arranging arranging = {
		.invert = options->invert, .threshold = options->threshold, .depth = options->depth, .top = options->top
	};
	struct opr_call_tree tree = { 0 };
	struct opr_stack_sums sums = { 0 };
	struct opr_short_names names = { 0 };
	regex_t focus, ignore;
	int err = compile(options->focus, "focus", &focus, &arranging.focus);

	if (!err)
		err = compile(options->ignore, "ignore", &ignore, &arranging.ignore);
	if (!err)
		err = opr_stacks_read(&tree, &sums, &run->selection, &symbol_options, &choice);
	if (!err && !options->long_names)
		err = opr_short_images_find(&names, &sums, NULL);
	if (!err && !options->long_names)
		opr_short_images_set(&names, &tree, NULL);
	if (!err)
		err = write_stacks(run, &tree, &sums, &arranging);
	if (arranging.focus)
		regfree(&focus);
	if (arranging.ignore)
		regfree(&ignore);
	opr_short_names_free(&names);
	opr_call_tree_free(&tree);
	opr_stack_sums_free(&sums);
	return err;
}

/* ---- the page ---- */

static int read_side(struct run *run, struct opr_page_side *side)
{
	const struct opr_options *options = run->options;
	const struct opr_symbol_options symbol_options = symbol_options_of(run);
	const struct opr_stack_choice choice = { .inlined = options->inlined,
						 .lines = true,
						 .contexts = &side->contexts };

	side->selection = &run->selection;
	side->words = run->words;
	return opr_stacks_read(&side->tree, &side->sums, &run->selection, &symbol_options, &choice);
}

/* `names`: NULL for long ones. */
static int read_code(const struct run *run, const struct opr_short_names *names, struct opr_page_side *side, size_t nr_sides)
{
	const struct opr_symbol_options symbol_options = symbol_options_of(run);
	struct opr_selection_options flat = run->selection.options;

	flat.session_dir = run->selection.session_dir; /* the user was told which */
	/* With --inline, inlined functions have stack samples, but no flat ones. */
	return opr_page_add_code(&side->code, nr_sides > 1 && !run->options->inlined ? &side->flat : NULL, &flat, run->words,
				 &symbol_options, names, OPR_PAGE_CODE_BYTES / nr_sides);
}

/* Of one profile, or of two that are compared. */
static int report_page(struct run *runs, size_t nr_runs)
{
	const struct opr_options *options = runs[0].options;
	struct opr_page page = { .nr_sides = nr_runs };
	struct opr_short_names short_names = { 0 }, *names = options->long_names ? NULL : &short_names;
	struct opr_output output = { 0 };
	struct op_text json = { 0 };
	int err = 0;

	for (size_t i = 0; i < nr_runs && !err; i++)
		err = read_side(&runs[i], &page.sides[i]);
	if (!err && names)
		err = opr_short_images_find(names, &page.sides[0].sums, nr_runs > 1 ? &page.sides[1].sums : NULL);
	for (size_t i = 0; i < nr_runs && !err && names; i++)
		opr_short_images_set(names, &page.sides[i].tree, &page.sides[i].contexts);
	for (size_t i = 0; i < nr_runs && !err; i++)
		err = read_code(&runs[i], names, &page.sides[i], nr_runs);
	if (!err)
		err = opr_page_collect(&page);
	opr_progress("writing the page");
	if (!err)
		err = opr_page_pack(&page, options->threshold, &json);
	if (!err)
		err = opr_output_replace(&output, options->html, opr_page_is, OPR_PAGE_NAME);
	if (!err) {
		opr_page_write(&json, output.out);
		err = opr_output_close(&output);
	}
	op_text_free(&json);
	opr_short_names_free(&short_names);
	opr_page_free(&page);
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
		err = opr_diff_make(&diff, &runs[1].selection.classes, &reports[0], &reports[1]);
	if (!err)
		err = opr_symbol_report_check_names(&diff.report, &caches[1], &runs[1].options->include_symbols, &runs[1].bases);
	if (!err) {
		opr_diff_limit(&diff, runs[1].options->threshold);
		runs[1].before = origin_of(&runs[0], reports[0].totals);
		err = write_symbols(&runs[1], &diff.report, NULL);
	}
	opr_diff_free(&diff);
	for (size_t i = 0; i < 2; i++) {
		opr_symbol_report_free(&reports[i]);
		opr_image_cache_free(&caches[i]);
	}
	return err;
}

/* The header of a text report says how many stacks there are of what it shows. */
static int describe_stacks(struct run *run)
{
	const struct opr_spec *spec = &run->selection.spec;
	const struct opr_options *options = run->options;

	run->is_filtered = opr_spec_has_images(spec) || spec->cgroup.nr_words || spec->tgid.nr_words || spec->tid.nr_words ||
			   spec->cpu.nr_words;
	if (!run->is_filtered || options->format != OPR_FORMAT_TEXT || options->stacks || options->html)
		return 0;
	return opr_selected_stacks_describe(&run->selection, &run->stacks);
}

static int report_change(struct opr_options *options, const struct opr_spec_words *words)
{
	struct run runs[2] = { { .options = options }, { .options = options } };
	int err = 0;

	if (!options->html && (!options->symbols || options->details || options->callgraph ||
			       options->format == OPR_FORMAT_XML || options->format == OPR_FORMAT_BOLT))
		return opr_error(-EINVAL, "two profiles are compared by --html, or by --symbols as text, JSON or CSV without "
					  "--details and --callgraph");
	for (size_t i = 0; i < 2 && !err; i++)
		err = select_files(&runs[i], &words->sides[i]);
	for (size_t i = 0; i < 2 && !err; i++)
		err = opr_selection_read(&runs[i].selection);
	for (size_t i = 0; i < 2 && !err; i++)
		err = describe_stacks(&runs[i]);
	if (!err && options->html)
		err = report_page(runs, 2);
	else if (!err)
		err = opr_diff_check(&runs[0].selection.classes, &runs[1].selection.classes);
	if (!err && !options->html)
		err = compare_symbols(runs);
	for (size_t i = 0; i < 2 && !err; i++)
		err = opr_profile_end(&runs[i].selection.profile);
	for (size_t i = 0; i < 2; i++) {
		opr_words_free(&runs[i].bases);
		opr_selection_free(&runs[i].selection);
	}
	return err;
}

static int report_profile(struct opr_options *options, const struct opr_words *words)
{
	struct run run = { .options = options };
	int err;

	if (opr_words_have(&options->sort, opr_sort_words[OPR_SORT_change]))
		return opr_error(-EINVAL, "--sort=change needs two profiles: { session:A } { session:B }");
	err = select_files(&run, words);

	if (!err)
		err = opr_selection_read(&run.selection); /* step 2: reads the samples */
	if (!err)
		err = describe_stacks(&run);
	if (!err)
		err = options->html      ? report_page(&run, 1)
		      : options->stacks  ? report_stacks(&run)
		      : options->images  ? report_images(&run)
		      : options->symbols ? report_symbols(&run)
					 : report_summary(&run);
	if (!err)
		err = opr_profile_end(&run.selection.profile);
	opr_words_free(&run.bases);
	op_text_free(&run.stacks);
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
	if (!err && options.sources & OPR_FROM_DEBUGINFOD)
		opr_debuginfod_use(&options.debuginfod_time);
	if (!err && request == OPR_RUN)
		err = report(&options);
	opr_options_free(&options);
	return err ? EXIT_FAILURE : EXIT_SUCCESS;
}
