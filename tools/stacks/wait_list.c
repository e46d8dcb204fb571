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

const struct opr_call_function *opr_wait_site(const struct opr_call_node *node)
{
	return site_of(node)->function;
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

/* ---- wakers ---- */

static int compare_pairs(const void *left, const void *right)
{
	const struct opr_wait_waker *a = left, *b = right;

	if (a->function->index != b->function->index)
		return a->function->index < b->function->index ? -1 : 1;
	return (a->who->index > b->who->index) - (a->who->index < b->who->index);
}

static int compare_wakers(const void *left, const void *right)
{
	const struct opr_wait_waker *a = left, *b = right;
	int order;

	if (a->function->index != b->function->index)
		return a->function->index < b->function->index ? -1 : 1;
	if (a->us != b->us)
		return a->us > b->us ? -1 : 1;
	order = strcmp(a->who->name, b->who->name);
	return order ? order : strcmp(a->who->image, b->who->image);
}

static int add_wakers(struct opr_wait_list *list, const struct opr_call_tree *tree, bool show_idle)
{
	size_t nr = 0;

	list->wakers = calloc(tree->nr_wakers + 1, sizeof(*list->wakers));
	if (!list->wakers)
		return opr_no_memory();
	for (size_t i = 0; i < tree->nr_wakers; i++) {
		const struct opr_call_waker *from = &tree->wakers[i];

		if (show_idle || !opr_idle_wait(from->node))
			list->wakers[nr++] = (struct opr_wait_waker){ site_of(from->node)->function, from->who, from->us,
								      from->nr_records };
	}
	if (nr)
		qsort(list->wakers, nr, sizeof(*list->wakers), compare_pairs);
	for (size_t i = 0; i < nr; i++) {
		struct opr_wait_waker *last = list->nr_wakers ? &list->wakers[list->nr_wakers - 1] : NULL;

		if (!last || compare_pairs(last, &list->wakers[i])) {
			list->wakers[list->nr_wakers++] = list->wakers[i];
			continue;
		}
		last->us += list->wakers[i].us;
		last->nr_records += list->wakers[i].nr_records;
	}
	if (nr)
		qsort(list->wakers, list->nr_wakers, sizeof(*list->wakers), compare_wakers);
	return 0;
}

size_t opr_wait_wakers(const struct opr_wait_list *list, const struct opr_call_function *function,
		       const struct opr_wait_waker **ret_first)
{
	size_t first = 0, end = list->nr_wakers, nr = 0;

	while (first < end) {
		size_t middle = first + (end - first) / 2;

		if (list->wakers[middle].function->index < function->index)
			first = middle + 1;
		else
			end = middle;
	}
	while (first + nr < list->nr_wakers && list->wakers[first + nr].function == function)
		nr++;
	if (nr)
		*ret_first = &list->wakers[first];
	return nr;
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
	return add_wakers(list, tree, show_idle);
}

void opr_wait_list_free(struct opr_wait_list *list)
{
	free(list->of_functions);
	free(list->rows);
	free(list->wakers);
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

#define TEXT_WAKERS 5u /* of a function */

static void write_wakers(const struct opr_wait_list *list, const struct opr_wait_row *row, FILE *out)
{
	const struct opr_wait_waker *waker = NULL;
	size_t nr = opr_wait_wakers(list, row->function, &waker);

	for (size_t i = 0; i < nr && i < TEXT_WAKERS; i++) {
		fprintf(out, "%s %8.4f %8s %8" PRIu64 "    woken by ", opr_format_us(waker[i].us).text,
			opr_percent(waker[i].us, list->all_us), "", waker[i].nr_records);
		opr_write_escaped(out, waker[i].who->name);
		if (waker[i].who->image[0]) {
			fputs("  (", out);
			opr_write_escaped(out, waker[i].who->image);
			fputc(')', out);
		}
		fputc('\n', out);
	}
	if (nr > TEXT_WAKERS)
		fprintf(out, "%36s    and %zu more\n", "", nr - TEXT_WAKERS);
}

static void write_text(const struct opr_wait_list *list, size_t nr_rows, const struct opr_stack_report *report, bool has_wakers,
		       FILE *out)
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
		if (has_wakers)
			write_wakers(list, row, out);
	}
	if (list->idle_us)
		fprintf(out, "%s %8.4f %s %8" PRIu64 "  " OPR_CALL_IDLE "\n", opr_format_us(list->idle_us).text,
			opr_percent(list->idle_us, list->all_us), opr_format_us(list->idle_us).text, list->nr_idle_records);
	op_text_free(&text);
}

/* The one that woke most. */
static void write_csv_waker(const struct opr_wait_list *list, const struct opr_wait_row *row, FILE *out)
{
	const struct opr_wait_waker *waker = NULL;

	fputc(',', out);
	if (opr_wait_wakers(list, row->function, &waker)) {
		opr_write_csv(out, waker->who->name);
		fputc(',', out);
		opr_write_csv(out, waker->who->image);
		fprintf(out, ",%" PRIu64, waker->us);
	} else {
		fputs(",,", out);
	}
}

static void write_csv(const struct opr_wait_list *list, size_t nr_rows, const struct opr_stack_report *report, bool has_wakers,
		      FILE *out)
{
	if (!report->no_header) {
		fputs("self,percent,total,records", out);
		for (size_t i = 1; i < OP_NR_WAIT_STATES; i++)
			fprintf(out, ",%s", op_wait_state_name((enum op_wait_state)i));
		fprintf(out, ",symbol,image%s\n", has_wakers ? ",waker,waker-image,waker-us" : "");
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
		if (has_wakers)
			write_csv_waker(list, row, out);
		fputc('\n', out);
	}
}

static void write_json_wakers(const struct opr_wait_list *list, const struct opr_wait_row *row, FILE *out)
{
	const struct opr_wait_waker *waker = NULL;
	size_t nr = opr_wait_wakers(list, row->function, &waker);

	fputs(", \"wakers\": [", out);
	for (size_t i = 0; i < nr; i++) {
		fprintf(out, "%s{ \"thread\": ", i ? ", " : " ");
		opr_write_json(out, waker[i].who->name);
		fputs(", \"image\": ", out);
		opr_write_json(out, waker[i].who->image);
		fprintf(out, ", \"us\": %" PRIu64 ", \"records\": %" PRIu64 " }", waker[i].us, waker[i].nr_records);
	}
	fputs(nr ? " ]" : "]", out);
}

static void write_json(const struct opr_wait_list *list, size_t nr_rows, const struct opr_stack_report *report, bool has_wakers,
		       FILE *out)
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
		fputs(" }", out);
		if (has_wakers)
			write_json_wakers(list, row, out);
		fputs(" }", out);
	}
	fputs("\n    ]\n  }\n}\n", out);
}

void opr_wait_list_write(const struct opr_wait_list *list, const struct opr_stack_report *report, const struct opr_query *query,
			 bool has_wakers, enum opr_stack_form form, FILE *out)
{
	size_t nr_rows = 0;

	while (nr_rows < list->nr_rows && nr_rows < query->top &&
	       opr_percent(list->rows[nr_rows].self_us, list->all_us) >= query->threshold)
		nr_rows++;
	if (form == OPR_STACKS_JSON)
		write_json(list, nr_rows, report, has_wakers, out);
	else if (form == OPR_STACKS_CSV)
		write_csv(list, nr_rows, report, has_wakers, out);
	else
		write_text(list, nr_rows, report, has_wakers, out);
}
