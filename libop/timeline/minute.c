/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/timeline/minute.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "libop/base/grow.h"
#include "libop/base/htable.h"

#define SLOTS_MIN      1024u
#define TEXT_BYTES_MAX (1u << 20) /* of all texts */

/* In-memory index: hash(parent, kind, value, image) to node, and hash of a text to its number. */
struct op_minute_slot {
	uint32_t hash;
	uint32_t node; /* 0: empty; neither the root nor "" is looked up */
};

/* ---- the index ---- */

/* Places in one bucket are the same. */
static uint64_t key_of(uint32_t kind, uint64_t value)
{
	return op_minute_is_place(kind) ? value / OP_MINUTE_BUCKET_BYTES : value;
}

static uint32_t hash_of(const struct op_minute *minute, uint32_t parent, const struct op_minute_step *step)
{
	uint64_t hash = op_hash_u64(key_of(step->kind, step->value) ^ minute->seed);

	return (uint32_t)op_hash_u64(hash + step->image * 0x9e3779b97f4a7c15u + ((uint64_t)parent << 8) + step->kind);
}

static bool is_node(const struct op_minute_node *node, uint32_t parent, const struct op_minute_step *step)
{
	return node->parent == parent && node->kind == step->kind && node->image == step->image &&
	       key_of(node->kind, node->value) == key_of(step->kind, step->value);
}

/* 0: there is none. */
static uint32_t find(const struct op_minute *minute, uint32_t parent, const struct op_minute_step *step, uint32_t hash)
{
	size_t mask = minute->nr_slots - 1;

	for (size_t i = hash & mask; minute->slots[i].node; i = (i + 1) & mask)
		if (minute->slots[i].hash == hash && is_node(&minute->nodes[minute->slots[i].node], parent, step))
			return minute->slots[i].node;
	return 0;
}

static void enter(struct op_minute_slot *slots, size_t nr_slots, struct op_minute_slot slot)
{
	size_t i = slot.hash & (nr_slots - 1);

	while (slots[i].node)
		i = (i + 1) & (nr_slots - 1);
	slots[i] = slot;
}

/* Makes room for so many entries: at most three quarters of the slots are in use. */
static bool widen(struct op_minute_slot **slots, size_t *nr_slots, uint32_t nr_entries)
{
	size_t nr_wanted = op_max_u64(*nr_slots, SLOTS_MIN);
	struct op_minute_slot *wider;

	while (nr_wanted / 4 * 3 < nr_entries)
		nr_wanted *= 2;
	if (nr_wanted == *nr_slots)
		return true;
	wider = calloc(nr_wanted, sizeof(*wider));
	if (!wider)
		return false;
	for (size_t i = 0; i < *nr_slots; i++)
		if ((*slots)[i].node)
			enter(wider, nr_wanted, (*slots)[i]);
	free(*slots);
	*slots = wider;
	*nr_slots = nr_wanted;
	return true;
}

static bool widen_index(struct op_minute *minute, uint32_t nr_nodes)
{
	return widen(&minute->slots, &minute->nr_slots, nr_nodes);
}

/* ---- life ---- */

/* The first node and the first text are always there. */
static int add_firsts(struct op_minute *minute)
{
	if (!op_grow(&minute->nodes, &minute->node_capacity, 1) || !op_grow(&minute->texts, &minute->text_capacity, 1) ||
	    !widen_index(minute, 1) || !widen(&minute->text_slots, &minute->nr_text_slots, 1))
		return -ENOMEM;
	minute->texts[0] = strdup("");
	if (!minute->texts[0])
		return -ENOMEM;
	minute->nodes[0] = (struct op_minute_node){ .kind = OP_MINUTE_ROOT };
	minute->nr_nodes = minute->nr_texts = minute->nr_indexed = minute->nr_indexed_texts = 1;
	return 0;
}

int op_minute_init(struct op_minute *minute, uint32_t max_nodes)
{
	int err;

	*minute = (struct op_minute){ .max_nodes = max_nodes ? max_nodes : OP_TIMELINE_NODES_MAX };
	if (getrandom(&minute->seed, sizeof(minute->seed), GRND_NONBLOCK) != sizeof(minute->seed))
		minute->seed = (uint64_t)(uintptr_t)minute;
	err = add_firsts(minute);
	if (err)
		op_minute_free(minute);
	return err;
}

