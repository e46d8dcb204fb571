/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/opcheck/shares.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "libop/base/grow.h"
#include "libop/session/layout.h"

int opk_shares_event(struct opk_shares *shares, const char *name, uint32_t *ret_event)
{
	uint32_t event = 0;

	while (event < shares->nr_events && strcmp(shares->events[event], name) != 0)
		event++;
	if (event == shares->nr_events) {
		if (!op_grow(&shares->events, &shares->capacity, event + 1u))
			return -ENOMEM;
		shares->events[event] = strdup(name);
		if (!shares->events[event])
			return -ENOMEM;
		shares->nr_events++;
	}
	*ret_event = event;
	return 0;
}

struct opk_share *opk_share(struct opk_shares *shares, enum opk_share_kind kind, uint32_t event, uint64_t app, uint64_t image)
{
	uint64_t hash = op_hash_add(op_hash_add(op_hash_u64(app), image), (uint64_t)event << 1 | kind);
	struct opk_share *share;

	for (struct op_hlink *link = op_htable_first(&shares->table, hash); link; link = op_htable_next(link)) {
		share = op_container_of(link, struct opk_share, link);
		if (share->kind == kind && share->event == event && share->app == app && share->image == image)
			return share;
	}
	share = calloc(1, sizeof(*share));
	if (!share)
		return NULL;
	share->kind = kind;
	share->event = event;
	share->app = app;
	share->image = image;
	if (op_htable_insert(&shares->table, &share->link, hash)) {
		free(share);
		return NULL;
	}
	shares->nr_shares++;
	return share;
}

/* ---- comparing ---- */

struct list {
	const struct opk_share **shares; /* by kind, event, application, image */
	size_t nr;
};

static void add_to_list(struct op_hlink *link, void *arg)
{
	struct list *list = arg;

	list->shares[list->nr++] = op_container_of(link, struct opk_share, link);
}

static int order(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

static int compare_shares(const void *left, const void *right)
{
	const struct opk_share *a = *(const struct opk_share *const *)left, *b = *(const struct opk_share *const *)right;
	int by = order(a->kind, b->kind);

	by = by ? by : order(a->event, b->event);
	by = by ? by : order(a->app, b->app);
	return by ? by : order(a->image, b->image);
}

struct comparing {
	const struct opk_shares *shares;
	struct opk_check *check;
	const struct op_dcookie_table *images;
};

static void report(const struct comparing *comparing, const char *fault, const struct opk_share *share, uint64_t image,
		   uint64_t in_minutes, uint64_t in_files)
{
	const char *name = op_dcookie_row(comparing->images, image)->name;
	char detail[400];
	struct opk_problem problem = { .path = OP_SESSION_TIMELINE, .fault = fault, .detail = detail };

	snprintf(detail, sizeof(detail), "%.100s, %.200s: %" PRIu64 " in minutes, %" PRIu64 " in files",
		 comparing->shares->events[share->event], name ? name : "?", in_minutes, in_files);
	opk_report(comparing->check, &problem, comparing->check->repair ? -ENOTSUP : 0);
}

/* `is_apart`: a minute has everything at its place. */
static bool differs(uint64_t in_minutes, uint64_t in_files, bool is_apart)
{
	return in_minutes > in_files || (is_apart && in_minutes != in_files);
}

/* The shares of an application. */
static void compare_app(const struct comparing *comparing, const struct opk_share **shares, size_t nr, bool is_event_apart)
{
	uint64_t in_minutes = 0, in_files = 0, image_of_all = OP_DCOOKIE_NONE;
	bool is_apart = is_event_apart;

	for (size_t i = 0; i < nr; i++) {
		in_minutes += shares[i]->in_minutes;
		in_files += shares[i]->in_files;
		is_apart &= shares[i]->image != image_of_all;
	}
	if (differs(in_minutes, in_files, is_event_apart)) {
		report(comparing, "the minutes of an application do not add up to its files", shares[0], shares[0]->app, in_minutes,
		       in_files);
		return;
	}
	for (size_t i = 0; i < nr; i++)
		if (shares[i]->image != image_of_all && differs(shares[i]->in_minutes, shares[i]->in_files, is_apart))
			report(comparing, "the minutes of an image do not add up to its files", shares[i], shares[i]->image,
			       shares[i]->in_minutes, shares[i]->in_files);
}

/* The shares of an event. Where its sums in minutes and in files differ, other checks tell that. */
static void compare_event(const struct comparing *comparing, const struct opk_share **shares, size_t nr)
{
	uint64_t in_minutes = 0, in_files = 0;
	bool is_apart = true;

	for (size_t i = 0; i < nr; i++) {
		in_minutes += shares[i]->in_minutes;
		in_files += shares[i]->in_files;
		is_apart &= shares[i]->app != OP_DCOOKIE_NONE;
	}
	if (in_minutes != in_files)
		return;
	for (size_t i = 0, next; i < nr; i = next) {
		for (next = i + 1; next < nr && shares[next]->app == shares[i]->app;)
			next++;
		if (shares[i]->app != OP_DCOOKIE_NONE)
			compare_app(comparing, &shares[i], next - i, is_apart);
	}
}

int opk_shares_compare(struct opk_shares *shares, struct opk_check *check, const struct op_dcookie_table *images)
{
	const struct comparing comparing = { shares, check, images };
	struct list list = { .shares = calloc(shares->nr_shares + 1, sizeof(*list.shares)) };

	if (!list.shares)
		return -ENOMEM;
	op_htable_visit(&shares->table, add_to_list, &list);
	if (list.nr)
		qsort(list.shares, list.nr, sizeof(struct opk_share *), compare_shares);
	for (size_t i = 0, next; i < list.nr; i = next) {
		const struct opk_share *first = list.shares[i];

		for (next = i + 1; next < list.nr && list.shares[next]->event == first->event; next++)
			if (list.shares[next]->kind != first->kind)
				break;
		compare_event(&comparing, &list.shares[i], next - i);
	}
	free(list.shares);
	return 0;
}

static void free_share(struct op_hlink *link, void *arg OP_UNUSED)
{
	free(op_container_of(link, struct opk_share, link));
}

void opk_shares_free(struct opk_shares *shares)
{
	op_htable_visit(&shares->table, free_share, NULL);
	op_htable_free(&shares->table);
	for (uint32_t i = 0; i < shares->nr_events; i++)
		free(shares->events[i]);
	free(shares->events);
}
