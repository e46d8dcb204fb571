/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/report/writer.h"

#include <pthread.h>
#include <stdio_ext.h>

#include "libop/base/atomic.h"
#include "libop/session/memory_view.h"
#include "libop/process/threads.h"
#include "tools/common/log.h"
#include "tools/profile/image_name.h"

#define ROWS_OF_RANGE 2048
#define ROWS_AHEAD    8 /* distance of the prefetch of names */
#define WRITER_BYTES  65536

int opr_writer_init(struct opr_writer *writer, const struct opr_writer_ops *ops, const struct opr_layout *layout, FILE *out)
{
	size_t nr_classes = layout->classes->nr_classes;

	__fsetlocking(out, FSETLOCKING_BYCALLER); /* one thread writes, in millions of pieces */
	*writer = (struct opr_writer){ .ops = ops, .layout = *layout, .out = out };
	writer->cumulated = calloc(nr_classes, sizeof(*writer->cumulated));
	writer->detail_cumulated = calloc(nr_classes, sizeof(*writer->detail_cumulated));
	writer->percents = calloc(nr_classes, sizeof(*writer->percents));
	if (!writer->cumulated || !writer->detail_cumulated || !writer->percents)
		return opr_no_memory();
	if (!layout->is_ours || layout->long_names || layout->short_names)
		return 0;
	writer->layout.short_names = &writer->names;
	return opr_short_names_make(&writer->names, layout->origin.profile, layout->before.profile);
}

void opr_writer_free(struct opr_writer *writer)
{
	if (!writer)
		return;
	free(writer->cumulated);
	free(writer->detail_cumulated);
	free(writer->percents);
	opr_short_names_free(&writer->names);
	*writer = (struct opr_writer){ 0 };
}

const char *opr_show_name(const struct opr_writer *writer, const char *name)
{
	const struct opr_layout *layout = &writer->layout;
	const char *apart = layout->short_names ? opr_short_name(layout->short_names, name) : NULL;

	return apart ? apart : layout->long_names ? name : opr_base_name(name);
}

/* `shown` may be a relative path. */
const char *opr_show_path(const struct opr_writer *writer, const char *shown, const char *name)
{
	const struct opr_layout *layout = &writer->layout;
	const char *apart = layout->short_names ? opr_short_name(layout->short_names, name) : NULL, *slash;

	if (apart)
		return apart;
	if (layout->long_names || shown == name)
		return opr_show_name(writer, shown);
	slash = strrchr(shown, '/');
	return slash ? slash + 1 : shown;
}

/* A group is shown whole: a cgroup is a path. */
const char *opr_show_app(const struct opr_writer *writer, const struct opr_symbol_row *row)
{
	return writer->layout.by ? row->app : opr_show_path(writer, row->app_shown, row->app);
}

static void write_end(struct opr_writer *writer)
{
	if (writer->ops->end)
		writer->ops->end(writer);
}

void opr_report_summary(struct opr_writer *writer, const struct opr_summary *summary, double percent)
{
	double total = (double)summary->totals[0];

	writer->ops->begin(writer);
	for (size_t i = 0; i < summary->nr_applications; i++) {
		const struct opr_application *application = &summary->applications[i];

		if (total > 0 && 100.0 * (double)application->row.counts[0] / total < percent)
			continue;
		writer->ops->application(writer, application);
		writer->nr_rows++;
	}
	write_end(writer);
}

#define NAME_WIDTH_MIN 11
#define NAME_WIDTH_MAX 25

static size_t name_width(size_t width, const char *name)
{
	width = op_max_u64(width, strlen(name) + 1);
	return width > NAME_WIDTH_MAX ? NAME_WIDTH_MAX : width;
}

/* Makes columns of names as wide as needed, for a terminal. */
static void fit_columns(struct opr_writer *writer, const struct opr_symbol_report *report)
{
	struct opr_layout *layout = &writer->layout;

	layout->image_width = layout->app_width = NAME_WIDTH_MIN;
	for (size_t i = 0; i < report->nr_rows; i++) {
		const struct opr_symbol_row *row = &report->rows[i];

		layout->image_width = name_width(layout->image_width, opr_show_path(writer, row->image_shown, row->image));
		layout->app_width = name_width(layout->app_width, opr_show_app(writer, row));
	}
}

