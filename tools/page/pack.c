/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/page/pack.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "libop/base/clock.h"
#include "libop/session/ledger.h"
#include "tools/common/formatting.h"
#include "tools/common/log.h"
#include "tools/common/progress.h"
#include "tools/profile/image_name.h"
#include "tools/stacks/arrange.h"

#define DIGITS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
#define FIRST_THRESHOLD 0.0005 /* percent, when a page without one is too large */
#define THRESHOLD_STEP 1.5
#define TIMES_BYTES_MAX 600000u /* with more, neighbours of spans become one */

/* Strings of the page, each once. */
struct strings {
	struct opr_call_tree table;
	struct op_text json;
	size_t nr;
	bool failed;
};

struct packing {
	const struct opr_page *page;
	struct strings strings;
	struct op_text nodes, functions;
	/* by index of nodes: percent of the samples of their events, levels below the root */
	double *weights;
	size_t *depths;
	const struct opr_call_node **shown; /* by index: the node, or one above it */
	struct opr_page_count *pruned; /* what is not shown, at nodes that are; sorted */
	size_t nr_pruned;
	uint64_t nr_pruned_samples, pruned_us; /* samples, and microseconds of waits */
	size_t *numbers; /* of the functions on the page, by index, from 1; 0: not there yet */
	size_t nr_functions;
	/* by index of nodes: the node on the page, and the one for what is not shown below it */
	size_t *places, *rests;
	size_t nr_places;
	struct packed_time *packed;
	struct op_text times;
	size_t nr_merged; /* spans of the tree that are one of the page */
};

struct packed_time {
	size_t node, context, span;
	uint64_t count, nr_records;
};

/* ---- strings ---- */

/* How many lists of template arguments are open behind a character of a name. */
static size_t depth_behind(const char *name, size_t at, size_t depth)
{
	size_t start = at;
	bool is_operator;

	while (start && at - start < 2 && strchr("<>=-", name[start - 1]))
		start--;
	is_operator = start >= 8 && !memcmp(name + start - 8, "operator", 8);
	if (name[at] == '<' && !is_operator)
		return depth + 1;
	return name[at] == '>' && depth && !is_operator && name[at - 1] != '-' ? depth - 1 : depth;
}

/* Leaves out the inner template arguments of a name that is too long, and outer ones if it must. */
static void leave_out_arguments(struct op_text *shown)
{
	const char *name = op_text_get(shown);
	size_t *bytes = calloc(shown->length + 2, sizeof(*bytes)); /* by depth */
	size_t *lists = calloc(shown->length + 2, sizeof(*lists));
	size_t depth = 0, most = 0, left = shown->length;
	struct op_text shorter = { 0 };

	for (size_t i = 0; bytes && lists && i < shown->length; i++) {
		size_t behind = depth_behind(name, i, depth);

		lists[behind] += behind > depth;
		bytes[op_min_u64(depth, behind)]++;
		depth = behind;
		most = depth > most ? depth : most;
	}
	/* lists at the depth `most` become "<…>" */
	while (most && left - bytes[most] + lists[most] * strlen("…") > OPR_SHOWN_BYTES)
		left -= bytes[most--];
	depth = 0;
	for (size_t i = 0; most && i < shown->length; i++) {
		size_t behind = depth_behind(name, i, depth);

		if (depth < most || behind < most)
			op_text_add_char(&shorter, name[i]);
		if (behind == most && depth < most)
			op_text_add(&shorter, "…");
		depth = behind;
	}
	if (most && !shorter.failed) {
		op_text_truncate(shown, 0);
		op_text_add(shown, op_text_get(&shorter));
	}
	op_text_free(&shorter);
	free(bytes);
	free(lists);
}

