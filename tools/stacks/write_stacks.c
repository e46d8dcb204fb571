/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/stacks/write_stacks.h"

#include <inttypes.h>

#include "tools/common/formatting.h"
#include "tools/common/progress.h"
#include "tools/elf/demangle.h"
#include "tools/profile/container_name.h"
#include "tools/report/writer.h"
#include "tools/stacks/arrange.h"
#include "tools/stacks/view.h"

static const char *const kind_names[] = {
	[OPR_CALL_GROUP] = "group",   [OPR_CALL_END] = "end",         [OPR_CALL_USER] = "user",
	[OPR_CALL_KERNEL] = "kernel", [OPR_CALL_INLINED] = "inlined", [OPR_CALL_LESS] = "other",
	[OPR_CALL_STATE] = "state",   [OPR_CALL_RUNTIME] = "runtime",
};

/* ---- text ---- */

void opr_stacks_describe(const struct opr_stack_report *report, struct op_text *text)
{
	const struct opr_stack_sums *sums = report->sums;

	opr_recorded_describe(report->recorded, text);
	if (report->view != OPR_VIEW_CPU) {
		opr_view_describe(report->view, sums, text);
		if (sums->nr_unselected || report->nr_left_out)
			op_text_printf(text, "Left out: %s that the selection excludes\n",
				       opr_format_us(sums->nr_unselected + report->nr_left_out).text);
		return;
	}
	op_text_printf(text, "Stacks: %" PRIu64 " samples of ", sums->nr_samples);
	for (size_t i = 0; i < sums->events.nr_words; i++) {
		op_text_add(text, i ? ", " : "");
		op_text_add_escaped(text, sums->events.words[i]);
	}
	opr_stack_ends_describe(sums->ends, text);
	op_text_add_char(text, '\n');
	if (sums->nr_lost)
		op_text_printf(text, "Lost:   %" PRIu64 " stack samples\n", sums->nr_lost);
	if (sums->nr_unselected || report->nr_left_out)
		op_text_printf(text, "Left out: %" PRIu64 " samples that the selection excludes\n",
			       sums->nr_unselected + report->nr_left_out);
}

void opr_stacks_describe_line(const struct opr_stack_report *report, struct op_text *text)
{
	opr_stacks_describe(report, text);
	for (size_t i = 0; i < text->length; i++)
		if (text->data[i] == '\n')
			text->data[i] = i + 1 < text->length ? ';' : '\0';
}

static void write_header(const struct opr_stack_report *report, FILE *out)
{
	struct op_text text = { 0 };

	opr_stacks_describe(report, &text);
	fputs(op_text_get(&text), out);
	op_text_free(&text);
	fputs(report->view == OPR_VIEW_CPU ? " samples    % all  % above     self  "
					   : "    time    % all  % above     self  records  ",
	      out);
	fputs(report->invert ? "function, called by\n" : "application, function, called function\n", out);
}

static void write_name(const struct opr_stack_report *report, const char *name, FILE *out)
{
	size_t max = report->name_bytes;
	char *elided = max && strlen(name) > max ? opr_demangle_elide(name, max) : NULL;

	opr_write_escaped(out, elided ? elided : name);
	free(elided);
}

static void write_container(const char *cgroup, FILE *out)
{
	struct op_text text = { 0 };

	opr_container_name_add(&text, cgroup);
	opr_write_escaped(out, op_text_get(&text));
	op_text_free(&text);
}

