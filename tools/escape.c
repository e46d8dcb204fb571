/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/escape.h"

#include "libop/text.h"

size_t opr_write_escaped(FILE *out, const char *name)
{
	char escaped[OP_ESCAPED_BYTES];
	size_t nr_written = 0;

	while (*name) {
		name += op_escape(name, escaped);
		fputs(escaped, out);
		nr_written += strlen(escaped);
	}
	return nr_written;
}