void opr_page_add_string(struct op_text *json, const char *name)
{
	struct op_text shown = { 0 };

	op_text_add_escaped(&shown, name);
	if (shown.length > OPR_SHOWN_BYTES)
		leave_out_arguments(&shown);
	opr_shorten(&shown);
	opr_page_add_text(json, op_text_get(&shown));
	json->failed |= shown.failed;
	op_text_free(&shown);
}

void opr_page_add_text(struct op_text *json, const char *text)
{
	op_text_add_char(json, '"');
	for (const char *c = text; *c; c++) {
		if (*c == '<')
			op_text_add(json, "\\u003c");
		else if (*c == '"' || *c == '\\')
			op_text_printf(json, "\\%c", *c);
		else
			op_text_add_char(json, *c);
	}
	op_text_add_char(json, '"');
}

static size_t number_string(struct strings *strings, const char *string)
{
	const struct opr_call_function *found = opr_call_function(&strings->table, OPR_CALL_GROUP, string, "");

	strings->failed |= !found;
	if (!found || found->index < strings->nr)
		return found ? found->index : 0;
	op_text_add(&strings->json, strings->nr ? "," : "");
	opr_page_add_string(&strings->json, string);
	return strings->nr++;
}

/* Digits of five bits, the lowest first; all but the last one have the sixth bit. */
static void add_number(struct op_text *text, uint64_t number)
{
	for (; number >= 32; number >>= 5)
		op_text_add_char(text, DIGITS[32 + (number & 31)]);
	op_text_add_char(text, DIGITS[number]);
}

/* ---- what is shown ---- */

static const struct opr_stack_context *context_at(const struct opr_page *page, size_t context, size_t *ret_side)
{
	*ret_side = context >= page->sides[0].contexts.nr_rows;
	return &page->sides[*ret_side].contexts.rows[context - (*ret_side ? page->sides[0].contexts.nr_rows : 0)];
}

static bool is_wait(const struct opr_page *page, size_t context)
{
	size_t side;

	return context_at(page, context, &side)->is_wait;
}

/* The percentage that a sample of each context is of its event and side. NULL: no memory. */
static double *weigh_contexts(const struct opr_page *page)
{
	size_t nr_contexts = page->sides[0].contexts.nr_rows + page->sides[1].contexts.nr_rows, side;
	uint64_t *sums = calloc(nr_contexts + 1, sizeof(*sums)); /* by event and side */
	size_t *events = calloc(nr_contexts + 1, sizeof(*events));
	double *weights = calloc(nr_contexts + 1, sizeof(*weights));
	struct opr_call_tree numbers = { 0 };
	bool failed = !sums || !events || !weights;

	for (size_t i = 0; i < nr_contexts && !failed; i++) {
		const struct opr_stack_context *row = context_at(page, i, &side);
		const struct opr_call_function *event = opr_call_function(&numbers, OPR_CALL_GROUP, row->event, side ? "2" : "1");

		failed = !event;
		events[i] = event ? event->index : 0;
	}
	for (size_t i = 0; i < page->nr_counts && !failed; i++)
		sums[events[page->counts[i].context]] += page->counts[i].count;
	for (size_t i = 0; i < nr_contexts && !failed; i++)
		weights[i] = opr_percent(1, sums[events[i]]);
	if (failed) {
		free(weights);
		weights = NULL;
	}
	opr_call_tree_free(&numbers);
	free(events);
	free(sums);
	return weights;
}

/* Finds the weight and the depth of all nodes. */
static int weigh(struct packing *packing)
{
	const struct opr_page *page = packing->page;
	double *weights = weigh_contexts(page);

	if (!weights)
		return -ENOMEM;
	for (size_t i = 0; i < page->nr_counts; i++)
		packing->weights[page->counts[i].node->index] +=
			weights[page->counts[i].context] * (double)page->counts[i].count;
	free(weights);
	for (const struct opr_call_node *node = page->tree.made_last; node; node = node->made_before)
		packing->weights[node->parent->index] += packing->weights[node->index];
	for (const struct opr_call_node *node = opr_call_next(&page->tree.root); node; node = opr_call_next(node))
		packing->depths[node->index] = packing->depths[node->parent->index] + 1;
	return 0;
}

