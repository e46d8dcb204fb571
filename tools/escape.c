/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/escape.h"

#define C1_LEAD 0xc2 /* of U+0080 to U+00BF in UTF-8 */

static bool is_c1(unsigned char byte)
{
	return byte >= 0x80 && byte < 0xa0;
}

/* Bytes of the UTF-8 sequence that begins here; 1 when there is none. */
static size_t sequence_bytes(const unsigned char *bytes)
{
	size_t wanted = *bytes >= 0xf0 && *bytes < 0xf8 ? 4 : *bytes >= 0xe0 ? 3 : *bytes >= C1_LEAD ? 2 : 1;

	if (*bytes >= 0xf8)
		return 1;
	for (size_t i = 1; i < wanted; i++)
		if ((bytes[i] & 0xc0) != 0x80)
			return 1;
	return wanted;
}

static bool is_control(const unsigned char *bytes, size_t nr_bytes)
{
	if (nr_bytes == 1)
		return *bytes < ' ' || *bytes == 0x7f || is_c1(*bytes);
	return *bytes == C1_LEAD && is_c1(bytes[1]);
}

/* Control characters that are among those in `plain` are written as they are. */
static size_t write_all(FILE *out, const char *text, const char *plain)
{
	const unsigned char *bytes = (const unsigned char *)text;
	size_t nr_written = 0, nr_bytes;

	for (; *bytes; bytes += nr_bytes) {
		bool control;

		nr_bytes = sequence_bytes(bytes);
		control = is_control(bytes, nr_bytes) && !strchr(plain, *bytes);
		nr_written += control ? 4 * nr_bytes : nr_bytes;
		if (!control)
			fwrite(bytes, 1, nr_bytes, out);
		for (size_t i = 0; control && i < nr_bytes; i++)
			fprintf(out, "\\x%02x", bytes[i]);
	}
	return nr_written;
}

size_t opr_write_escaped(FILE *out, const char *name)
{
	return write_all(out, name, "");
}

void opr_write_escaped_line(FILE *out, const char *line)
{
	write_all(out, line, "\t\f\r");
}
