/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Symbols of the kernel itself, from a list in the format of /proc/kallsyms. */
#include <ctype.h>
#include <errno.h>

#include "libop/base/parse.h"
#include "tools/symbols/symbol_sources.h"

/* The text of the kernel. Positions are relative to its start. */
struct kernel_text {
	uint64_t start, old_start, end; /* _text, _stext, _etext */
	bool any_address;               /* false: all addresses are hidden */
};

static void note_address(struct kernel_text *text, const struct op_kallsyms_line *line)
{
	text->any_address |= line->address != 0;
	if (line->module)
		return;
	if (!strcmp(line->name, "_text"))
		text->start = line->address;
	else if (!strcmp(line->name, "_stext"))
		text->old_start = line->address;
	else if (!strcmp(line->name, "_etext"))
		text->end = line->address;
}

/* With its address as start, until the range of the text is known. */
static int add_line(struct opr_symbols *symbols, const struct op_kallsyms_line *line)
{
	char lower = (char)tolower((unsigned char)line->type);
	bool local = line->type == lower && lower != 'w';

	if (!line->address || line->module || (lower != 't' && lower != 'w'))
		return 0;
	return opr_symbols_add(symbols, &(struct opr_symbol){ .start = line->address,
							      .vma = line->address,
							      .name = line->name,
							      .rank = opr_symbol_rank(line->name, local, lower == 'w') });
}

static int read_lines(FILE *file, struct kernel_text *text, struct opr_symbols *symbols)
{
	char *buffer = NULL;
	size_t buffer_bytes = 0;
	int err = 0;

	while (!err && getline(&buffer, &buffer_bytes, file) > 0) {
		struct op_kallsyms_line line;

		if (!op_kallsyms_parse(buffer, &line))
			continue;
		note_address(text, &line);
		err = add_line(symbols, &line);
	}
	if (!err && ferror(file))
		err = -EIO;
	free(buffer);
	return err;
}

/* Leaves the symbols of the text. */
static void keep_text(struct opr_symbols *symbols, const struct kernel_text *text)
{
	size_t nr_kept = 0;

	for (size_t i = 0; i < symbols->nr_symbols; i++) {
		struct opr_symbol symbol = symbols->symbols[i];

		if (symbol.vma < text->start || symbol.vma >= text->end)
			continue;
		symbol.start -= text->start;
		symbols->symbols[nr_kept++] = symbol;
	}
	symbols->nr_symbols = nr_kept;
}

int opr_symbols_read_kallsyms(struct opr_symbols *symbols, const char *path, enum opr_demangle demangle)
{
	struct kernel_text text = { 0 };
	FILE *file = fopen(path, "re");
	int err;

	if (!file)
		return -errno;
	err = read_lines(file, &text, symbols);
	fclose(file);
	if (!text.start)
		text.start = text.old_start;
	if (!err && !text.any_address)
		err = -EPERM;
	if (!err) {
		keep_text(symbols, &text);
		err = opr_symbols_finish(symbols, text.end > text.start ? text.end - text.start : 0);
	}
	return err ? err : opr_symbols_demangle(symbols, demangle);
}
