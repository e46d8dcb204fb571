/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/report/quote.h"

#include "libop/base/text.h"
#include "tools/common/formatting.h"
#include "tools/report/inlined.h"

void opr_write_csv(FILE *out, const char *text)
{
	char escaped[OP_ESCAPED_BYTES];

	fputc('"', out);
	while (*text) {
		if (*text == '"')
			fputc('"', out);
		text += op_escape(text, escaped);
		fputs(escaped, out);
	}
	fputc('"', out);
}

void opr_write_csv_texts(FILE *out, const char *const *texts, size_t nr_texts)
{
	for (size_t i = 0; i < nr_texts; i++) {
		if (i)
			fputc(',', out);
		opr_write_csv(out, texts[i]);
	}
}

void opr_write_csv_inliners(FILE *out, const struct opr_symbol_row *row)
{
	const struct opr_frame *frame = row->inlined;
	struct op_text all = { 0 };
	char line[16] = "";
	const char *texts[] = { "", "", line, "" };

	if (frame) {
		opr_inliners_add(&all, frame, row->symbol->shown, true);
		snprintf(line, sizeof(line), "%u", frame->line);
		texts[0] = opr_inliner(row, frame);
		texts[1] = frame->file;
		texts[3] = op_text_get(&all);
	}
	opr_write_csv_texts(out, texts, op_array_size(texts));
	op_text_free(&all);
}

void opr_write_json(FILE *out, const char *string)
{
	struct op_text text = { 0 };

	op_text_add_json(&text, string);
	fprintf(out, "\"%s\"", op_text_get(&text));
	op_text_free(&text);
}

void opr_write_json_inliners(FILE *out, const struct opr_symbol_row *row)
{
	fputs("\"inlined by\": [", out);
	for (const struct opr_frame *frame = row->inlined; frame; frame = frame->outer) {
		fputs(frame == row->inlined ? "{ \"symbol\": " : ", { \"symbol\": ", out);
		opr_write_json(out, opr_inliner(row, frame));
		if (*frame->file) {
			fputs(", \"file\": ", out);
			opr_write_json(out, frame->file);
		}
		if (frame->line)
			fprintf(out, ", \"line\": %u", frame->line);
		fputs(" }", out);
	}
	fputs("], ", out);
}
