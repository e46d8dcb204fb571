/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/xml_writer.h"

#include <inttypes.h>

#include "libop/text.h"

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

void opr_xml_text(FILE *out, const char *text)
{
	struct op_text clean = { 0 };

	op_text_add_clean(&clean, text);
	for (const char *c = op_text_get(&clean); *c; c++) {
		const char *entity = entity_of(*c);

		if (entity)
			fputs(entity, out);
		else
			fputc(*c, out);
	}
	op_text_free(&clean);
}

void opr_xml_begin(FILE *out, const char *tag)
{
	fprintf(out, "<%s ", tag);
}

void opr_xml_attribute(FILE *out, const char *name, const char *value)
{
	fprintf(out, " %s=\"", name);
	opr_xml_text(out, value);
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
