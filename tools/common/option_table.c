/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/common/option_table.h"

#include <errno.h>
#include <popt.h>

#include "libop/base/text.h"
#include "tools/common/option_values.h"
#include "tools/common/log.h"
#include "tools/common/session_dir.h"
#include "tools/common/standard_output.h"

#define VERSION_VALUE (INT_MAX - 1)

static void fill_row(const struct opr_option *option, size_t index, void *options, struct poptOption *row)
{
	*row = (struct poptOption){ .longName = option->name,
				    .shortName = option->short_name,
				    .argInfo = option->take ? POPT_ARG_STRING : POPT_ARG_NONE,
				    .arg = option->take ? NULL : (char *)options + option->offset,
				    .val = option->take ? (int)index + 1 : 0,
				    .descrip = option->help,
				    .argDescrip = option->value_help };
}

/* The tool's rows, and those that every tool has. Freed by the caller; NULL: no memory. */
static struct poptOption *make_table(const struct opr_command *command, void *options)
{
	static const struct poptOption tail[] = { { "version", 'v', POPT_ARG_NONE, NULL, VERSION_VALUE, "show version", NULL },
						  OPR_COMPLETION_ROW POPT_AUTOHELP POPT_TABLEEND };
	struct poptOption *table = calloc(command->nr_rows + op_array_size(tail), sizeof(*table));

	if (!table)
		return NULL;
	for (size_t i = 0; i < command->nr_rows; i++)
		fill_row(&command->rows[i], i, options, &table[i]);
	memcpy(table + command->nr_rows, tail, sizeof(tail));
	return table;
}

/* Of the directory that the command line has named before. What is wrong with it is said, but not shown by a shell. */
static int write_sessions(const struct opr_command *command, void *options)
{
	const char *said = NULL;
	struct opr_words names = { 0 };
	char *dir = NULL;
	int err;

	for (size_t i = 0; i < command->nr_rows; i++)
		if (!strcmp(command->rows[i].name, "session-dir") && command->rows[i].take == opr_take_string)
			said = *(char **)(void *)((char *)options + command->rows[i].offset);
	err = opr_session_dir_choose(said, &dir);
	if (!err)
		err = opr_session_names(dir, &names);
	for (size_t i = 0; i < names.nr_words; i++)
		if (!strpbrk(names.words[i], "\n"))
			puts(names.words[i]);
	opr_words_free(&names);
	free(dir);
	return err;
}

static int write_completion(const struct opr_command *command, const struct poptOption *table, void *options, const char *shell)
{
	const struct opr_completion completion = {
		.program = command->program, .table = table, .takes_files = !command->takes_events, .takes_events = command->takes_events,
		.tag = command->tag
	};

	if (command->tag && !strcmp(shell, OPR_COMPLETION_SESSIONS))
		return write_sessions(command, options);
	return opr_completion_write(stdout, &completion, shell) < 0 ? opr_error(-EINVAL, "--completion=%s: bash or zsh", shell) : 0;
}

/* One option with a value, or one of those that every tool has. */
static int take(const struct opr_command *command, const struct poptOption *table, void *options, int next, char *value,
		enum opr_request *ret_request)
{
	const struct opr_option *option;

	if (next == VERSION_VALUE || next == OPR_COMPLETION_VALUE)
		*ret_request = OPR_DONE;
	if (next == VERSION_VALUE) {
		printf("%s: opd " PACKAGE_VERSION "\n", command->program);
		return 0;
	}
	if (next == OPR_COMPLETION_VALUE)
		return write_completion(command, table, options, value ? value : "");
	option = &command->rows[next - 1];
	return option->take((char *)options + option->offset, value ? value : "");
}

static int read_all(const struct opr_command *command, const struct poptOption *table, poptContext context, void *options,
		    struct opr_words *words, enum opr_request *ret_request)
{
	enum opr_request request = OPR_RUN;
	int next, err = 0;

	while (!err && request == OPR_RUN && (next = poptGetNextOpt(context)) > 0) {
		char *value = poptGetOptArg(context);

		err = take(command, table, options, next, value, &request);
		free(value);
	}
	if (err < 0)
		return err;
	*ret_request = request;
	if (request == OPR_DONE)
		return 0;
	if (next < -1)
		return opr_error(-EINVAL, "%s: %s (see %s --help)", poptBadOption(context, POPT_BADOPTION_NOALIAS),
				 poptStrerror(next), command->program);
	for (const char *word; (word = poptGetArg(context));)
		if (opr_words_add(words, word) < 0)
			return opr_no_memory();
	return 0;
}

int opr_command_read(const struct opr_command *command, int argc, const char **argv, void *options, struct opr_words *words,
		     enum opr_request *ret_request)
{
	struct poptOption *table = opr_stdout_guard(command->failed ? command->failed : EXIT_FAILURE) ? NULL : make_table(command, options);
	poptContext context = table ? poptGetContext(command->program, argc, argv, table, 0) : NULL;
	int err;

	if (!context) {
		free(table);
		return opr_no_memory();
	}
	poptSetOtherOptionHelp(context, command->arguments);
	err = read_all(command, table, context, options, words, ret_request);
	poptFreeContext(context);
	free(table);
	return err;
}

char *opr_command_line(const char *program, int argc, const char **argv)
{
	struct op_text line = { 0 };

	op_text_printf(&line, "%s ", program);
	for (int i = 1; i < argc; i++)
		op_text_printf(&line, "%s ", argv[i]);
	return op_text_steal(&line);
}
