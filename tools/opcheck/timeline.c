/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/opcheck/timeline.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "libop/base/grow.h"
#include "libop/session/layout.h"
#include "libop/stacks/read.h"
#include "libop/timeline/read.h"
#include "tools/opcheck/header.h"

/* An event in the minutes so far. */
struct sum {
	char *name;
	uint64_t end;    /* what the session had stored at the end of the last minute */
	uint64_t stored; /* in minutes */
};

struct adding {
	struct opk_check *check;
	const struct opk_found *found;
	struct sum *sums;
	size_t nr_sums, capacity;
	uint64_t end_mono_ns; /* of the last minute */
};

static struct sum *sum_of(struct adding *adding, const char *name)
{
	for (size_t i = 0; i < adding->nr_sums; i++)
		if (!strcmp(adding->sums[i].name, name))
			return &adding->sums[i];
	if (!op_grow(&adding->sums, &adding->capacity, adding->nr_sums + 1))
		return NULL;
	adding->sums[adding->nr_sums] = (struct sum){ .name = strdup(name) };
	return adding->sums[adding->nr_sums].name ? &adding->sums[adding->nr_sums++] : NULL;
}

/* 0 where there is no such row. */
static uint64_t row_of(const struct op_minute *minute, uint32_t event, const char *name, bool *ret_is_there)
{
	for (uint32_t i = 0; i < minute->nr_rows; i++)
		if (minute->rows[i].event == event && !strcmp(minute->texts[minute->rows[i].text], name)) {
			*ret_is_there = true;
			return (uint64_t)minute->rows[i].amount;
		}
	*ret_is_there = false;
	return 0;
}

static void report(const struct adding *adding, uint64_t number, const char *name, const char *fault, uint64_t is, uint64_t wanted)
{
	char detail[256];
	struct opk_problem problem = { .path = OP_SESSION_TIMELINE, .fault = fault, .detail = detail };

	snprintf(detail, sizeof(detail), "block %" PRIu64 ", %.100s: %" PRIu64 ", not %" PRIu64, number, name, is, wanted);
	opk_report(adding->check, &problem, adding->check->repair ? -ENOTSUP : 0);
}

/* STACKS and WAIT have stored their stacks, all others their samples. */
static int add_event(struct adding *adding, uint64_t number, const struct op_minute *minute, uint32_t event)
{
	const char *name = minute->texts[minute->events[event].text];
	uint32_t kind = op_event_is_stacks(minute->events[event].role) ? OP_MINUTE_STACKS : OP_MINUTE_SAMPLES;
	struct sum *sum = sum_of(adding, name);
	uint64_t weights, before, stored;
	bool has_before, has_stored;
	int err = sum ? op_minute_total(minute, kind, event, &weights) : -ENOMEM;

	if (err)
		return err;
	before = row_of(minute, event, "before", &has_before);
	stored = row_of(minute, event, "stored", &has_stored);
	if (!has_before)
		return 0; /* an event without a ledger */
	if (stored != weights)
		report(adding, number, name, "a minute does not add up", weights, stored);
	if (number && minute->begin.mono_ns == adding->end_mono_ns && before != sum->end)
		report(adding, number, name, "a minute does not go on where the last one ended", before, sum->end);
	if (!number && minute->gap == OP_GAP_REMOVED)
		sum->stored += before; /* it was in blocks that are gone */
	sum->stored += weights;
	sum->end = before + stored;
	return 0;
}

/* ---- shares of applications and images ---- */

/* What a node and those above it say of the samples at it. */
struct place {
	enum opk_share_kind kind;
	uint32_t event;
	uint64_t app, image;
};

/* Several cookies may have one name, and so one sample file. */
static uint64_t cookie_of(const struct adding *adding, uint64_t cookie)
{
	const struct op_dcookie_table *images = adding->found->images;
	const struct op_dcookie_row *row;
	struct op_image_name name;

	if (!op_dcookie_has(images, cookie))
		return OP_DCOOKIE_NONE;
	name = op_dcookie_name(op_dcookie_row(images, cookie));
	row = opk_row_of(images, &name);
	return row ? row->cookie : OP_DCOOKIE_NONE;
}

static struct place place_of(const struct adding *adding, const struct op_minute_node *node, struct place place,
			     const uint32_t *events)
{
	if (node->kind == OP_MINUTE_SAMPLES || node->kind == OP_MINUTE_STACKS)
		place = (struct place){ .kind = node->kind == OP_MINUTE_STACKS ? OPK_OF_STACKS : OPK_OF_SAMPLES,
					.event = events[node->value],
					.app = OP_DCOOKIE_NONE,
					.image = OP_DCOOKIE_NONE };
	else if (node->kind == OP_MINUTE_APP)
		place.app = cookie_of(adding, node->image);
	else if (place.kind == OPK_OF_SAMPLES && place.image == OP_DCOOKIE_NONE &&
		 (node->kind == OP_MINUTE_IMAGE || op_minute_is_code(node->kind)))
		place.image = cookie_of(adding, node->image);
	return place;
}