static int compare_pruned(const void *left, const void *right)
{
	const struct opr_page_count *a = left, *b = right;

	if (a->node->index != b->node->index)
		return a->node->index < b->node->index ? -1 : 1;
	return a->context < b->context ? -1 : a->context > b->context;
}

/* Adds up what is not shown at the nodes above it. */
static void prune(struct packing *packing, double threshold)
{
	const struct opr_page *page = packing->page;
	size_t nr = 0;

	packing->nr_pruned = 0;
	packing->nr_pruned_samples = packing->pruned_us = 0;
	packing->shown[0] = &page->tree.root;
	for (const struct opr_call_node *node = opr_call_next(&page->tree.root); node; node = opr_call_next(node)) {
		bool is_shown = packing->shown[node->parent->index] == node->parent &&
				packing->weights[node->index] >= threshold;

		packing->shown[node->index] = is_shown ? node : packing->shown[node->parent->index];
	}
	for (size_t i = 0; i < page->nr_counts; i++) {
		const struct opr_page_count *count = &page->counts[i];

		if (packing->shown[count->node->index] == count->node)
			continue;
		*(is_wait(page, count->context) ? &packing->pruned_us : &packing->nr_pruned_samples) += count->count;
		packing->pruned[nr] = *count;
		packing->pruned[nr++].node = packing->shown[count->node->index];
	}
	if (nr)
		qsort(packing->pruned, nr, sizeof(*packing->pruned), compare_pruned);
	for (size_t i = 0; i < nr; i++) {
		struct opr_page_count *last = packing->nr_pruned ? &packing->pruned[packing->nr_pruned - 1] : NULL;

		if (last && last->node == packing->pruned[i].node && last->context == packing->pruned[i].context) {
			last->count += packing->pruned[i].count;
			last->nr_records += packing->pruned[i].nr_records;
		} else {
			packing->pruned[packing->nr_pruned++] = packing->pruned[i];
		}
	}
}

/* ---- nodes ---- */

static size_t number_source(struct packing *packing, const struct opr_call_place *place)
{
	struct op_text source = { 0 };
	size_t number;

	if (!place->source)
		return number_string(&packing->strings, "");
	op_text_printf(&source, "%s:%u", place->source, place->line);
	number = number_string(&packing->strings, op_text_get(&source));
	packing->strings.failed |= source.failed;
	op_text_free(&source);
	return number;
}

/* The number of the kind on the page, which has kinds of its own from 6 on. */
static int kind_of(const struct opr_call_function *function)
{
	return function->kind == OPR_CALL_RUNTIME ? 9 : (int)function->kind;
}

static size_t number_function(struct packing *packing, const struct opr_call_function *function)
{
	if (!packing->numbers[function->index]) {
		packing->numbers[function->index] = ++packing->nr_functions;
		op_text_printf(&packing->functions, "%s%d,%zu,%zu,%zu", packing->nr_functions > 1 ? "," : "", kind_of(function),
			       number_string(&packing->strings, function->name),
			       number_string(&packing->strings, function->image),
			       number_source(packing, packing->page->places[function->index]));
	}
	return packing->numbers[function->index] - 1;
}

