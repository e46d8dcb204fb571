/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/report/inlined.h"

#include "libop/base/grow.h"
#include "tools/common/log.h"

/* ---- rows ---- */

/* A detail and the innermost function at its address; NULL: the symbol itself. */
struct item {
	struct opr_detail detail;
	const struct opr_frame *frame;
};

struct splitting {
	struct opr_symbol_report *report;
	const struct opr_query *query;
	const struct opr_words *bases;
	struct opr_symbol_row *rows; /* the new ones */
	size_t nr_rows, rows_capacity;
	struct item *items; /* of one row */
	size_t items_capacity;
};

/* Frames of one image are in one array. */
static int compare_items(const void *left, const void *right)
{
	const struct item *a = left, *b = right;

	if (a->frame != b->frame)
		return (uintptr_t)a->frame < (uintptr_t)b->frame ? -1 : 1;
	return a->detail.vma < b->detail.vma ? -1 : a->detail.vma > b->detail.vma;
}

static bool is_wanted(const struct splitting *splitting, const struct opr_symbol_row *row, const struct opr_frame *frame)
{
	const struct opr_words *include = &splitting->query->include_symbols, *exclude = &splitting->query->exclude_symbols;
	const struct opr_words *bases = splitting->bases;

	if (opr_frame_is_named(exclude, bases, frame) || opr_symbol_is_named(exclude, bases, row->symbol, row->image))
		return false;
	return !include->nr_words || opr_frame_is_named(include, bases, frame) ||
	       opr_symbol_is_named(include, bases, row->symbol, row->image);
}

/* Adds a row for neighbouring items of one chain, which are the details from first_detail on. */
static int add_row(struct splitting *splitting, const struct opr_symbol_row *row, const struct item *items, size_t nr_items,
		   size_t first_detail)
{
	struct opr_symbol_report *report = splitting->report;
	const struct opr_frame *frame = items ? items->frame : NULL;
	bool wanted = is_wanted(splitting, row, frame);
	struct opr_symbol_row *added;
	size_t counts = row->counts;

	if (!op_grow(&splitting->rows, &splitting->rows_capacity, splitting->nr_rows + 1))
		return opr_no_memory();
	if (nr_items < row->nr_details && !opr_counts_add(&report->counts, report->nr_classes, &counts))
		return opr_no_memory();
	for (size_t i = 0; nr_items < row->nr_details && i < nr_items; i++)
		for (size_t j = 0; j < report->nr_classes; j++)
			report->counts.values[counts + j] += report->detail_counts.values[items[i].detail.counts + j];
	for (size_t i = 0; i < report->nr_classes && !wanted; i++)
		report->totals[i] -= report->counts.values[counts + i];
	if (!wanted)
		return 0;
	added = &splitting->rows[splitting->nr_rows];
	*added = *row;
	added->order = (uint32_t)splitting->nr_rows++;
	added->counts = counts;
	added->inlined = frame;
	added->name = frame ? frame->shown : row->name;
	added->first_detail = first_detail;
	added->nr_details = (uint32_t)nr_items;
	return 0;
}

/* The addresses of a row without a symbol are positions in a file, which have no frames. */
static int split_row(struct splitting *splitting, const struct opr_symbol_row *row)
{
	struct opr_detail *details = &splitting->report->details[row->first_detail];
	size_t nr_items = row->symbol ? row->nr_details : 0, next;
	struct item *items;
	int err = 0;

	if (!nr_items)
		return add_row(splitting, row, NULL, row->nr_details, row->first_detail);
	if (!op_grow(&splitting->items, &splitting->items_capacity, nr_items))
		return opr_no_memory();
	items = splitting->items;
	for (size_t i = 0; i < nr_items; i++)
		items[i] = (struct item){ details[i], opr_symbols_frame(row->symbols, details[i].vma) };
	qsort(items, nr_items, sizeof(*items), compare_items);
	for (size_t i = 0; i < nr_items && !err; i = next) {
		for (next = i + 1; next < nr_items && items[next].frame == items[i].frame;)
			next++;
		for (size_t j = i; j < next; j++)
			details[j] = items[j].detail;
		err = add_row(splitting, row, &items[i], next - i, row->first_detail + i);
	}
	return err;
}

int opr_split_inlined(struct opr_symbol_report *report, const struct opr_query *query, const struct opr_words *bases)
{
	struct splitting splitting = { .report = report, .query = query, .bases = bases };
	int err = 0;

	for (size_t i = 0; i < report->nr_rows && !err; i++)
		err = split_row(&splitting, &report->rows[i]);
	free(splitting.items);
	if (err) {
		free(splitting.rows);
		return err;
	}
	free(report->rows);
	report->rows = splitting.rows;
	report->rows_capacity = splitting.rows_capacity;
	report->nr_rows = report->nr_made = splitting.nr_rows;
	return 0;
}

/* ---- names ---- */

static void add_place(struct op_text *text, const struct opr_frame *frame, bool long_names)
{
	const char *slash = strrchr(frame->file, '/');

	if (*frame->file)
		op_text_printf(text, " at %s", slash && !long_names ? slash + 1 : frame->file);
	if (*frame->file && frame->line)
		op_text_printf(text, ":%u", frame->line);
}

void opr_inliners_add(struct op_text *text, const struct opr_frame *frame, const char *symbol, bool long_names)
{
	for (const struct opr_frame *at = frame; at; at = at->outer) {
		op_text_add(text, at->outer ? at->outer->shown : symbol);
		add_place(text, at, long_names);
		if (at->outer)
			op_text_add(text, ", ");
	}
}

void opr_inlined_add(struct op_text *text, const struct opr_symbol_row *row, bool long_names)
{
	op_text_printf(text, "%s (inlined by ", row->name);
	opr_inliners_add(text, row->inlined, row->symbol->shown, long_names);
	op_text_add_char(text, ')');
}

int opr_inlined_compare(const struct opr_frame *a, const struct opr_frame *b)
{
	int order = 0;

	for (; a && b && !order; a = a->outer, b = b->outer) {
		order = strcmp(a->name, b->name);
		if (!order)
			order = strcmp(a->file, b->file);
		if (!order && a->line != b->line)
			order = a->line < b->line ? -1 : 1;
	}
	return order ? order : !b - !a;
}
