/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/common/program.h"

#include <errno.h>
#include <popt.h>
#include <signal.h>

#include "libop/base/nearest.h"
#include "libop/base/text.h"
#include "tools/common/completion.h"
#include "tools/common/log.h"
#include "tools/common/option_values.h"
#include "tools/common/output.h"
#include "tools/common/session_dir.h"

/* ---- signals ---- */

static struct op_stop stop = { .fd = -1 };

static void on_signal(int number OP_UNUSED)
{
	op_stop_set(&stop);
}

int opr_interrupt_catch(const struct op_stop **ret_stop)
{
	static const int numbers[] = { SIGINT, SIGTERM, SIGHUP };
	struct sigaction action = { .sa_handler = on_signal };
	int err = op_stop_open(&stop);

	if (err)
		return opr_error(err, "cannot wait for signals: %s", strerror(-err));
	for (size_t i = 0; i < op_array_size(numbers); i++)
		sigaction(numbers[i], &action, NULL);
	*ret_stop = &stop;
	return 0;
}

/* ---- the command line ---- */

/* popt's table; values are indexes of rows + 1. Freed by the caller; NULL: no memory. */
static struct poptOption *make_table(const struct opr_command *command)
{
	const struct opr_option *option;
	struct poptOption *table, *next;
	size_t nr_rows = 0;

	while (opr_command_row(command, nr_rows))
		nr_rows++;
	table = next = calloc(nr_rows + 3, sizeof(*table));
	for (size_t i = 0; table && (option = opr_command_row(command, i)); i++) {
		bool may_lack = (option->value_help && *option->value_help == '[') ||
				(option->take == opr_take_verbose && command->words != OPR_WORDS_COMMAND);
		unsigned int optional = may_lack ? POPT_ARGFLAG_OPTIONAL : 0;

		if (option->name)
			*next++ = (struct poptOption){ .longName = option->name,
						       .shortName = option->short_name,
						       .argInfo = option->value_help ? POPT_ARG_STRING | optional : POPT_ARG_NONE,
						       .val = (int)i + 1 };
		/* operf and ocount of oprofile also have -h and -u. */
		if (i >= command->nr_rows && command->words == OPR_WORDS_COMMAND && option->name &&
		    (option->offset == OPR_COMMON_HELP || option->offset == OPR_COMMON_USAGE))
			*next++ = (struct poptOption){ .shortName = option->offset == OPR_COMMON_HELP ? 'h' : 'u',
						       .argInfo = POPT_ARG_NONE,
						       .val = (int)i + 1 };
	}
	return table;
}

/* For the completion of names: the sessions of the directory that the command line names before. */
static int write_sessions(const struct opr_command *command, void *options)
{
	const char *dir_option = NULL;
	struct opr_words names = { 0 };
	char *dir = NULL;
	int err;

	for (size_t i = 0; i < command->nr_rows; i++)
		if (!strcmp(command->rows[i].name, "session-dir") && command->rows[i].take == opr_take_string)
			dir_option = *(char **)(void *)((char *)options + command->rows[i].offset);
	err = opr_session_dir_choose(dir_option, &dir);
	if (!err)
		err = opr_session_names(dir, &names);
	for (size_t i = 0; i < names.nr_words; i++) {
		struct op_text escaped = { 0 };

		/* a name that must be escaped could not be completed */
		op_text_add_escaped(&escaped, names.words[i]);
		if (!strcmp(op_text_get(&escaped), names.words[i]))
			puts(names.words[i]);
		op_text_free(&escaped);
	}
	opr_words_free(&names);
	free(dir);
	return err;
}

static int take_common(const struct opr_command *command, void *options, const struct opr_option *option, const char *value)
{
	switch ((enum opr_common)option->offset) {
	case OPR_COMMON_VERSION:
		printf("%s: opd " PACKAGE_VERSION "\n", command->program);
		return 0;
	case OPR_COMMON_HELP:
		opr_help_write(stdout, command);
		return 0;
	case OPR_COMMON_USAGE:
		opr_usage_write(stdout, command);
		return 0;
	case OPR_COMMON_COMPLETION:
		if (command->tag && !strcmp(value, OPR_COMPLETION_SESSIONS))
			return write_sessions(command, options);
		return opr_completion_write(stdout, command, value) < 0 ? opr_error(-EINVAL, "--completion=%s: bash or zsh", value)
									: 0;
	}
	return -EINVAL;
}

