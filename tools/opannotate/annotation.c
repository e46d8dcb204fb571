/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/opannotate/annotation.h"

#include <errno.h>

#include "libop/base/htable.h"
#include "libop/base/grow.h"
#include "tools/common/log.h"

/* A detail or a symbol with its source line. */
struct item {
	size_t source;
	unsigned int line;
	size_t index; /* of the detail's counts, or of the symbol's row */
};

struct items {
	struct item *items;
	size_t nr_items, capacity;
};

struct name {
	struct op_hlink link;
	size_t source;
};

struct builder {
	struct opr_annotation *annotation;
	const struct opr_symbol_report *report;
	struct op_htable names;
	struct items details, symbols;
	size_t last; /* the source of the item before */
};

/* ---- names of sources ---- */

static bool lookup(const struct builder *builder, const char *name, uint64_t hash, size_t *ret_source)
{
	for (struct op_hlink *link = op_htable_first(&builder->names, hash); link; link = op_htable_next(link)) {
		const struct name *found = op_container_of(link, struct name, link);

		if (!strcmp(builder->annotation->sources[found->source].name, name)) {
			*ret_source = found->source;
			return true;
		}
	}
	return false;
}

static int add_source(struct builder *builder, const char *name, uint64_t hash, size_t *ret_source)
{
	struct opr_annotation *annotation = builder->annotation;
	struct name *entry = calloc(1, sizeof(*entry));
	char *copy = strdup(name);

	if (!entry || !copy || !op_grow(&annotation->sources, &annotation->capacity, annotation->nr_sources + 1))
		goto no_memory;
	entry->source = annotation->nr_sources;
	if (op_htable_insert(&builder->names, &entry->link, hash) < 0)
		goto no_memory;
	*ret_source = entry->source;
	annotation->sources[annotation->nr_sources++] = (struct opr_source){ .name = copy };
	return 0;
no_memory:
	free(entry);
	free(copy);
	return opr_no_memory();
}

static int find_source(struct builder *builder, const char *name, size_t *ret_source)
{
	const struct opr_annotation *annotation = builder->annotation;
	uint64_t hash;

	*ret_source = builder->last;
	if (builder->last < annotation->nr_sources && !strcmp(annotation->sources[builder->last].name, name))
		return 0;
	hash = op_hash_bytes(0, name, strlen(name));
	if (!lookup(builder, name, hash, ret_source)) {
		int err = add_source(builder, name, hash, ret_source);

		if (err)
			return err;
	}
	builder->last = *ret_source;
	return 0;
}

static void free_name(struct op_hlink *link, void *arg OP_UNUSED)
{
	free(op_container_of(link, struct name, link));
}

/* ---- collecting ---- */

static int add_item(struct builder *builder, struct items *items, const char *file, unsigned int line, size_t index)
{
	size_t source;
	int err = find_source(builder, file, &source);

	if (err)
		return err;
	if (!op_grow(&items->items, &items->capacity, items->nr_items + 1))
		return opr_no_memory();
	items->items[items->nr_items++] = (struct item){ source, line, index };
	return 0;
}

static int add_row(struct builder *builder, size_t index)
{
	const struct opr_symbol_report *report = builder->report;
	const struct opr_symbol_row *row = &report->rows[index];
	int err = row->file ? add_item(builder, &builder->symbols, row->file, row->line, index) : 0;

	for (size_t i = 0; i < row->nr_details && !err; i++) {
		const struct opr_detail *detail = &report->details[row->first_detail + i];
		const char *file;
		unsigned int line;

		if (opr_symbols_line(row->symbols, detail->vma, &file, &line))
			err = add_item(builder, &builder->details, file, line, detail->counts);
	}
	return err;
}

static int compare_items(const void *left, const void *right)
{
	const struct item *a = left, *b = right;

	if (a->source != b->source)
		return a->source < b->source ? -1 : 1;
	if (a->line != b->line)
		return a->line < b->line ? -1 : 1;
	return a->index < b->index ? -1 : a->index > b->index;
}

