/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/stacks/view.h"

#include <errno.h>
#include <inttypes.h>

#include "libop/base/parse.h"
#include "tools/common/formatting.h"
#include "tools/common/log.h"

static bool is_named(const char *event, const char *name)
{
	size_t length = strlen(name);

	return !strncmp(event, name, length) && event[length] == ':';
}

bool opr_view_has(enum opr_view view, const char *event)
{
	bool is_wait = is_named(event, OP_WAITS_NAME);

	switch (view) {
	case OPR_VIEW_WAIT:
		return is_wait;
	case OPR_VIEW_WALL:
		return is_wait || is_named(event, OP_STACKS_NAME);
	case OPR_VIEW_CPU:
		return !is_wait;
	case OPR_VIEW_PAGE:
		break;
	}
	return true;
}

/* For how many ns a count stands. 0: the event is not in the view; 1000: the count stays. */
static uint64_t factor_of(enum opr_view view, const char *event)
{
	char *count = strchr(event, ':'), *end;

	if (!opr_view_has(view, event))
		return 0;
	if (view != OPR_VIEW_WALL || is_named(event, OP_WAITS_NAME) || !count)
		return 1000;
	return strtoull(count + 1, &end, 10);
}

/* A product that is too large for the tree is the largest number. */
static uint64_t scale(uint64_t count, uint64_t factor)
{
	uint64_t whole;

	if (__builtin_mul_overflow(count / 1000, factor, &whole))
		return UINT64_MAX;
	return whole + count % 1000 * factor / 1000;
}

int opr_view_take(enum opr_view view, struct op_stack_tree *tree, struct opr_stack_sums *sums)
{
	uint64_t *factors = calloc(tree->nr_nodes, sizeof(*factors));
	bool *is_wait = calloc(tree->nr_nodes, sizeof(*is_wait));
	int err = factors && is_wait ? 0 : -ENOMEM;

	for (uint32_t i = 1; i < tree->nr_nodes && !err; i++) {
		struct op_stack_node *node = &tree->nodes[i];
		char *event;

		if (node->kind != OP_STACK_EVENT) {
			factors[i] = factors[node->parent];
			is_wait[i] = is_wait[node->parent];
		} else {
			event = op_stack_text(tree, node->value);
			err = event ? 0 : -ENOMEM;
			factors[i] = event ? factor_of(view, event) : 0;
			is_wait[i] = event && is_named(event, OP_WAITS_NAME);
			free(event);
		}
		if (sums && is_wait[i])
			sums->found_us += node->count;
		if (factors[i] != 1000)
			node->count = scale(node->count, factors[i]);
	}
	free(factors);
	free(is_wait);
	return err ? opr_no_memory() : 0;
}

/* By the ledger; other events with stacks have sample files, too. */
void opr_view_add_ledger(enum opr_view view, struct opr_stack_sums *sums, const struct op_session_ledger *ledger)
{
	op_wait_ledger_add(&sums->waits, &ledger->waits, NULL);
	for (size_t i = 0; i < ledger->nr_events; i++) {
		const struct op_ledger_event *event = &ledger->events[i];
		uint64_t nr_ends = 0, factor = 1000;
		bool is_wait = event->role == OP_EVENT_WAITS;

		for (size_t end = 0; end < OP_NR_STACK_ENDS; end++)
			nr_ends += event->ends[end];
		if ((!nr_ends && !is_wait) || (view != OPR_VIEW_WALL && is_wait != (view == OPR_VIEW_WAIT)))
			continue;
		if (view == OPR_VIEW_WALL && !is_wait)
			factor = event->role == OP_EVENT_STACKS ? event->count : 0;
		sums->nr_received += scale(event->received, factor);
		sums->nr_lost += scale(event->lost_kernel + op_ledger_lost(event), factor);
	}
}

static void add_time(struct op_text *text, uint64_t us)
{
	struct opr_time_text time = opr_format_us(us);

	op_text_add(text, time.text + strspn(time.text, " "));
}

void opr_view_describe(enum opr_view view, const struct opr_stack_sums *sums, struct op_text *text)
{
	const struct op_wait_ledger *waits = &sums->waits;
	uint64_t exact_us = op_wait_ledger_total_us(waits);
	const char *separator = ": ";

	op_text_add(text, view == OPR_VIEW_WALL ? "Wall:   " : "Waits:  ");
	add_time(text, sums->nr_samples);
	if (view == OPR_VIEW_WALL) {
		op_text_add(text, ", of that ");
		add_time(text, sums->nr_samples - op_min_u64(sums->selected_us, sums->nr_samples));
		op_text_add(text, " on a CPU and ");
		add_time(text, sums->selected_us);
		op_text_add(text, " of waits");
	}
	op_text_printf(text, ", from %" PRIu64 " records of waits", sums->nr_records);
	opr_stack_ends_describe(sums->ends, text);
	op_text_add_char(text, '\n');
	if (exact_us) {
		op_text_add(text, "Found:  ");
		add_time(text, sums->found_us);
		op_text_add(text, " of the ");
		add_time(text, exact_us);
		op_text_printf(text, " that threads waited, %.4g %%", opr_percent(sums->found_us, exact_us));
		for (size_t i = 1; i < OP_NR_WAIT_STATES; i++) {
			if (!waits->total_us[i])
				continue;
			op_text_printf(text, "%s%s ", separator, op_wait_state_name((enum op_wait_state)i));
			add_time(text, waits->total_us[i]);
			separator = ", ";
		}
		op_text_add_char(text, '\n');
	}
	if (waits->switches)
		op_text_printf(text,
			       "Switches: %" PRIu64 " = %" PRIu64 " idle + %" PRIu64 " kernel + %" PRIu64 " emitted + %" PRIu64
			       " skipped + %" PRIu64 " lost\n",
			       waits->switches, waits->idle, waits->kernel, waits->emitted, waits->skipped, waits->lost);
	if (sums->nr_lost) {
		op_text_add(text, "Lost:   ");
		add_time(text, sums->nr_lost);
		op_text_add_char(text, '\n');
	}
}

void opr_view_write_json(const struct opr_stack_sums *sums, FILE *out)
{
	const struct op_wait_ledger *waits = &sums->waits;

	fprintf(out, "    \"found-us\": %" PRIu64 ", \"exact-us\": { ", sums->found_us);
	for (size_t i = 1; i < OP_NR_WAIT_STATES; i++)
		fprintf(out, "%s\"%s\": %" PRIu64, i > 1 ? ", " : "", op_wait_state_name((enum op_wait_state)i),
			waits->total_us[i]);
	fprintf(out, " },\n    \"switches\": { \"all\": %" PRIu64 ", \"idle\": %" PRIu64 ", \"kernel\": %" PRIu64,
		waits->switches, waits->idle, waits->kernel);
	fprintf(out, ", \"emitted\": %" PRIu64 ", \"skipped\": %" PRIu64 ", \"lost\": %" PRIu64 " },\n",
		waits->emitted, waits->skipped, waits->lost);
}
