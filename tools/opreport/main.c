/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * opreport: shows where the samples of a profile are, by application, symbol or image.
 *
 * tools/report/run.h has the steps of a report: select, read, symbols, rows, calls. Here are the
 * reports that are made of them, and how each is written: text, CSV, JSON by
 * tools/report/writer.h, XML by tools/report/write_xml.h. --stacks makes a tree of calls instead
 * of rows: tools/stacks/call_tree.h.
 */
#include <errno.h>
#include <langinfo.h>
#include <locale.h>

#include "libop/base/clock.h"
#include "tools/common/log.h"
#include "tools/common/output.h"
#include "tools/common/progress.h"
#include "tools/export/bolt.h"
#include "tools/export/export.h"
#include "tools/fetch/debuginfod.h"
#include "tools/opreport/explain.h"
#include "tools/opreport/notes.h"
#include "tools/opreport/options.h"
#include "tools/opreport/over_time.h"
#include "tools/opreport/runtimes.h"
#include "tools/opreport/waits.h"
#include "tools/page/code.h"
#include "tools/page/pack.h"
#include "tools/page/write_page.h"
#include "tools/profile/spec.h"
#include "tools/report/diff_rows.h"
#include "tools/report/memory_rows.h"
#include "tools/report/image_rows.h"
#include "tools/report/run.h"
#include "tools/report/writer.h"
#include "tools/stacks/arrange.h"
#include "tools/stacks/count_stacks.h"
#include "tools/stacks/inclusive.h"
#include "tools/stacks/leaf_rows.h"
#include "tools/stacks/short_images.h"
#include "tools/stacks/write_stacks.h"

#define NS_PER_US 1000u
#define NAME_BYTES 100 /* where there is no terminal */
#define RETRIES   100 /* each time a session fewer is left */

/* A report of one profile. */
struct report {
	const struct opr_options *options;
	struct opr_run run;
	struct opr_output output;
	struct opr_origin before; /* of the profile that this one is compared to */
	struct op_text stacks;    /* the lines of those that were selected */
	bool is_filtered;
};

/* Groups are no applications; and the genuine tools have no such column. */
static int count_inclusive(struct report *report)
{
	struct opr_run *run = &report->run;

	if (!run->query->callgraph || run->query->by || opr_sources_are_genuine(run->query->naming.sources))
		return 0;
	return opr_inclusive_count(&run->graph, &run->rows, &run->selection, run->query);
}

/* ---- step 5: write ---- */

static int open_output(struct report *report)
{
	const struct opr_options *options = report->options;

	return opr_output_open(&report->output, options->output_file, options->no_pager, options->colour);
}

static const struct opr_writer_ops *writer_of(const struct report *report)
{
	enum opr_format format = report->options->format;

	if (format == OPR_FORMAT_JSON)
		return &opr_json_writer;
	if (format == OPR_FORMAT_CSV)
		return &opr_csv_writer;
	return &opr_text_writer;
}

static struct opr_origin origin_of(const struct report *report, const uint64_t *totals)
{
	const struct opr_selection *selection = &report->run.selection;

	return (struct opr_origin){ &selection->profile, &selection->classes, &selection->recorded, totals,
				    report->is_filtered ? op_text_get(&report->stacks) : NULL };
}

static struct opr_layout layout_of(const struct report *report, const uint64_t *totals)
{
	const struct opr_query *query = report->run.query;
	const struct opr_selection *selection = &report->run.selection;

