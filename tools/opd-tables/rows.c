/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/opd-tables/rows.h"

#include <errno.h>
#include <stdlib.h>

#include "libop/base/grow.h"

#define ROWS_MAX   (8u << 20)
#define RANGES_MAX (4u << 20)
/* Functions are padded to 16 bytes. Nothing runs there, so the rows before hold on. */
#define PADDING_MAX 15u

int opt_rows_begin(struct opt_rows *rows, uint64_t start, uint64_t end, bool *ret_is_code)
{
	*ret_is_code = false;
	for (size_t i = 0; i < rows->nr_segments && !*ret_is_code; i++) {
		const struct opt_segment *segment = &rows->segments[i];

		if (start < segment->address || end <= start || end - segment->address > segment->nr_bytes)
			continue;
		rows->address_bias = segment->address - segment->position;
		*ret_is_code = end - rows->address_bias <= UINT32_MAX;
	}
	if (!*ret_is_code)
		return 0;
	if (rows->nr_ranges == RANGES_MAX || rows->nr_rows == ROWS_MAX) {
		rows->is_part = true;
		*ret_is_code = false;
		return 0;
	}
	if (!op_grow(&rows->ranges, &rows->ranges_capacity, rows->nr_ranges + 1))
		return -ENOMEM;
	rows->ranges[rows->nr_ranges++] = (struct opt_range){
		.start = start - rows->address_bias,
		.end = end - rows->address_bias,
		.first_row = rows->nr_rows,
	};
	return 0;
}

/* Most of the time of a table goes into it: the multiplications do not wait for each other. */
static uint64_t hash_of(const struct op_row_rule *rule)
{
	uint64_t words[3];
	uint32_t rest;

	static_assert(sizeof(*rule) == sizeof(words) + sizeof(rest), "the hash is of the whole rule");
	memcpy(words, rule, sizeof(words));
	memcpy(&rest, (const char *)rule + sizeof(words), sizeof(rest));
	words[2] = (words[2] + rest) * 0xc2b2ae3d27d4eb4fu;
	return op_hash_u64(words[0] * 0x9e3779b97f4a7c15u ^ words[1] * 0xd6e8feb86659fd93u ^ words[2]);
}

/* The number of a rule, new or not; 0: there is no room for it, or it says nothing. */
static int number_of(struct opt_rows *rows, const struct op_row_rule *rule, uint16_t *ret_number)
{
	uint64_t hash = hash_of(rule);
	struct opt_rule *kept;
	int err;

	*ret_number = 0;
	if (rule->cfa_how == OP_CFA_NONE)
		return 0;
	for (struct op_hlink *link = op_htable_first(&rows->rules, hash); link; link = op_htable_next(link)) {
		kept = op_container_of(link, struct opt_rule, link);
		if (!memcmp(&kept->rule, rule, sizeof(*rule))) {
			*ret_number = kept->number;
			return 0;
		}
	}
	if (rows->nr_rules + 1 >= OP_ROW_RULES_MAX) {
		rows->is_part = true;
		return 0;
	}
	kept = malloc(sizeof(*kept));
	if (!kept)
		return -ENOMEM;
	kept->rule = *rule;
	kept->number = (uint16_t)++rows->nr_rules;
	err = op_htable_insert(&rows->rules, &kept->link, hash);
	if (err)
		free(kept);
	else
		*ret_number = kept->number;
	return err;
}

int opt_rows_add(struct opt_rows *rows, uint64_t address, const struct op_row_rule *rule)
{
	struct opt_range *range = &rows->ranges[rows->nr_ranges - 1];
	uint64_t start = address - rows->address_bias;
	struct opt_row *last = range->nr_rows ? &rows->rows[rows->nr_rows - 1] : NULL;
	uint16_t number;
	int err;

	if (start < range->start || start >= range->end)
		return 0;
	err = number_of(rows, rule, &number);
	if (err || (last && last->rule == number))
		return err;
	if (last && start <= last->start) { /* the program did not advance */
		last->rule = number;
		return 0;
	}
	if (rows->nr_rows == ROWS_MAX) {
		rows->is_part = true;
		return 0;
	}
	if (!op_grow(&rows->rows, &rows->rows_capacity, rows->nr_rows + 1))
		return -ENOMEM;
	rows->rows[rows->nr_rows++] = (struct opt_row){ .start = (uint32_t)start, .rule = number };
	range->nr_rows++;
	return 0;
}

