/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/symbols.h"

#include <errno.h>
#include <libiberty/demangle.h>

#include "libop/text.h"
#include "tools/symbols_lines.h"

#define INITIAL_CAPACITY 256

static const char *keep_string(struct opr_symbols *symbols, char *string)
{
	char **bigger = symbols->strings;

	if (!string)
		return NULL;
	if (symbols->nr_strings == symbols->strings_capacity) {
		size_t capacity = symbols->strings_capacity ? 2 * symbols->strings_capacity : INITIAL_CAPACITY;

		bigger = reallocarray(bigger, capacity, sizeof(*bigger));
		if (!bigger) {
			free(string);
			return NULL;
		}
		symbols->strings = bigger;
		symbols->strings_capacity = capacity;
	}
	return symbols->strings[symbols->nr_strings++] = string;
}

int opr_symbols_add(struct opr_symbols *symbols, const struct opr_symbol *symbol)
{
	const char *name = keep_string(symbols, strdup(symbol->name));
	struct opr_symbol *bigger = symbols->symbols;

	if (!name)
		return -ENOMEM;
	if (symbols->nr_symbols == symbols->capacity) {
		size_t capacity = symbols->capacity ? 2 * symbols->capacity : INITIAL_CAPACITY;

		bigger = reallocarray(bigger, capacity, sizeof(*bigger));
		if (!bigger)
			return -ENOMEM;
		symbols->symbols = bigger;
		symbols->capacity = capacity;
	}
	bigger[symbols->nr_symbols] = *symbol;
	bigger[symbols->nr_symbols].name = name;
	bigger[symbols->nr_symbols].order = (uint32_t)symbols->nr_symbols;
	symbols->nr_symbols++;
	return 0;
}

uint32_t opr_symbol_rank(const char *name, bool global, bool weak)
{
	return (uint32_t)!strcmp(name, "Letext") << 4 | (uint32_t)!strncmp(name, "??", 2) << 3 | (uint32_t)!global << 2 |
	       (uint32_t)(name[0] == '_') << 1 | (uint32_t)weak;
}

static int compare_symbols(const void *left, const void *right)
{
	const struct opr_symbol *a = left, *b = right;

	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	return a->order < b->order ? -1 : a->order > b->order;
}

static void keep_best(struct opr_symbols *symbols)
{
	size_t nr_kept = 0;

	for (size_t i = 0; i < symbols->nr_symbols; i++)
		if (!nr_kept || symbols->symbols[nr_kept - 1].start != symbols->symbols[i].start)
			symbols->symbols[nr_kept++] = symbols->symbols[i];
	symbols->nr_symbols = nr_kept;
}

void opr_symbols_finish(struct opr_symbols *symbols, const struct opr_section *sections, uint64_t last_end)
{
	if (!symbols->nr_symbols)
		return;
	qsort(symbols->symbols, symbols->nr_symbols, sizeof(*symbols->symbols), compare_symbols);
	keep_best(symbols);
	for (size_t i = 0; i < symbols->nr_symbols; i++) {
		struct opr_symbol *symbol = &symbols->symbols[i];
		const struct opr_symbol *next = i + 1 < symbols->nr_symbols ? symbol + 1 : NULL;
		uint64_t end = !next ? last_end : next->section == symbol->section ? next->start : sections[symbol->section].end;

		symbol->size = end > symbol->start ? end - symbol->start : 0;
	}
}

static char *describe_anonymous(const char *name)
{
	struct op_text text = { 0 };

	op_text_printf(&text, "anonymous symbol from section %s", name + 2);
	return op_text_steal(&text);
}

int opr_symbols_demangle(struct opr_symbols *symbols, bool demangle)
{
	for (size_t i = 0; i < symbols->nr_symbols; i++) {
		struct opr_symbol *symbol = &symbols->symbols[i];
		bool anonymous = !strncmp(symbol->name, "??", 2);
		char *text = anonymous  ? describe_anonymous(symbol->name)
			     : demangle ? cplus_demangle(symbol->name, DMGL_PARAMS | DMGL_ANSI)
					: NULL;

		symbol->shown = text ? keep_string(symbols, text) : symbol->name;
		if (!symbol->shown)
			return -ENOMEM;
	}
	return 0;
}

const struct opr_symbol *opr_symbols_find(const struct opr_symbols *symbols, uint64_t position)
{
	size_t low = 0, high = symbols->nr_symbols;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (symbols->symbols[middle].start <= position)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low || position - symbols->symbols[low - 1].start >= symbols->symbols[low - 1].size)
		return NULL;
	return &symbols->symbols[low - 1];
}

bool opr_symbols_line(const struct opr_symbols *symbols, uint64_t vma, const char **ret_file, unsigned int *ret_line)
{
	return symbols->lines && opr_lines_find(symbols->lines, vma, ret_file, ret_line);
}

void opr_symbols_free(struct opr_symbols *symbols)
{
	if (!symbols)
		return;
	for (size_t i = 0; i < symbols->nr_strings; i++)
		free(symbols->strings[i]);
	free(symbols->strings);
	free(symbols->symbols);
	opr_lines_free(symbols->lines);
	*symbols = (struct opr_symbols){ 0 };
}
