/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/opannotate/inlines.h"

#include <inttypes.h>

#include "libop/base/grow.h"
#include "tools/common/formatting.h"
#include "tools/common/log.h"
#include "tools/report/inlined.h"

#define SHOWN_MAX 5 /* of one line and kind; the others are counted */

/* ---- collect ---- */

static int add_item(struct opr_inlines *inlines, const struct opr_inline *item)
{
	if (!op_grow(&inlines->items, &inlines->capacity, inlines->nr_items + 1))
		return opr_no_memory();
	inlines->items[inlines->nr_items++] = *item;
	return 0;
}

/* True for a call in a recursion that was inlined: an inner frame has the same call. */
static bool is_repeated(const struct opr_frame *innermost, const struct opr_frame *frame)
{
	for (; innermost != frame; innermost = innermost->outer)
		if (innermost->line == frame->line && !strcmp(innermost->file, frame->file) &&
		    !strcmp(innermost->shown, frame->shown))
			return true;
	return false;
}

/* `counts` of an item are those of the detail at first. */
static int add_detail(struct opr_inlines *inlines, const struct opr_symbol_row *row, const struct opr_detail *detail)
{
	const struct opr_frame *innermost = opr_symbols_frame(row->symbols, detail->vma);
	struct opr_inline item = { .frame = innermost, .row = row, .counts = detail->counts };
	int err = 0;

	if (innermost && opr_symbols_line(row->symbols, detail->vma, &item.file, &item.line))
		err = add_item(inlines, &item);
	item.is_call = true;
	for (const struct opr_frame *frame = innermost; frame && !err; frame = frame->outer) {
		item.file = frame->file;
		item.line = frame->line;
		item.frame = frame;
		if (*item.file && item.line && !is_repeated(innermost, frame))
			err = add_item(inlines, &item);
	}
	return err;
}

static int compare_places(const struct opr_inline *a, const struct opr_inline *b)
{
	int order = a->file == b->file ? 0 : strcmp(a->file, b->file);

	if (!order && a->line != b->line)
		order = a->line < b->line ? -1 : 1;
	return order ? order : a->is_call - b->is_call;
}

/* Calls are told apart by the function that was called, code by all that it was inlined into. */
static int compare_items(const void *left, const void *right)
{
	const struct opr_inline *a = left, *b = right;
	int order = compare_places(a, b);

	if (!order && a->is_call)
		return strcmp(a->frame->shown, b->frame->shown);
	if (!order)
		order = opr_inlined_compare(a->frame, b->frame);
	return order ? order : strcmp(a->row->symbol->shown, b->row->symbol->shown);
}

static int compare_counts(const void *left, const void *right, void *values)
{
	const struct opr_inline *a = left, *b = right;
	const uint64_t *counts = values;
	int order = compare_places(a, b);

	if (!order && counts[a->counts] != counts[b->counts])
		order = counts[a->counts] > counts[b->counts] ? -1 : 1;
	return order ? order : compare_items(a, b);
}

/* Neighbours that are equal become one item, with counts of its own. */
static int merge(struct opr_inlines *inlines)
{
	const struct opr_symbol_report *report = inlines->report;
	struct opr_inline *last = NULL;
	size_t nr_kept = 0;

	for (size_t i = 0; i < inlines->nr_items; i++) {
		const uint64_t *counts = &report->detail_counts.values[inlines->items[i].counts];

		if (!last || compare_items(last, &inlines->items[i])) {
			last = &inlines->items[nr_kept++];
			*last = inlines->items[i];
			if (!opr_counts_add(&inlines->counts, report->nr_classes, &last->counts))
				return opr_no_memory();
		}
		for (size_t j = 0; j < report->nr_classes; j++)
			inlines->counts.values[last->counts + j] += counts[j];
	}
	inlines->nr_items = nr_kept;
	return 0;
}

int opr_inlines_make(struct opr_inlines *inlines, const struct opr_symbol_report *report)
{
	int err = 0;

	inlines->report = report;
	for (size_t i = 0; i < report->nr_rows && !err; i++)
		for (size_t j = 0; report->rows[i].symbol && j < report->rows[i].nr_details && !err; j++)
			err = add_detail(inlines, &report->rows[i], &report->details[report->rows[i].first_detail + j]);
	if (err || !inlines->nr_items)
		return err;
	qsort(inlines->items, inlines->nr_items, sizeof(*inlines->items), compare_items);
	err = merge(inlines);
	if (!err)
		qsort_r(inlines->items, inlines->nr_items, sizeof(*inlines->items), compare_counts, inlines->counts.values);
	return err;
}

void opr_inlines_free(struct opr_inlines *inlines)
{
	if (!inlines)
		return;
	free(inlines->items);
	free(inlines->counts.values);
	*inlines = (struct opr_inlines){ 0 };
}

/* ---- describe ---- */

static void add_counts(struct op_text *text, const struct opr_inlines *inlines, const struct opr_inline *item)
{
	const uint64_t *counts = &inlines->counts.values[item->counts];

	op_text_add_char(text, ':');
	for (size_t i = 0; i < inlines->report->nr_classes; i++) {
		const struct opr_percent_text share = opr_format_percent(counts[i], inlines->report->totals[i]);

		op_text_printf(text, " %" PRIu64 " %s", counts[i], share.text + strspn(share.text, " "));
	}
}

/* Adds the items of one place from `first` on, and returns their number. */
static size_t add_place(struct op_text *text, const struct opr_inlines *inlines, const struct opr_inline *first)
{
	size_t nr_items = 0, nr_left = inlines->nr_items - (size_t)(first - inlines->items);

	for (; nr_items < nr_left && !compare_places(first, &first[nr_items]); nr_items++) {
		const struct opr_inline *item = &first[nr_items];

		if (nr_items >= SHOWN_MAX)
			continue;
		op_text_add(text, text->length ? "; " : "");
		op_text_add(text, item->is_call ? "inlines " : "inlined by ");
		if (item->is_call)
			op_text_add(text, item->frame->shown);
		else
			opr_inliners_add(text, item->frame, item->row->symbol->shown, false);
		add_counts(text, inlines, item);
	}
	if (nr_items > SHOWN_MAX)
		op_text_printf(text, "; and %zu more", nr_items - SHOWN_MAX);
	return nr_items;
}

void opr_inlines_describe(struct op_text *text, const struct opr_inlines *inlines, const char *file, unsigned int line)
{
	const struct opr_inline key = { .file = file, .line = line };
	size_t index = op_nr_leading(inlines->items, inlines->nr_items, item, compare_places(item, &key) < 0);

	while (index < inlines->nr_items && inlines->items[index].line == line && !strcmp(inlines->items[index].file, file))
		index += add_place(text, inlines, &inlines->items[index]);
}
