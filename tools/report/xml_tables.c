/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/report/xml_tables.h"

#include <errno.h>
#include <inttypes.h>

#include "libop/base/grow.h"
#include "tools/common/log.h"
#include "tools/report/call_block.h"
#include "tools/report/inlined.h"
#include "tools/report/xml_elements.h"

#define NO_ID SIZE_MAX

/* ---- numbers of symbols ---- */

static int compare_rows(const struct opr_symbol_row *a, const struct opr_symbol_row *b)
{
	int order = strcmp(a->image, b->image);

	if (!order && a->symbol != b->symbol)
		order = (uintptr_t)a->symbol < (uintptr_t)b->symbol ? -1 : 1;
	if (!order && a->inlined != b->inlined)
		order = (uintptr_t)a->inlined < (uintptr_t)b->inlined ? -1 : 1;
	return order;
}

static int compare_pointers(const void *left, const void *right)
{
	return compare_rows(*(struct opr_symbol_row *const *)left, *(struct opr_symbol_row *const *)right);
}

static void number_groups(struct opr_xml_index *index, const struct opr_symbol_row **rows)
{
	size_t nr_rows = index->report->nr_made;

	for (size_t i = 0; i < nr_rows; i++)
		rows[i] = &index->report->rows[i];
	qsort(rows, nr_rows, sizeof(*rows), compare_pointers);
	for (size_t i = 0; i < nr_rows; i++) {
		if (!i || compare_rows(rows[i - 1], rows[i]))
			index->ids[index->nr_groups++] = NO_ID;
		index->groups[rows[i]->order] = index->nr_groups - 1;
	}
}

int opr_xml_index_make(struct opr_xml_index *index, const struct opr_symbol_report *report, const struct opr_classes *classes)
{
	const struct opr_symbol_row **rows = calloc(report->nr_made + 1, sizeof(*rows));

	index->report = report;
	index->classes = classes;
	index->groups = calloc(report->nr_made + 1, sizeof(*index->groups));
	index->ids = calloc(report->nr_made + 1, sizeof(*index->ids));
	index->next = calloc(report->nr_made + 1, sizeof(*index->next));
	if (rows && index->groups && index->ids && index->next)
		number_groups(index, rows);
	free(rows);
	return index->groups && index->ids && index->next && rows ? 0 : opr_no_memory();
}

size_t opr_xml_id(struct opr_xml_index *index, const struct opr_symbol_row *row)
{
	size_t *id = &index->ids[index->groups[row->order]];

	if (*id == NO_ID)
		*id = index->nr_ids++;
	return *id;
}

bool opr_xml_counts(const struct opr_xml_scope *scope, const struct opr_class *class)
{
	return !scope->of || (class->tgid == scope->of->tgid && (!scope->one_thread || class->tid == scope->of->tid));
}

/* Whether an address has samples of a class that is in the scope. */
static bool is_counted(const struct opr_xml_index *index, const struct opr_detail *detail, size_t class_index,
		       const struct opr_xml_scope *scope)
{
	return index->report->detail_counts.values[detail->counts + class_index] &&
	       opr_xml_counts(scope, &index->classes->classes[class_index]);
}

static size_t count_details(const struct opr_xml_index *index, const struct opr_symbol_row *row, const struct opr_xml_scope *scope)
{
	size_t nr_details = 0;

	for (size_t i = 0; i < row->nr_details; i++)
		for (size_t j = 0; j < index->report->nr_classes; j++)
			nr_details += is_counted(index, &index->report->details[row->first_detail + i], j, scope);
	return nr_details;
}

int opr_xml_number_details(struct opr_xml_index *index, const struct opr_symbol_row *row, const struct opr_xml_scope *scope,
			   size_t *ret_first, size_t *ret_nr_details)
{
	size_t nr_details = count_details(index, row, scope), *next = &index->next[index->groups[row->order]];

	if (nr_details && !op_grow(&index->details, &index->capacity, index->nr_details + 1))
		return opr_no_memory();
	if (nr_details)
		index->details[index->nr_details++] =
			(struct opr_xml_details){ opr_xml_id(index, row), *next, nr_details, row, *scope };
	*ret_first = *next;
	*ret_nr_details = nr_details;
	*next += nr_details;
	return 0;
}

