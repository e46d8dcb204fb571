/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/symbol_sort.h"

#include <errno.h>

#include "tools/report_log.h"

#define ROWS_AHEAD 16

static const char *const key_words[] = {
#define X(name, word) [OPR_SORT_##name] = word,
	OPR_SORT_KEYS(X)
#undef X
};

enum named { IMAGE, APP, NR_NAMED };

/* What a row is compared by, so that neither rows nor the names of images, of which there are few, are looked at each time. */
struct item {
	struct opr_symbol_row *row;
	const char *name;
	uint64_t count;
	uint32_t places[NR_NAMED]; /* of the names in their order */
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

static int compare_by(enum opr_sort_key key, const struct opr_sort_order *order, const struct item *a, const struct item *b)
{
	switch (key) {
	case OPR_SORT_sample:
		return compare_values(b->count, a->count);
	case OPR_SORT_image:
		return compare_values(a->places[IMAGE], b->places[IMAGE]);
	case OPR_SORT_app_name:
		return compare_values(a->places[APP], b->places[APP]);
	case OPR_SORT_symbol:
		return strcmp(a->name, b->name);
	case OPR_SORT_debug:
		return compare_debug(order, a->row, b->row);
	case OPR_SORT_vma:
		return compare_values(a->row->vma, b->row->vma);
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
		if (!strcmp(word, key_words[key])) {
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
	const struct opr_sort_order *order = arg;
	int result = 0;

	for (size_t i = 0; i < OPR_NR_SORT_KEYS && !result; i++)
		result = compare_by(order->keys[i], order, a, b);
	if (order->reverse)
		result = -result;
	return result ? result : compare_values(a->row->order, b->row->order);
}

/* ---- the places of names ---- */

struct name {
	const char *name;
	size_t index;
};

static const char *name_of(const struct opr_symbol_row *row, enum named which)
{
	return which == IMAGE ? row->image : row->app;
}

static int compare_listed(const void *left, const void *right, void *arg)
{
	const struct name *a = left, *b = right;

	return a->name == b->name ? 0 : compare_names(arg, a->name, b->name);
}

/* Rows of one image stand together when they are made: few names are listed twice. */
static size_t list_names(const struct item *items, size_t nr_items, enum named which, struct name *names, uint32_t *runs)
{
	size_t nr_names = 0;

	for (size_t i = 0; i < nr_items; i++) {
		const char *name = name_of(items[i].row, which);

		if (!nr_names || names[nr_names - 1].name != name) {
			names[nr_names] = (struct name){ name, nr_names };
			nr_names++;
		}
		runs[i] = (uint32_t)nr_names - 1;
	}
	return nr_names;
}

/* Names that are the same have the same place. */
static int place_names(const struct opr_sort_order *order, struct item *items, size_t nr_items, enum named which)
{
	struct name *names = calloc(nr_items, sizeof(*names));
	uint32_t *runs = calloc(nr_items, sizeof(*runs)), *places = calloc(nr_items, sizeof(*places)), place = 0;
	bool has_room = names && runs && places;
	void *arg = (void *)(uintptr_t)order;
	size_t nr_names = 0;

	if (has_room) {
		nr_names = list_names(items, nr_items, which, names, runs);
		qsort_r(names, nr_names, sizeof(*names), compare_listed, arg);
	}
	for (size_t i = 0; i < nr_names; i++) {
		place += i && compare_listed(&names[i - 1], &names[i], arg);
		places[names[i].index] = place;
	}
	for (size_t i = 0; i < nr_items && has_room; i++)
		items[i].places[which] = places[runs[i]];
	free(places);
	free(runs);
	free(names);
	return has_room ? 0 : -ENOMEM;
}

/* ---- the rows ---- */

/* The rows themselves, which stand anywhere in a memory that no cache holds: each is asked for some time before it is copied. */
static int move_rows(struct opr_symbol_row *rows, const struct item *items, size_t nr_items)
{
	struct opr_symbol_row *moved = reallocarray(NULL, nr_items, sizeof(*moved));

	if (!moved)
		return -ENOMEM;
	for (size_t i = 0; i < nr_items; i++) {
		const char *ahead = (const char *)items[op_min_u64(i + ROWS_AHEAD, nr_items - 1)].row;

		__builtin_prefetch(ahead);
		__builtin_prefetch(ahead + sizeof(*rows) - 1);
		moved[i] = *items[i].row;
	}
	memcpy(rows, moved, nr_items * sizeof(*rows));
	free(moved);
	return 0;
}

int opr_symbol_sort(struct opr_symbol_report *report, const struct opr_sort_order *order)
{
	struct item *items = calloc(report->nr_rows + 1, sizeof(*items));
	int err = items ? 0 : -ENOMEM;

	for (size_t i = 0; i < report->nr_rows && !err; i++) {
		struct opr_symbol_row *row = &report->rows[i];

		items[i] = (struct item){ .row = row, .name = row->name, .count = report->counts.values[row->counts] };
	}
	for (enum named which = 0; which < NR_NAMED && report->nr_rows && !err; which++)
		err = place_names(order, items, report->nr_rows, which);
	if (!err && report->nr_rows) {
		qsort_r(items, report->nr_rows, sizeof(*items), compare_items, (void *)(uintptr_t)order);
		err = move_rows(report->rows, items, report->nr_rows);
	}
	free(items);
	return err ? opr_no_memory() : 0;
}
