/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/report/memory_rows.h"

#include <inttypes.h>

#include "tools/common/formatting.h"
#include "tools/report/inlined.h"

#define TAIL_PERCENT 95u
#define IMAGE_WIDTH  24

/* ---- from facts to numbers ---- */

struct mem_row {
	uint64_t loads, stores;
	uint64_t sources[OP_IBS_NR_SOURCES]; /* loads by known source */
	uint64_t nr_sources, remote;
	uint64_t nr_latencies, latency_sum; /* of loads that missed the L1 cache, in cycles */
	uint64_t latency_p95;               /* up to one eighth too long */
	/* of known accesses; walks: missed in both TLBs */
	uint64_t tlb_accesses, tlb_misses, tlb_walks;
	uint64_t branches, mispredicted;
};

/* The latency that TAIL_PERCENT of the loads do not exceed. */
static uint64_t tail_latency(const uint64_t *buckets, uint64_t nr_latencies)
{
	uint64_t nr = 0;

	for (unsigned int i = 0; i < OP_MEM_NR_BUCKETS; i++) {
		nr += buckets[i];
		if (nr * 100 >= nr_latencies * TAIL_PERCENT && nr)
			return op_memory_view_bucket_last(i);
	}
	return 0;
}

/* Makes a row from OPR_NR_FACTS counts. */
static struct mem_row make_row(const uint64_t *counts)
{
	struct mem_row row = {
		.loads = counts[OP_MEM_LOAD],
		.stores = counts[OP_MEM_STORE],
		.remote = counts[OP_MEM_REMOTE],
		.latency_sum = counts[OP_MEM_LATENCY_SUM],
		.tlb_accesses = counts[OP_MEM_TLB_HIT] + counts[OP_MEM_TLB_L2_HIT] + counts[OP_MEM_TLB_MISS],
		.tlb_misses = counts[OP_MEM_TLB_L2_HIT] + counts[OP_MEM_TLB_MISS],
		.tlb_walks = counts[OP_MEM_TLB_MISS],
		.branches = counts[OP_MEM_BRANCH],
		.mispredicted = counts[OP_MEM_MISPREDICTED],
	};

	for (size_t i = 0; i < OP_IBS_NR_SOURCES; i++)
		row.nr_sources += row.sources[i] = counts[OP_MEM_SOURCE + i];
	for (size_t i = 0; i < OP_MEM_NR_BUCKETS; i++)
		row.nr_latencies += counts[OP_MEM_LATENCY + i];
	row.latency_p95 = tail_latency(counts + OP_MEM_LATENCY, row.nr_latencies);
	return row;
}

static double mean(const struct mem_row *row)
{
	return row->nr_latencies ? (double)row->latency_sum / (double)row->nr_latencies : 0;
}

/* ---- what all forms have: a number for each column ---- */

enum unit { COUNT, PERCENT, CYCLES };

struct column {
	const char *title, *name; /* in text; in the other forms */
	enum unit unit;
	size_t count, of; /* offsets in a row; of: what 100 % is */
	bool text;        /* shown in text */
};

#define AT(member) offsetof(struct mem_row, member)
#define SOURCE(title, name, number)                                                                                                \
	{                                                                                                                          \
		title, name, PERCENT, AT(sources[number]), AT(nr_sources), true                                                   \
	}