/* The number of the symbol of a row, or NO_ID. */
static size_t id_of(const struct opr_xml_index *index, const struct opr_symbol_row *row)
{
	return index->ids[index->groups[row->order]];
}

void opr_xml_index_free(struct opr_xml_index *index)
{
	free(index->groups);
	free(index->ids);
	free(index->next);
	free(index->details);
	*index = (struct opr_xml_index){ 0 };
}

/* ---- classes ---- */

static bool same_event(const struct opr_class *a, const struct opr_class *b)
{
	return a->count == b->count && a->unit_mask == b->unit_mask && !strcmp(a->event, b->event);
}

static void number_classes(struct opr_xml_classes *xml)
{
	const struct opr_class *all = xml->classes->classes;

	for (size_t i = 0; i < xml->classes->nr_classes; i++) {
		size_t same = 0, event = 0;

		while (same < i && (all[same].cpu != all[i].cpu || !same_event(&all[same], &all[i])))
			same++;
		while (event < i && !same_event(&all[event], &all[i]))
			event++;
		xml->names[i] = same < i ? xml->names[same] : xml->nr_names++;
		xml->events[i] = event < i ? xml->events[event] : xml->nr_events++;
		xml->by_thread |= all[i].tgid != OP_CLASS_ALL || all[i].tid != OP_CLASS_ALL;
		xml->by_cpu |= all[i].cpu != all[0].cpu;
		xml->has_masks |= all[i].unit_mask > 0;
	}
	xml->named = xml->by_cpu || xml->nr_events > 1 || xml->has_masks;
}

int opr_xml_classes_make(struct opr_xml_classes *xml, const struct opr_classes *classes)
{
	xml->classes = classes;
	xml->names = calloc(classes->nr_classes, sizeof(*xml->names));
	xml->events = calloc(classes->nr_classes, sizeof(*xml->events));
	if (!xml->names || !xml->events)
		return opr_no_memory();
	number_classes(xml);
	return 0;
}

void opr_xml_classes_free(struct opr_xml_classes *xml)
{
	free(xml->names);
	free(xml->events);
	*xml = (struct opr_xml_classes){ 0 };
}

uint64_t opr_xml_nr_cpus(const struct opr_xml_classes *xml)
{
	int64_t greatest = OP_CLASS_ALL;

	for (size_t i = 0; i < xml->classes->nr_classes; i++)
		if (xml->classes->classes[i].cpu > greatest)
			greatest = xml->classes->classes[i].cpu;
	return (uint64_t)(greatest + 1);
}

static uint64_t mask_of(const struct opr_class *class)
{
	return class->unit_mask == OP_CLASS_ALL ? 0 : (uint64_t) class->unit_mask;
}

void opr_xml_write_events(const struct opr_xml_classes *xml, FILE *out)
{
	size_t next = 0;

	for (size_t i = 0; i < xml->classes->nr_classes; i++) {
		const struct opr_class *class = &xml->classes->classes[i];

		if (xml->events[i] != next)
			continue;
		opr_xml_begin(out, "eventsetup");
		opr_xml_number(out, "id", next++);
		opr_xml_attribute(out, "eventname", class->event);
		opr_xml_number(out, "unitmask", mask_of(class));
		opr_xml_number(out, "setupcount", class->count);
		opr_xml_empty(out);
	}
}

static void write_class_name(FILE *out, const char *attribute, size_t number)
{
	char name[24];

	snprintf(name, sizeof(name), "c%zu", number);
	opr_xml_attribute(out, attribute, name);
}

void opr_xml_write_classes(const struct opr_xml_classes *xml, FILE *out)
{
	size_t next = 0;

	if (!xml->named)
		return;
	opr_xml_start(out, "classes");
	for (size_t i = 0; i < xml->classes->nr_classes; i++) {
		const struct opr_class *class = &xml->classes->classes[i];

		if (xml->names[i] != next)
			continue;
		opr_xml_begin(out, "class");
		write_class_name(out, "name", next++);
		if (xml->by_cpu && class->cpu == OP_CLASS_ALL)
			opr_xml_attribute(out, "cpu", "all");
		else if (xml->by_cpu)
			opr_xml_number(out, "cpu", (uint64_t) class->cpu);
		if (xml->nr_events > 1)
			opr_xml_number(out, "event", xml->events[i]);
		if (xml->has_masks)
			opr_xml_number(out, "mask", mask_of(class));
		opr_xml_empty(out);
	}
	opr_xml_end(out, "classes");
}

