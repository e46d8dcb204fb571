/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/common/option_table.h"

#include "libop/base/text.h"
#include "tools/common/formatting.h"

#define TEXT_COLUMN   32 /* of the descriptions */
#define NARROW_COLUMN 10 /* the same where lines are shorter than NARROW */
#define NARROW        60
#define USAGE         "Usage: "

static const struct opr_option common_rows[] = {
	{ "version", 'v', OPR_COMMON_VERSION, NULL, "show the version", NULL },
	{ "completion", 0, OPR_COMMON_COMPLETION, NULL, NULL, "shell" },
	{ NULL, 0, 0, NULL, "Help options:", NULL },
	{ "help", '?', OPR_COMMON_HELP, NULL, "show this", NULL },
	{ "usage", 0, OPR_COMMON_USAGE, NULL, "show the options in short", NULL },
};

const struct opr_option *opr_command_row(const struct opr_command *command, size_t index)
{
	if (index < command->nr_rows)
		return command->row ? command->row(index) : &command->rows[index];
	index -= command->nr_rows;
	return index < op_array_size(common_rows) ? &common_rows[index] : NULL;
}

int opr_option_take(void *options, const struct opr_option *option, const char *value)
{
	void *field = (char *)options + option->offset;

	if (option->take)
		return option->take(field, value);
	*(int *)field = 1;
	return 0;
}

/* ---- --help and --usage ---- */

/* Writes words from `column` on, and continues there on the next lines. */
static void write_wrapped(FILE *out, const char *text, size_t column, size_t width)
{
	size_t at = column;

	while (*text) {
		size_t length = strcspn(text, " ");

		if (at > column && at + 1 + length > width) {
			fprintf(out, "\n%*s", (int)column, "");
			at = column;
		} else if (at > column) {
			fputc(' ', out);
			at++;
		}
		fprintf(out, "%.*s", (int)length, text);
		at += length;
		text += length;
		text += strspn(text, " ");
	}
	fputc('\n', out);
}

/* "--name", "--name=value" or "--name[=value]" */
static void add_name(struct op_text *text, const struct opr_option *option)
{
	const char *value = option->value_help;

	op_text_printf(text, "--%s", option->name);
	if (value && *value == '[')
		op_text_printf(text, "[=%s", value + 1);
	else if (value)
		op_text_printf(text, "=%s", value);
}

static void write_option(FILE *out, const struct opr_option *option, size_t column, size_t width)
{
	struct op_text left = { 0 };

	op_text_printf(&left, option->short_name ? "  -%c, " : "      ", option->short_name);
	add_name(&left, option);
	if (left.length + 2 > column)
		fprintf(out, "%s\n%*s", op_text_get(&left), (int)column, "");
	else
		fprintf(out, "%-*s", (int)column, op_text_get(&left));
	op_text_free(&left);
	write_wrapped(out, option->help, column, width);
}

void opr_help_write(FILE *out, const struct opr_command *command)
{
	size_t width = opr_count_columns(fileno(out)), column = width < NARROW ? NARROW_COLUMN : TEXT_COLUMN;
	const struct opr_option *option;
	struct op_text line = { 0 };

	op_text_printf(&line, USAGE "%s [OPTION...] %s", command->program, command->arguments ? command->arguments : "");
	write_wrapped(out, op_text_get(&line), 0, width);
	op_text_free(&line);
	for (size_t i = 0; (option = opr_command_row(command, i)); i++) {
		if (!option->name) {
			fputc('\n', out);
			write_wrapped(out, option->help, 0, width);
		} else if (option->help) {
			write_option(out, option, column, width);
		}
	}
}

void opr_usage_write(FILE *out, const struct opr_command *command)
{
	const struct opr_option *option;
	struct op_text text = { 0 };

	op_text_add(&text, command->program);
	for (size_t i = 0; (option = opr_command_row(command, i)); i++) {
		if (!option->name || !option->help)
			continue;
		op_text_printf(&text, option->short_name ? " [-%c|" : " [", option->short_name);
		add_name(&text, option);
		op_text_add_char(&text, ']');
	}
	op_text_printf(&text, " %s", command->arguments ? command->arguments : "");
	fputs(USAGE, out);
	write_wrapped(out, op_text_get(&text), strlen(USAGE), opr_count_columns(fileno(out)));
	op_text_free(&text);
}