static void write_line(const struct opr_stack_report *report, const struct opr_call_node *node, size_t depth, FILE *out)
{
	uint64_t all = report->tree->root.total, above_total = node->parent->total;
	const struct opr_call_function *function = node->function, *above = node->parent->function;

	if (report->view == OPR_VIEW_CPU)
		fprintf(out, "%8" PRIu64 " %8.4f %8.4f %8" PRIu64 "  %*s", node->total, opr_percent(node->total, all),
			opr_percent(node->total, above_total), node->self, (int)(2 * (depth - 1)), "");
	else
		fprintf(out, "%s %8.4f %8.4f %s %8" PRIu64 "  %*s", opr_format_us(node->total).text, opr_percent(node->total, all),
			opr_percent(node->total, above_total), opr_format_us(node->self).text, node->records,
			(int)(2 * (depth - 1)), "");
	if (function->kind == OPR_CALL_GROUP && report->short_cgroups)
		write_container(function->name, out);
	else
		write_name(report, function->name, out);
	if (function->kind == OPR_CALL_INLINED)
		fputs("  (inlined)", out);
	else if (function->kind != OPR_CALL_RUNTIME && function->image[0] &&
		 (!above || strcmp(above->image, function->image) != 0)) {
		fputs("  (", out);
		opr_write_escaped(out, function->image);
		fputc(')', out);
	}
	fputc('\n', out);
}

static void write_text(const struct opr_stack_report *report, FILE *out)
{
	if (!report->no_header)
		write_header(report, out);
	for (const struct opr_call_node *node = opr_call_next(&report->tree->root); node; node = opr_call_next(node))
		write_line(report, node, opr_call_depth(node), out);
}

/* ---- folded ---- */

/* A semicolon in a name would make another stack of it. */
static void write_folded_name(const struct opr_call_function *function, FILE *out)
{
	struct op_text name = { 0 };

	op_text_add_escaped(&name, function->name);
	for (size_t i = 0; i < name.length; i++)
		if (name.data[i] == ';')
			name.data[i] = ':';
	fputs(op_text_get(&name), out);
	op_text_free(&name);
	fputs(function->kind == OPR_CALL_KERNEL ? "_[k]" : function->kind == OPR_CALL_INLINED ? "_[i]" : "", out);
}

static void write_folded(const struct opr_stack_report *report, FILE *out)
{
	for (const struct opr_call_node *node = opr_call_next(&report->tree->root); node; node = opr_call_next(node)) {
		const struct opr_call_function *path[OPR_CALL_DEPTH_MAX + 1]; /* and "(other)" */
		size_t nr;

		opr_progress_tick();
		if (!node->self)
			continue;
		nr = opr_call_path(node, path);
		for (size_t i = 0; i < nr; i++) {
			write_folded_name(path[i], out);
			fputc(i + 1 < nr ? ';' : ' ', out);
		}
		fprintf(out, "%" PRIu64 "\n", node->self);
	}
}

/* ---- JSON and CSV: a row for each node, parents first ---- */

/* Numbers of the nodes on the way from the root: the parent of the next one is among them. */
struct numbers {
	size_t of[OPR_CALL_DEPTH_MAX + 2]; /* by depth */
	size_t last;
};

static size_t number_node(struct numbers *numbers, size_t depth)
{
	numbers->of[depth] = ++numbers->last;
	return numbers->of[depth - 1];
}

/* Of a function of a runtime. */
static void write_json_place(const struct opr_call_function *function, FILE *out)
{
	if (function->kind != OPR_CALL_RUNTIME)
		return;
	fputs(", \"function\": ", out);
	opr_write_json(out, function->place.function ?: "");
	fputs(", \"file\": ", out);
	opr_write_json(out, function->place.source ?: "");
	fprintf(out, ", \"line\": %u", function->place.line);
}