static const struct column columns[] = {
	{ "loads", "loads", COUNT, AT(loads), 0, true },
	{ "stores", "stores", COUNT, AT(stores), 0, true },
	{ "latency", "latency_average", CYCLES, 0, 0, true },
	{ "p95", "latency_p95", COUNT, AT(latency_p95), 0, true },
	{ "timed", "latency_loads", COUNT, AT(nr_latencies), 0, false },
	{ "tlb", "dtlb_accesses", COUNT, AT(tlb_accesses), 0, false },
	{ "dtlb%", "dtlb_miss", PERCENT, AT(tlb_misses), AT(tlb_accesses), true },
	{ "walk%", "dtlb_walk", PERCENT, AT(tlb_walks), AT(tlb_accesses), true },
	{ "branches", "branches", COUNT, AT(branches), 0, true },
	{ "misp%", "mispredicted", PERCENT, AT(mispredicted), AT(branches), true },
	{ "sourced", "source_loads", COUNT, AT(nr_sources), 0, false },
	SOURCE("L1%", "L1", OP_IBS_SOURCE_L1),
	SOURCE("L2%", "L2", OP_IBS_SOURCE_L2),
	SOURCE("L3%", "L3", OP_IBS_SOURCE_L3),
	SOURCE("node%", "node_cache", OP_IBS_SOURCE_NODE_CACHE),
	SOURCE("near%", "near_cache", OP_IBS_SOURCE_NEAR_CACHE),
	SOURCE("far%", "far_cache", OP_IBS_SOURCE_FAR_CACHE),
	SOURCE("DRAM%", "DRAM", OP_IBS_SOURCE_DRAM),
	SOURCE("PMEM%", "PMEM", OP_IBS_SOURCE_PMEM),
	SOURCE("CXL%", "CXL", OP_IBS_SOURCE_CXL),
	SOURCE("IO%", "IO", OP_IBS_SOURCE_IO),
	SOURCE("peer%", "peer", OP_IBS_SOURCE_PEER),
	{ "remote%", "remote", PERCENT, AT(remote), AT(nr_sources), true },
};

static uint64_t number_at(const struct mem_row *row, size_t offset)
{
	uint64_t number;

	memcpy(&number, (const char *)row + offset, sizeof(number));
	return number;
}

/* ---- a report being written ---- */

struct report {
	FILE *out;
	struct opr_writer names; /* only for the names of images */
	bool has_column[op_array_size(columns)];
	bool has_ranges; /* a latency is only known as a range */
	size_t nr_written;
};

/* Text leaves out sources without loads. */
static void choose_columns(struct report *report, const struct mem_row *total)
{
	for (size_t i = 0; i < op_array_size(columns); i++) {
		bool is_source = columns[i].of == AT(nr_sources);

		report->has_column[i] = columns[i].text && (!is_source || number_at(total, columns[i].count));
	}
}

static bool has_ranges(const uint64_t *totals)
{
	for (unsigned int i = 0; i < OP_MEM_NR_BUCKETS; i++)
		if (totals[OP_MEM_LATENCY + i] && op_memory_view_bucket_last(i) > OP_MEM_EXACT_LATENCY)
			return true;
	return false;
}

static void write_text_header(struct report *report)
{
	if (report->names.layout.no_header)
		return;
	fputs("Loads, stores and branches sampled by IBS; latency and p95 in cycles, of loads that missed the L1 cache\n",
	      report->out);
	if (report->has_ranges)
		fprintf(report->out, "p95 above %u is the end of a range of latencies, at most an eighth too long\n",
			OP_MEM_EXACT_LATENCY);
	for (size_t i = 0; i < op_array_size(columns); i++)
		if (report->has_column[i])
			fprintf(report->out, "%8s ", columns[i].title);
	fprintf(report->out, "%-*s ", IMAGE_WIDTH, "image name");
	if (report->names.layout.app_column)
		fprintf(report->out, "%-*s ", IMAGE_WIDTH, "app name");
	fputs("symbol name\n", report->out);
}

static void write_text_name(struct report *report, const char *shown, const char *name)
{
	size_t width = opr_write_escaped(report->out, opr_show_path(&report->names, shown, name));

	fprintf(report->out, "%*s", width < IMAGE_WIDTH ? (int)(IMAGE_WIDTH + 1 - width) : 1, "");
}

static void write_text_row(struct report *report, const struct opr_symbol_row *symbol, const struct mem_row *row)
{
	struct op_text name = { 0 };

	for (size_t i = 0; i < op_array_size(columns); i++) {
		const struct column *column = &columns[i];

		if (!report->has_column[i])
			continue;
		if (column->unit == CYCLES)
			fprintf(report->out, "%8.1f ", mean(row));
		else if (column->unit == PERCENT)
			fprintf(report->out, "%8.2f ", opr_percent(number_at(row, column->count), number_at(row, column->of)));
		else
			fprintf(report->out, "%8" PRIu64 " ", number_at(row, column->count));
	}
	write_text_name(report, symbol->image_shown, symbol->image);
	if (report->names.layout.app_column)
		write_text_name(report, symbol->app_shown, symbol->app);
	if (symbol->inlined)
		opr_inlined_add(&name, symbol, report->names.layout.long_names);
	opr_write_escaped(report->out, name.length ? op_text_get(&name) : symbol->name);
	op_text_free(&name);
	fputc('\n', report->out);
}

