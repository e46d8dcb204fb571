/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The profile of llvm-bolt without branches (llvm-project: bolt/include/bolt/Profile/DataReader.h).
 * The first line is "no_lbr EVENT". Each other line has the samples at an address:
 * "1 FUNCTION OFFSET COUNT", where OFFSET is hexadecimal and counts from the start of the function.
 *
 * BOLT numbers local functions of the same name by their addresses: "name/1", "name/2".
 */
#include "tools/export/bolt.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>

#include "tools/common/log.h"

static size_t number_of_local(const struct opr_symbol_row *row)
{
	size_t number = 1;

	for (const struct opr_symbol *other = row->symbols->symbols; other < row->symbol; other++)
		number += other->is_local && !strcmp(other->name, row->symbol->name);
	return number;
}

/* BOLT knows functions by their names in the file, so a name that must be escaped is left out. */
static bool is_writable(const char *name)
{
	struct op_text escaped = { 0 };
	bool same;

	op_text_add_escaped(&escaped, name);
	same = !strcmp(op_text_get(&escaped), name);
	op_text_free(&escaped);
	return same;
}

static void write_name(const struct opr_symbol_row *row, FILE *out)
{
	for (const char *c = row->symbol->name; *c; c++)
		fprintf(out, *c == ' ' || *c == '\\' ? "\\%c" : "%c", *c);
	if (row->symbol->is_local)
		fprintf(out, "/%zu", number_of_local(row));
}

static void write_row(const struct opr_symbol_report *report, const struct opr_symbol_row *row, FILE *out)
{
	for (uint32_t i = 0; i < row->nr_details; i++) {
		const struct opr_detail *detail = &report->details[row->first_detail + i];

		fputs("1 ", out);
		write_name(row, out);
		fprintf(out, " %" PRIx64 " %" PRIu64 "\n", detail->vma - row->symbol->vma,
			report->detail_counts.values[detail->counts]);
	}
}

static bool has_lines(const struct opr_symbol_row *row)
{
	return row->symbol && !row->symbol->is_unnamed && is_writable(row->symbol->name);
}

int opr_export_bolt_check(const struct opr_symbol_report *report)
{
	bool has_any = false;

	if (report->nr_classes != 1)
		return opr_error(-EINVAL, "--format=bolt writes one event: select it with event:NAME");
	for (size_t i = 1; i < report->nr_rows; i++)
		if (strcmp(report->rows[i].image, report->rows[0].image) != 0)
			return opr_error(-EINVAL, "--format=bolt writes one program, but %s and %s are selected: name one of them",
					 report->rows[0].image_shown, report->rows[i].image_shown);
	for (size_t i = 0; i < report->nr_rows && !has_any; i++)
		has_any = has_lines(&report->rows[i]);
	return has_any ? 0 : opr_error(-ENOENT, "no sample is in a function that has a name: BOLT needs the symbol table");
}

void opr_export_bolt(const struct opr_symbol_report *report, const char *event, FILE *out)
{
	uint64_t nr_others = 0;

	fputs("no_lbr ", out);
	for (; *event; event++)
		fputc(isgraph((unsigned char)*event) ? *event : '_', out);
	fputc('\n', out);
	for (size_t i = 0; i < report->nr_rows; i++) {
		const struct opr_symbol_row *row = &report->rows[i];

		if (has_lines(row))
			write_row(report, row, out);
		else
			nr_others += report->counts.values[row->counts];
	}
	if (nr_others)
		opr_warn("%" PRIu64 " samples are in no function that has a name, and are left out", nr_others);
}