/* How an option that exists is written. */
static void add_form(const struct opr_command *command, const char *name, struct op_text *hint)
{
	const struct opr_option *row;

	for (size_t i = 0; (row = opr_command_row(command, i)); i++)
		if (row->name && !strcmp(row->name, name))
			op_text_printf(hint, ": write --%s%s%s", name, row->value_help ? "=" : "",
				       row->value_help ? row->value_help : "");
}

/* An option that popt does not take, with the option that comes near, or its right form. */
static int refuse_option(const struct opr_command *command, poptContext context, int why)
{
	const char *option = poptBadOption(context, POPT_BADOPTION_NOALIAS);
	struct op_text hint = { 0 };
	const struct opr_option *row;
	struct op_nearest nearest;
	char *name = NULL;

	if (!strncmp(option, "--", 2))
		name = strndup(option + 2, strcspn(option + 2, "="));
	if (name && why != POPT_ERROR_BADOPT)
		add_form(command, name, &hint);
	else if (name) {
		op_nearest_init(&nearest, name);
		for (size_t i = 0; (row = opr_command_row(command, i)); i++)
			if (row->name && row->help)
				op_nearest_try(&nearest, row->name);
		op_nearest_add_hint(&nearest, "--", &hint);
	}
	opr_error(-EINVAL, "%s: %s (see %s --help)%s", option, poptStrerror(why), command->program, op_text_get(&hint));
	op_text_free(&hint);
	free(name);
	return -EINVAL;
}

static int read_all(const struct opr_command *command, poptContext context, void *options, struct opr_words *words,
		    enum opr_request *ret_request)
{
	enum opr_request request = OPR_RUN;
	int next = -1, err = 0;

	while (!err && request == OPR_RUN && (next = poptGetNextOpt(context)) > 0) {
		const struct opr_option *option = opr_command_row(command, (size_t)next - 1);
		char *value = poptGetOptArg(context);

		opr_log_set_option(option->name, value ? value : "");
		if ((size_t)next > command->nr_rows) {
			request = OPR_DONE;
			err = take_common(command, options, option, value ? value : "");
		} else {
			err = (command->take ? command->take : opr_option_take)(options, option, value ? value : "");
		}
		opr_log_set_option(NULL, NULL);
		free(value);
	}
	if (err)
		return err;
	*ret_request = request;
	if (request == OPR_DONE)
		return 0;
	if (next < -1)
		return refuse_option(command, context, next);
	for (const char *word; (word = poptGetArg(context));)
		if (opr_words_add(words, word) < 0)
			return opr_no_memory();
	return 0;
}

int opr_command_read(const struct opr_command *command, int argc, const char **argv, void *options, struct opr_words *words,
		     enum opr_request *ret_request)
{
	int err = opr_stdout_guard(command->failed ? command->failed : EXIT_FAILURE);
	struct poptOption *table = err ? NULL : make_table(command);
	unsigned int flags = command->words == OPR_WORDS_COMMAND ? POPT_CONTEXT_POSIXMEHARDER : 0;
	poptContext context = table ? poptGetContext(command->program, argc, argv, table, flags) : NULL;

	signal(SIGXFSZ, SIG_IGN); /* a file that may not grow is an error of the call, EFBIG */
	if (context)
		err = read_all(command, context, options, words, ret_request);
	else if (!err)
		err = opr_no_memory();
	poptFreeContext(context);
	free(table);
	return err;
}

void opr_command_free(const struct opr_command *command, void *options)
{
	for (size_t i = 0; i < command->nr_rows; i++) {
		const struct opr_option *option = opr_command_row(command, i);

		opr_value_free(option->take, (char *)options + option->offset);
	}
}

int opr_command_run(const struct opr_command *command, int argc, const char **argv, void *options, struct opr_words *words,
		    int (*run)(const void *options))
{
	enum opr_request request;
	int err;

	opr_log_init(command->program);
	err = opr_command_read(command, argc, argv, options, words, &request);
	if (!err && request == OPR_RUN)
		err = run(options);
	opr_command_free(command, options);
	opr_words_free(words);
	return err ? EXIT_FAILURE : EXIT_SUCCESS;
}

char *opr_command_line(const char *program, int argc, const char **argv)
{
	struct op_text line = { 0 };

	op_text_printf(&line, "%s ", program);
	for (int i = 1; i < argc; i++)
		op_text_printf(&line, "%s ", argv[i]);
	return op_text_steal(&line);
}
