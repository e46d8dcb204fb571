/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/common/formatting.h"

#include <sys/ioctl.h>

#include "libop/base/parse.h"
#include "libop/base/text.h"

#define LATIN_1         0xa0 /* the first byte of ISO 8859-1 behind its control characters */
#define DEFAULT_COLUMNS 80
#define MAX_COLUMNS     10000

static size_t write_name(FILE *out, const char *name, size_t (*escape)(const char *string, char ret_escaped[OP_ESCAPED_BYTES]))
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
		name += escape(name, escaped);
		fputs(escaped, out);
		nr_written += strlen(escaped);
	}
	return nr_written;
}

size_t opr_write_escaped(FILE *out, const char *name)
{
	return write_name(out, name, op_escape_shown);
}

void opr_write_listed(FILE *out, const char *name)
{
	write_name(out, name, op_escape);
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
		taken = op_escape_shown(line, escaped);
		if (taken == 1 && (strchr("\t\f\r\\", *line) || (unsigned char)*line >= LATIN_1))
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

size_t opr_count_columns(int fd)
{
	const char *env = getenv("COLUMNS");
	struct winsize size = { 0 };
	uint64_t columns;

	if (env && !op_parse_u64(env, 1, MAX_COLUMNS, &columns))
		return (size_t)columns;
	return !ioctl(fd, TIOCGWINSZ, &size) && size.ws_col ? size.ws_col : DEFAULT_COLUMNS;
}