/* JSON and CSV have the count instead of a share. */
static void write_number(FILE *out, const struct column *column, const struct mem_row *row)
{
	if (column->unit == CYCLES)
		fprintf(out, "%.6g", mean(row));
	else
		fprintf(out, "%" PRIu64, number_at(row, column->count));
}

static void write_csv_header(struct report *report)
{
	if (report->names.layout.no_header)
		return;
	fputs("\"symbol\",\"image\",\"application\",\"address\"", report->out);
	if (report->names.layout.inlined)
		fputs(",\"inlined by\",\"call file\",\"call line\",\"inliners\"", report->out);
	for (size_t i = 0; i < op_array_size(columns); i++) {
		fputc(',', report->out);
		opr_write_csv(report->out, columns[i].name);
	}
	fputs("\r\n", report->out);
}

static void write_csv_row(struct report *report, const struct opr_symbol_row *symbol, const struct mem_row *row)
{
	opr_write_csv(report->out, symbol->name);
	fputc(',', report->out);
	opr_write_csv(report->out, symbol->image);
	fputc(',', report->out);
	opr_write_csv(report->out, symbol->app);
	fprintf(report->out, ",\"0x%" PRIx64 "\"", symbol->vma);
	if (report->names.layout.inlined) {
		fputc(',', report->out);
		opr_write_csv_inliners(report->out, symbol);
	}
	for (size_t i = 0; i < op_array_size(columns); i++) {
		fputc(',', report->out);
		write_number(report->out, &columns[i], row);
	}
	fputs("\r\n", report->out);
}

static void write_json_header(struct report *report)
{
	fputs("{\n  \"unit\": \"samples\",\n  \"latency unit\": \"cycles\",\n", report->out);
	fprintf(report->out, "  \"latency_p95 exact to\": %u,\n", OP_MEM_EXACT_LATENCY);
	fputs("  \"latency_p95 at most too long by\": 0.125,\n  \"symbols\": [", report->out);
}

static void write_json_row(struct report *report, const struct opr_symbol_row *symbol, const struct mem_row *row)
{
	fprintf(report->out, "%s\n    { \"symbol\": ", report->nr_written ? "," : "");
	opr_write_json(report->out, symbol->name);
	fputs(", \"image\": ", report->out);
	opr_write_json(report->out, symbol->image);
	fputs(", \"application\": ", report->out);
	opr_write_json(report->out, symbol->app);
	fputs(", ", report->out);
	if (symbol->inlined)
		opr_write_json_inliners(report->out, symbol);
	fprintf(report->out, "\"address\": \"0x%" PRIx64 "\"", symbol->vma);
	for (size_t i = 0; i < op_array_size(columns); i++) {
		fprintf(report->out, ", \"%s\": ", columns[i].name);
		write_number(report->out, &columns[i], row);
	}
	fputs(" }", report->out);
}

static void end_json(struct report *report)
{
	fputs("\n  ]\n}\n", report->out);
}

static const struct {
	void (*begin)(struct report *report);
	void (*row)(struct report *report, const struct opr_symbol_row *symbol, const struct mem_row *row);
	void (*end)(struct report *report);
} forms[] = {
	[OPR_MEM_TEXT] = { write_text_header, write_text_row, NULL },
	[OPR_MEM_CSV] = { write_csv_header, write_csv_row, NULL },
	[OPR_MEM_JSON] = { write_json_header, write_json_row, end_json },
};

int opr_mem_report_write(const struct opr_symbol_report *report, const struct opr_layout *layout, enum opr_mem_format format,
			 FILE *out)
{
	struct report writing = { .out = out };
	struct mem_row total, row;
	int err = opr_writer_init(&writing.names, &opr_text_writer, layout, out);

	if (err)
		return err;
	total = make_row(report->totals);
	choose_columns(&writing, &total);
	writing.has_ranges = has_ranges(report->totals);
	forms[format].begin(&writing);
	for (size_t i = 0; i < report->nr_rows; i++) {
		row = make_row(report->counts.values + report->rows[i].counts);
		forms[format].row(&writing, &report->rows[i], &row);
		writing.nr_written++;
	}
	if (forms[format].end)
		forms[format].end(&writing);
	opr_writer_free(&writing.names);
	return 0;
}