void op_minute_clear(struct op_minute *minute)
{
	for (uint32_t i = 1; i < minute->nr_texts; i++)
		free(minute->texts[i]);
	memset(minute->slots, 0, minute->nr_slots * sizeof(*minute->slots));
	memset(minute->text_slots, 0, minute->nr_text_slots * sizeof(*minute->text_slots));
	minute->nodes[0] = (struct op_minute_node){ .kind = OP_MINUTE_ROOT };
	minute->nr_nodes = minute->nr_texts = minute->nr_indexed = minute->nr_indexed_texts = 1;
	minute->nr_events = minute->nr_rows = minute->nr_context = 0;
	minute->gap = minute->flags = 0;
	minute->text_bytes = 0;
	minute->begin = minute->end = (struct op_timeline_clocks){ 0 };
}

void op_minute_free(struct op_minute *minute)
{
	for (uint32_t i = 0; i < minute->nr_texts; i++)
		free(minute->texts[i]);
	free(minute->nodes);
	free(minute->texts);
	free(minute->events);
	free(minute->rows);
	free(minute->context);
	free(minute->slots);
	free(minute->text_slots);
	*minute = (struct op_minute){ 0 };
}

/* ---- adding ---- */

static uint32_t hash_of_text(const struct op_minute *minute, const char *text, size_t nr_bytes)
{
	return (uint32_t)op_hash_bytes(minute->seed, text, nr_bytes);
}

static uint32_t find_text(const struct op_minute *minute, const char *text, size_t nr_bytes, uint32_t hash)
{
	size_t mask = minute->nr_text_slots - 1;

	for (size_t i = hash & mask; minute->text_slots[i].node; i = (i + 1) & mask) {
		const char *known = minute->texts[minute->text_slots[i].node];

		if (minute->text_slots[i].hash == hash && !strncmp(known, text, nr_bytes) && !known[nr_bytes])
			return minute->text_slots[i].node;
	}
	return 0;
}

uint32_t op_minute_text(struct op_minute *minute, const char *text)
{
	size_t nr_bytes = text ? strnlen(text, OP_TIMELINE_TEXT_BYTES) : 0;
	uint32_t hash = nr_bytes ? hash_of_text(minute, text, nr_bytes) : 0;
	uint32_t number = nr_bytes ? find_text(minute, text, nr_bytes, hash) : 0;
	char *copy;

	if (number || !nr_bytes)
		return number;
	number = minute->nr_texts;
	if (number >= OP_TIMELINE_TEXTS_MAX || minute->text_bytes + nr_bytes > TEXT_BYTES_MAX ||
	    !op_grow(&minute->texts, &minute->text_capacity, number + 1) ||
	    !widen(&minute->text_slots, &minute->nr_text_slots, number + 1))
		return 0;
	copy = strndup(text, nr_bytes);
	if (!copy)
		return 0;
	enter(minute->text_slots, minute->nr_text_slots, (struct op_minute_slot){ hash, number });
	minute->text_bytes += nr_bytes;
	minute->texts[number] = copy;
	minute->nr_texts = minute->nr_indexed_texts = number + 1;
	return number;
}

/* The child of a node; a missing one is made. 0: no room. */
static uint32_t child_of(struct op_minute *minute, uint32_t parent, const struct op_minute_step *step)
{
	uint32_t hash = hash_of(minute, parent, step), node = find(minute, parent, step, hash);

	if (op_likely(node))
		return node;
	node = minute->nr_nodes;
	if (node >= minute->max_nodes || !op_grow(&minute->nodes, &minute->node_capacity, node + 1) ||
	    !widen_index(minute, node + 1))
		return 0;
	minute->nodes[node] = (struct op_minute_node){
		.parent = parent, .kind = step->kind, .value = step->value, .image = step->image
	};
	enter(minute->slots, minute->nr_slots, (struct op_minute_slot){ hash, node });
	minute->nr_nodes = minute->nr_indexed = node + 1;
	return node;
}

/* Both nodes are made at once, so that each weight has a place below its event. */
int op_minute_event(struct op_minute *minute, const char *name, uint32_t unit, uint32_t role, uint32_t *ret_event)
{
	uint32_t event = minute->nr_events;
	struct op_minute_step step = { .kind = OP_MINUTE_SAMPLES, .value = event };
	uint32_t text;

	for (uint32_t i = 0; i < minute->nr_events; i++)
		if (!strcmp(minute->texts[minute->events[i].text], name)) {
			*ret_event = i;
			return 0;
		}
	if (event >= OP_TIMELINE_EVENTS_MAX)
		return -E2BIG;
	text = op_minute_text(minute, name);
	if (!text || !op_grow(&minute->events, &minute->event_capacity, event + 1) || !child_of(minute, 0, &step))
		return -ENOMEM;
	step.kind = OP_MINUTE_STACKS;
	if (!child_of(minute, 0, &step))
		return -ENOMEM;
	minute->events[event] = (struct op_minute_event){ text, unit, role };
	minute->nr_events++;
	*ret_event = event;
	return 0;
}