static void choose_columns(struct opr_writer *writer, const struct opr_symbol_report *report)
{
	struct opr_layout *layout = &writer->layout;

	if (layout->nr_columns)
		fit_columns(writer, report);
	layout->image_column = layout->wide_addresses = false;
	for (size_t i = 0; i < report->nr_rows; i++) {
		const struct opr_symbol_row *row = &report->rows[i];

		layout->image_column |= strcmp(row->image, row->app) != 0;
		layout->wide_addresses |= row->vma > UINT32_MAX;
	}
}

static void write_row(struct opr_writer *writer, const struct opr_symbol_report *report, const struct opr_symbol_row *row)
{
	const uint64_t *counts = &report->counts.values[row->counts];

	for (size_t i = 0; i < report->nr_classes; i++)
		writer->cumulated[i] += opr_is_gone(row->changes, i) ? 0 : counts[i];
	memset(writer->detail_cumulated, 0, report->nr_classes * sizeof(*writer->detail_cumulated));
	writer->nr_details = 0;
	writer->ops->symbol(writer, row, counts);
	for (size_t i = 0; i < row->nr_details; i++) {
		const struct opr_detail *detail = &report->details[row->first_detail + i];
		const uint64_t *detail_counts = &report->detail_counts.values[detail->counts];

		for (size_t j = 0; j < report->nr_classes; j++)
			writer->detail_cumulated[j] += detail_counts[j];
		writer->ops->detail(writer, row, detail, counts, detail_counts);
		writer->nr_details++;
	}
	writer->nr_rows++;
}

/* ---- rows by several threads ---- */

/*
 * Each thread formats the next range of rows in memory, waits until all earlier ranges are written,
 * and writes it.
 */
struct ranges {
	struct opr_writer *writer;
	const struct opr_symbol_report *report;
	size_t nr_ranges;
	uint64_t next; /* range */
	pthread_mutex_t lock;
	pthread_cond_t written;
	size_t nr_written; /* ranges that are written */
};

/* The writer of a thread, into memory. */
struct range_writer {
	struct opr_writer writer;
	struct op_text text;
	char buffer[WRITER_BYTES];
};

static ssize_t add_text(void *cookie, const char *bytes, size_t nr_bytes)
{
	struct range_writer *own = cookie;

	op_text_add_bytes(&own->text, bytes, nr_bytes);
	return own->text.failed ? 0 : (ssize_t)nr_bytes;
}

/* Not open_memstream(3), which copies short pieces byte by byte. */
static struct range_writer *new_range_writer(const struct opr_writer *writer)
{
	const cookie_io_functions_t functions = { .write = add_text };
	struct range_writer *own = malloc(sizeof(*own));
	FILE *out = own ? fopencookie(own, "w", functions) : NULL;

	if (!out) {
		free(own);
		return NULL;
	}
	setvbuf(out, own->buffer, _IOFBF, sizeof(own->buffer));
	own->text = (struct op_text){ 0 };
	if (!opr_writer_init(&own->writer, writer->ops, &writer->layout, out))
		return own;
	opr_writer_free(&own->writer);
	fclose(out);
	free(own);
	return NULL;
}

static void free_range_writer(struct range_writer *own)
{
	if (!own)
		return;
	fclose(own->writer.out);
	opr_writer_free(&own->writer);
	op_text_free(&own->text);
	free(own);
}

static void write_range(const struct ranges *ranges, struct opr_writer *writer, size_t index)
{
	const struct opr_symbol_report *report = ranges->report;
	size_t first = index * ROWS_OF_RANGE, end = op_min_u64(first + ROWS_OF_RANGE, report->nr_rows);

	writer->nr_rows = first;
	for (size_t i = first; i < end; i++) {
		__builtin_prefetch(report->rows[op_min_u64(i + ROWS_AHEAD, end - 1)].name);
		write_row(writer, report, &report->rows[i]);
	}
}

