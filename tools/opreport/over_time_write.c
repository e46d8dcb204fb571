/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A course as a chart, CSV or JSON. */
#include <inttypes.h>
#include <time.h>

#include "libop/base/clock.h"
#include "tools/common/formatting.h"
#include "tools/common/when.h"
#include "tools/opreport/over_time.h"
#include "tools/profile/image_name.h"
#include "tools/report/quote.h"

#define NS_PER_US     1000u
#define NR_LEVELS     8u
#define COLUMNS       80u /* where it is no terminal */
#define COUNT_COLUMNS 20u /* before a chart: samples and percent */
#define NAME_COLUMNS  24u /* behind it, at least */
#define LINE_COLUMNS  38u /* before a bar: time, samples, percent */

/* From nothing to all, in eighths. */
static const char *const columns_utf8[] = { " ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };
static const char *const columns_ascii[] = { " ", ".", ".", ":", ":", "-", "=", "+", "#" };
static const char *const bars_utf8[] = { "", "▏", "▎", "▍", "▌", "▋", "▊", "▉" };

/* ---- the chart ---- */

/* Samples, or a time, in eight columns. */
static struct opr_time_text amount(const struct opr_course *course, uint64_t value)
{
	struct opr_time_text text;

	if (course->is_time)
		return opr_format_us(value);
	snprintf(text.text, sizeof(text.text), "%8" PRIu64, value);
	return text;
}

static void write_amount(const struct opr_course *course, uint64_t value, const char *unit, FILE *out)
{
	struct opr_time_text text = amount(course, value);

	fprintf(out, "%s%s", text.text + strspn(text.text, " "), course->is_time ? "" : unit);
}

/* Several bins that share a column, since the terminal has not enough of them. */
static uint64_t sum_group(const struct opr_course *course, size_t row, size_t first, size_t nr)
{
	uint64_t sum = 0;

	for (size_t i = first; i < first + nr && i < course->nr_bins; i++)
		sum += course->bins[i].values[row];
	return sum;
}

static uint64_t sum_row(const struct opr_course *course, size_t row)
{
	return sum_group(course, row, 0, course->nr_bins);
}

static uint64_t sum_all(const struct opr_course *course)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < course->nr_bins; i++)
		sum += course->bins[i].total;
	return sum;
}

static uint64_t largest(const struct opr_course *course, size_t nr_per_column)
{
	uint64_t most = 0;

	for (size_t row = 0; row < course->rows.nr_words; row++)
		for (size_t i = 0; i < course->nr_bins; i += nr_per_column)
			most = op_max_u64(most, sum_group(course, row, i, nr_per_column));
	return most;
}

/* What is there at all has the lowest level at least. */
static size_t level_of(uint64_t value, uint64_t most, size_t nr_levels)
{
	size_t level = most ? (size_t)((double)value * (double)nr_levels / (double)most + 0.5) : 0;

	return value && !level ? 1 : level;
}

static void write_head(const struct opr_course *course, FILE *out)
{
	char begin[OPR_WHEN_BYTES], end[OPR_WHEN_BYTES];
	struct op_text grain = { 0 };
	uint64_t longest_ns = 0;

	for (size_t i = 0; i < course->nr_bins; i++)
		longest_ns = op_max_u64(longest_ns, course->bins[i].end_ns - course->bins[i].begin_ns);
	opr_add_span(&grain, longest_ns);

	opr_when_format(course->bins[0].begin_ns / NS_PER_US, begin);
	opr_when_format(course->bins[course->nr_bins - 1].end_ns / NS_PER_US, end);
	fprintf(out, "Time: %s to %s, %zu grain%s of %s\n", begin, end, course->nr_bins, course->nr_bins == 1 ? "" : "s",
		op_text_get(&grain));
	op_text_free(&grain);
	fputs(course->is_time ? "Waits: " : "Samples: ", out);
	write_amount(course, sum_all(course), "", out);
	if (course->is_time)
		fputc('\n', out);
	else
		fprintf(out, " of %s\n", course->event);
}

static void write_chart(const struct opr_course *course, size_t nr_columns, bool is_ascii, FILE *out)
{
	const char *const *columns = is_ascii ? columns_ascii : columns_utf8;
	size_t room = nr_columns > COUNT_COLUMNS + NAME_COLUMNS + 10 ? nr_columns - COUNT_COLUMNS - NAME_COLUMNS : 10;
	size_t nr_per_column = (course->nr_bins + room - 1) / room, nr_used = (course->nr_bins + nr_per_column - 1) / nr_per_column;
	uint64_t all = sum_all(course), most = largest(course, nr_per_column);

	fprintf(out, "%8s        %%  %-*s  %s\n", course->is_time ? "time" : "samples",
		(int)(nr_used > 9 ? nr_used : 9), "over time", course->what);
	for (size_t row = 0; row < course->rows.nr_words; row++) {
		uint64_t sum = sum_row(course, row);

		fprintf(out, "%s %8.4f  ", amount(course, sum).text, opr_percent(sum, all));
		for (size_t i = 0; i < course->nr_bins; i += nr_per_column)
			fputs(columns[level_of(sum_group(course, row, i, nr_per_column), most, NR_LEVELS)], out);
		fprintf(out, "%*s  ", nr_used < 9 ? (int)(9 - nr_used) : 0, "");
		opr_write_escaped(out, opr_base_name(course->rows.words[row]));
		fputc('\n', out);
	}
	fputs("The highest column is ", out);
	write_amount(course, most, " samples", out);
	fprintf(out, "; a column is %zu grain%s.\n", nr_per_column, nr_per_column == 1 ? "" : "s");
}