static void write_count(FILE *out, uint64_t count)
{
	opr_xml_open(out);
	fprintf(out, "%" PRIu64 "</count>\n", count);
}

void opr_xml_write_count(const struct opr_xml_classes *xml, FILE *out, size_t class_index, uint64_t count)
{
	if (!xml->named) {
		fputs("<count", out);
	} else {
		opr_xml_begin(out, "count");
		write_class_name(out, "class", xml->names[class_index]);
	}
	write_count(out, count);
}

/* ---- symbols ---- */

static void write_address(FILE *out, const char *attribute, uint64_t address, bool wide)
{
	fprintf(out, " %s=\"%0*" PRIx64 "\"", attribute, wide ? 16 : 8, address);
}

static bool has_wide_addresses(const struct opr_symbol_report *report)
{
	for (size_t i = 0; i < report->nr_rows; i++)
		if (report->rows[i].vma > UINT32_MAX)
			return true;
	return false;
}

/* What is left to write of <symboltable>. */
struct symbol_table {
	const struct opr_xml_tables *tables;
	FILE *out;
	bool wide;
	bool *is_written; /* by id */
};

/* Ends <symboldata> of an inlined function. */
static void write_inliners(const struct opr_symbol_row *row, FILE *out)
{
	opr_xml_open(out);
	for (const struct opr_frame *frame = row->inlined; frame; frame = frame->outer) {
		opr_xml_begin(out, "inlinedby");
		opr_xml_attribute(out, "name", opr_inliner(row, frame));
		if (*frame->file)
			opr_xml_attribute(out, "file", frame->file);
		if (frame->line)
			opr_xml_number(out, "line", frame->line);
		opr_xml_empty(out);
	}
	opr_xml_end(out, "symboldata");
}

/* Writes the symbol of a row, unless it has no number or is written. */
static void write_symbol(const struct symbol_table *table, const struct opr_symbol_row *row)
{
	size_t id = id_of(table->tables->index, row);
	FILE *out = table->out;

	if (id == NO_ID || table->is_written[id])
		return;
	table->is_written[id] = true;
	opr_xml_begin(out, "symboldata");
	opr_xml_number(out, "id", id);
	fputc(' ', out);
	opr_xml_attribute(out, "name", row->name);
	if (row->file) {
		opr_xml_attribute(out, "file", row->file);
		opr_xml_number(out, "line", row->line);
	}
	fputc(' ', out);
	write_address(out, "startingaddr", row->vma, table->wide);
	if (row->inlined)
		write_inliners(row, out);
	else
		opr_xml_empty(out);
}

/* Callers and callees may be rows that were dropped, or other applications' rows of a symbol. */
static int write_ends_of_arcs(const struct symbol_table *table, const struct opr_symbol_row *row)
{
	const struct opr_xml_tables *tables = table->tables;
	struct opr_block block;
	int err = opr_block_make(&block, tables->graph, tables->report, row, tables->limits, true);

	if (err < 0)
		return err;
	for (size_t i = 0; i < block.nr_callers; i++)
		write_symbol(table, &block.callers[i]);
	for (size_t i = 0; i < block.nr_callees; i++)
		write_symbol(table, &block.callees[i]);
	opr_block_free(&block);
	return 0;
}

int opr_xml_write_symbols(const struct opr_xml_tables *tables, FILE *out)
{
	const struct opr_symbol_report *report = tables->report;
	const struct symbol_table table = { .tables = tables,
					    .out = out,
					    .wide = has_wide_addresses(report),
					    .is_written = calloc(tables->index->nr_ids + 1, sizeof(*table.is_written)) };
	int err = table.is_written ? 0 : opr_no_memory();

	opr_xml_start(out, "symboltable");
	for (size_t i = 0; i < report->nr_rows && !err; i++) {
		write_symbol(&table, &report->rows[i]);
		err = tables->graph ? write_ends_of_arcs(&table, &report->rows[i]) : 0;
	}
	opr_xml_end(out, "symboltable");
	free(table.is_written);
	return err;
}