/* Who ended the waits of a count: how many, and for each its name, its program and microseconds. */
static void add_wakers(struct packing *packing, const struct opr_page_count *count)
{
	const struct opr_page_waker *wakers = packing->page->wakers;
	size_t first = 0, end = packing->page->nr_wakers, nr = 0;

	while (first < end) {
		size_t middle = first + (end - first) / 2, node = wakers[middle].node->index;

		if (node < count->node->index || (node == count->node->index && wakers[middle].context < count->context))
			first = middle + 1;
		else
			end = middle;
	}
	while (nr < OPR_PAGE_WAKERS_MAX && first + nr < packing->page->nr_wakers && wakers[first + nr].node == count->node &&
	       wakers[first + nr].context == count->context)
		nr++;
	add_number(&packing->nodes, nr);
	for (size_t i = first; i < first + nr; i++) {
		add_number(&packing->nodes, number_string(&packing->strings, wakers[i].who->name));
		add_number(&packing->nodes, number_string(&packing->strings, wakers[i].who->image));
		add_number(&packing->nodes, wakers[i].us);
	}
}

/* The counts of a list at a node; *next is the first that was not written yet. */
static void add_counts(struct packing *packing, const struct opr_page_count *counts, size_t nr_counts, size_t node)
{
	struct op_text *text = &packing->nodes;
	size_t first = 0, nr = 0, end = nr_counts;

	while (first < end) {
		size_t middle = first + (end - first) / 2;

		if (counts[middle].node->index < node)
			first = middle + 1;
		else
			end = middle;
	}
	while (first + nr < nr_counts && counts[first + nr].node->index == node)
		nr++;
	add_number(text, nr);
	for (size_t i = first; i < first + nr; i++) {
		add_number(text, counts[i].context);
		add_number(text, counts[i].count);
		if (!is_wait(packing->page, counts[i].context))
			continue;
		add_number(text, counts[i].nr_records);
		if (counts == packing->pruned)
			add_number(text, 0);
		else
			add_wakers(packing, &counts[i]);
	}
}

static bool has_pruned(const struct packing *packing, const struct opr_call_node *node)
{
	const struct opr_page_count key = { .node = node };
	size_t first = 0, end = packing->nr_pruned;

	while (first < end) {
		size_t middle = first + (end - first) / 2;

		if (compare_pruned(&packing->pruned[middle], &key) < 0)
			first = middle + 1;
		else
			end = middle;
	}
	return first < packing->nr_pruned && packing->pruned[first].node == node;
}

/*
 * Parents come before their children. A node is how many levels up from the node before its parent
 * is, its function from 1 (0: what is not shown), and its counts.
 */
static void add_nodes(struct packing *packing)
{
	const struct opr_page *page = packing->page;
	size_t last_depth = 0;

	packing->nr_places = 0;
	add_counts(packing, page->counts, page->nr_counts, 0);
	for (const struct opr_call_node *node = &page->tree.root; node; node = opr_call_next(node)) {
		size_t depth = packing->depths[node->index];

		opr_progress_tick();
		if (packing->shown[node->index] != node)
			continue;
		packing->places[node->index] = packing->nr_places++;
		if (node->parent) {
			add_number(&packing->nodes, last_depth + 1 - depth);
			add_number(&packing->nodes, number_function(packing, node->function) + 1);
			add_counts(packing, page->counts, page->nr_counts, node->index);
			last_depth = depth;
		}
		if (!has_pruned(packing, node))
			continue;
		packing->rests[node->index] = packing->nr_places++;
		add_number(&packing->nodes, last_depth - depth);
		add_number(&packing->nodes, 0);
		add_counts(packing, packing->pruned, packing->nr_pruned, node->index);
		last_depth = depth + 1;
	}
}

/* ---- times ---- */

static int compare_times(const void *left, const void *right)
{
	const struct packed_time *a = left, *b = right;

	if (a->node != b->node)
		return a->node < b->node ? -1 : 1;
	if (a->context != b->context)
		return a->context < b->context ? -1 : 1;
	return (a->span > b->span) - (a->span < b->span);
}