static int add_nodes(const struct adding *adding, const struct op_minute *minute, struct place *places, uint32_t *events)
{
	struct opk_shares *shares = adding->found->shares;
	int err = 0;

	for (uint32_t i = 0; i < minute->nr_events && !err; i++)
		err = opk_shares_event(shares, minute->texts[minute->events[i].text], &events[i]);
	for (uint32_t i = 1; i < minute->nr_nodes && !err; i++) {
		const struct op_minute_node *node = &minute->nodes[i];
		const struct place *place = &places[i];
		struct opk_share *share;

		places[i] = place_of(adding, node, places[node->parent], events);
		if (!(node->self | node->rest))
			continue;
		share = opk_share(shares, place->kind, place->event, place->app, place->image);
		if (!share)
			return -ENOMEM;
		share->in_minutes += node->self + node->rest;
	}
	return err;
}

static int add_shares(const struct adding *adding, const struct op_minute *minute)
{
	struct place *places = calloc(minute->nr_nodes + 1u, sizeof(*places));
	uint32_t *events = calloc(minute->nr_events + 1u, sizeof(*events));
	int err = !adding->found->images ? 0 : places && events ? add_nodes(adding, minute, places, events) : -ENOMEM;

	free(places);
	free(events);
	return err;
}

/* What the file of stacks has, by application. Without a whole file there is nothing to compare. */
static int add_stacks(const struct adding *adding)
{
	struct opk_shares *shares = adding->found->shares;
	struct op_stack_tree tree;
	struct place *places;
	int err = op_stacks_read(adding->check->dir_fd, OP_SESSION_STACKS, &tree);

	if (err)
		return err == -ENOMEM ? err : 0;
	places = calloc(tree.nr_nodes + 1u, sizeof(*places));
	err = places ? 0 : -ENOMEM;
	for (uint32_t i = 1; i < tree.nr_nodes && !err; i++) {
		const struct op_stack_node *node = &tree.nodes[i];
		struct opk_share *share = NULL;
		char *event;

		places[i] = places[node->parent];
		if (node->kind == OP_STACK_EVENT) {
			event = op_stack_text(&tree, node->value);
			err = event ? opk_shares_event(shares, event, &places[i].event) : -ENOMEM;
			places[i].app = OP_DCOOKIE_NONE;
			free(event);
		} else if (node->kind == OP_STACK_APP) {
			places[i].app = cookie_of(adding, node->image);
		}
		if (err || !node->count)
			continue;
		share = opk_share(shares, OPK_OF_STACKS, places[i].event, places[i].app, OP_DCOOKIE_NONE);
		if (share)
			share->in_files += node->count;
		err = share ? 0 : -ENOMEM;
	}
	free(places);
	op_stack_tree_free(&tree);
	return err;
}

static int compare_shares(const struct adding *adding)
{
	int err;

	if (!adding->found->images || adding->found->changed)
		return 0;
	err = add_stacks(adding);
	return err ? err : opk_shares_compare(adding->found->shares, adding->check, adding->found->images);
}

/* ---- all ---- */

static int add_minutes(struct adding *adding, struct op_timeline *timeline)
{
	struct op_minute minute;
	uint64_t number = 0;
	int err = op_minute_init(&minute, 0);

	while (!err && !(err = op_timeline_next(timeline, &minute))) {
		for (uint32_t i = 0; i < minute.nr_events && !err; i++)
			err = add_event(adding, number, &minute, i);
		if (!err)
			err = add_shares(adding, &minute);
		adding->end_mono_ns = minute.end.mono_ns;
		number++;
	}
	op_minute_free(&minute);
	return err == -ENODATA ? 0 : err;
}

/*
 * Where no minute was lost, and none is missing at the end, all samples are in minutes. Minutes may
 * have more: samples whose file was lost later, which the ledger and the other checks tell.
 */
static void compare(const struct adding *adding, const struct op_session_ledger *ledger)
{
	for (size_t i = 0; i < ledger->nr_events; i++) {
		const struct op_ledger_event *event = &ledger->events[i];
		char name[OP_EVENT_NAME_BYTES + 64], text[256];

		snprintf(name, sizeof(name), "%s:%" PRIu64 ":0x%x", event->name, event->count, event->unit_mask);
		for (size_t k = 0; k < adding->nr_sums; k++) {
			uint64_t in_minutes = adding->sums[k].stored;

			if (strcmp(adding->sums[k].name, name) || in_minutes >= event->stored)
				continue;
			snprintf(text, sizeof(text), "%.100s: %" PRIu64 " samples are in minutes, %" PRIu64 " in the session", name,
				 in_minutes, event->stored);
			opk_note(adding->check, OP_SESSION_TIMELINE, text);
		}
	}
}

int opk_timeline_check(struct opk_check *check, const struct opk_found *found, const struct op_session_ledger *ledger)
{
	struct adding adding = { .check = check, .found = found };
	struct op_timeline *timeline;
	uint64_t offset;
	int err = op_timeline_open(check->dir_fd, OP_SESSION_TIMELINE, &timeline);

	if (err)
		return err == -ENOMEM ? err : 0; /* what is no timeline was reported before */
	err = op_timeline_select(timeline, 0, UINT64_MAX);
	if (!err)
		err = add_minutes(&adding, timeline);
	/* Around damage the minutes do not go on. */
	if (!err && !op_timeline_nr_damaged(timeline, &offset) && !check->live) {
		compare(&adding, ledger);
		err = compare_shares(&adding);
	}
	op_timeline_close(timeline);
	for (size_t i = 0; i < adding.nr_sums; i++)
		free(adding.sums[i].name);
	free(adding.sums);
	return err;
}