static void sort_items(struct items *items)
{
	if (items->nr_items)
		qsort(items->items, items->nr_items, sizeof(*items->items), compare_items);
}

/* ---- lines and symbols ---- */

static void add_counts(struct opr_annotation *annotation, size_t counts, const uint64_t *values)
{
	for (size_t i = 0; i < annotation->nr_classes; i++)
		annotation->counts.values[counts + i] += values[i];
}

static int make_lines(struct builder *builder)
{
	struct opr_annotation *annotation = builder->annotation;
	const struct item *items = builder->details.items;
	struct opr_source_line *line = NULL;
	size_t nr_lines = 0;

	annotation->lines = calloc(builder->details.nr_items + 1, sizeof(*annotation->lines));
	if (!annotation->lines)
		return opr_no_memory();
	for (size_t i = 0; i < builder->details.nr_items; i++) {
		struct opr_source *source = &annotation->sources[items[i].source];
		const uint64_t *values = &builder->report->detail_counts.values[items[i].index];

		if (!i || items[i - 1].source != items[i].source || items[i - 1].line != items[i].line) {
			line = &annotation->lines[nr_lines++];
			line->line = items[i].line;
			if (!opr_counts_add(&annotation->counts, annotation->nr_classes, &line->counts))
				return opr_no_memory();
			source->lines = source->nr_lines++ ? source->lines : line;
		}
		add_counts(annotation, line->counts, values);
		add_counts(annotation, source->counts, values);
	}
	return 0;
}

static int make_symbols(struct builder *builder)
{
	struct opr_annotation *annotation = builder->annotation;
	const struct item *items = builder->symbols.items;

	annotation->symbols = calloc(builder->symbols.nr_items + 1, sizeof(*annotation->symbols));
	if (!annotation->symbols)
		return opr_no_memory();
	for (size_t i = 0; i < builder->symbols.nr_items; i++) {
		struct opr_source *source = &annotation->sources[items[i].source];

		annotation->symbols[i] = (struct opr_source_symbol){ items[i].line, &builder->report->rows[items[i].index] };
		source->symbols = source->nr_symbols++ ? source->symbols : &annotation->symbols[i];
	}
	return 0;
}

static int compare_sources(const void *left, const void *right, void *arg)
{
	const struct opr_source *a = left, *b = right;
	const uint64_t *values = arg;

	if (values[a->counts] != values[b->counts])
		return values[a->counts] > values[b->counts] ? -1 : 1;
	return strcmp(a->name, b->name);
}

static int build(struct builder *builder)
{
	struct opr_annotation *annotation = builder->annotation;
	int err = 0;

	for (size_t i = 0; i < builder->report->nr_rows && !err; i++)
		err = add_row(builder, i);
	for (size_t i = 0; i < annotation->nr_sources && !err; i++)
		if (!opr_counts_add(&annotation->counts, annotation->nr_classes, &annotation->sources[i].counts))
			err = opr_no_memory();
	sort_items(&builder->details);
	sort_items(&builder->symbols);
	if (!err)
		err = make_lines(builder);
	if (!err)
		err = make_symbols(builder);
	if (!err && annotation->nr_sources)
		qsort_r(annotation->sources, annotation->nr_sources, sizeof(*annotation->sources), compare_sources,
			annotation->counts.values);
	return err;
}

int opr_annotation_make(struct opr_annotation *annotation, const struct opr_symbol_report *report)
{
	struct builder builder = { .annotation = annotation, .report = report };
	int err;

	annotation->nr_classes = report->nr_classes;
	err = build(&builder);
	free(builder.details.items);
	free(builder.symbols.items);
	op_htable_visit(&builder.names, free_name, NULL);
	op_htable_free(&builder.names);
	return err;
}

/* ---- looking up ---- */

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
	for (size_t i = 0; i < annotation->nr_sources; i++)
		free(annotation->sources[i].name);
	free(annotation->sources);
	free(annotation->lines);
	free(annotation->symbols);
	free(annotation->counts.values);
	*annotation = (struct opr_annotation){ 0 };
}