/* Puts the times at the nodes of the page. Returns how many there are then. */
static size_t place_times(struct packing *packing)
{
	const struct opr_page *page = packing->page;
	size_t nr = 0;

	for (size_t i = 0; i < page->nr_times; i++) {
		const struct opr_page_time *time = &page->times[i];
		const struct opr_call_node *shown = packing->shown[time->node->index];

		packing->packed[i] = (struct packed_time){
			(shown == time->node ? packing->places : packing->rests)[shown->index], time->context,
			time->span / packing->nr_merged, time->count, time->nr_records
		};
	}
	if (page->nr_times)
		qsort(packing->packed, page->nr_times, sizeof(*packing->packed), compare_times);
	for (size_t i = 0; i < page->nr_times; i++) {
		struct packed_time *time = &packing->packed[i], *last = nr ? &packing->packed[nr - 1] : NULL;

		if (!last || compare_times(last, time)) {
			packing->packed[nr++] = *time;
			continue;
		}
		last->count += time->count;
		last->nr_records += time->nr_records;
	}
	return nr;
}

/* web/page.js tells the format. */
static void add_times(struct packing *packing)
{
	size_t nr = place_times(packing), node = 0;

	op_text_truncate(&packing->times, 0);
	for (size_t i = 0, next; i < nr; i = next) {
		const struct packed_time *first = &packing->packed[i];
		size_t span = 0;

		for (next = i + 1; next < nr && packing->packed[next].node == first->node; next++)
			if (packing->packed[next].context != first->context)
				break;
		add_number(&packing->times, first->node - node);
		add_number(&packing->times, first->context);
		add_number(&packing->times, next - i);
		for (size_t j = i; j < next; j++) {
			add_number(&packing->times, packing->packed[j].span - span);
			add_number(&packing->times, packing->packed[j].count);
			if (is_wait(packing->page, first->context))
				add_number(&packing->times, packing->packed[j].nr_records);
			span = packing->packed[j].span;
		}
		node = first->node;
	}
}

/* Begin, end and lost stacks of each. */
static void add_spans(const struct packing *packing, struct op_text *json)
{
	const struct opr_stack_contexts *contexts = &packing->page->sides[0].contexts;

	for (size_t i = 0; i < contexts->nr_spans; i += packing->nr_merged) {
		struct opr_stack_span sum = contexts->spans[i];

		for (size_t j = i + 1; j < contexts->nr_spans && j < i + packing->nr_merged; j++) {
			sum.end_ns = op_max_u64(sum.end_ns, contexts->spans[j].end_ns);
			sum.nr_lost += contexts->spans[j].nr_lost;
		}
		op_text_printf(json, "%s[%.3f,%.3f,%" PRIu64 "]", i ? "," : "", (double)sum.begin_ns / OP_NS_PER_S,
			       (double)sum.end_ns / OP_NS_PER_S, sum.nr_lost);
	}
}

/* ---- contexts ---- */

static void add_contexts(struct packing *packing, struct op_text *text)
{
	const struct opr_page *page = packing->page;
	size_t nr_contexts = page->sides[0].contexts.nr_rows + page->sides[1].contexts.nr_rows, side;

	for (size_t i = 0; i < nr_contexts; i++) {
		const struct opr_stack_context *row = context_at(page, i, &side);
		const char *const texts[] = { row->event,  row->app,  row->comm, row->cgroup,
					     row->user, row->thread, row->cpu };

		op_text_printf(text, "%s%zu,%zu,%d", i ? "," : "", side, row->session, (int)row->end);
		for (size_t j = 0; j < op_array_size(texts); j++)
			op_text_printf(text, ",%zu", number_string(&packing->strings, texts[j]));
		op_text_printf(text, ",%d", row->is_idle ? (int)OP_NR_WAIT_STATES : (int)row->state);
	}
}

/* ---- sides ---- */

