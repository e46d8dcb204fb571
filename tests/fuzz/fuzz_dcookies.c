/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Fuzz target for the table of images. Input: the file dcookies. Every row that was read can be
 * written and read again unchanged, each number and name belongs to one image, and the next image
 * gets a new number and name.
 */
#include "tests/fuzz/fuzz_dir.h"

#include <errno.h>

#include "libop/session/dcookie.h"
#include "libop/base/text.h"

#define ROWS_MAX 8 /* of an input, that are written and read again */

struct look {
	struct op_dcookie_table *table;
	size_t nr_rows;
};

static struct op_dcookie_table *read_table(struct op_dcookie_reading *reading, int *ret_err)
{
	struct op_dcookie_table *table = op_dcookie_table_new();

	fuzz_check(table);
	*ret_err = op_dcookie_table_read(table, fuzz_dir_open(), OP_DCOOKIE_FILE, reading);
	return table;
}

static void format_only(struct op_dcookie_row *row, void *arg)
{
	op_dcookie_format_row(row, arg);
}

/* The row alone in a file. */
static void write_and_read(const struct op_dcookie_row *row)
{
	struct op_text line = { 0 }, again = { 0 }, file = { 0 };
	struct op_dcookie_reading reading;
	struct op_dcookie_table *table;
	int err;

	op_dcookie_format_row(row, &line);
	op_dcookie_format_head(&file);
	op_text_add(&file, op_text_get(&line));
	fuzz_check(fuzz_dir_write(OP_DCOOKIE_FILE, file.data, file.length));
	table = read_table(&reading, &err);
	fuzz_check(!err && !reading.nr_bad && !reading.is_torn && reading.nr_rows == 1 && op_dcookie_count(table) == 1);
	op_dcookie_visit(table, format_only, &again);
	fuzz_check(!strcmp(op_text_get(&line), op_text_get(&again)));
	op_dcookie_table_free(table);
	op_text_free(&line);
	op_text_free(&again);
	op_text_free(&file);
}

static void look_at(struct op_dcookie_row *row, void *arg)
{
	struct look *look = arg;
	struct op_image_name name = op_dcookie_name(row);
	uint64_t owner = op_dcookie_by_name(look->table, &name);

	fuzz_check(row->name && op_dcookie_row(look->table, row->cookie) == row);
	/* Two of the kernel may have the same. */
	fuzz_check(owner == row->cookie || (owner != OP_DCOOKIE_NONE && name.kind == OP_IMAGE_KERNEL));
	if (look->nr_rows++ < ROWS_MAX)
		write_and_read(row);
}

static void add_image(struct op_dcookie_table *table)
{
	struct op_image_id id = { .name = { .kind = OP_IMAGE_FILE, .name = "/bin/a" }, .inode = 1, .bytes = 12345, .mtime_ns = 77 };
	bool is_known = op_dcookie_find(table, &id) != OP_DCOOKIE_NONE;
	size_t nr_rows = op_dcookie_count(table);
	uint64_t cookie = op_dcookie_get(table, &id);
	struct op_image_name name;

	fuzz_check(cookie != OP_DCOOKIE_NONE && op_dcookie_count(table) == nr_rows + !is_known);
	fuzz_check(!op_dcookie_count_in(table, cookie, 1));
	name = op_dcookie_name(op_dcookie_row(table, cookie));
	fuzz_check(op_dcookie_by_name(table, &name) == cookie);
	op_dcookie_uncount_all(table);
	fuzz_check(!op_dcookie_nr_counted(table));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t nr_bytes)
{
	struct op_dcookie_reading reading;
	struct look look = { 0 };
	int err;

	fuzz_check(fuzz_dir_write(OP_DCOOKIE_FILE, bytes, nr_bytes));
	look.table = read_table(&reading, &err);
	fuzz_check(!err || (err == -EBADMSG && reading.complaint));
	fuzz_check(reading.nr_bytes <= nr_bytes && !reading.nr_bad == !reading.complaint);
	op_dcookie_visit(look.table, look_at, &look);
	fuzz_check(look.nr_rows <= reading.nr_rows);
	if (!err)
		add_image(look.table);
	free(reading.complaint);
	op_dcookie_table_free(look.table);
	return 0;
}