static void add_records(struct op_minute_node *node, uint16_t nr)
{
	node->records = (uint16_t)op_min_u64((uint64_t)node->records + nr, UINT16_MAX);
}

uint32_t op_minute_way(struct op_minute *minute, const struct op_minute_step *steps, size_t nr_steps, bool *ret_is_whole)
{
	uint32_t node = 0;

	*ret_is_whole = false;
	for (size_t i = 0; i < nr_steps; i++) {
		uint32_t child = i < OP_TIMELINE_DEPTH_MAX ? child_of(minute, node, &steps[i]) : 0;

		if (op_unlikely(!child))
			return node;
		node = child;
	}
	*ret_is_whole = true;
	return node;
}

void op_minute_add_below(struct op_minute *minute, uint32_t node, const struct op_minute_step *step, uint64_t amount)
{
	uint32_t child = child_of(minute, node, step);

	if (op_likely(child))
		minute->nodes[child].self += amount;
	else
		minute->nodes[node].rest += amount;
}

bool op_minute_add(struct op_minute *minute, const struct op_minute_step *steps, size_t nr_steps, uint64_t amount)
{
	return op_minute_add_waits(minute, steps, nr_steps, amount, 0);
}

bool op_minute_add_waits(struct op_minute *minute, const struct op_minute_step *steps, size_t nr_steps, uint64_t amount,
			 uint16_t nr_records)
{
	bool is_whole;
	uint32_t number = op_minute_way(minute, steps, nr_steps, &is_whole);
	struct op_minute_node *node = &minute->nodes[number]; /* the way may move the nodes */

	*(is_whole ? &node->self : &node->rest) += amount;
	add_records(node, nr_records);
	return is_whole;
}

int op_minute_add_row(struct op_minute *minute, uint32_t event, const char *name, int64_t amount)
{
	uint32_t text = op_minute_text(minute, name);

	for (uint32_t i = 0; i < minute->nr_rows; i++)
		if (minute->rows[i].event == event && minute->rows[i].text == text) {
			minute->rows[i].amount = (int64_t)((uint64_t)minute->rows[i].amount + (uint64_t)amount);
			return 0;
		}
	if (!text || minute->nr_rows >= OP_TIMELINE_ROWS_MAX || !op_grow(&minute->rows, &minute->row_capacity, minute->nr_rows + 1))
		return -ENOMEM;
	minute->rows[minute->nr_rows++] = (struct op_minute_row){ event, text, amount };
	return 0;
}

int op_minute_add_context(struct op_minute *minute, uint32_t kind, uint32_t index, uint64_t value)
{
	if (minute->nr_context >= OP_TIMELINE_ROWS_MAX ||
	    !op_grow(&minute->context, &minute->context_capacity, minute->nr_context + 1))
		return -ENOMEM;
	minute->context[minute->nr_context++] = (struct op_minute_context){ kind, index, value };
	return 0;
}

/* ---- merging ---- */

/* A span that was read has no index yet. */
static int make_index(struct op_minute *minute)
{
	if (!widen_index(minute, minute->nr_nodes) || !widen(&minute->text_slots, &minute->nr_text_slots, minute->nr_texts))
		return -ENOMEM;
	for (; minute->nr_indexed_texts < minute->nr_texts; minute->nr_indexed_texts++) {
		const char *text = minute->texts[minute->nr_indexed_texts];

		enter(minute->text_slots, minute->nr_text_slots,
		      (struct op_minute_slot){ hash_of_text(minute, text, strlen(text)), minute->nr_indexed_texts });
	}
	for (; minute->nr_indexed < minute->nr_nodes; minute->nr_indexed++) {
		const struct op_minute_node *node = &minute->nodes[minute->nr_indexed];
		struct op_minute_step step = { node->kind, node->value, node->image };

		enter(minute->slots, minute->nr_slots,
		      (struct op_minute_slot){ hash_of(minute, node->parent, &step), minute->nr_indexed });
	}
	return 0;
}