static void add_ledger(struct op_text *json, const struct op_session_ledger *ledger)
{
	bool any = false;

	for (size_t i = 0; i < ledger->nr_events; i++) {
		const struct op_ledger_event *event = &ledger->events[i];
		uint64_t nr_complete;

		/* The page has samples, and WAIT counts microseconds. */
		if (op_event_is_time(event->role) || (event->role != OP_EVENT_STACKS && !op_ledger_stacks(event, &nr_complete)))
			continue;
		op_text_add(json, any ? ",{\"event\":" : "{\"event\":");
		opr_page_add_string(json, event->name);
		op_text_printf(json, ",\"count\":%" PRIu64 ",\"received\":%" PRIu64 ",\"filtered\":%" PRIu64
				     ",\"lost\":{\"kernel: rings full\":%" PRIu64,
			       event->count, event->received, event->filtered, event->lost_kernel);
		for (enum op_loss loss = 0; loss < OP_NR_LOSS; loss++)
			if (event->lost[loss])
				op_text_printf(json, ",\"%s\":%" PRIu64, op_loss_name(loss), event->lost[loss]);
		op_text_printf(json, "},\"enabled\":%.6f,\"counted\":%.6f,\"ends\":{", (double)event->enabled_ns / OP_NS_PER_S,
			       (double)event->counted_ns / OP_NS_PER_S);
		for (enum op_stack_end end = 0; end < OP_NR_STACK_ENDS; end++)
			op_text_printf(json, "%s\"%s\":%" PRIu64, end ? "," : "", op_stack_end_name(end), event->ends[end]);
		op_text_add(json, "}}");
		any = true;
	}
}

/* What became of the switches of threads; nothing without the event WAIT. */
static void add_waits(struct op_text *json, const struct op_session_ledger *ledger)
{
	char name[OP_WAIT_NUMBER_BYTES];
	struct op_wait_ledger waits = ledger->waits;
	const uint64_t *number;
	uint64_t lost_us = 0;

	if (!op_wait_ledger_is_used(&waits))
		return;
	for (size_t i = 0; i < ledger->nr_events; i++)
		if (ledger->events[i].role == OP_EVENT_WAITS)
			lost_us += ledger->events[i].lost_kernel + op_ledger_lost(&ledger->events[i]);
	op_text_printf(json, ",\"waits\":{\"lost_us\":%" PRIu64, lost_us);
	for (size_t i = 0; (number = op_wait_ledger_number(&waits, i, name)); i++)
		op_text_printf(json, ",\"%s\":%" PRIu64, name, *number);
	op_text_add_char(json, '}');
}

static void add_sessions(struct op_text *json, const struct opr_profile *profile)
{
	for (size_t i = 0; i < profile->nr_sessions; i++) {
		const struct opr_session *session = &profile->sessions[i];

		op_text_add(json, i ? ",{\"name\":" : "{\"name\":");
		opr_page_add_string(json, opr_base_name(session->path));
		if (session->parent == i && session->has_ledger) {
			op_text_add(json, ",\"host\":");
			opr_page_add_string(json, session->ledger.host);
			op_text_add(json, ",\"kernel\":");
			opr_page_add_string(json, session->ledger.kernel);
			op_text_printf(json, ",\"begin\":%.3f,\"end\":%.3f,\"imported\":%s,\"open\":%s,\"events\":[",
				       (double)session->ledger.begin_ns / OP_NS_PER_S,
				       (double)session->ledger.end_ns / OP_NS_PER_S,
				       session->ledger.is_imported ? "true" : "false",
				       session->ledger.ended == OP_SESSION_open ? "true" : "false");
			add_ledger(json, &session->ledger);
			op_text_add_char(json, ']');
			add_waits(json, &session->ledger);
		}
		op_text_add_char(json, '}');
	}
}

static void add_words(struct op_text *json, const struct opr_words *words)
{
	op_text_add_char(json, '[');
	for (size_t i = 0; i < words->nr_words; i++) {
		op_text_add(json, i ? "," : "");
		opr_page_add_string(json, words->words[i]);
	}
	op_text_add_char(json, ']');
}

