/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <ctype.h>
#include <errno.h>

#include "tools/symbols/symbols.h"

#define TEXT_START     "_text"
#define TEXT_START_OLD "_stext"
#define TEXT_END       "_etext"

struct kallsyms_line {
	uint64_t address;
	char type;
	char *name;
	bool is_module;
};

/* "ADDRESS TYPE NAME[\t[MODULE]]" */
static bool parse_line(char *line, struct kallsyms_line *ret_line)
{
	char *end, *tab;

	errno = 0;
	ret_line->address = strtoull(line, &end, 16);
	if (errno || end == line || end[0] != ' ' || !end[1] || end[2] != ' ')
		return false;
	ret_line->type = end[1];
	ret_line->name = end + 3;
	tab = strpbrk(ret_line->name, "\t\n ");
	ret_line->is_module = tab && *tab == '\t';
	if (tab)
		*tab = '\0';
	return *ret_line->name != '\0';
}

struct kallsyms_range {
	uint64_t text, old_text, end;
	bool any_address;
};

static void note_range(struct kallsyms_range *range, const struct kallsyms_line *line)
{
	range->any_address |= line->address != 0;
	if (line->is_module)
		return;
	if (!strcmp(line->name, TEXT_START))
		range->text = line->address;
	else if (!strcmp(line->name, TEXT_START_OLD))
		range->old_text = line->address;
	else if (!strcmp(line->name, TEXT_END))
		range->end = line->address;
}

static int add_line(struct opr_symbols *symbols, const struct kallsyms_range *range, const struct kallsyms_line *line)
{
	char lower = (char)tolower((unsigned char)line->type);
	bool global = line->type != lower || lower == 'w';

	if (line->is_module || (lower != 't' && lower != 'w') || line->address < range->text || line->address >= range->end)
		return 0;
	return opr_symbols_add(symbols, &(struct opr_symbol){ .start = line->address - range->text,
							      .vma = line->address,
							      .name = line->name,
							      .rank = opr_symbol_rank(line->name, global, lower == 'w') });
}

static int read_lines(FILE *file, int (*visit)(void *arg, const struct kallsyms_line *line), void *arg)
{
	char *buffer = NULL;
	size_t buffer_bytes = 0;
	int err = 0;

	while (!err && getline(&buffer, &buffer_bytes, file) > 0) {
		struct kallsyms_line line;

		if (parse_line(buffer, &line))
			err = visit(arg, &line);
	}
	if (!err && ferror(file))
		err = -EIO;
	free(buffer);
	return err;
}

struct add_arg {
	struct opr_symbols *symbols;
	struct kallsyms_range range;
};

static int visit_range(void *arg, const struct kallsyms_line *line)
{
	note_range(&((struct add_arg *)arg)->range, line);
	return 0;
}

static int visit_add(void *arg, const struct kallsyms_line *line)
{
	struct add_arg *add = arg;

	return add_line(add->symbols, &add->range, line);
}

int opr_symbols_read_kallsyms(struct opr_symbols *symbols, const char *path, enum opr_demangle demangle)
{
	struct add_arg arg = { .symbols = symbols };
	FILE *file = fopen(path, "re");
	int err;

	if (!file)
		return -errno;
	err = read_lines(file, visit_range, &arg);
	if (!arg.range.text)
		arg.range.text = arg.range.old_text;
	if (!err && !arg.range.any_address)
		err = -EPERM;
	if (!err && arg.range.end > arg.range.text) {
		rewind(file);
		err = read_lines(file, visit_add, &arg);
	}
	fclose(file);
	if (err < 0)
		return err;
	opr_symbols_finish(symbols, NULL, arg.range.end - arg.range.text);
	return opr_symbols_demangle(symbols, demangle);
}