/*
 * Formats a range in memory and writes it in turn. Without memory it is formatted again, straight
 * into the output.
 */
static void write_in_turn(struct ranges *ranges, struct range_writer *own, size_t index)
{
	bool is_in_memory;

	op_text_truncate(&own->text, 0);
	write_range(ranges, &own->writer, index);
	is_in_memory = fflush(own->writer.out) != EOF && !ferror(own->writer.out);
	pthread_mutex_lock(&ranges->lock);
	while (ranges->nr_written != index)
		pthread_cond_wait(&ranges->written, &ranges->lock);
	if (is_in_memory)
		fwrite(op_text_get(&own->text), 1, own->text.length, ranges->writer->out);
	else
		write_range(ranges, ranges->writer, index);
	ranges->nr_written++;
	pthread_cond_broadcast(&ranges->written);
	pthread_mutex_unlock(&ranges->lock);
}

static void write_ranges(void *arg)
{
	struct ranges *ranges = arg;
	struct range_writer *own = new_range_writer(ranges->writer);
	size_t i;

	while (own && (i = op_fetch_add_relaxed(&ranges->next, 1)) < ranges->nr_ranges)
		write_in_turn(ranges, own, i);
	free_range_writer(own);
}

/*
 * False: the caller writes the rows, because they are few, because accumulated counts need all rows
 * before, or because libbfd, which has no threads, is asked for the lines of details.
 */
static bool write_by_threads(struct opr_writer *writer, const struct opr_symbol_report *report)
{
	struct ranges ranges = { .writer = writer,
				 .report = report,
				 .nr_ranges = (report->nr_rows + ROWS_OF_RANGE - 1) / ROWS_OF_RANGE,
				 .lock = PTHREAD_MUTEX_INITIALIZER,
				 .written = PTHREAD_COND_INITIALIZER };
	size_t nr_threads = op_min_u64(op_nr_cpus(), ranges.nr_ranges / 2);

	if (nr_threads < 2 || writer->layout.accumulated || (writer->layout.debug_info && report->nr_details))
		return false;
	op_run_threads(nr_threads, write_ranges, &ranges);
	for (; ranges.nr_written < ranges.nr_ranges; ranges.nr_written++)
		write_range(&ranges, writer, ranges.nr_written);
	writer->nr_rows = report->nr_rows;
	return true;
}

void opr_report_symbols(struct opr_writer *writer, const struct opr_symbol_report *report)
{
	choose_columns(writer, report);
	writer->ops->begin(writer);
	if (!write_by_threads(writer, report))
		for (size_t i = 0; i < report->nr_rows; i++)
			write_row(writer, report, &report->rows[i]);
	write_end(writer);
}

int opr_report_callgraph(struct opr_writer *writer, const struct opr_symbol_report *report, const struct opr_callgraph *graph,
			 const struct opr_block_limits *limits)
{
	choose_columns(writer, report);
	writer->ops->begin(writer);
	for (size_t i = 0; i < report->nr_rows; i++) {
		struct opr_block block;
		int err = opr_block_make(&block, graph, report, &report->rows[i], limits, writer->layout.long_names);

		if (err < 0)
			return err;
		writer->ops->block(writer, &block, report);
		writer->nr_rows++;
		opr_block_free(&block);
	}
	write_end(writer);
	return 0;
}

int opr_report_images(struct opr_writer *writer, const struct opr_image_report *report)
{
	writer->ops->begin(writer);
	for (size_t i = 0; i < report->nr_rows; i++) {
		char *hint = opr_image_row_hint(&report->rows[i]);

		if (!hint)
			return opr_no_memory();
		writer->ops->image(writer, &report->rows[i], hint);
		free(hint);
		writer->nr_rows++;
	}
	write_end(writer);
	return 0;
}

const char *opr_detail_line(const struct opr_writer *writer, const struct opr_symbol_row *row, const struct opr_detail *detail,
			    unsigned int *ret_line)
{
	const char *file = NULL;

	*ret_line = 0;
	if (writer->layout.debug_info && !opr_symbols_line(row->symbols, detail->vma, &file, ret_line))
		file = NULL;
	return file;
}