static void add_side(struct op_text *json, const struct opr_page_side *side)
{
	const struct opr_recorded *recorded = &side->run->selection.recorded;
	const struct opr_stack_sums *sums = &side->sums;

	op_text_add(json, "{\"hosts\":");
	add_words(json, &recorded->hosts);
	op_text_add(json, ",\"words\":");
	add_words(json, side->run->words);
	op_text_printf(json, ",\"begin\":%.3f,\"end\":%.3f,\"seconds\":%.3f,\"samples\":%" PRIu64 ",\"unselected\":%" PRIu64,
		       (double)recorded->begin_ns / OP_NS_PER_S, (double)recorded->end_ns / OP_NS_PER_S,
		       (double)recorded->recorded_ns / OP_NS_PER_S, sums->nr_samples - sums->selected_us,
		       sums->nr_unselected - sums->unselected_us);
	op_text_printf(json, ",\"us\":[%" PRIu64 ",%" PRIu64 ",%" PRIu64 "],\"sessions\":[", sums->selected_us, sums->unselected_us,
		       sums->found_us);
	add_sessions(json, &side->run->selection.profile);
	op_text_printf(json, "],\"flat\":%s,\"code\":%s}", side->flat.length ? op_text_get(&side->flat) : "null",
		       side->code.length ? op_text_get(&side->code) : "[]");
}

/* ---- all ---- */

static void free_strings(struct packing *packing)
{
	opr_call_tree_free(&packing->strings.table);
	op_text_free(&packing->strings.json);
	op_text_free(&packing->nodes);
	op_text_free(&packing->functions);
	op_text_free(&packing->times);
	packing->strings = (struct strings){ 0 };
	packing->nr_functions = 0;
}

static void add_meaning(struct op_text *json, const char *name, const char *meaning, const char *help)
{
	op_text_printf(json, "[\"%s\",\"%s\",\"%s\"],", name, meaning, help);
}

/* Names, meanings, and what helps. Those that wait for work are behind all other states. */
static void add_meanings(struct op_text *json)
{
#define TABLES "build the code with -fasynchronous-unwind-tables"
	static const char *const ends[OP_NR_STACK_ENDS][2] = {
		[OP_STACK_END_complete] = { "", "" },
		[OP_STACK_END_cut] = { "the copy of the stack was too short", "opcontrol --apply --stacks=99:16384 copies more" },
		[OP_STACK_END_no_row] = { "code without unwind tables", TABLES "; Java: -XX:+PreserveFramePointer" },
		[OP_STACK_END_left_code] = { "the walk left the code", TABLES },
		[OP_STACK_END_no_table_yet] = { "the unwind table was not ready", "a longer session: the program had just begun" },
		[OP_STACK_END_too_deep] = { "too many callers", "look at the recursion" },
		[OP_STACK_END_no_room] = { "the session had no room for more", "raise StackMaxUse in opd.conf" },
		[OP_STACK_END_guessed] = { "some were found by the frame pointer, and may be false", TABLES },
	};
	op_text_add(json, "\"ends\":[");
	for (enum op_stack_end end = 0; end < OP_NR_STACK_ENDS; end++)
		add_meaning(json, op_stack_end_name(end), ends[end][0], ends[end][1]);
	op_text_truncate(json, json->length - 1);
	op_text_add(json, "],\"states\":[");
	for (enum op_wait_state state = OP_WAIT_NONE; state < OP_NR_WAIT_STATES; state++)
		add_meaning(json, op_wait_state_name(state), state ? op_wait_state_meaning(state) : "it runs", "");
	add_meaning(json, op_wait_state_name(OP_WAIT_blocked), op_wait_state_meaning(OP_WAIT_blocked), "");
	op_text_truncate(json, json->length - 1);
	op_text_add_char(json, ']');
}

