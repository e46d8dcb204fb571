/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/report/symbol_sort.h"

#include <errno.h>
#include <math.h>

#include "libop/base/atomic.h"
#include "libop/process/threads.h"
#include "tools/common/parallel_sort.h"
#include "tools/common/log.h"
#include "tools/profile/image_name.h"

#define ROWS_AHEAD    16
#define ROWS_OF_RANGE 4096

const char *const opr_sort_words[] = {
#define X(name, word) [OPR_SORT_##name] = word,
	OPR_SORT_KEYS(X)
#undef X
};

enum named { IMAGE, APP, NR_NAMED };

/*
 * The keys of a row, so that a comparison does not touch the row. Names of images are few: they are
 * replaced by their rank.
 */
struct item {
	const char *name;
	uint64_t count;
	uint32_t ranks[NR_NAMED]; /* rank of image and application */
	uint32_t row;
};

static_assert(sizeof(struct item) <= 32, "qsort_r moves larger ones through pointers");

/* Argument of compare_items. */
struct sorting {
	const struct opr_sort_order *order;
	const struct opr_symbol_row *rows;
};

static int compare_values(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

static int compare_names(const struct opr_sort_order *order, const char *a, const char *b)
{
	return order->long_names ? strcmp(a, b) : strcmp(opr_base_name(a), opr_base_name(b));
}

static int compare_debug(const struct opr_sort_order *order, const struct opr_symbol_row *a, const struct opr_symbol_row *b)
{
	int result = compare_names(order, a->file ? a->file : "", b->file ? b->file : "");

	return result ? result : compare_values(a->line, b->line);
}

/* Changes within noise come last; of the others, those of most points of percent first. */
static int compare_changes(const struct opr_symbol_row *a, const struct opr_symbol_row *b)
{
	double a_points, b_points;

	if (!a->changes || !b->changes)
		return 0;
	if (a->changes[0].is_noise != b->changes[0].is_noise)
		return a->changes[0].is_noise ? 1 : -1;
	a_points = fabs(a->changes[0].points);
	b_points = fabs(b->changes[0].points);
	return a_points > b_points ? -1 : a_points < b_points;
}

static int compare_by(enum opr_sort_key key, const struct sorting *sorting, const struct item *a, const struct item *b)
{
	switch (key) {
	case OPR_SORT_sample:
		return compare_values(b->count, a->count);
	case OPR_SORT_image:
		return compare_values(a->ranks[IMAGE], b->ranks[IMAGE]);
	case OPR_SORT_app_name:
		return compare_values(a->ranks[APP], b->ranks[APP]);
	case OPR_SORT_symbol:
		return strcmp(a->name, b->name);
	case OPR_SORT_debug:
		return compare_debug(sorting->order, &sorting->rows[a->row], &sorting->rows[b->row]);
	case OPR_SORT_vma:
		return compare_values(sorting->rows[a->row].vma, sorting->rows[b->row].vma);
	case OPR_SORT_change:
		return compare_changes(&sorting->rows[a->row], &sorting->rows[b->row]);
	case OPR_NR_SORT_KEYS:
		break;
	}
	return 0;
}

static void add_key(struct opr_sort_order *order, size_t *nr_keys, enum opr_sort_key key)
{
	for (size_t i = 0; i < *nr_keys; i++)
		if (order->keys[i] == key)
			return;
	order->keys[(*nr_keys)++] = key;
}

static bool find_key(const char *word, enum opr_sort_key *ret_key)
{
	for (enum opr_sort_key key = 0; key < OPR_NR_SORT_KEYS; key++) {
		if (!strcmp(word, opr_sort_words[key])) {
			*ret_key = key;
			return true;
		}
	}
	return false;
}

int opr_sort_order_make(struct opr_sort_order *order, const struct opr_words *keys, const char **ret_bad_key)
{
	size_t nr_keys = 0;

	for (size_t i = 0; i < keys->nr_words; i++) {
		enum opr_sort_key key;

		if (!find_key(keys->words[i], &key)) {
			*ret_bad_key = keys->words[i];
			return -EINVAL;
		}
		add_key(order, &nr_keys, key);
	}
	for (enum opr_sort_key key = 0; key < OPR_NR_SORT_KEYS; key++)
		add_key(order, &nr_keys, key);
	return 0;
}

static int compare_items(const void *left, const void *right, void *arg)
{
	const struct item *a = left, *b = right;
	const struct sorting *sorting = arg;
	const struct opr_sort_order *order = sorting->order;
	int result = 0;

	for (size_t i = 0; i < OPR_NR_SORT_KEYS && !result; i++)
		result = compare_by(order->keys[i], sorting, a, b);
	if (order->reverse)
		result = -result;
	return result ? result : compare_values(sorting->rows[a->row].order, sorting->rows[b->row].order);
}

/* ---- the ranks of names ---- */

struct name {
	const char *name;
	size_t index;
};

static int compare_listed(const void *left, const void *right, void *arg)
{
	const struct name *a = left, *b = right;

	return a->name == b->name ? 0 : compare_names(arg, a->name, b->name);
}

struct names {
	struct name *names; /* rows of one image are neighbours, so few names are listed twice */
	size_t nr_names;
};

/* Lists a name, unless it was the last one. Returns its index. */
static uint32_t list_name(struct names *list, const char *name)
{
	if (!list->nr_names || list->names[list->nr_names - 1].name != name) {
		list->names[list->nr_names] = (struct name){ name, list->nr_names };
		list->nr_names++;
	}
	return (uint32_t)list->nr_names - 1;
}

/* The rank of each listed name; equal names have one rank. NULL: no memory. */
static uint32_t *rank_names(const struct opr_sort_order *order, struct names *list)
{
	uint32_t *ranks = calloc(list->nr_names + 1, sizeof(*ranks)), rank = 0;
	void *arg = (void *)(uintptr_t)order;

	if (!ranks)
		return NULL;
	qsort_r(list->names, list->nr_names, sizeof(*list->names), compare_listed, arg);
	for (size_t i = 0; i < list->nr_names; i++) {
		rank += i && compare_listed(&list->names[i - 1], &list->names[i], arg);
		ranks[list->names[i].index] = rank;
	}
	return ranks;
}

static void fill_items(struct item *items, const struct opr_symbol_report *report, struct names lists[NR_NAMED])
{
	for (size_t i = 0; i < report->nr_rows; i++) {
		const struct opr_symbol_row *row = &report->rows[i];

		items[i] = (struct item){ .row = (uint32_t)i, .name = row->name, .count = report->counts.values[row->counts] };
		for (enum named which = 0; which < NR_NAMED; which++)
			items[i].ranks[which] = list_name(&lists[which], which == IMAGE ? row->image : row->app);
	}
}

static int make_items(struct item *items, const struct opr_symbol_report *report, const struct opr_sort_order *order)
{
	struct names lists[NR_NAMED] = { { 0 } };
	uint32_t *ranks[NR_NAMED] = { NULL };
	bool has_room = true;

	for (enum named which = 0; which < NR_NAMED; which++) {
		lists[which].names = reallocarray(NULL, report->nr_rows, sizeof(*lists[which].names));
		has_room &= lists[which].names != NULL;
	}
	if (has_room)
		fill_items(items, report, lists);
	for (enum named which = 0; which < NR_NAMED && has_room; which++) {
		ranks[which] = rank_names(order, &lists[which]);
		has_room = ranks[which] != NULL;
	}
	for (size_t i = 0; i < report->nr_rows && has_room; i++)
		for (enum named which = 0; which < NR_NAMED; which++)
			items[i].ranks[which] = ranks[which][items[i].ranks[which]];
	for (enum named which = 0; which < NR_NAMED; which++) {
		free(lists[which].names);
		free(ranks[which]);
	}
	return has_room ? 0 : -ENOMEM;
}

/* ---- the rows ---- */

/* Rows that threads copy, range by range. */
struct moving {
	const struct opr_symbol_row *rows;
	const struct item *items;
	size_t nr_items;
	struct opr_symbol_row *moved;
	uint64_t next;
};

/* Prefetches: the rows are scattered over more memory than a cache holds. */
static void move_range(void *arg)
{
	struct moving *moving = arg;
	size_t first;

	while ((first = op_fetch_add_relaxed(&moving->next, ROWS_OF_RANGE)) < moving->nr_items) {
		size_t end = op_min_u64(first + ROWS_OF_RANGE, moving->nr_items);

		for (size_t i = first; i < end; i++) {
			const char *ahead = (const char *)&moving->rows[moving->items[op_min_u64(i + ROWS_AHEAD, end - 1)].row];

			__builtin_prefetch(ahead);
			__builtin_prefetch(ahead + sizeof(*moving->rows) - 1);
			moving->moved[i] = moving->rows[moving->items[i].row];
		}
	}
}

/* Moves the rows into new memory, in order. Dropped rows go with them, behind the others. */
static int move_rows(struct opr_symbol_report *report, const struct item *items)
{
	struct moving moving = { .rows = report->rows, .items = items, .nr_items = report->nr_rows };
	size_t nr_ranges = report->nr_rows / ROWS_OF_RANGE, nr_all = op_max_u64(report->nr_made, report->nr_rows);

	moving.moved = reallocarray(NULL, nr_all, sizeof(*moving.moved));
	if (!moving.moved)
		return -ENOMEM;
	op_run_threads(nr_ranges > 1 ? op_min_u64(op_nr_cpus(), nr_ranges) : 1, move_range, &moving);
	memcpy(moving.moved + report->nr_rows, report->rows + report->nr_rows, (nr_all - report->nr_rows) * sizeof(*report->rows));
	free(report->rows);
	report->rows = moving.moved;
	report->rows_capacity = nr_all;
	return 0;
}

int opr_symbol_sort(struct opr_symbol_report *report, const struct opr_sort_order *order)
{
	const struct sorting sorting = { order, report->rows };
	struct item *items;
	int err;

	if (!report->nr_rows)
		return 0;
	items = report->nr_rows < UINT32_MAX ? reallocarray(NULL, report->nr_rows, sizeof(*items)) : NULL;
	err = items ? make_items(items, report, order) : -ENOMEM;
	if (!err)
		err = opr_sort_by_threads(items, report->nr_rows, sizeof(*items), compare_items, (void *)(uintptr_t)&sorting);
	if (!err)
		err = move_rows(report, items);
	free(items);
	return err ? opr_no_memory() : 0;
}