void opt_rows_drop(struct opt_rows *rows)
{
	struct opt_range *range = &rows->ranges[rows->nr_ranges - 1];

	rows->nr_rows = range->first_row;
	range->nr_rows = 0;
}

static int compare_ranges(const void *left, const void *right)
{
	const struct opt_range *a = left, *b = right;

	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	return a->first_row < b->first_row ? -1 : a->first_row > b->first_row;
}

/* Of functions with one start the first one stays: .eh_frame comes before .debug_frame. */
static void sort_ranges(struct opt_rows *rows)
{
	size_t nr_kept = 0, nr_sorted = 0;

	/* Linkers sort them as a rule. */
	while (nr_sorted + 1 < rows->nr_ranges && compare_ranges(&rows->ranges[nr_sorted], &rows->ranges[nr_sorted + 1]) < 0)
		nr_sorted++;
	if (nr_sorted + 1 < rows->nr_ranges)
		qsort(rows->ranges, rows->nr_ranges, sizeof(*rows->ranges), compare_ranges);
	for (size_t i = 0; i < rows->nr_ranges; i++) {
		struct opt_range *range = &rows->ranges[i], *before = nr_kept ? &rows->ranges[nr_kept - 1] : NULL;

		if (before && before->start == range->start)
			continue;
		if (before && before->end > range->start)
			before->end = range->start;
		rows->ranges[nr_kept++] = *range;
	}
	rows->nr_ranges = nr_kept;
}

/* Adds a row of the table, unless it says what the row before says. */
static void put_row(struct opt_row *table, size_t *nr, uint32_t start, uint16_t rule)
{
	if (*nr && table[*nr - 1].rule == rule)
		return;
	if (*nr && table[*nr - 1].start == start)
		table[*nr - 1].rule = rule;
	else
		table[(*nr)++] = (struct opt_row){ .start = start, .rule = rule };
}

int opt_rows_finish(struct opt_rows *rows)
{
	struct opt_row *table;
	size_t nr = 0;

	sort_ranges(rows);
	/* up to two more for each function: where it begins without a row, and behind it */
	table = calloc(rows->nr_rows + 2 * rows->nr_ranges + 1, sizeof(*table));
	if (!table)
		return -ENOMEM;
	for (size_t i = 0; i < rows->nr_ranges; i++) {
		const struct opt_range *range = &rows->ranges[i];
		const struct opt_row *first = rows->rows ? &rows->rows[range->first_row] : NULL;
		uint64_t next = i + 1 < rows->nr_ranges ? range[1].start : UINT64_MAX;

		if (!range->nr_rows || first->start > range->start)
			put_row(table, &nr, (uint32_t)range->start, 0);
		for (size_t j = 0; j < range->nr_rows && first[j].start < range->end; j++)
			put_row(table, &nr, first[j].start, first[j].rule);
		if (next - range->end > PADDING_MAX)
			put_row(table, &nr, (uint32_t)range->end, 0);
	}
	free(rows->rows);
	rows->rows = table;
	rows->nr_rows = nr;
	return 0;
}

static void free_rule(struct op_hlink *link, void *arg OP_UNUSED)
{
	free(op_container_of(link, struct opt_rule, link));
}

void opt_rows_free(struct opt_rows *rows)
{
	if (!rows)
		return;
	op_htable_visit(&rows->rules, free_rule, NULL);
	op_htable_free(&rows->rules);
	free(rows->rows);
	free(rows->ranges);
	*rows = (struct opt_rows){ 0 };
}
