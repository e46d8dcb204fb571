/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "daemon/mapset.h"

#include <errno.h>

struct mappings {
	struct opd_mapping *rows;
	size_t nr, capacity;
};

struct opd_mapset {
	uint32_t refs;
	struct mappings now;  /* sorted by start, none overlaps another */
	struct mappings past; /* in the order in which they ended */
};

struct opd_mapset *opd_mapset_new(void)
{
	struct opd_mapset *set = calloc(1, sizeof(*set));

	if (set)
		set->refs = 1;
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
	free(set->now.rows);
	free(set->past.rows);
	free(set);
}

static int reserve(struct mappings *list, size_t more)
{
	size_t capacity = list->capacity ? list->capacity : 8;
	struct opd_mapping *rows;

	if (list->nr + more <= list->capacity)
		return 0;
	while (capacity < list->nr + more)
		capacity *= 2;
	rows = realloc(list->rows, capacity * sizeof(*rows));
	if (!rows)
		return -ENOMEM;
	list->rows = rows;
	list->capacity = capacity;
	return 0;
}

static int copy_list(const struct mappings *from, struct mappings *to)
{
	if (!from->nr)
		return 0;
	if (reserve(to, from->nr) < 0)
		return -ENOMEM;
	memcpy(to->rows, from->rows, from->nr * sizeof(*from->rows));
	to->nr = from->nr;
	return 0;
}

/* Makes *set one that nobody else looks at. */
static int make_own(struct opd_mapset **set)
{
	struct opd_mapset *copy;

	if ((*set)->refs == 1)
		return 0;
	copy = opd_mapset_new();
	if (!copy)
		return -ENOMEM;
	if (copy_list(&(*set)->now, &copy->now) < 0 || copy_list(&(*set)->past, &copy->past) < 0) {
		opd_mapset_put(copy);
		return -ENOMEM;
	}
	opd_mapset_put(*set);
	*set = copy;
	return 0;
}

/* Index of the first mapping that ends after `address`. */
static size_t first_ending_after(const struct mappings *list, uint64_t address)
{
	size_t low = 0, high = list->nr;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (list->rows[middle].end > address)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

static void forget_past(struct mappings *past, uint64_t horizon_ns)
{
	size_t nr_old = 0;

	while (nr_old < past->nr && past->rows[nr_old].to_ns < horizon_ns)
		nr_old++;
	if (!nr_old)
		return;
	past->nr -= nr_old;
	memmove(past->rows, past->rows + nr_old, past->nr * sizeof(*past->rows));
}

static void forget_oldest(struct mappings *past)
{
	size_t nr_old = OPD_MAPSET_MAX / 16;

	past->nr -= nr_old;
	memmove(past->rows, past->rows + nr_old, past->nr * sizeof(*past->rows));
}

/* Which mapping a full set can do without best. */
static size_t least_needed(const struct mappings *now)
{
	size_t found = 0;

	for (size_t i = 1; i < now->nr; i++) {
		bool is_region = now->rows[i].region_end, found_region = now->rows[found].region_end;

		if (is_region != found_region ? is_region : now->rows[i].from_ns < now->rows[found].from_ns)
			found = i;
	}
	return found;
}

/* One at a time would look at all rows for each; a sixteenth at once is rare. */
static void make_space(struct mappings *now)
{
	while (now->nr > OPD_MAPSET_MAX - OPD_MAPSET_MAX / 16) {
		size_t index = least_needed(now);

		now->nr--;
		memmove(now->rows + index, now->rows + index + 1, (now->nr - index) * sizeof(*now->rows));
	}
}

/* The part of a mapping between two addresses. */
static struct opd_mapping part_of(const struct opd_mapping *whole, uint64_t start, uint64_t end)
{
	struct opd_mapping part = *whole;

	part.start = start;
	part.end = end;
	part.key += start - whole->start;
	return part;
}

/* Puts rows at index in the place of nr_old others. Room was reserved. */
static void splice(struct mappings *list, size_t index, size_t nr_old, const struct opd_mapping *rows, size_t nr_rows)
{
	memmove(list->rows + index + nr_rows, list->rows + index + nr_old, (list->nr - index - nr_old) * sizeof(*rows));
	memcpy(list->rows + index, rows, nr_rows * sizeof(*rows));
	list->nr = list->nr - nr_old + nr_rows;
}

static bool same_place(const struct opd_mapping *a, const struct opd_mapping *b)
{
	return a->start == b->start && a->end == b->end && a->key == b->key && a->cookie == b->cookie &&
	       a->region_end == b->region_end;
}

int opd_mapset_add(struct opd_mapset **set, const struct opd_mapping *mapping, uint64_t horizon_ns)
{
	struct opd_mapping rows[3];
	size_t nr_rows = 0, first, last;
	struct mappings *now, *past;

	first = first_ending_after(&(*set)->now, mapping->start);
	/* mprotect and repeated maps say again what is known: it holds on. */
	if (first < (*set)->now.nr && same_place(&(*set)->now.rows[first], mapping))
		return 0;
	if (make_own(set) < 0)
		return -ENOMEM;
	now = &(*set)->now;
	past = &(*set)->past;
	forget_past(past, horizon_ns);
	if (now->nr >= OPD_MAPSET_MAX) {
		make_space(now);
		first = first_ending_after(now, mapping->start);
	}
	if (past->nr >= OPD_MAPSET_MAX)
		forget_oldest(past);
	for (last = first; last < now->nr && now->rows[last].start < mapping->end; last++)
		;
	if (reserve(now, 2) < 0 || reserve(past, last - first) < 0)
		return -ENOMEM;
	for (size_t i = first; i < last; i++) {
		const struct opd_mapping *cut = &now->rows[i];
		struct opd_mapping gone = part_of(cut, op_max_u64(cut->start, mapping->start), op_min_u64(cut->end, mapping->end));

		gone.to_ns = mapping->from_ns;
		past->rows[past->nr++] = gone;
	}
	if (first < last && now->rows[first].start < mapping->start)
		rows[nr_rows++] = part_of(&now->rows[first], now->rows[first].start, mapping->start);
	rows[nr_rows] = *mapping;
	rows[nr_rows++].to_ns = UINT64_MAX;
	if (first < last && now->rows[last - 1].end > mapping->end)
		rows[nr_rows++] = part_of(&now->rows[last - 1], mapping->end, now->rows[last - 1].end);
	splice(now, first, last - first, rows, nr_rows);
	return 0;
}

const struct opd_mapping *opd_mapset_find(const struct opd_mapset *set, uint64_t address, uint64_t time_ns)
{
	size_t index = first_ending_after(&set->now, address);
	const struct opd_mapping *found = NULL;

	if (index < set->now.nr && set->now.rows[index].start <= address)
		found = &set->now.rows[index];
	if (found && found->from_ns <= time_ns)
		return found;
	for (size_t i = set->past.nr; i > 0; i--) {
		const struct opd_mapping *row = &set->past.rows[i - 1];

		if (row->start <= address && address < row->end && row->from_ns <= time_ns && time_ns < row->to_ns)
			return row;
	}
	/* Another thread may run in a mapping just before the record of it is stamped. */
	return found;
}

size_t opd_mapset_count(const struct opd_mapset *set)
{
	return set->now.nr;
}
