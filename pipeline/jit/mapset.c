/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pipeline/jit/mapset.h"

#include <errno.h>

#define NR_LEVELS 16 /* lists are counted by the power of two below their length */
/* room that is made at once, because making room looks at every set */
#define SPARE (OPD_MAPPINGS_MAX / 8)

struct opd_mapset {
	uint32_t refs;
	uint32_t round; /* of the last opd_mapset_visit_cookies */
	struct opd_mapset_account *account;
	struct opd_mapset *next, **at; /* links of the account's list */
	struct opd_spans spans;
};

static const struct opd_span_kind kind = {
	.row_bytes = sizeof(struct opd_mapping), .past_max = OPD_MAPSET_MAX, .rows_max = OPD_MAPPINGS_MAX
};

static const struct opd_mapping *mapping_at(const struct opd_span_list *list, size_t index)
{
	return (const struct opd_mapping *)opd_span_at(list, sizeof(struct opd_mapping), index);
}

struct opd_mapset *opd_mapset_new(struct opd_mapset_account *account)
{
	struct opd_mapset *set = calloc(1, sizeof(*set));

	if (!set)
		return NULL;
	set->refs = 1;
	set->account = account;
	set->spans = (struct opd_spans){ .kind = &kind, .account = &account->mappings };
	set->next = account->sets;
	set->at = &account->sets;
	if (set->next)
		set->next->at = &set->next;
	account->sets = set;
	return set;
}

struct opd_mapset *opd_mapset_get(struct opd_mapset *set)
{
	set->refs++;
	return set;
}

void opd_mapset_put(struct opd_mapset *set)
{
	if (!set || --set->refs)
		return;
	*set->at = set->next;
	if (set->next)
		set->next->at = set->at;
	opd_spans_free(&set->spans);
	free(set);
}

/* Copies *set when others hold references to it. 0, -ENOMEM or -ENOSPC. */
static int make_own(struct opd_mapset **set)
{
	struct opd_mapset *copy;
	int err;

	if ((*set)->refs == 1)
		return 0;
	copy = opd_mapset_new((*set)->account);
	if (!copy)
		return -ENOMEM;
	err = opd_spans_copy(&(*set)->spans, &copy->spans);
	opd_mapset_put(err ? copy : *set);
	if (!err)
		*set = copy;
	return err;
}

/*
 * Rows are dropped down to this number at once: dropping one at a time would move all rows each
 * time.
 */
static size_t room_below(size_t limit)
{
	return limit - limit / 16;
}

/*
 * The lowest ranks go first from a full set: regions before files, and those that have held
 * longest.
 */
static uint64_t rank(const struct opd_mapping *mapping)
{
	return (mapping->from_ns & INT64_MAX) | (uint64_t)!mapping->region_end << 63;
}

static int compare_ranks(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

	return a < b ? -1 : a > b;
}

/* How many of the lowest ranks go, up to the last one. */
struct going {
	size_t nr;
	uint64_t last;
};

static bool goes(const void *mapping, void *arg)
{
	struct going *going = arg;

	if (!going->nr || rank(mapping) > going->last)
		return false;
	going->nr--;
	return true;
}

static int make_space(struct opd_mapset *set, size_t limit)
{
	const struct opd_span_list *now = &set->spans.now;
	struct going going = { .nr = now->nr - room_below(limit) };
	uint64_t *ranks = malloc(now->nr * sizeof(*ranks));

	if (!ranks)
		return -ENOMEM;
	for (size_t i = 0; i < now->nr; i++)
		ranks[i] = rank(mapping_at(now, i));
	qsort(ranks, now->nr, sizeof(*ranks), compare_ranks);
	going.last = ranks[going.nr - 1];
	free(ranks);
	set->account->mappings.nr_dropped += going.nr;
	opd_spans_end(&set->spans, goes, &going, 0);
	return 0;
}

static bool same_mapping(const struct opd_mapping *a, const struct opd_mapping *b)
{
	return a->start == b->start && a->end == b->end && a->key == b->key && a->cookie == b->cookie &&
	       a->region_end == b->region_end;
}

/* ---- all sets together ---- */

/* Lists, by the power of two below their length. */
struct lengths {
	size_t nr_lists[NR_LEVELS], nr_rows[NR_LEVELS];
};

static void count_list(struct lengths *lengths, const struct opd_span_list *list)
{
	size_t level = 0;

	if (!list->nr)
		return;
	while (level < NR_LEVELS - 1 && list->nr >> (level + 1))
		level++;
	lengths->nr_lists[level]++;
	lengths->nr_rows[level] += list->nr;
}