static int merge_nodes(struct op_minute *minute, const struct op_minute *other, const uint32_t *events)
{
	uint32_t *places = calloc(other->nr_nodes, sizeof(*places)); /* of the nodes of `other` */
	bool *is_whole = calloc(other->nr_nodes, sizeof(*is_whole));

	for (uint32_t i = 0; places && is_whole && i < other->nr_nodes; i++) {
		const struct op_minute_node *node = &other->nodes[i];
		struct op_minute_step step = { node->kind, node->value, node->image };
		uint32_t child = 0;

		if (node->kind == OP_MINUTE_SAMPLES || node->kind == OP_MINUTE_STACKS)
			step.value = events[node->value];
		else if (op_minute_has_text(node->kind))
			step.value = op_minute_text(minute, other->texts[node->value]);
		if (i && is_whole[node->parent])
			child = child_of(minute, places[node->parent], &step);
		is_whole[i] = !i || child;
		places[i] = child ? child : places[node->parent];
		minute->nodes[places[i]].self += is_whole[i] ? node->self : 0;
		minute->nodes[places[i]].rest += node->rest + (is_whole[i] ? 0 : node->self);
		add_records(&minute->nodes[places[i]], node->records);
	}
	free(is_whole);
	free(places);
	return places && is_whole ? 0 : -ENOMEM;
}

static bool is_same_context(const struct op_minute_context *a, const struct op_minute_context *b)
{
	return a->kind == b->kind && a->index == b->index;
}

static int merge_context(struct op_minute *minute, const struct op_minute *other)
{
	for (uint32_t i = 0; i < other->nr_context; i++) {
		const struct op_minute_context *row = &other->context[i];
		uint32_t at = 0;
		int err;

		/* Both have the same order as a rule. */
		if (i < minute->nr_context && is_same_context(&minute->context[i], row))
			at = i;
		while (at < minute->nr_context && !is_same_context(&minute->context[at], row))
			at++;
		if (at < minute->nr_context) {
			bool is_sum = row->kind == OP_CONTEXT_CPU_BUSY || row->kind == OP_CONTEXT_PSI;

			minute->context[at].value = row->value + (is_sum ? minute->context[at].value : 0);
			continue;
		}
		err = op_minute_add_context(minute, row->kind, row->index, row->value);
		if (err)
			return err;
	}
	return 0;
}

static int merge_rows(struct op_minute *minute, const struct op_minute *other, const uint32_t *events, uint32_t nr_old_events)
{
	for (uint32_t i = 0; i < other->nr_rows; i++) {
		const struct op_minute_row *row = &other->rows[i];
		const char *name = other->texts[row->text];
		int err;

		if (!strcmp(name, "before") && events[row->event] < nr_old_events)
			continue;
		err = op_minute_add_row(minute, events[row->event], name, row->amount);
		if (err)
			return err;
	}
	return 0;
}

int op_minute_merge(struct op_minute *minute, const struct op_minute *other)
{
	uint32_t *events = calloc(other->nr_events + 1u, sizeof(*events)), nr_old_events = minute->nr_events;
	bool is_first = !minute->end.wall_ns && !minute->nr_events;
	int err = events ? make_index(minute) : -ENOMEM;

	for (uint32_t i = 0; !err && i < other->nr_events; i++)
		err = op_minute_event(minute, other->texts[other->events[i].text], other->events[i].unit, other->events[i].role,
				      &events[i]);
	if (err)
		goto out;
	err = merge_nodes(minute, other, events);
	if (err)
		goto out;
	err = merge_rows(minute, other, events, nr_old_events);
	if (err)
		goto out;
	err = merge_context(minute, other);
out:
	free(events);
	if (err)
		return err;
	if (is_first) {
		minute->begin = other->begin;
		minute->gap = other->gap;
	}
	minute->end = other->end;
	minute->flags |= other->flags;
	return 0;
}

int op_minute_total(const struct op_minute *minute, uint32_t kind, uint32_t event, uint64_t *ret_total)
{
	bool *is_below = calloc(minute->nr_nodes, sizeof(*is_below));
	uint64_t sum = 0;

	if (!is_below)
		return -ENOMEM;
	for (uint32_t i = 1; i < minute->nr_nodes; i++) {
		const struct op_minute_node *node = &minute->nodes[i];

		is_below[i] = node->parent ? is_below[node->parent] : node->kind == kind && node->value == event;
		sum += is_below[i] ? node->self + node->rest : 0;
	}
	free(is_below);
	*ret_total = sum;
	return 0;
}