static int pack_once(struct packing *packing, double threshold, struct op_text *json)
{
	static const char *const words[] = { [OPR_VIEW_CPU] = "cpu", [OPR_VIEW_WAIT] = "wait", [OPR_VIEW_WALL] = "wall" };
	const struct opr_page *page = packing->page;
	bool failed;

	memset(packing->numbers, 0, page->tree.functions.nr_entries * sizeof(*packing->numbers));
	prune(packing, threshold);
	number_string(&packing->strings, "");
	op_text_add(json, "{\"version\":1,\"sides\":[");
	for (size_t i = 0; i < page->nr_sides; i++) {
		op_text_add(json, i ? "," : "");
		add_side(json, &page->sides[i]);
	}
	op_text_add(json, "],");
	add_meanings(json);
	op_text_printf(json, ",\"time\":\"%s\",\"idle\":%s,\"contexts\":[", words[page->view], page->show_idle ? "true" : "false");
	add_contexts(packing, json);
	add_nodes(packing);
	op_text_printf(json,
		       "],\"threshold\":%.6g,\"pruned\":%" PRIu64 ",\"prunedUs\":%" PRIu64 ",\"functions\":[%s],\"strings\":[",
		       threshold, packing->nr_pruned_samples, packing->pruned_us, op_text_get(&packing->functions));
	op_text_add(json, op_text_get(&packing->strings.json));
	op_text_add(json, "],\"nodes\":\"");
	op_text_add(json, op_text_get(&packing->nodes));
	add_times(packing);
	for (; packing->times.length > TIMES_BYTES_MAX && packing->nr_merged < OPR_PAGE_SPANS_MAX; add_times(packing))
		packing->nr_merged *= 2;
	op_text_add(json, "\",\"spans\":[");
	add_spans(packing, json);
	op_text_add(json, "],\"times\":\"");
	op_text_add(json, op_text_get(&packing->times));
	op_text_add(json, "\"}");
	failed = json->failed || packing->times.failed || packing->strings.failed || packing->strings.json.failed ||
		 packing->nodes.failed || packing->functions.failed || page->sides[0].code.failed ||
		 page->sides[1].code.failed || page->sides[0].flat.failed || page->sides[1].flat.failed;
	free_strings(packing);
	return failed ? -ENOMEM : 0;
}

int opr_page_pack(const struct opr_page *page, double threshold, struct op_text *json)
{
	size_t nr_nodes = page->tree.nr_nodes + 1, start = json->length;
	struct packing packing = {
		.page = page,
		.weights = calloc(nr_nodes, sizeof(*packing.weights)),
		.depths = calloc(nr_nodes, sizeof(*packing.depths)),
		.shown = calloc(nr_nodes, sizeof(*packing.shown)),
		.pruned = calloc(page->nr_counts + 1, sizeof(*packing.pruned)),
		.places = calloc(nr_nodes, sizeof(*packing.places)),
		.rests = calloc(nr_nodes, sizeof(*packing.rests)),
		.packed = calloc(page->nr_times + 1, sizeof(*packing.packed)),
		.nr_merged = 1,
		.numbers = calloc(page->tree.functions.nr_entries + 1, sizeof(*packing.numbers)),
	};
	bool has_memory = packing.weights && packing.depths && packing.shown && packing.pruned && packing.numbers &&
			  packing.places && packing.rests && packing.packed;
	int err = has_memory ? weigh(&packing) : -ENOMEM;

	if (!err)
		err = pack_once(&packing, threshold, json);
	while (!err && json->length - start > OPR_PAGE_DATA_MAX && threshold < 100) {
		threshold = threshold < FIRST_THRESHOLD ? FIRST_THRESHOLD : threshold * THRESHOLD_STEP;
		op_text_truncate(json, start);
		err = pack_once(&packing, threshold, json);
	}
	free(packing.places);
	free(packing.rests);
	free(packing.packed);
	free(packing.weights);
	free(packing.depths);
	free(packing.shown);
	free(packing.pruned);
	free(packing.numbers);
	return err ? opr_no_memory() : 0;
}
