/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/common/escape.h"

#include "libop/base/text.h"

#define LATIN_1 0xa0 /* from here on it has no control characters */

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

/* A text is to be read, not to be told from another: its backslashes stay, and so do letters of another character set. */
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