static void write_bar(uint64_t value, uint64_t most, size_t width, bool is_ascii, FILE *out)
{
	size_t eighths = level_of(value, most, width * NR_LEVELS);

	for (size_t i = 0; i < eighths / NR_LEVELS; i++)
		fputs(is_ascii ? "#" : "█", out);
	if (is_ascii)
		fputs(value && eighths < NR_LEVELS ? "." : "", out);
	else
		fputs(bars_utf8[eighths % NR_LEVELS], out);
}

static void write_local(FILE *out, uint64_t ns)
{
	time_t seconds = (time_t)(ns / OP_NS_PER_S);
	struct tm tm;
	char text[32] = "?";

	if (localtime_r(&seconds, &tm))
		strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &tm);
	fputs(text, out);
}

static void write_lines(const struct opr_course *course, size_t nr_columns, bool is_ascii, FILE *out)
{
	size_t width = nr_columns > LINE_COLUMNS + 10 ? nr_columns - LINE_COLUMNS : 10;
	uint64_t most = largest(course, 1), sum = sum_row(course, 0);

	fputs("The ", out);
	fputs(course->what, out);
	fputc(' ', out);
	opr_write_escaped(out, course->rows.words[0]);
	fputs(course->is_time ? " waited " : " took ", out);
	write_amount(course, sum, " samples", out);
	fprintf(out, ", %.4f %%\n", opr_percent(sum, sum_all(course)));
	fprintf(out, "%-19s %8s        %%\n", "begin", course->is_time ? "time" : "samples");
	for (size_t i = 0; i < course->nr_bins; i++) {
		const struct opr_bin *bin = &course->bins[i];

		write_local(out, bin->begin_ns);
		fprintf(out, " %s %8.4f ", amount(course, bin->values[0]).text, opr_percent(bin->values[0], bin->total));
		write_bar(bin->values[0], most, width, is_ascii, out);
		fputc('\n', out);
	}
}

void opr_course_text(const struct opr_course *course, size_t nr_columns, bool is_ascii, FILE *out)
{
	size_t width = nr_columns ? nr_columns : COLUMNS;

	write_head(course, out);
	if (course->rows.nr_words == 1)
		write_lines(course, width, is_ascii, out);
	else
		write_chart(course, width, is_ascii, out);
}

/* ---- for programs ---- */

void opr_course_csv(const struct opr_course *course, FILE *out)
{
	char begin[OPR_UTC_BYTES], end[OPR_UTC_BYTES];

	fprintf(out, "begin,end,%s,%s\n", course->what, course->is_time ? "us,all-us" : "samples,all-samples");
	for (size_t i = 0; i < course->nr_bins; i++)
		for (size_t row = 0; row < course->rows.nr_words; row++) {
			opr_format_utc(course->bins[i].begin_ns, begin);
			opr_format_utc(course->bins[i].end_ns, end);
			fprintf(out, "%s,%s,", begin, end);
			opr_write_csv(out, course->rows.words[row]);
			fprintf(out, ",%" PRIu64 ",%" PRIu64 "\n", course->bins[i].values[row], course->bins[i].total);
		}
}

void opr_course_json(const struct opr_course *course, FILE *out)
{
	char begin[OPR_UTC_BYTES], end[OPR_UTC_BYTES];

	fputs("{\n  \"event\": ", out);
	opr_write_json(out, course->event);
	fprintf(out, ", \"grain\": \"%s\", \"kind\": \"%s\",\n  \"names\": [", course->by_hour ? "hour" : "block", course->what);
	for (size_t row = 0; row < course->rows.nr_words; row++) {
		fputs(row ? ", " : "", out);
		opr_write_json(out, course->rows.words[row]);
	}
	fputs("],\n  \"course\": [", out);
	for (size_t i = 0; i < course->nr_bins; i++) {
		opr_format_utc(course->bins[i].begin_ns, begin);
		opr_format_utc(course->bins[i].end_ns, end);
		fprintf(out, "%s\n    { \"begin\": \"%s\", \"end\": \"%s\", \"%s\": [", i ? "," : "", begin, end,
			course->is_time ? "us" : "samples");
		for (size_t row = 0; row < course->rows.nr_words; row++)
			fprintf(out, "%s%" PRIu64, row ? ", " : "", course->bins[i].values[row]);
		fprintf(out, "], \"all\": %" PRIu64 " }", course->bins[i].total);
	}
	fputs("\n  ]\n}\n", out);
}
