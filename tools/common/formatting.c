/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/common/formatting.h"

#include <inttypes.h>
#include <sys/ioctl.h>

#include "libop/base/parse.h"
#include "libop/base/text.h"

#define LATIN_1         0xa0 /* the first byte of ISO 8859-1 behind its control characters */
#define DEFAULT_COLUMNS 80
#define DEFAULT_ROWS    24
#define MAX_COLUMNS     10000
#define NS_PER_S        1000000000ull

size_t opr_write_escaped(FILE *out, const char *name)
{
	char escaped[OP_ESCAPED_BYTES];
	size_t nr_written = 0;

	for (;;) {
		size_t nr_plain = op_nr_plain(name);

		fwrite(name, 1, nr_plain, out);
		name += nr_plain;
		nr_written += nr_plain;
		if (!*name)
			break;
		name += op_escape(name, escaped);
		fputs(escaped, out);
		nr_written += strlen(escaped);
	}
	return nr_written;
}

static bool is_inside_character(const struct op_text *text, size_t at)
{
	return ((unsigned char)text->data[at] & 0xc0) == 0x80;
}

void opr_shorten(struct op_text *shown)
{
	static const char gap[] = " ... ";
	size_t head = OPR_SHOWN_BYTES / 2, tail = shown->length - op_min_u64(shown->length, OPR_SHOWN_BYTES / 2 - strlen(gap));

	if (shown->length <= OPR_SHOWN_BYTES)
		return;
	while (is_inside_character(shown, head))
		head--;
	while (is_inside_character(shown, tail))
		tail++;
	memcpy(shown->data + head, gap, strlen(gap));
	memmove(shown->data + head + strlen(gap), shown->data + tail, shown->length - tail);
	op_text_truncate(shown, head + strlen(gap) + shown->length - tail);
}

void opr_write_shortened(FILE *out, const char *name)
{
	struct op_text shown = { 0 };

	op_text_add_escaped(&shown, name);
	opr_shorten(&shown);
	fputs(op_text_get(&shown), out);
	op_text_free(&shown);
}

/* Unlike names, lines may look the same: backslashes and other character sets stay. */
void opr_write_escaped_line(FILE *out, const char *line)
{
	char escaped[OP_ESCAPED_BYTES];

	for (;;) {
		size_t nr_plain = op_nr_plain(line), taken;

		fwrite(line, 1, nr_plain, out);
		line += nr_plain;
		if (!*line)
			break;
		taken = op_escape(line, escaped);
		if (taken == 1 && (strchr("\t\f\\", *line) || !strcmp(line, "\r") || (unsigned char)*line >= LATIN_1))
			fputc(*line, out);
		else
			fputs(escaped, out);
		line += taken;
	}
}

struct opr_percent_text opr_format_percent(uint64_t count, uint64_t total)
{
	double percent = opr_percent(count, total);
	struct opr_percent_text text;

	if (!count || !total)
		snprintf(text.text, sizeof(text.text), "%*s", OPR_PERCENT_WIDTH, "0");
	else if (percent > 0.001)
		snprintf(text.text, OPR_PERCENT_WIDTH + 1, "%*.4f", OPR_PERCENT_WIDTH, percent);
	else
		snprintf(text.text, sizeof(text.text), "%*.1e", OPR_PERCENT_WIDTH, percent);
	return text;
}

struct opr_time_text opr_format_us(uint64_t us)
{
	static const struct {
		double us;
		const char *unit;
	} units[] = { { 1, "us" }, { 1e3, "ms" }, { 1e6, "s" }, { 3.6e9, "h" } };
	struct opr_time_text text;
	size_t i = us < 1000 ? 0 : us < 999500 ? 1 : us < 99999500000 ? 2 : 3;
	double value = (double)us / units[i].us;
	int nr_digits = !i || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
	int nr_columns = OPR_TIME_WIDTH - 1 - (int)strlen(units[i].unit);

	snprintf(text.text, sizeof(text.text), "%*.*f %s", nr_columns, nr_digits, value, units[i].unit);
	return text;
}

void opr_add_span(struct op_text *text, uint64_t ns)
{
	static const struct {
		uint64_t seconds;
		const char *unit;
	} units[] = { { 86400, "d" }, { 3600, "h" }, { 60, "min" }, { 1, "s" } };
	uint64_t rest = (ns + NS_PER_S / 2) / NS_PER_S;
	size_t i = 0;

	if (ns < 10ull * NS_PER_S) {
		op_text_printf(text, "%.3g s", (double)ns / NS_PER_S);
		return;
	}
	while (rest < units[i].seconds)
		i++;
	op_text_printf(text, "%" PRIu64 " %s", rest / units[i].seconds, units[i].unit);
	rest %= units[i].seconds;
	if (units[i].seconds > 1 && rest / units[i + 1].seconds)
		op_text_printf(text, " %" PRIu64 " %s", rest / units[i + 1].seconds, units[i + 1].unit);
}

static size_t number_of(const char *name)
{
	const char *env = getenv(name);
	uint64_t number;

	return env && !op_parse_u64(env, 1, MAX_COLUMNS, &number) ? (size_t)number : 0;
}

size_t opr_count_columns(int fd)
{
	struct winsize size = { 0 };
	size_t nr_columns = number_of("COLUMNS");

	if (nr_columns)
		return nr_columns;
	return !ioctl(fd, TIOCGWINSZ, &size) && size.ws_col ? size.ws_col : DEFAULT_COLUMNS;
}

size_t opr_count_rows(int fd)
{
	struct winsize size = { 0 };
	size_t nr_rows = number_of("LINES");

	if (nr_rows)
		return nr_rows;
	return !ioctl(fd, TIOCGWINSZ, &size) && size.ws_row ? size.ws_row : DEFAULT_ROWS;
}
