/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/common/option_table.h"

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