static void write_json(const struct opr_stack_report *report, FILE *out)
{
	const struct opr_stack_sums *sums = report->sums;
	struct numbers numbers = { 0 };

	fputs("{\n  \"stacks\": {\n    \"events\": [", out);
	for (size_t i = 0; i < sums->events.nr_words; i++) {
		fputs(i ? ", " : "", out);
		opr_write_json(out, sums->events.words[i]);
	}
	if (report->view != OPR_VIEW_CPU)
		fprintf(out, "],\n    \"unit\": \"microseconds\", \"records\": %" PRIu64 ", \"total\": %" PRIu64 ",",
			sums->nr_records, sums->nr_samples);
	else
		fprintf(out, "],\n    \"samples\": %" PRIu64 ",", sums->nr_samples);
	fprintf(out, " \"lost\": %" PRIu64 ", \"left-out\": %" PRIu64 ",\n", sums->nr_lost,
		sums->nr_unselected + report->nr_left_out);
	if (report->view != OPR_VIEW_CPU)
		opr_view_write_json(sums, out);
	fputs("    \"ends\": { ", out);
	for (enum op_stack_end end = 0; end < OP_NR_STACK_ENDS; end++)
		fprintf(out, "%s\"%s\": %" PRIu64, end ? ", " : "", op_stack_end_name(end), sums->ends[end]);
	fputs(" },\n    \"nodes\": [", out);
	for (const struct opr_call_node *node = opr_call_next(&report->tree->root); node; node = opr_call_next(node)) {
		size_t parent = number_node(&numbers, opr_call_depth(node));

		opr_progress_tick();
		fprintf(out,
			"%s\n      { \"node\": %zu, \"parent\": %zu, \"kind\": \"%s\", \"name\": ", numbers.last == 1 ? "" : ",",
			numbers.last, parent, kind_names[node->function->kind]);
		opr_write_json(out, node->function->name);
		fputs(", \"image\": ", out);
		opr_write_json(out, node->function->image);
		write_json_place(node->function, out);
		fprintf(out, ", \"self\": %" PRIu64 ", \"total\": %" PRIu64, node->self, node->total);
		if (report->view != OPR_VIEW_CPU)
			fprintf(out, ", \"records\": %" PRIu64, node->records);
		fputs(" }", out);
	}
	fputs("\n    ]\n  }\n}\n", out);
}

/* Columns that only stacks with functions of a runtime have. */
static void write_csv_place(const struct opr_call_function *function, FILE *out)
{
	if (function->kind != OPR_CALL_RUNTIME) {
		fputs(",,", out);
		return;
	}
	fputc(',', out);
	opr_write_csv(out, function->place.source ?: "");
	fprintf(out, ",%u", function->place.line);
}

static void write_csv(const struct opr_stack_report *report, FILE *out)
{
	struct numbers numbers = { 0 };
	bool has_runtimes = false;

	for (const struct opr_call_node *node = opr_call_next(&report->tree->root); node; node = opr_call_next(node))
		has_runtimes |= node->function->kind == OPR_CALL_RUNTIME;

	if (!report->no_header)
		fprintf(out, "node,parent,kind,total,percent,self,name,image%s%s\n", report->view != OPR_VIEW_CPU ? ",records" : "",
			has_runtimes ? ",file,line" : "");
	for (const struct opr_call_node *node = opr_call_next(&report->tree->root); node; node = opr_call_next(node)) {
		size_t parent = number_node(&numbers, opr_call_depth(node));

		opr_progress_tick();
		fprintf(out, "%zu,%zu,%s,%" PRIu64 ",%.6g,%" PRIu64 ",", numbers.last, parent, kind_names[node->function->kind],
			node->total, opr_percent(node->total, report->tree->root.total), node->self);
		opr_write_csv(out, node->function->name);
		fputc(',', out);
		opr_write_csv(out, node->function->image);
		if (report->view != OPR_VIEW_CPU)
			fprintf(out, ",%" PRIu64, node->records);
		if (has_runtimes)
			write_csv_place(node->function, out);
		fputc('\n', out);
	}
}

void opr_stacks_write(const struct opr_stack_report *report, enum opr_stack_form form, FILE *out)
{
	static void (*const writers[])(const struct opr_stack_report *report, FILE *out) = {
		[OPR_STACKS_TEXT] = write_text,
		[OPR_STACKS_FOLDED] = write_folded,
		[OPR_STACKS_JSON] = write_json,
		[OPR_STACKS_CSV] = write_csv,
	};

	writers[form](report, out);
}
