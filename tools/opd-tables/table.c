/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/opd-tables/table.h"

#include <errno.h>
#include <stdlib.h>
#include <zstd.h>

#include "libop/base/sys.h"
#include "tools/opd-tables/functions.h"
#include "tools/opd-tables/words.h"

#define ZSTD_LEVEL 3

struct table {
	struct opt_image image;
	struct opt_rows rows;
	struct opt_functions functions;
	struct op_text packed_names;
	struct opt_words words;
	bool is_whole;
};

static int pack_names(struct table *table)
{
	const struct op_text *names = &table->functions.names;
	size_t room = ZSTD_compressBound(names->length), nr_bytes;
	char *packed;

	if (!names->length)
		return 0;
	packed = malloc(room);
	if (!packed)
		return -ENOMEM;
	nr_bytes = ZSTD_compress(packed, room, names->data, names->length, ZSTD_LEVEL);
	if (ZSTD_isError(nr_bytes)) {
		free(packed);
		return -EIO;
	}
	table->packed_names = (struct op_text){ .data = packed, .length = nr_bytes, .capacity = room };
	return 0;
}

static int write_header(const struct table *table, int fd)
{
	const struct opt_rows *rows = &table->rows;
	bool is_part = !table->is_whole || rows->is_part || table->functions.is_part;
	struct op_row_table_header header = {
		.machine = htole16(table->image.machine),
		.build_id_bytes = table->image.build_id.nr_bytes,
		.flags = OP_ROW_TABLE_MAKER << OP_ROW_TABLE_MAKER_SHIFT | (is_part ? OP_ROW_TABLE_IS_PART : 0) |
			 (table->words.nr_words ? OP_ROW_TABLE_HAS_WORDS : 0),
		.nr_rows = htole32((uint32_t)rows->nr_rows),
		.nr_rules = htole32((uint32_t)rows->nr_rules + 1),
		.nr_functions = htole32((uint32_t)table->functions.nr_functions),
		.nr_packed_bytes = htole32((uint32_t)table->packed_names.length),
		.nr_name_bytes = htole32((uint32_t)table->functions.names.length),
	};
	uint64_t nr_bytes = sizeof(header) + rows->nr_rows * (sizeof(uint32_t) + sizeof(uint16_t)) +
			    (rows->nr_rules + 1) * sizeof(struct op_row_rule) +
			    table->functions.nr_functions * sizeof(struct op_row_function) + table->packed_names.length +
			    table->words.nr_words * sizeof(struct op_row_word);

	if (nr_bytes > OP_ROW_TABLE_BYTES_MAX)
		return -EFBIG;
	memcpy(header.magic, OP_ROW_TABLE_MAGIC, OP_ROW_TABLE_MAGIC_BYTES);
	memcpy(header.build_id, table->image.build_id.bytes, table->image.build_id.nr_bytes);
	header.nr_bytes = htole32((uint32_t)nr_bytes);
	return op_sys_write_all(fd, &header, sizeof(header));
}

static void put_rule(struct op_hlink *link, void *arg)
{
	const struct opt_rule *rule = op_container_of(link, struct opt_rule, link);
	struct op_row_rule *rules = arg, *put = &rules[rule->number];

	*put = rule->rule;
	put->cfa_offset = (int32_t)htole32((uint32_t)put->cfa_offset);
	put->cfa_more = (int32_t)htole32((uint32_t)put->cfa_more);
	put->ra_offset = (int32_t)htole32((uint32_t)put->ra_offset);
	put->fp_offset = (int32_t)htole32((uint32_t)put->fp_offset);
	put->bx_offset = (int32_t)htole32((uint32_t)put->bx_offset);
}

static int write_rules(struct opt_rows *rows, int fd)
{
	struct op_row_rule *rules = calloc(rows->nr_rules + 1, sizeof(*rules));
	int err = rules ? 0 : -ENOMEM;

	if (!err) {
		op_htable_visit(&rows->rules, put_rule, rules);
		err = op_sys_write_all(fd, rules, (rows->nr_rules + 1) * sizeof(*rules));
	}
	free(rules);
	return err;
}

/* One column of the rows: their starts, or the numbers of their rules. */
static int write_column(const struct opt_rows *rows, bool is_start, int fd)
{
	struct op_text bytes = { 0 };
	int err;

	for (size_t i = 0; i < rows->nr_rows; i++) {
		uint32_t start = htole32(rows->rows[i].start);
		uint16_t rule = htole16(rows->rows[i].rule);

		if (is_start)
			op_text_add_bytes(&bytes, &start, sizeof(start));
		else
			op_text_add_bytes(&bytes, &rule, sizeof(rule));
	}
	err = bytes.failed ? -ENOMEM : op_sys_write_all(fd, bytes.data, bytes.length);
	op_text_free(&bytes);
	return err;
}

static int write_functions(const struct opt_functions *functions, int fd)
{
	struct op_text bytes = { 0 };
	int err;

	for (size_t i = 0; i < functions->nr_functions; i++) {
		const struct opt_function *function = &functions->functions[i];
		struct op_row_function row = {
			.start = htole32((uint32_t)function->start),
			.nr_bytes = htole32((uint32_t)(function->end - function->start)),
			.name = htole32(function->name),
		};

		op_text_add_bytes(&bytes, &row, sizeof(row));
	}
	err = bytes.failed ? -ENOMEM : op_sys_write_all(fd, bytes.data, bytes.length);
	op_text_free(&bytes);
	return err;
}

static int read_image(struct table *table)
{
	int err;

	table->image.has_go = opr_go_find((const uint8_t *)table->image.bytes, table->image.nr_bytes, &table->image.go);
	err = opt_image_read_rows(&table->image, &table->rows, &table->is_whole);
	if (err)
		return err;
	opt_words_read(&table->words, &table->image);
	err = opt_functions_read(&table->functions, &table->image, &table->rows);
	if (err)
		return err;
	err = opt_rows_finish(&table->rows);
	if (err)
		return err;
	return table->rows.nr_rows || table->functions.nr_functions ? pack_names(table) : -ENODATA;
}

static int write_table(struct table *table, int fd)
{
	int err = write_header(table, fd);

	if (err)
		return err;
	err = write_column(&table->rows, true, fd);
	if (err)
		return err;
	err = write_rules(&table->rows, fd);
	if (err)
		return err;
	err = write_functions(&table->functions, fd);
	if (!err)
		err = write_column(&table->rows, false, fd);
	if (!err)
		err = op_sys_write_all(fd, table->packed_names.data, table->packed_names.length);
	return err ? err : op_sys_write_all(fd, table->words.words, table->words.nr_words * sizeof(struct op_row_word));
}

int opt_table_make(int image_fd, int table_fd, bool only_header)
{
	struct table table = { .is_whole = !only_header };
	int err = opt_image_open(&table.image, image_fd);

	if (!err && !only_header)
		err = read_image(&table);

	if (!err)
		err = write_table(&table, table_fd);
	op_text_free(&table.packed_names);
	opt_functions_free(&table.functions);
	opt_rows_free(&table.rows);
	opt_image_close(&table.image);
	return err;
}
