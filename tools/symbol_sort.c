/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/symbol_sort.h"

#include <errno.h>

static const char *const key_words[] = {
#define X(name, word) [OPR_SORT_##name] = word,
	OPR_SORT_KEYS(X)
#undef X
};

struct sort_context {
	const struct opr_symbol_report *report;
	const struct opr_sort_order *order;
};

typedef int compare_fn(const struct sort_context *context, const struct opr_symbol_row *a, const struct opr_symbol_row *b);

static int compare_values(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

static int compare_names(const struct sort_context *context, const char *a, const char *b)
{
	return context->order->long_names ? strcmp(a, b) : strcmp(opr_base_name(a), opr_base_name(b));
}

static int compare_sample(const struct sort_context *context, const struct opr_symbol_row *a, const struct opr_symbol_row *b)
{
	return compare_values(context->report->counts.values[b->counts], context->report->counts.values[a->counts]);
}

static int compare_image(const struct sort_context *context, const struct opr_symbol_row *a, const struct opr_symbol_row *b)
{
	return compare_names(context, a->image, b->image);
}

static int compare_app(const struct sort_context *context, const struct opr_symbol_row *a, const struct opr_symbol_row *b)
{
	return compare_names(context, a->app, b->app);
}

static int compare_symbol(const struct sort_context *context OP_UNUSED, const struct opr_symbol_row *a,
			  const struct opr_symbol_row *b)
{
	return strcmp(a->name, b->name);
}

static int compare_debug(const struct sort_context *context, const struct opr_symbol_row *a, const struct opr_symbol_row *b)
{
	int order = compare_names(context, a->file ? a->file : "", b->file ? b->file : "");

	return order ? order : compare_values(a->line, b->line);
}

static int compare_vma(const struct sort_context *context OP_UNUSED, const struct opr_symbol_row *a, const struct opr_symbol_row *b)
{
	return compare_values(a->vma, b->vma);
}

static compare_fn *const compares[] = {
	[OPR_SORT_sample] = compare_sample, [OPR_SORT_image] = compare_image, [OPR_SORT_app_name] = compare_app,
	[OPR_SORT_symbol] = compare_symbol, [OPR_SORT_debug] = compare_debug, [OPR_SORT_vma] = compare_vma,
};

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

static int compare_rows(const void *left, const void *right, void *arg)
{
	const struct opr_symbol_row *a = left, *b = right;
	const struct sort_context *context = arg;
	int order = 0;

	for (size_t i = 0; i < OPR_NR_SORT_KEYS && !order; i++)
		order = compares[context->order->keys[i]](context, a, b);
	if (context->order->reverse)
		order = -order;
	return order ? order : compare_values(a->order, b->order);
}

void opr_symbol_sort(struct opr_symbol_report *report, const struct opr_sort_order *order)
{
	struct sort_context context = { report, order };

	if (report->nr_rows)
		qsort_r(report->rows, report->nr_rows, sizeof(*report->rows), compare_rows, &context);
}
