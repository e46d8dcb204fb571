/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/unwind/row_table.h"

#include <errno.h>
#include <string.h>

static_assert(sizeof(struct op_row_table_header) == 56, "the layout of the file");
static_assert(sizeof(struct op_row_rule) == 28 && sizeof(struct op_row_function) == 12 && sizeof(struct op_row_word) == 16,
	      "the layout of the file");

static bool is_rule(const struct op_row_rule *rule)
{
	return rule->cfa_how < OP_NR_CFA && rule->ra_how < OP_NR_VALUES && rule->fp_how < OP_NR_VALUES &&
	       rule->bx_how < OP_NR_VALUES && rule->cfa_reg < OP_UNWIND_REGISTERS &&
	       rule->ra_reg < OP_UNWIND_REGISTERS && rule->fp_reg < OP_UNWIND_REGISTERS;
}

static bool are_rows(const struct op_row_table *table, size_t nr_rules)
{
	for (size_t i = 0; i < table->nr_rows; i++)
		if (le16toh(table->rules_of[i]) >= nr_rules || (i && le32toh(table->starts[i]) <= le32toh(table->starts[i - 1])))
			return false;
	for (size_t i = 0; i < nr_rules; i++)
		if (!is_rule(&table->rules[i]))
			return false;
	return true;
}

static bool are_functions(const struct op_row_table *table, size_t nr_name_bytes)
{
	uint64_t end = 0;

	for (size_t i = 0; i < table->nr_functions; i++) {
		const struct op_row_function *function = &table->functions[i];
		uint32_t name = le32toh(function->name);

		if (le32toh(function->start) < end || (name != OP_ROW_NO_NAME && name >= nr_name_bytes))
			return false;
		end = (uint64_t)le32toh(function->start) + le32toh(function->nr_bytes);
	}
	return true;
}

/* How many words stand at the end, behind `before` bytes. False: the length is not right. */
static bool count_words(const struct op_row_table_header *header, uint64_t before, size_t nr_bytes, size_t *ret_nr_words)
{
	uint64_t nr_word_bytes = nr_bytes - before;

	*ret_nr_words = nr_word_bytes / sizeof(struct op_row_word);
	if (before > nr_bytes || nr_word_bytes % sizeof(struct op_row_word))
		return false;
	return header->flags & OP_ROW_TABLE_HAS_WORDS ? *ret_nr_words && *ret_nr_words <= OP_ROW_WORDS_MAX : !*ret_nr_words;
}

static void slice(struct op_row_table *table)
{
	size_t nr = 0;

	if (table->nr_rows)
		while (le32toh(table->starts[table->nr_rows - 1]) >> table->slice_shift >= OP_ROW_SLICES)
			table->slice_shift++;
	for (uint32_t i = 0; i <= OP_ROW_SLICES; i++) {
		while (nr < table->nr_rows && le32toh(table->starts[nr]) >> table->slice_shift < i)
			nr++;
		table->slices[i] = (uint32_t)nr;
	}
}

int op_row_table_open(struct op_row_table *table, const void *bytes, size_t nr_bytes)
{
	const struct op_row_table_header *header = bytes;
	const char *at = (const char *)bytes + sizeof(*header);
	struct op_row_table opened = { .header = header };
	uint64_t nr_rules, nr_packed, whole;

	if (nr_bytes < sizeof(*header) || nr_bytes > OP_ROW_TABLE_BYTES_MAX ||
	    memcmp(header->magic, OP_ROW_TABLE_MAGIC, OP_ROW_TABLE_MAGIC_BYTES) != 0)
		return -EBADMSG;
	opened.nr_rows = le32toh(header->nr_rows);
	opened.nr_functions = le32toh(header->nr_functions);
	nr_rules = le32toh(header->nr_rules);
	nr_packed = le32toh(header->nr_packed_bytes);
	whole = sizeof(*header) + opened.nr_rows * (uint64_t)(sizeof(uint32_t) + sizeof(uint16_t)) +
		nr_rules * sizeof(struct op_row_rule) + opened.nr_functions * (uint64_t)sizeof(struct op_row_function) + nr_packed;
	if (!count_words(header, whole, nr_bytes, &opened.nr_words) || le32toh(header->nr_bytes) != nr_bytes ||
	    header->build_id_bytes > OP_BUILD_ID_BYTES_MAX ||
	    nr_rules > OP_ROW_RULES_MAX || le32toh(header->nr_name_bytes) > OP_ROW_NAME_BYTES_MAX)
		return -EBADMSG;
	opened.starts = (const void *)at;
	at += opened.nr_rows * sizeof(uint32_t);
	opened.rules = (const void *)at;
	at += nr_rules * sizeof(struct op_row_rule);
	opened.functions = (const void *)at;
	at += opened.nr_functions * sizeof(struct op_row_function);
	opened.rules_of = (const void *)at;
	at += opened.nr_rows * sizeof(uint16_t);
	opened.packed_names = at;
	opened.words = at + nr_packed;
	if (!are_rows(&opened, nr_rules) || !are_functions(&opened, le32toh(header->nr_name_bytes)))
		return -EBADMSG;
	slice(&opened);
	*table = opened;
	return 0;
}

bool op_row_table_word(const struct op_row_table *table, uint32_t word, uint64_t *ret_value)
{
	for (size_t i = 0; i < table->nr_words; i++) {
		struct op_row_word row;

		memcpy(&row, (const char *)table->words + i * sizeof(row), sizeof(row));
		if (le32toh(row.word) != word)
			continue;
		*ret_value = le64toh(row.value);
		return true;
	}
	return false;
}

const struct op_row_function *op_row_table_function(const struct op_row_table *table, uint64_t position)
{
	size_t nr = op_nr_leading(table->functions, table->nr_functions, row, le32toh(row->start) <= position);
	const struct op_row_function *last = nr ? &table->functions[nr - 1] : NULL;

	return last && position - le32toh(last->start) < le32toh(last->nr_bytes) ? last : NULL;
}
