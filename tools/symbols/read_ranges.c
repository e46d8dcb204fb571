/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Functions without a name: those ranges of .eh_frame that no symbol has. */
#include <errno.h>
#include <inttypes.h>

#include "tools/symbols/symbol_sources.h"

#define NAME_BYTES 32

/* The parts of ranges that become symbols. */
struct filling {
	struct opr_symbols *symbols;
	size_t nr_named; /* the first symbols, sorted; parts stand behind them */
	size_t next;     /* the first of them that does not end before `at` */
	uint64_t at;     /* positions before it are done */
};

/* A symbol without code has no samples, but it would stand where a part begins. */
static void drop_empty(struct opr_symbols *symbols)
{
	size_t nr_kept = 0;

	for (size_t i = 0; i < symbols->nr_symbols; i++)
		if (symbols->symbols[i].size)
			symbols->symbols[nr_kept++] = symbols->symbols[i];
	symbols->nr_symbols = nr_kept;
}

/* In a libc it is a local symbol, which stripped files do not have. */
#define SIGNAL_NAME "__restore_rt"

static int add_part(struct opr_symbols *symbols, uint64_t start, uint64_t end, bool is_signal, uint32_t section)
{
	uint64_t vma = start - symbols->sections[section].start + symbols->sections[section].vma;
	char name[NAME_BYTES];
	struct opr_symbol symbol = {
		.start = start, .size = end - start, .vma = vma, .name = name, .section = section, .is_unnamed = true
	};

	if (is_signal) {
		symbol.name = SIGNAL_NAME;
		symbol.is_unnamed = false;
	}
	snprintf(name, sizeof(name), "[0x%" PRIx64 "]", vma);
	return opr_symbols_add(symbols, &symbol);
}

/* Adds the parts of start to end, exclusive, that no symbol and no earlier range has. */
static int fill_range(struct filling *filling, uint64_t start, uint64_t end, bool is_signal, uint32_t section)
{
	struct opr_symbols *symbols = filling->symbols;
	int err = 0;

	filling->at = op_max_u64(filling->at, start);
	while (filling->at < end && !err) {
		const struct opr_symbol *next = filling->next < filling->nr_named ? &symbols->symbols[filling->next] : NULL;
		uint64_t part_end = end, next_at = end;

		if (next && next->start + next->size <= filling->at) {
			filling->next++;
			continue;
		}
		if (next && next->start < end) {
			part_end = next->start;
			next_at = next->start + next->size;
		}
		if (part_end > filling->at) /* adding moves the symbols */
			err = add_part(symbols, filling->at, part_end, is_signal, section);
		filling->at = next_at;
	}
	return err;
}

static int compare_symbols(const void *left, const void *right)
{
	const struct opr_symbol *a = left, *b = right;

	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	return a->is_unnamed - b->is_unnamed;
}

/* Sections that lie one over the other, in a damaged file, may have parts with one start. */
static void sort_parts(struct opr_symbols *symbols)
{
	size_t nr_kept = 0;

	qsort(symbols->symbols, symbols->nr_symbols, sizeof(*symbols->symbols), compare_symbols);
	for (size_t i = 0; i < symbols->nr_symbols; i++)
		if (!nr_kept || symbols->symbols[nr_kept - 1].start != symbols->symbols[i].start)
			symbols->symbols[nr_kept++] = symbols->symbols[i];
	symbols->nr_symbols = nr_kept;
}

/*
 * The ranges are sorted by address. Positions have another order where sections lie in the file in
 * another order, so each section is filled alone.
 */
static int fill_section(struct opr_symbols *symbols, const struct opr_ranges *ranges, uint32_t index, size_t nr_named)
{
	const struct opr_section *section = &symbols->sections[index];
	uint64_t vma_end = section->vma + (section->end - section->start);
	struct filling filling = { .symbols = symbols, .nr_named = nr_named, .at = section->start };
	int err = 0;

	filling.next = op_nr_leading(symbols->symbols, nr_named, symbol, symbol->start + symbol->size <= section->start);
	for (size_t i = op_nr_leading(ranges->ranges, ranges->nr_ranges, range, range->start < section->vma);
	     i < ranges->nr_ranges && ranges->ranges[i].start < vma_end && !err; i++)
		err = fill_range(&filling, ranges->ranges[i].start - section->vma + section->start,
				 op_min_u64(ranges->ranges[i].end, vma_end) - section->vma + section->start,
				 ranges->ranges[i].is_signal, index);
	return err;
}

int opr_symbols_add_ranges(struct opr_symbols *symbols, const struct opr_ranges *ranges)
{
	size_t nr_named;
	int err = 0;

	drop_empty(symbols);
	nr_named = symbols->nr_symbols;
	for (uint32_t i = 0; i < symbols->nr_sections && !err && ranges->nr_ranges; i++)
		if (symbols->sections[i].vma != OPR_NO_VMA)
			err = fill_section(symbols, ranges, i, nr_named);
	if (!err && symbols->nr_symbols > nr_named)
		sort_parts(symbols);
	return err;
}