	return (struct opr_layout){
		.origin = origin_of(report, totals),
		.is_ours = opr_profile_is_ours(&selection->profile),
		.classes = &selection->classes,
		.totals = totals,
		.no_header = query->no_header,
		.long_names = query->long_names || (query->by && !query->symbols),
		.by = query->by,
		.short_cgroups = query->by == OPR_BY_CGROUP && !query->wide,
		.accumulated = query->accumulated,
		.debug_info = query->lines,
		.show_address = query->show_address,
		.global_percent = query->global_percent,
		.symbols = query->symbols,
		.callgraph = query->callgraph,
		.colour = report->output.colour,
		.nr_columns = query->wide ? 0 : report->output.nr_columns,
		.name_bytes = report->options->shortens_names ? NAME_BYTES : 0,
		.images = query->images,
		.inlined = query->inlined,
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

static int write_summary(struct report *report, const struct opr_summary *summary)
{
	const struct opr_layout layout = layout_of(report, summary->totals);
	struct opr_writer writer = { 0 };
	int err = opr_writer_init(&writer, writer_of(report), &layout, report->output.out);

	if (!err)
		opr_report_summary(&writer, summary, report->run.query->threshold);
	opr_writer_free(&writer);
	return err;
}

static int report_summary(struct report *report)
{
	const struct opr_selection *selection = &report->run.selection;
	struct opr_summary summary = { 0 };
	int err = opr_summary_make(&summary, &selection->profile, selection->classes.nr_classes, report->run.query->reverse_sort);

	if (!err) {
		opr_summary_top(&summary, report->run.query->top);
		err = open_output(report);
	}
	if (!err)
		err = write_summary(report, &summary);
	if (!err)
		err = opr_output_close(&report->output);
	if (!err)
		err = opr_note_unnamed_files(&selection->profile);
	opr_summary_free(&summary);
	return err;
}

static int write_rows(struct report *report, const struct opr_symbol_report *rows)
{
	const struct opr_selection *selection = &report->run.selection;
	const struct opr_callgraph *graph = &report->run.graph;
	const struct opr_block_limits limits = { report->run.query->threshold, report->run.query->top };
	struct opr_layout layout = layout_of(report, rows->totals);
	struct opr_writer writer = { 0 };
	int err;

	layout.before = report->before;
	layout.app_column = layout.by || has_several_applications(&selection->profile, selection->classes.nr_classes);
	layout.diff = rows->nr_rows && rows->rows[0].changes;
	layout.no_addresses = rows->no_addresses;
	layout.nr_stacks = graph->nr_stacks;
	layout.stack_event = layout.callgraph ? graph->stack_event : NULL;
	err = opr_writer_init(&writer, writer_of(report), &layout, report->output.out);
	if (!err && layout.callgraph)
		err = opr_report_callgraph(&writer, rows, graph, &limits);
	else if (!err)
		opr_report_symbols(&writer, rows);
	opr_writer_free(&writer);
	return err;
}

static int write_xml(struct report *report)
{
	const struct opr_run *run = &report->run;
	struct opr_xml_attribute attributes[OPR_NR_XML_OPTIONS];
	struct opr_xml_values values = { 0 };
	struct opr_xml_document document = {
		.origin = origin_of(report, run->rows.totals),
		.classes = &run->selection.classes,
		.report = &run->rows,
		.graph = run->query->callgraph ? &run->graph : NULL,
		.title = report->options->title,
		.options = attributes,
		.details = run->query->details,
		.lines = run->query->lines,
		.limits = { run->query->threshold, run->query->top },
	};
	int err = opr_xml_options(report->options, &run->selection.spec, &values, attributes, &document.nr_options);

	if (!err)
		err = opr_report_xml(&document, report->output.out);
	opr_xml_values_free(&values);
	return err;
}

static int write_memory(struct report *report)
{
	static const enum opr_mem_format formats[] = {
		[OPR_FORMAT_TEXT] = OPR_MEM_TEXT,
		[OPR_FORMAT_JSON] = OPR_MEM_JSON,
		[OPR_FORMAT_CSV] = OPR_MEM_CSV,
	};
	const struct opr_run *run = &report->run;
	struct opr_layout layout = layout_of(report, run->rows.totals);

	layout.app_column = has_several_applications(&run->selection.profile, run->selection.classes.nr_classes);
	return opr_mem_report_write(&run->rows, &layout, formats[report->options->format], report->output.out);
}

/* XML and --by have an order of their own, but --top means the rows with most samples. */
static int sort_rows(const struct opr_options *options, struct opr_symbol_report *rows)
{
	const struct opr_query *query = &options->query;
	const struct opr_words none = { 0 };
	struct opr_sort_order order = { 0 };
	const char *bad_key;
	int err = 0;

	if ((options->format == OPR_FORMAT_XML || query->by) && query->top < rows->nr_rows &&
	    !opr_sort_order_make(&order, &none, &bad_key)) {
		err = opr_symbol_sort(rows, &order);
		if (!err)
			err = opr_symbol_report_top(rows, query->top);
	}
	if (!err)
		err = opr_symbol_sort(rows, &options->order);
	return err ? err : opr_symbol_report_top(rows, query->top);
}

/* `rows`: those of the run, or their difference to those of another profile. */
static int write_symbols(struct report *report, struct opr_symbol_report *rows)
{
	enum opr_format format = report->options->format;
	int err = format == OPR_FORMAT_BOLT ? opr_export_bolt_check(rows) : 0;

	if (!err)
		err = open_output(report);
	if (err)
		return err;
	opr_verbose(OPR_TOPIC_level1, "sorting and writing %zu symbols", rows->nr_rows);
	err = sort_rows(report->options, rows);
	if (err)
		return err;
	if (report->run.query->memory)
		err = write_memory(report);
	else if (format == OPR_FORMAT_BOLT)
		opr_export_bolt(rows, report->run.selection.classes.classes[0].event, report->output.out);
	else
		err = format == OPR_FORMAT_XML ? write_xml(report) : write_rows(report, rows);
	return err ? err : opr_output_close(&report->output);
}

static int report_rows(struct report *report)
{
	opr_symbol_report_limit(&report->run.rows, report->run.query->threshold);
	return write_symbols(report, &report->run.rows);
}

static int report_symbols(struct report *report)
{
	struct opr_run *run = &report->run;
	const struct opr_query *query = run->query;
	struct opr_selection *selection = &run->selection;
	int err = opr_run_to(run, OPR_STEP_CALLS);

	if (!err)
		err = count_inclusive(report);
	if (!err)
		err = opr_symbol_report_check_names(&run->rows, &run->images, &query->include_symbols, &run->bases);
	if (!err) {
		if (query->memory)
			run->rows.nr_limits = OPR_MEM_NR_LIMITS;
		err = report_rows(report);
	}
	if (!err && !query->memory)
		err = opr_missing_symbols_warn(&selection->profile, &selection->classes, &selection->finder, &run->rows,
					       query->naming.sources);
	if (!err && !query->memory)
		err = opr_note_unnamed_rows(&run->rows);
	return err;
}

static int report_images(struct report *report)
{
	const struct opr_query *query = report->run.query;
	struct opr_selection *selection = &report->run.selection;
	struct opr_image_report images = { .sources = query->naming.sources };
	struct opr_writer writer = { 0 };
	struct opr_layout layout;
	size_t nr_rows;
	int err = opr_image_report_make(&images, &selection->profile, selection->classes.nr_classes, &selection->finder,
					query->threshold, query->reverse_sort);

	nr_rows = images.nr_rows;
	images.nr_rows = op_min_u64(nr_rows, query->top);
	if (err)
		goto out;
	err = open_output(report);
	if (err)
		goto out;
	layout = layout_of(report, images.totals);
	err = opr_writer_init(&writer, writer_of(report), &layout, report->output.out);
	if (err)
		goto out;
	err = opr_report_images(&writer, &images);
	if (err)
		goto out;
	err = opr_output_close(&report->output);
	for (size_t i = 0; i < images.nr_rows && !err; i++)
		opr_image_row_note_archive(&images.rows[i], &selection->finder);
out:
	opr_writer_free(&writer);
	images.nr_rows = nr_rows;
	opr_image_report_free(&images);
	return err;
}

/* ---- stacks ---- */

/* How a form for another tool is written; NULL: it is none. */
static int (*const exports[])(const struct opr_stack_report *report, FILE *out) = {
	[OPR_FORMAT_PPROF] = opr_export_pprof,           [OPR_FORMAT_PERF] = opr_export_perf,
	[OPR_FORMAT_SPEEDSCOPE] = opr_export_speedscope, [OPR_FORMAT_FIREFOX] = opr_export_firefox,
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

static int write_stacks(struct report *report, struct opr_call_tree *all, const struct opr_stack_sums *sums,
			const struct opr_stack_patterns *patterns)
{
	static const enum opr_stack_form forms[] = {
		[OPR_FORMAT_TEXT] = OPR_STACKS_TEXT,
		[OPR_FORMAT_JSON] = OPR_STACKS_JSON,
		[OPR_FORMAT_CSV] = OPR_STACKS_CSV,
		[OPR_FORMAT_FOLDED] = OPR_STACKS_FOLDED,
	};
	const struct opr_query *query = report->run.query;
	enum opr_format format = report->options->format;
	struct opr_call_tree tree = { 0 };
	struct opr_stack_report stacks = { .tree = &tree,
					   .sums = sums,
					   .recorded = &report->run.selection.recorded,
					   .view = query->view,
					   .invert = query->invert,
					   .no_header = query->no_header,
					   .short_cgroups = query->by == OPR_BY_CGROUP && !query->wide,
					   .name_bytes = report->options->shortens_names ? NAME_BYTES : 0 };
	int err = opr_call_tree_arrange(&tree, all, query, patterns, &stacks.nr_left_out);

	if (err)
		opr_no_memory();
	else if (!tree.root.total)
		err = opr_error(-ENOENT, "no stack matches --focus and --ignore");
	if (!err)
		err = open_output(report);
	opr_progress("writing stacks");
	if (!err && is_export(format))
		err = exports[format](&stacks, report->output.out);
	else if (!err)
		opr_stacks_write(&stacks, forms[format], report->output.out);
	if (!err)
		err = opr_output_close(&report->output);
	opr_call_tree_free(&tree);
	return err;
}

static int report_stacks(struct report *report)
{
	const struct opr_query *query = report->run.query;
	struct opr_stack_patterns patterns = { 0 };
	struct opr_call_tree tree = { 0 };
	struct opr_stack_sums sums = { 0 };
	struct opr_short_names names = { 0 };
	regex_t focus, ignore;
	int err = compile(query->focus, "focus", &focus, &patterns.focus);

	if (!err)
		err = compile(query->ignore, "ignore", &ignore, &patterns.ignore);
	if (!err)
		err = opr_stacks_read(&tree, &sums, &report->run.selection, query, NULL);
	if (!err && !query->long_names)
		err = opr_short_images_find(&names, &sums, NULL);
	if (!err && !query->long_names)
		opr_short_images_set(&names, &tree, NULL);
	if (!err)
		err = write_stacks(report, &tree, &sums, &patterns);
	if (!err)
		err = opr_note_unnamed_calls(&tree);
	if (patterns.focus)
		regfree(&focus);
	if (patterns.ignore)
		regfree(&ignore);
	opr_short_names_free(&names);
	opr_call_tree_free(&tree);
	opr_stack_sums_free(&sums);
	return err;
}

/* ---- the page ---- */

/* Of one profile, or of two that are compared. */
static int report_page(struct report *reports, size_t nr_reports)
{
	const struct opr_query *query = reports[0].run.query;
	struct opr_query everything = *query;
	struct opr_page page = { .nr_sides = nr_reports, .view = query->view, .show_idle = query->show_idle };
	struct opr_short_names short_names = { 0 }, *names = query->long_names ? NULL : &short_names;
	struct opr_output output = { 0 };
	struct op_text json = { 0 };
	int err = 0;

	for (size_t i = 0; i < nr_reports && !err; i++) {
		struct opr_page_side *side = &page.sides[i];

		everything.view = OPR_VIEW_PAGE;
		side->run = &reports[i].run;
		side->contexts.max_spans = nr_reports == 1 ? OPR_PAGE_SPANS_MAX : 0;
		err = opr_stacks_read(&side->tree, &side->sums, &side->run->selection, &everything, &side->contexts);
	}
	if (!err && names)
		err = opr_short_images_find(names, &page.sides[0].sums, nr_reports > 1 ? &page.sides[1].sums : NULL);
	for (size_t i = 0; i < nr_reports && !err && names; i++)
		opr_short_images_set(names, &page.sides[i].tree, &page.sides[i].contexts);
	for (size_t i = 0; i < nr_reports && !err; i++)
		err = opr_page_add_code(&page.sides[i], nr_reports > 1, names, OPR_PAGE_CODE_BYTES / nr_reports);
	if (!err)
		err = opr_page_collect(&page);
	opr_progress("writing the page");
	if (!err)
		err = opr_page_pack(&page, query->threshold, &json);
	if (!err)
		err = opr_output_replace(&output, reports[0].options->html, opr_page_is, OPR_PAGE_NAME);
	if (!err) {
		opr_page_write(&json, output.out);
		err = opr_output_close(&output);
	}
	op_text_free(&json);
	opr_short_names_free(&short_names);
	opr_page_free(&page);
	return err;
}

/* ---- one profile, or two ---- */

/* Samples of one block, or of one session without blocks, cannot be told apart. */
static int check_apart(const struct report reports[2])
{
	const struct opr_recorded *before = &reports[0].run.selection.recorded, *after = &reports[1].run.selection.recorded;

	if ((!reports[0].options->diff && !reports[0].options->top_changes) || before->end_ns <= after->begin_ns + OP_NS_PER_S)
		return 0;
	return opr_error(-EINVAL, "the two spans of time have samples in common, since nothing finer is kept than what is "
				  "said above: leave more time between them");
}

static int compare_symbols(struct report reports[2])
{
	struct report *after = &reports[1];
	struct opr_diff diff = { 0 };
	int err = opr_diff_check(&reports[0].run.selection.classes, &after->run.selection.classes);

	for (size_t i = 0; i < 2 && !err; i++)
		err = opr_run_to(&reports[i].run, OPR_STEP_ROWS);
	if (err)
		return err;
	err = opr_diff_make(&diff, &after->run.selection.classes, &reports[0].run.rows, &after->run.rows);
	if (err)
		goto out;
	err = opr_symbol_report_check_names(&diff.report, &after->run.images, &after->run.query->include_symbols,
					    &after->run.bases);
	if (err)
		goto out;
	opr_diff_limit(&diff, after->run.query->threshold);
	if (after->options->top_changes)
		opr_diff_keep_grown(&diff);
	after->before = origin_of(&reports[0], reports[0].run.rows.totals);
	err = write_symbols(after, &diff.report);
out:
	opr_diff_free(&diff);
	return err;
}

/* The header of a text report says how many stacks there are of what it shows. */
static int describe_stacks(struct report *report)
{
	const struct opr_spec *spec = &report->run.selection.spec;
	const struct opr_options *options = report->options;

	report->is_filtered = opr_spec_has_images(spec) || spec->cgroup.nr_words || spec->tgid.nr_words || spec->tid.nr_words ||
			      spec->cpu.nr_words;
	if (!report->is_filtered || options->format != OPR_FORMAT_TEXT || options->query.stacks || options->html)
		return 0;
	return opr_selected_stacks_describe(&report->run.selection, &report->stacks);
}

static struct report report_of(const struct opr_options *options, const struct opr_query *query, const struct opr_words *words)
{
	return (struct report){ .options = options, .run = { .query = query, .words = words } };
}

/*
 * --top-changes: the span before is as long as the time that was found, which is that of whole
 * minutes, and ends where that begins.
 */
static int add_span_before(struct opr_query *query, const struct opr_profile *after, char range[OPR_SPAN_BYTES])
{
	struct opr_recorded recorded;
	struct opr_span span;
	int err = opr_recorded_make(&recorded, after);

	span.since_us = recorded.begin_ns / NS_PER_US;
	span.until_us = recorded.end_ns / NS_PER_US;
	opr_recorded_free(&recorded);
	if (!err && span.until_us <= span.since_us)
		err = opr_error(-EINVAL, "--top-changes: when the samples were taken is not known");
	if (err)
		return err;
	opr_span_move(&span, span.until_us - span.since_us, range);
	query->span = (struct opr_span_words){ .range = range };
	return 0;
}

/* Selects, reads and describes both profiles. `range`: of the one before, for --top-changes. */
static int read_both(struct report reports[2], struct opr_query *before, char range[OPR_SPAN_BYTES])
{
	int err = opr_run_to(&reports[1].run, OPR_STEP_SELECT);

	if (err)
		return err;
	err = reports[1].options->top_changes ? add_span_before(before, &reports[1].run.selection.profile, range) : 0;
	if (err)
		return err;
	err = opr_run_to(&reports[0].run, OPR_STEP_SELECT);
	for (size_t i = 0; i < 2 && !err; i++)
		err = opr_run_to(&reports[i].run, OPR_STEP_READ);
	if (!err)
		err = check_apart(reports);
	for (size_t i = 0; i < 2 && !err; i++)
		err = describe_stacks(&reports[i]);
	return err;
}

static int write_change(struct report reports[2])
{
	const struct opr_options *options = reports[0].options;

	return options->html    ? report_page(reports, 2)
	       : options->waits ? opr_waits_compare(&reports[0].run, &reports[1].run, options)
	       : options->runtimes ? opr_runtimes_compare(&reports[0].run, &reports[1].run, options)
				   : compare_symbols(reports);
}

/* `before`, `after`: the profile specifications. */
static int report_change(const struct opr_options *options, const struct opr_words *before, const struct opr_words *after)
{
	char range[OPR_SPAN_BYTES];
	struct opr_query queries[2] = { 0 };
	struct report reports[2] = { report_of(options, &queries[0], before), report_of(options, &queries[1], after) };
	const struct opr_query *query = &options->query;
	int err = opr_options_split_diff(options, queries);

	if (!options->html && (!query->symbols || query->details || query->callgraph || options->format == OPR_FORMAT_XML))
		return opr_error(-EINVAL, "two profiles are compared by --html, or by --symbols as text, JSON or CSV without "
					  "--details and --callgraph");
	if (err)
		return err;
	err = read_both(reports, &queries[0], range);
	if (!err)
		err = write_change(reports);
	for (size_t i = 0; i < 2; i++) {
		err = opr_run_end(&reports[i].run, err);
		op_text_free(&reports[i].stacks);
	}
	return err;
}

/* Sample files know cgroups only with --separate=cgroup. Stacks always know them. */
static int report_leaves(const struct opr_options *options, const struct opr_words *words)
{
	struct opr_query query = options->query;
	struct report report = report_of(options, &query, words);
	struct opr_leaves leaves = { 0 };
	int err;

	query.sessions_only = query.stacks = 1;
	err = opr_run_to(&report.run, OPR_STEP_READ);
	if (!err)
		err = describe_stacks(&report);
	if (!err)
		err = opr_leaves_read(&leaves, &report.run);
	if (!err && !query.symbols)
		err = report_summary(&report);
	else if (!err)
		err = report_rows(&report);
	if (!err)
		opr_note("counted from the stacks, which know their cgroups; the samples do not. For these: opcontrol --apply "
			 "--separate=library,kernel,cgroup keeps them by cgroup from then on.");
	err = opr_run_end(&report.run, err);
	opr_leaves_free(&leaves);
	op_text_free(&report.stacks);
	return err;
}

static int report_profile(const struct opr_options *options, const struct opr_words *words)
{
	struct opr_query query = options->query;
	struct report report = report_of(options, &query, words);
	int err;

	if (opr_words_have(&options->sort, opr_sort_words[OPR_SORT_change]))
		return opr_error(-EINVAL, "--sort=change needs two profiles: { session:A } { session:B }, or --diff");
	query.or_stacks = opr_options_fit_leaves(options);
	err = opr_run_to(&report.run, OPR_STEP_READ);
	if (err == -ENODATA) {
		opr_run_free(&report.run);
		return report_leaves(options, words);
	}
	if (!err)
		err = describe_stacks(&report);
	if (!err)
		err = options->html            ? report_page(&report, 1)
		      : options->query.stacks  ? report_stacks(&report)
		      : options->query.images  ? report_images(&report)
		      : options->waits         ? opr_waits_report(&report.run, options)
		      : options->runtimes      ? opr_runtimes_report(&report.run, options)
		      : options->query.symbols ? report_symbols(&report)
					       : report_summary(&report);
	err = opr_run_end(&report.run, err);
	op_text_free(&report.stacks);
	return err;
}

static int report_explanation(const struct opr_options *options, const struct opr_words *words)
{
	struct opr_facts facts = { 0 };
	struct opr_output output = { 0 };
	struct op_text page = { 0 };
	int err = opr_facts_read(&facts, &options->query, words);

	if (err)
		goto out;
	(options->format == OPR_FORMAT_JSON ? opr_explain_json : opr_explain_text)(&facts, &page);
	err = page.failed ? opr_no_memory()
			  : opr_output_open(&output, options->output_file, options->no_pager, options->colour);
	if (err)
		goto out;
	fputs(op_text_get(&page), output.out);
	err = opr_output_close(&output);
out:
	op_text_free(&page);
	opr_facts_free(&facts);
	return err;
}

static int report_over_time(const struct opr_options *options, const struct opr_words *words)
{
	struct opr_query query = options->query;
	struct report report = report_of(options, &query, words);
	struct opr_course course = { 0 };
	int err;

	query.symbols = 1;
	query.totals_only = 0;
	err = opr_run_to(&report.run, OPR_STEP_READ);
	if (err)
		goto out;
	if (options->runtimes)
		err = opr_course_read_runtimes(&course, &report.run, options->course_of, options->runtime);
	else
		err = (options->waits ? opr_course_read_waits : opr_course_read)(&course, &report.run, options->course_of);
	if (err)
		goto out;
	err = open_output(&report);
	if (err)
		goto out;
	if (options->format == OPR_FORMAT_CSV)
		opr_course_csv(&course, report.output.out);
	else if (options->format == OPR_FORMAT_JSON)
		opr_course_json(&course, report.output.out);
	else if (setlocale(LC_CTYPE, "") && !strcmp(nl_langinfo(CODESET), "UTF-8"))
		opr_course_text(&course, report.output.nr_columns, false, report.output.out);
	else
		opr_course_text(&course, report.output.nr_columns, true, report.output.out);
	err = opr_output_close(&report.output);
out:
	opr_course_free(&course);
	return opr_run_end(&report.run, err);
}

/* { } { }: two profiles. */
static int report_two(const struct opr_options *options, const struct opr_words sides[2])
{
	if (options->over_time)
		return opr_error(-EINVAL, "--over-time is of one profile");
	if (options->explain)
		return opr_error(-EINVAL, "--explain is of one profile: it finds what it compares with by itself");
	if (options->diff || options->top_changes)
		return opr_error(-EINVAL, "--diff or --top-changes and { } { } both choose what is compared: use only one of them");
	return report_change(options, &sides[0], &sides[1]);
}

static int report_one(const struct opr_options *options, const struct opr_words *words)
{
	if (options->over_time)
		return report_over_time(options, words);
	if (options->explain)
		return report_explanation(options, words);
	if (options->diff || options->top_changes)
		return report_change(options, words, words);
	return report_profile(options, words);
}

static int report_once(const struct opr_options *options)
{
	struct opr_spec_words words = { 0 };
	int err = opr_spec_words_split(&words, &options->query.words);

	if (!err)
		err = words.differential ? report_two(options, words.sides) : report_one(options, &words.sides[0]);
	opr_spec_words_free(&words);
	return err;
}

/*
 * -ESTALE: a file was removed while it was read. Nothing was written yet, so the report is made
 * again of what is left.
 */
static int report_all(const struct opr_options *options)
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
	if (!err && options.query.naming.sources & OPR_FROM_DEBUGINFOD)
		opr_debuginfod_use(&options.debuginfod_time);
	if (!err && request == OPR_RUN)
		err = report_all(&options);
	opr_options_free(&options);
	return err ? EXIT_FAILURE : EXIT_SUCCESS;
}
