/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/report/text_line.h"

#include "tools/elf/demangle.h"

#define MIN_NAME_COLUMNS 20 /* a name is never shorter */

#define COLOUR_HOT   "\033[31m"
#define COLOUR_WARM  "\033[32m"
#define COLOUR_NONE  "\033[m"
#define HOT_PERCENT  5.0
#define WARM_PERCENT 0.5

const char *opr_colour_of(const struct opr_layout *layout, uint64_t count, uint64_t total)
{
	double percent = opr_percent(count, total);

	if (!layout->colour || percent < WARM_PERCENT)
		return "";
	return percent < HOT_PERCENT ? COLOUR_WARM : COLOUR_HOT;
}

const char *opr_colour_end(const char *colour)
{
	return *colour ? COLOUR_NONE : "";
}

static void write_blanks(FILE *out, size_t nr_blanks)
{
	static const char blanks[] = "                                ";
	size_t nr_written;

	for (; nr_blanks; nr_blanks -= nr_written) {
		nr_written = op_min_u64(nr_blanks, sizeof(blanks) - 1);
		fwrite(blanks, 1, nr_written, out);
	}
}

void opr_line_add(struct opr_line *line, size_t width, const char *text)
{
	size_t length;

	write_blanks(line->out, line->pending);
	line->written += line->pending;
	if (line->colour)
		fputs(line->colour, line->out);
	length = opr_write_escaped(line->out, text);
	if (line->colour)
		fputs(opr_colour_end(line->colour), line->out);
	line->colour = NULL;
	line->written += length;
	line->pending = width > length ? width - length : 1;
}

void opr_line_add_last(struct opr_line *line, const struct opr_layout *layout, const char *text)
{
	size_t used = line->written + line->pending, nr_columns = layout->nr_columns;
	size_t room = nr_columns > used + MIN_NAME_COLUMNS ? nr_columns - used : MIN_NAME_COLUMNS;
	size_t max = nr_columns ? room : layout->name_bytes;
	struct op_text cut = { 0 };
	char *elided = max && strlen(text) > max ? opr_demangle_elide(text, max) : NULL;

	if (elided)
		text = elided;
	if (nr_columns && strlen(text) > room) {
		op_text_add_bytes(&cut, text, room - 3);
		op_text_add(&cut, "...");
	}
	opr_line_add(line, 0, cut.length ? op_text_get(&cut) : text);
	op_text_free(&cut);
	free(elided);
}
