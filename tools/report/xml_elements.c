/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/report/xml_elements.h"

#include <inttypes.h>

#include "libop/base/text.h"

static const char *entity_of(char c)
{
	switch (c) {
	case '&':
		return "&amp;";
	case '<':
		return "&lt;";
	case '>':
		return "&gt;";
	case '"':
		return "&quot;";
	default:
		return NULL;
	}
}

void opr_html_text(FILE *out, const char *text)
{
	char escaped[OP_ESCAPED_BYTES];

	while (*text) {
		const char *entity = entity_of(*text);

		text += op_escape(text, escaped);
		fputs(entity ? entity : escaped, out);
	}
}

void opr_xml_begin(FILE *out, const char *tag)
{
	fprintf(out, "<%s ", tag);
}

void opr_xml_attribute(FILE *out, const char *name, const char *value)
{
	fprintf(out, " %s=\"", name);
	opr_html_text(out, value);
	fputc('"', out);
}

void opr_xml_number(FILE *out, const char *name, uint64_t value)
{
	fprintf(out, " %s=\"%" PRIu64 "\"", name, value);
}

void opr_xml_open(FILE *out)
{
	fputs(">\n", out);
}

void opr_xml_empty(FILE *out)
{
	fputs("/>\n", out);
}

void opr_xml_start(FILE *out, const char *tag)
{
	fprintf(out, "<%s>\n", tag);
}

void opr_xml_end(FILE *out, const char *tag)
{
	fprintf(out, "</%s>\n", tag);
}