/* The length to which lists must be cut to have nr_rows rows in all. */
static size_t length_for(const struct lengths *lengths, size_t nr_rows)
{
	size_t length = 1, nr_longer = 0, nr_kept = 0;

	for (size_t level = 0; level < NR_LEVELS; level++)
		nr_longer += lengths->nr_lists[level];
	for (size_t level = 0; level < NR_LEVELS; level++) {
		nr_kept += lengths->nr_rows[level];
		nr_longer -= lengths->nr_lists[level];
		if (nr_kept + (nr_longer << (level + 1)) > nr_rows)
			break;
		length <<= 1;
	}
	return length;
}

/* Without memory a list stays as it is. */
static void cut_down(struct opd_mapset *set, size_t length)
{
	if (set->spans.past.nr > length)
		opd_spans_drop_past(&set->spans, set->spans.past.nr - room_below(length));
	if (set->spans.now.nr > length)
		make_space(set, length);
	opd_spans_fit(&set->spans);
}

/* Makes room for SPARE rows: more than one mapping needs. */
static void make_room(struct opd_mapset_account *account, uint64_t horizon_ns)
{
	struct lengths lengths = { 0 };
	size_t length;

	for (struct opd_mapset *set = account->sets; set; set = set->next) {
		opd_spans_forget(&set->spans, horizon_ns);
		count_list(&lengths, &set->spans.past);
		count_list(&lengths, &set->spans.now);
	}
	length = length_for(&lengths, OPD_MAPPINGS_MAX - SPARE);
	for (struct opd_mapset *set = account->sets; set; set = set->next)
		cut_down(set, length);
}

/* ---- adding and finding ---- */

/* Makes *set a set of its own, with room for a mapping. 0, -ENOMEM or -ENOSPC. */
static int prepare(struct opd_mapset **set, const struct opd_mapping *mapping, uint64_t horizon_ns)
{
	int err = make_own(set);

	if (err)
		return err;
	opd_spans_forget(&(*set)->spans, horizon_ns);
	if ((*set)->spans.now.nr >= OPD_MAPSET_MAX && make_space(*set, OPD_MAPSET_MAX) < 0)
		return -ENOMEM;
	return opd_spans_reserve(&(*set)->spans, mapping);
}

int opd_mapset_add(struct opd_mapset **set, const struct opd_mapping *mapping, uint64_t horizon_ns)
{
	const struct opd_mapping *known = opd_mapset_find(*set, mapping->start, UINT64_MAX);
	int err;

	/* mprotect and repeated maps report a known mapping again. */
	if (known && same_mapping(known, mapping))
		return 0;
	err = prepare(set, mapping, horizon_ns);
	if (op_unlikely(err == -ENOSPC)) {
		make_room((*set)->account, horizon_ns);
		err = prepare(set, mapping, horizon_ns);
	}
	if (!err)
		opd_spans_replace(&(*set)->spans, mapping, mapping, &(*set)->spans, horizon_ns);
	else if (err == -ENOSPC)
		(*set)->account->mappings.nr_dropped++; /* no set can be cut any more */
	return err == -ENOSPC ? 0 : err;
}

const struct opd_mapping *opd_mapset_find(const struct opd_mapset *set, uint64_t address, uint64_t time_ns)
{
	return opd_spans_find(&set->spans, sizeof(struct opd_mapping), address, time_ns);
}

uint64_t opd_mapset_end(const struct opd_mapset *set)
{
	const struct opd_span_list *now = &set->spans.now;

	return now->nr ? mapping_at(now, now->nr - 1)->end : 0;
}

size_t opd_mapset_count(const struct opd_mapset *set)
{
	return set->spans.now.nr;
}

void opd_mapset_visit(const struct opd_mapset *set, void (*visit)(const struct opd_mapping *mapping, void *arg), void *arg)
{
	for (size_t i = 0; i < set->spans.now.nr; i++)
		visit(mapping_at(&set->spans.now, i), arg);
	for (size_t i = 0; i < set->spans.past.nr; i++)
		visit(mapping_at(&set->spans.past, i), arg);
}

void opd_mapset_visit_cookies(struct opd_mapset *set, uint32_t round, void (*visit)(uint64_t cookie, void *arg), void *arg)
{
	if (set->round == round)
		return;
	set->round = round;
	for (size_t i = 0; i < set->spans.now.nr; i++)
		visit(mapping_at(&set->spans.now, i)->cookie, arg);
	for (size_t i = 0; i < set->spans.past.nr; i++)
		visit(mapping_at(&set->spans.past, i)->cookie, arg);
}
