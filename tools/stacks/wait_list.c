/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/stacks/wait_list.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "tools/common/formatting.h"
#include "tools/common/log.h"
#include "tools/report/writer.h"
#include "tools/stacks/arrange.h"
#include "tools/stacks/idle.h"
#include "tools/stacks/view.h"

static bool is_code(const struct opr_call_node *node)
{
	enum opr_call_kind kind = node->function ? node->function->kind : OPR_CALL_GROUP;

	return kind == OPR_CALL_USER || kind == OPR_CALL_INLINED || kind == OPR_CALL_RUNTIME || kind == OPR_CALL_KERNEL;
}

/* Without a function of its own: the innermost one of the library, of the kernel, or the group. */
static const struct opr_call_node *site_of(const struct opr_call_node *node)
{
	const struct opr_call_node *user;

	while (is_code(node) && node->function->kind == OPR_CALL_KERNEL && is_code(node->parent))
		node = node->parent;
	for (user = node; is_code(user) && opr_is_c_library(user->function->image); user = user->parent)
		;
	return is_code(user) ? user : node;
}

static enum op_wait_state state_of(const struct opr_call_node *node)
{
	char name[32];

	for (; node->function; node = node->parent)
		for (size_t i = 1; node->function->kind == OPR_CALL_STATE && i < OP_NR_WAIT_STATES; i++) {
			snprintf(name, sizeof(name), "[%s]", op_wait_state_name((enum op_wait_state)i));
			if (!strcmp(name, node->function->name))
				return (enum op_wait_state)i;
		}
	return OP_WAIT_NONE;
}

/* A function that calls itself is in its stack once. */
static bool is_above(const struct opr_call_node *node, const struct opr_call_function *function)
{
	for (node = node->parent; node->function; node = node->parent)
		if (node->function == function)
			return true;
	return false;
}

static void add_stack(struct opr_wait_list *list, const struct opr_call_node *node)
{
	struct opr_wait_row *row = &list->of_functions[site_of(node)->function->index];

	row->function = site_of(node)->function;
	row->self_us += node->self;
	row->nr_records += node->self_records;
	row->states_us[state_of(node)] += node->self;
}

static int compare_rows(const void *left, const void *right)
{
	const struct opr_wait_row *a = left, *b = right;
	int order;

	if (a->self_us != b->self_us)
		return a->self_us > b->self_us ? -1 : 1;
	order = strcmp(a->function->name, b->function->name);
	return order ? order : strcmp(a->function->image, b->function->image);
}

int opr_wait_list_make(struct opr_wait_list *list, const struct opr_call_tree *tree, bool show_idle)
{
	size_t nr_functions = tree->functions.nr_entries;
	uint64_t *sums = calloc(tree->nr_nodes + 1, sizeof(*sums)); /* of nodes, and all below */

	list->of_functions = calloc(nr_functions + 1, sizeof(*list->of_functions));
	if (!sums || !list->of_functions) {
		free(sums);
		return opr_no_memory();
	}
	for (const struct opr_call_node *node = tree->made_last; node; node = node->made_before) {
		list->all_us += node->self;
		if (node->self && !show_idle && opr_idle_wait(node)) {
			list->idle_us += node->self;
			list->nr_idle_records += node->self_records;
			continue;
		}
		sums[node->index] += node->self;
		if (node->self)
			add_stack(list, node);
	}
	/* Children were made after their parents. */
	for (const struct opr_call_node *node = tree->made_last; node; node = node->made_before) {
		sums[node->parent->index] += sums[node->index];
		if (!is_above(node, node->function))
			list->of_functions[node->function->index].total_us += sums[node->index];
	}
	free(sums);
	list->rows = calloc(nr_functions + 1, sizeof(*list->rows));
	if (!list->rows)
		return opr_no_memory();
	for (size_t i = 0; i < nr_functions; i++)
		if (list->of_functions[i].self_us)
			list->rows[list->nr_rows++] = list->of_functions[i];
	qsort(list->rows, list->nr_rows, sizeof(*list->rows), compare_rows);
	return 0;
}

void opr_wait_list_free(struct opr_wait_list *list)
{
	free(list->of_functions);
	free(list->rows);
	*list = (struct opr_wait_list){ 0 };
}

void opr_wait_states_describe(const struct opr_wait_row *row, struct op_text *text)
{
	const char *separator = "";

	for (size_t i = 1; i < OP_NR_WAIT_STATES; i++) {
		if (!row->states_us[i])
			continue;
		op_text_printf(text, "%s%s %.3g %%", separator, op_wait_state_name((enum op_wait_state)i),
			       opr_percent(row->states_us[i], row->self_us));
		separator = ", ";
	}
}

