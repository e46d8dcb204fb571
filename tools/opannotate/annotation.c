/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/opannotate/annotation.h"

#include <errno.h>

#include "libop/base/grow.h"
#include "tools/common/log.h"

/* A detail or a symbol with its source line. */
struct item {
	const char *file;
	unsigned int line;
	bool is_symbol;
	size_t index; /* of the detail's counts, or of the symbol's row */
};

struct items {
	struct item *items;
	size_t nr_items, capacity;
};

static int add_item(struct items *items, const struct item *item)
{
	if (!op_grow(&items->items, &items->capacity, items->nr_items + 1))
		return opr_no_memory();
	items->items[items->nr_items++] = *item;
	return 0;
}

static int add_row(struct items *items, const struct opr_symbol_report *report, size_t index)
{
	const struct opr_symbol_row *row = &report->rows[index];
	int err = row->file ? add_item(items, &(struct item){ row->file, row->line, true, index }) : 0;

	for (size_t i = 0; i < row->nr_details && !err; i++) {
		const struct opr_detail *detail = &report->details[row->first_detail + i];
		struct item item = { .index = detail->counts };

		if (!row->symbols) { /* of a runtime: addresses are lines */
			item.file = row->file;
			item.line = (unsigned int)detail->vma;
			err = add_item(items, &item);
		} else if (opr_symbols_line(row->symbols, detail->vma, &item.file, &item.line)) {
			err = add_item(items, &item);
		}
	}
	return err;
}

static int compare_items(const void *left, const void *right)
{
	const struct item *a = left, *b = right;
	int order = a->file == b->file ? 0 : strcmp(a->file, b->file);

	if (order)
		return order;
	if (a->line != b->line)
		return a->line < b->line ? -1 : 1;
	return a->index < b->index ? -1 : a->index > b->index;
}

/* The next free line and symbol of the annotation are the first ones of the source. */
static struct opr_source *add_source(struct opr_annotation *annotation, const char *name, size_t nr_lines, size_t nr_symbols)
{
	struct opr_source *source;

	if (!op_grow(&annotation->sources, &annotation->capacity, annotation->nr_sources + 1))
		return NULL;
	source = &annotation->sources[annotation->nr_sources++];
	*source = (struct opr_source){
		.name = name, .lines = &annotation->lines[nr_lines], .symbols = &annotation->symbols[nr_symbols]
	};
	return opr_counts_add(&annotation->counts, annotation->nr_classes, &source->counts) ? source : NULL;
}

static int add_detail(struct opr_annotation *annotation, struct opr_source *source, unsigned int line, const uint64_t *counts)
{
	struct opr_source_line *last = source->nr_lines ? &source->lines[source->nr_lines - 1] : NULL;

	if (!last || last->line != line) {
		last = &source->lines[source->nr_lines++];
		last->line = line;
		if (!opr_counts_add(&annotation->counts, annotation->nr_classes, &last->counts))
			return opr_no_memory();
	}
	for (size_t i = 0; i < annotation->nr_classes; i++) {
		annotation->counts.values[last->counts + i] += counts[i];
		annotation->counts.values[source->counts + i] += counts[i];
	}
	return 0;
}

/* The items are sorted by file and line. */
static int add_sources(struct opr_annotation *annotation, const struct opr_symbol_report *report, const struct items *items)
{
	size_t nr_lines = 0, nr_symbols = 0;
	struct opr_source *source = NULL;
	int err = 0;

	annotation->lines = calloc(items->nr_items + 1, sizeof(*annotation->lines));
	annotation->symbols = calloc(items->nr_items + 1, sizeof(*annotation->symbols));
	if (!annotation->lines || !annotation->symbols)
		return opr_no_memory();
	for (size_t i = 0; i < items->nr_items && !err; i++) {
		const struct item *item = &items->items[i];

		if (!source || strcmp(source->name, item->file)) {
			nr_lines += source ? source->nr_lines : 0;
			nr_symbols += source ? source->nr_symbols : 0;
			source = add_source(annotation, item->file, nr_lines, nr_symbols);
			if (!source)
				return opr_no_memory();
		}
		if (!item->is_symbol)
			err = add_detail(annotation, source, item->line, &report->detail_counts.values[item->index]);
		else
			source->symbols[source->nr_symbols++] =
				(struct opr_source_symbol){ item->line, &report->rows[item->index] };
	}
	return err;
}

static int compare_sources(const void *left, const void *right, void *arg)
{
	const struct opr_source *a = left, *b = right;
	const uint64_t *values = arg;

	if (values[a->counts] != values[b->counts])
		return values[a->counts] > values[b->counts] ? -1 : 1;
	return strcmp(a->name, b->name);
}

int opr_annotation_make(struct opr_annotation *annotation, const struct opr_symbol_report *report)
{
	struct items items = { 0 };
	int err = 0;

	annotation->nr_classes = report->nr_classes;
	for (size_t i = 0; i < report->nr_rows && !err; i++)
		err = add_row(&items, report, i);
	if (err)
		goto out;
	if (items.nr_items)
		qsort(items.items, items.nr_items, sizeof(*items.items), compare_items);
	err = add_sources(annotation, report, &items);
	if (!err && annotation->nr_sources)
		qsort_r(annotation->sources, annotation->nr_sources, sizeof(*annotation->sources), compare_sources,
			annotation->counts.values);
out:
	free(items.items);
	return err;
}

const struct opr_source_line *opr_source_find_line(const struct opr_source *source, unsigned int line)
{
	size_t index = op_nr_leading(source->lines, source->nr_lines, row, row->line < line);

	return index < source->nr_lines && source->lines[index].line == line ? &source->lines[index] : NULL;
}

const struct opr_source_symbol *opr_source_find_symbol(const struct opr_source *source, unsigned int line)
{
	return source->symbols + op_nr_leading(source->symbols, source->nr_symbols, symbol, symbol->line < line);
}

void opr_annotation_free(struct opr_annotation *annotation)
{
	if (!annotation)
		return;
	free(annotation->sources);
	free(annotation->lines);
	free(annotation->symbols);
	free(annotation->counts.values);
	*annotation = (struct opr_annotation){ 0 };
}
