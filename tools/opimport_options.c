/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <errno.h>
#include <popt.h>
#include <unistd.h>

#include "libop/session.h"
#include "tools/opimport.h"
#include "tools/report_log.h"

#define SEPARATE_DEFAULT "library,kernel"

static int take_separate(struct opi_options *options, const char *words)
{
	char *bad_word = NULL;
	int err = op_setup_set_separate(&options->separation, words, &bad_word);

	if (err == -ENOMEM)
		return opr_no_memory();
	if (!err && options->separation.separate_cgroup)
		return opr_error(-EINVAL, "--separate=%s: the records do not say in which cgroup they were taken", words);
	if (err)
		opr_error(err, "--separate=%s: '%s' is none of none, library, kernel, thread, cpu, all", words, bad_word);
	free(bad_word);
	return err;
}

/* One file, or none: then what comes by standard input, unless that is a terminal. */
static int take_file(struct opi_options *options, poptContext context)
{
	const char *file = poptGetArg(context);

	if (poptPeekArg(context))
		return opr_error(-EINVAL, "one file at a time (see opimport --help)");
	if (!file && isatty(STDIN_FILENO))
		return opr_error(-EINVAL, "which file? (see opimport --help)");
	options->file = strdup(file ? file : "-");
	return options->file ? 0 : opr_no_memory();
}

static int finish(struct opi_options *options, poptContext context, const char *separate)
{
	int err = take_separate(options, separate ? separate : SEPARATE_DEFAULT);

	if (!err && !options->output) {
		options->output = strdup(strrchr(OP_SESSION_CURRENT, '/') + 1);
		err = options->output ? 0 : opr_no_memory();
	}
	return err ? err : take_file(options, context);
}

int opi_options_parse(struct opi_options *options, int argc, const char **argv)
{
	char *separate = NULL;
	const struct poptOption rows[] = {
		{ "session-dir", 0, POPT_ARG_STRING, &options->session_dir, 0, "where sessions are kept", "DIR" },
		{ "output", 'o', POPT_ARG_STRING, &options->output, 0, "the session that is made (default current)", "NAME" },
		{ "vmlinux", 'k', POPT_ARG_STRING, &options->vmlinux, 0, "the kernel's image, that kernel samples are filed under",
		  "FILE" },
		{ "separate", 0, POPT_ARG_STRING, &separate, 0, "what gets sample files of its own (default " SEPARATE_DEFAULT ")",
		  "none,library,kernel,thread,cpu,all" },
		{ "quiet", 'q', POPT_ARG_NONE, &options->quiet, 0, "do not say what was read and stored", NULL },
		{ "version", 'v', POPT_ARG_NONE, &options->version, 0, "show the version", NULL },
		POPT_AUTOHELP POPT_TABLEEND,
	};
	poptContext context = poptGetContext("opimport", argc, argv, rows, 0);
	int result, err;

	op_setup_init(&options->separation);
	if (!context)
		return opr_no_memory();
	poptSetOtherOptionHelp(context, "[OPTION...] [FILE]");
	result = poptGetNextOpt(context);
	if (result < -1)
		err = opr_error(-EINVAL, "%s: %s (see opimport --help)", poptBadOption(context, POPT_BADOPTION_NOALIAS),
				poptStrerror(result));
	else
		err = options->version ? 0 : finish(options, context, separate);
	free(separate);
	poptFreeContext(context);
	return err;
}

void opi_options_free(struct opi_options *options)
{
	op_setup_free(&options->separation);
	free(options->session_dir);
	free(options->output);
	free(options->vmlinux);
	free(options->file);
}
