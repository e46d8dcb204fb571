/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/report/call_block.h"

#include <errno.h>

#include "tools/common/log.h"
#include "tools/report/symbol_sort.h"

/* Adds a row with these counts to the callers or callees. */
static void add_row(struct opr_symbol_row *added, const struct opr_symbol_row *row, size_t counts, uint64_t *totals,
		    const struct opr_symbol_report *report)
{
	*added = *row;
	added->counts = counts;
	for (size_t i = 0; i < report->nr_classes; i++)
		totals[i] += report->counts.values[counts + i];
}

static int sort_rows(struct opr_symbol_row **rows, size_t nr_rows, const struct opr_symbol_report *report, bool long_names)
{
	static const struct opr_words no_keys;
	struct opr_symbol_report list = {
		.nr_classes = report->nr_classes, .rows = *rows, .nr_rows = nr_rows, .counts = report->counts
	};
	struct opr_sort_order order = { .long_names = long_names };
	const char *bad_key;
	int err = opr_sort_order_make(&order, &no_keys, &bad_key) ? 0 : opr_symbol_sort(&list, &order);

	*rows = list.rows;
	return err;
}

static void reverse(struct opr_symbol_row *rows, size_t nr_rows)
{
	for (size_t i = 0; i < nr_rows / 2; i++) {
		struct opr_symbol_row row = rows[i];

		rows[i] = rows[nr_rows - 1 - i];
		rows[nr_rows - 1 - i] = row;
	}
}

static void drop_small(struct opr_symbol_row *rows, size_t *nr_rows, const struct opr_symbol_report *report, const uint64_t *totals,
		       const struct opr_block_limits *limits)
{
	size_t nr_kept = 0;

	for (size_t i = 0; i < *nr_rows && nr_kept < limits->top; i++) {
		double count = (double)report->counts.values[rows[i].counts];

		if ((totals[0] ? 100.0 * count / (double)totals[0] : 0) >= limits->percent)
			rows[nr_kept++] = rows[i];
	}
	*nr_rows = nr_kept;
}

int opr_block_make(struct opr_block *block, const struct opr_callgraph *graph, const struct opr_symbol_report *report,
		   const struct opr_symbol_row *row, const struct opr_block_limits *limits, bool long_names)
{
	size_t node = row->order, nr_arcs = graph->nr_arcs;
	size_t first_caller = op_nr_leading(graph->by_callee, nr_arcs, arc, arc->callee < node);
	size_t end_of_callers = op_nr_leading(graph->by_callee, nr_arcs, arc, arc->callee <= node);
	size_t first_callee = op_nr_leading(graph->by_caller, nr_arcs, arc, arc->caller < node);
	size_t end_of_callees = op_nr_leading(graph->by_caller, nr_arcs, arc, arc->caller <= node);
	int err;

	*block = (struct opr_block){ .row = row };
	block->callers = calloc(end_of_callers - first_caller + 1, sizeof(*block->callers));
	block->callees = calloc(end_of_callees - first_callee + 1, sizeof(*block->callees));
	block->caller_totals = calloc(2 * report->nr_classes, sizeof(*block->caller_totals));
	if (!block->callers || !block->callees || !block->caller_totals) {
		opr_block_free(block);
		return opr_no_memory();
	}
	block->callee_totals = block->caller_totals + report->nr_classes;
	for (size_t i = first_caller; i < end_of_callers; i++)
		add_row(&block->callers[block->nr_callers++], &graph->nodes[graph->by_callee[i].caller],
			graph->by_callee[i].counts, block->caller_totals, report);
	add_row(&block->callees[block->nr_callees++], row, row->counts, block->callee_totals, report);
	block->callees[0].is_self = true;
	for (size_t i = first_callee; i < end_of_callees; i++)
		add_row(&block->callees[block->nr_callees++], &graph->nodes[graph->by_caller[i].callee],
			graph->by_caller[i].counts, block->callee_totals, report);
	err = sort_rows(&block->callers, block->nr_callers, report, long_names);
	if (!err)
		err = sort_rows(&block->callees, block->nr_callees, report, long_names);
	if (err) {
		opr_block_free(block);
		return err;
	}
	drop_small(block->callers, &block->nr_callers, report, block->caller_totals, limits);
	drop_small(block->callees, &block->nr_callees, report, block->callee_totals, limits);
	reverse(block->callers, block->nr_callers);
	return 0;
}

void opr_block_free(struct opr_block *block)
{
	free(block->callers);
	free(block->callees);
	free(block->caller_totals);
	*block = (struct opr_block){ 0 };
}