/* ---- forms ---- */

static void write_text(const struct opr_wait_list *list, size_t nr_rows, const struct opr_stack_report *report, FILE *out)
{
	struct op_text text = { 0 };

	if (!report->no_header) {
		opr_stacks_describe(report, &text);
		fputs(op_text_get(&text), out);
		fputs("    self    % all    total  records  function that waited\n", out);
	}
	for (size_t i = 0; i < nr_rows; i++) {
		const struct opr_wait_row *row = &list->rows[i];
		double percent = opr_percent(row->self_us, list->all_us);

		fprintf(out, "%s %8.4f %s %8" PRIu64 "  ", opr_format_us(row->self_us).text, percent,
			opr_format_us(row->total_us).text, row->nr_records);
		opr_write_escaped(out, row->function->name);
		fputs("  (", out);
		opr_write_escaped(out, row->function->image);
		op_text_truncate(&text, 0);
		opr_wait_states_describe(row, &text);
		fprintf(out, ")  %s\n", op_text_get(&text));
	}
	if (list->idle_us)
		fprintf(out, "%s %8.4f %s %8" PRIu64 "  " OPR_CALL_IDLE "\n", opr_format_us(list->idle_us).text,
			opr_percent(list->idle_us, list->all_us), opr_format_us(list->idle_us).text, list->nr_idle_records);
	op_text_free(&text);
}

static void write_csv(const struct opr_wait_list *list, size_t nr_rows, const struct opr_stack_report *report, FILE *out)
{
	if (!report->no_header) {
		fputs("self,percent,total,records", out);
		for (size_t i = 1; i < OP_NR_WAIT_STATES; i++)
			fprintf(out, ",%s", op_wait_state_name((enum op_wait_state)i));
		fputs(",symbol,image\n", out);
	}
	for (size_t i = 0; i < nr_rows; i++) {
		const struct opr_wait_row *row = &list->rows[i];

		fprintf(out, "%" PRIu64 ",%.6g,%" PRIu64 ",%" PRIu64, row->self_us, opr_percent(row->self_us, list->all_us),
			row->total_us, row->nr_records);
		for (size_t j = 1; j < OP_NR_WAIT_STATES; j++)
			fprintf(out, ",%" PRIu64, row->states_us[j]);
		fputc(',', out);
		opr_write_csv(out, row->function->name);
		fputc(',', out);
		opr_write_csv(out, row->function->image);
		fputc('\n', out);
	}
}

static void write_json(const struct opr_wait_list *list, size_t nr_rows, const struct opr_stack_report *report, FILE *out)
{
	const struct opr_stack_sums *sums = report->sums;

	fprintf(out,
		"{\n  \"waits\": {\n    \"unit\": \"microseconds\", \"total\": %" PRIu64 ", \"records\": %" PRIu64
		", \"lost\": %" PRIu64 ", \"idle\": %" PRIu64 ",\n",
		sums->nr_samples, sums->nr_records, sums->nr_lost, list->idle_us);
	opr_view_write_json(sums, out);
	fputs("    \"symbols\": [", out);
	for (size_t i = 0; i < nr_rows; i++) {
		const struct opr_wait_row *row = &list->rows[i];

		fprintf(out, "%s\n      { \"symbol\": ", i ? "," : "");
		opr_write_json(out, row->function->name);
		fputs(", \"image\": ", out);
		opr_write_json(out, row->function->image);
		fprintf(out, ", \"self\": %" PRIu64 ", \"percent\": %.6g", row->self_us, opr_percent(row->self_us, list->all_us));
		fprintf(out, ", \"total\": %" PRIu64 ", \"records\": %" PRIu64, row->total_us, row->nr_records);
		fputs(", \"states\": {", out);
		for (size_t j = 1; j < OP_NR_WAIT_STATES; j++)
			fprintf(out, "%s \"%s\": %" PRIu64, j > 1 ? "," : "", op_wait_state_name((enum op_wait_state)j),
				row->states_us[j]);
		fputs(" } }", out);
	}
	fputs("\n    ]\n  }\n}\n", out);
}

void opr_wait_list_write(const struct opr_wait_list *list, const struct opr_stack_report *report, const struct opr_query *query,
			 enum opr_stack_form form, FILE *out)
{
	size_t nr_rows = 0;

	while (nr_rows < list->nr_rows && nr_rows < query->top &&
	       opr_percent(list->rows[nr_rows].self_us, list->all_us) >= query->threshold)
		nr_rows++;
	if (form == OPR_STACKS_JSON)
		write_json(list, nr_rows, report, out);
	else if (form == OPR_STACKS_CSV)
		write_csv(list, nr_rows, report, out);
	else
		write_text(list, nr_rows, report, out);
}
