/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/symbols/line_table.h"

#include <errno.h>

#include "libop/base/text.h"
#include "tools/common/child.h"
#include "tools/symbols/debug_damage.h"
#include "tools/symbols/lines.h"

#define HAS_DEBUG_INFO 1 /* as the address of the last row */

struct request {
	const char *path, *name;
	struct opr_symbol_options options;
	const uint64_t *vmas;
	size_t nr_vmas;
};

/* ---- in the child ---- */

static uint32_t add_string(struct op_text *strings, const char *string)
{
	size_t at = strings->length;

	op_text_add(strings, string);
	op_text_add_bytes(strings, "", 1);
	return (uint32_t)at;
}

/* What is wrong, and the file, in the end of the strings; `file` of the last row says where. */
static void add_damage(const struct opr_lines *lines, bool found, struct op_text *strings, struct opr_line_row *end)
{
	const char *path, *damage = opr_lines_damage(lines, found, &path);

	end->vma = HAS_DEBUG_INFO;
	if (!damage)
		return;
	end->file = 1 + add_string(strings, damage);
	add_string(strings, path);
}

/* A row for each address that has a line, then one without a line, then the strings; neighbours share the string of their file. */
static int work(FILE *out, void *arg)
{
	const struct request *request = arg;
	struct opr_symbols symbols = { 0 };
	struct op_text strings = { 0 };
	struct opr_line_row row = { 0 }, end = { 0 };
	int err = opr_symbols_read_bfd(&symbols, request->path, request->name, &request->options);

	opr_debug_listen();
	for (size_t i = 0; i < request->nr_vmas && !err; i++) {
		const char *file;
		unsigned int line;

		if (!opr_symbols_line(&symbols, request->vmas[i], &file, &line))
			continue;
		if (!strings.length || strcmp(op_text_get(&strings) + row.file, file))
			row.file = add_string(&strings, file);
		row.vma = request->vmas[i];
		row.line = line;
		fwrite(&row, sizeof(row), 1, out);
		err = strings.failed ? -ENOMEM : strings.length > UINT32_MAX ? -EOVERFLOW : 0;
	}
	if (!err && symbols.lines)
		add_damage(symbols.lines, row.line, &strings, &end);
	fwrite(&end, sizeof(end), 1, out);
	fwrite(op_text_get(&strings), 1, strings.length, out);
	return err ? err : strings.failed ? -ENOMEM : 0;
}

/* ---- in the parent ---- */

/* `end` is the last row, nr_bytes those of the strings, which have a NUL behind them. */
static int take_damage(struct opr_line_table *table, const struct opr_line_row *end, size_t nr_bytes)
{
	size_t at = end->file - 1u, length;

	table->has_debug_info = end->vma == HAS_DEBUG_INFO;
	if (!end->file)
		return 0;
	if (at >= nr_bytes)
		return -EBADMSG;
	length = strlen(table->strings + at);
	if (at + length + 1 >= nr_bytes)
		return -EBADMSG;
	table->damage = table->strings + at;
	table->damaged = table->damage + length + 1;
	return 0;
}

static int read_table(const struct opr_child_result *result, struct opr_line_table *table)
{
	const struct opr_line_row *rows = (const void *)result->bytes;
	size_t nr_rows = 0, nr_max = result->nr_bytes / sizeof(*rows), nr_left;

	while (nr_rows < nr_max && rows[nr_rows].line)
		nr_rows++;
	if (nr_rows == nr_max)
		return -EBADMSG;
	nr_left = result->nr_bytes - (nr_rows + 1) * sizeof(*rows);
	for (size_t i = 0; i < nr_rows; i++)
		if (rows[i].file >= nr_left || (i && rows[i - 1].vma > rows[i].vma))
			return -EBADMSG;
	table->rows = calloc(nr_rows + 1, sizeof(*rows));
	table->strings = malloc(nr_left + 1);
	if (!table->rows || !table->strings)
		return -ENOMEM;
	memcpy(table->rows, rows, nr_rows * sizeof(*rows));
	memcpy(table->strings, rows + nr_rows + 1, nr_left);
	table->strings[nr_left] = '\0';
	table->nr_rows = nr_rows;
	return take_damage(table, &rows[nr_rows], nr_left);
}

static int compare_vmas(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

	return a < b ? -1 : a > b;
}

int opr_line_table_make(const char *path, const char *name, const struct opr_symbol_options *options, uint64_t *vmas,
			size_t nr_vmas, struct opr_line_table **ret_table)
{
	struct request request = { .path = path, .name = name, .options = *options, .vmas = vmas, .nr_vmas = nr_vmas };
	struct opr_line_table *table = calloc(1, sizeof(*table));
	struct opr_child_result result = { 0 };
	struct opr_child child;
	int err = table ? 0 : -ENOMEM;

	if (nr_vmas)
		qsort(vmas, nr_vmas, sizeof(*vmas), compare_vmas);
	request.options.lines = true;
	if (!err)
		err = opr_child_start(&child, work, &request);
	if (!err)
		err = opr_child_wait(&child, &result);
	if (!err)
		err = result.err ? result.err : read_table(&result, table);
	opr_child_result_free(&result);
	if (err)
		opr_line_table_free(table);
	else
		*ret_table = table;
	return err;
}

bool opr_line_table_find(const struct opr_line_table *table, uint64_t vma, const char **ret_file, unsigned int *ret_line)
{
	size_t index = op_nr_leading(table->rows, table->nr_rows, row, row->vma < vma);

	if (index == table->nr_rows || table->rows[index].vma != vma)
		return false;
	*ret_file = table->strings + table->rows[index].file;
	*ret_line = table->rows[index].line;
	return true;
}

void opr_line_table_free(struct opr_line_table *table)
{
	if (!table)
		return;
	free(table->rows);
	free(table->strings);
	free(table);
}