/* ---- details ---- */

/* The samples of an address in one class. `number`: of the detail. */
static void write_detail(const struct opr_xml_tables *tables, const struct opr_symbol_row *row, const struct opr_detail *detail,
			 size_t class_index, size_t number, bool wide, FILE *out)
{
	const char *file = NULL;
	unsigned int line = 0;

	opr_xml_begin(out, "detaildata");
	opr_xml_number(out, "id", number);
	fputc(' ', out);
	write_address(out, "vmaoffset", detail->vma, wide);
	if (tables->lines && opr_symbols_line(row->symbols, detail->vma, &file, &line)) {
		if (!row->file || strcmp(file, row->file))
			opr_xml_attribute(out, "file", file);
		opr_xml_number(out, "line", line);
	}
	opr_xml_open(out);
	opr_xml_begin(out, "count");
	if (tables->classes->named)
		write_class_name(out, "class", tables->classes->names[class_index]);
	else
		opr_xml_attribute(out, "class", "");
	write_count(out, tables->report->detail_counts.values[detail->counts + class_index]);
	opr_xml_end(out, "detaildata");
}

static void write_details(const struct opr_xml_tables *tables, const struct opr_xml_details *details, bool wide, FILE *out)
{
	const struct opr_symbol_report *report = tables->report;
	const struct opr_symbol_row *row = details->row;
	size_t number = details->first;

	for (size_t i = 0; i < row->nr_details; i++) {
		const struct opr_detail *detail = &report->details[row->first_detail + i];

		for (size_t j = 0; j < report->nr_classes; j++)
			if (is_counted(tables->index, detail, j, &details->scope))
				write_detail(tables, row, detail, j, number++, wide, out);
	}
}

static int compare_details(const void *left, const void *right)
{
	const struct opr_xml_details *a = left, *b = right;

	if (a->id != b->id)
		return a->id < b->id ? -1 : 1;
	return a->first < b->first ? -1 : a->first > b->first;
}

/* One <symboldetails> for each symbol, whichever applications and threads it ran in. */
static void write_detail_table(const struct opr_xml_tables *tables, FILE *out)
{
	struct opr_xml_details *all = tables->index->details;
	size_t nr_all = tables->index->nr_details;
	bool wide = has_wide_addresses(tables->report);

	if (nr_all)
		qsort(all, nr_all, sizeof(*all), compare_details);
	opr_xml_start(out, "detailtable");
	for (size_t i = 0; i < nr_all; i++) {
		if (!i || all[i - 1].id != all[i].id) {
			opr_xml_begin(out, "symboldetails");
			opr_xml_number(out, "id", all[i].id);
			opr_xml_open(out);
		}
		write_details(tables, &all[i], wide, out);
		if (i + 1 == nr_all || all[i + 1].id != all[i].id)
			opr_xml_end(out, "symboldetails");
	}
	opr_xml_end(out, "detailtable");
}

static void write_bytes(const struct opr_symbol_row *row, size_t id, FILE *out)
{
	uint8_t *code = NULL;
	size_t nr_bytes = 0;

	if (!row->symbol || row->inlined || opr_symbols_code(row->symbols, row->symbol, &code, &nr_bytes) < 0)
		return;
	opr_xml_begin(out, "bytes");
	opr_xml_number(out, "id", id);
	opr_xml_open(out);
	for (size_t i = 0; i < nr_bytes; i++)
		fprintf(out, "%02X", code[i]);
	opr_xml_end(out, "bytes");
	free(code);
}

int opr_xml_write_details(const struct opr_xml_tables *tables, FILE *out)
{
	const struct opr_symbol_report *report = tables->report;
	bool *written = calloc(tables->index->nr_ids + 1, sizeof(*written));

	if (!written)
		return opr_no_memory();
	write_detail_table(tables, out);
	opr_xml_start(out, "bytestable");
	for (size_t i = 0; i < report->nr_rows; i++) {
		size_t id = id_of(tables->index, &report->rows[i]);

		if (id == NO_ID || written[id])
			continue;
		written[id] = true;
		write_bytes(&report->rows[i], id, out);
	}
	opr_xml_end(out, "bytestable");
	free(written);
	return 0;
}
