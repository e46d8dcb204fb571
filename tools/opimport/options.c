/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <errno.h>
#include <unistd.h>

#include "libop/base/parse.h"
#include "libop/session/layout.h"
#include "tools/opimport/opimport.h"
#include "tools/common/option_values.h"
#include "tools/common/log.h"

#define SEPARATE_DEFAULT "library,kernel"

static int take_separate(struct opi_options *options, const char *words)
{
	char *bad_word = NULL;
	int err = op_setup_set_separate(&options->separation, words, &bad_word);

	if (err == -ENOMEM)
		return opr_no_memory();
	if (!err && options->separation.separate_user)
		return opr_error(-EINVAL, "--separate=%s: the records do not say which user a process had", words);
	if (!err && options->separation.separate_cgroup)
		return opr_error(-EINVAL, "--separate=%s: the records do not say in which cgroup they were taken", words);
	if (err)
		opr_error(err,
			  "--separate=%s: unknown word '%s'; allowed: none, library, kernel, thread, cpu, process-name, "
			  "all",
			  words, bad_word);
	free(bad_word);
	return err;
}

/* Types below PERF_TYPE_MAX are the kernel's own. */
static int take_types(struct opi_options *options)
{
	for (enum op_ibs_kind kind = 0; kind < OP_IBS_NR_KINDS; kind++) {
		const char *text = options->ibs_types[kind];
		uint64_t type;

		if (!text)
			continue;
		if (op_parse_u64(text, PERF_TYPE_MAX, UINT32_MAX, &type) < 0)
			return opr_error(-EINVAL, "--%s=%s: the type of a PMU is a number of %d or more",
					 kind == OP_IBS_FETCH ? "ibs-fetch" : "ibs-op", text, PERF_TYPE_MAX);
		options->assumed[kind] = (uint32_t)type;
	}
	return 0;
}

/* One file, or none: standard input, unless it is a terminal. */
static int take_file(struct opi_options *options, const struct opr_words *words)
{
	const char *file = words->nr_words ? words->words[0] : NULL;

	if (words->nr_words > 1)
		return opr_error(-EINVAL, "too many files: give one file (see opimport --help)");
	if (!file && isatty(STDIN_FILENO))
		return opr_error(-EINVAL, "no file to import: give a file (see opimport --help)");
	options->file = strdup(file ? file : "-");
	return options->file ? 0 : opr_no_memory();
}

/* The command line of oprofile's opimport: --abi. */
static int finish_foreign(struct opi_options *options, const struct opr_words *words)
{
	if (options->separate || options->vmlinux || options->session_dir || options->ibs_types[OP_IBS_FETCH] ||
	    options->ibs_types[OP_IBS_OP])
		return opr_error(-EINVAL, "--abi goes with --output, --force, --verbose and a sample file alone");
	if (!options->output)
		return opr_error(-EINVAL, "--abi: name the new file with --output=FILE");
	if (words->nr_words != 1)
		return opr_error(-EINVAL, "--abi: give one sample file (see opimport --help)");
	options->file = strdup(words->words[0]);
	return options->file ? 0 : opr_no_memory();
}

static int finish(struct opi_options *options, const struct opr_words *words)
{
	int err;

	if (options->abi)
		return finish_foreign(options, words);
	if (options->force || options->verbose)
		return opr_error(-EINVAL, "--force and --verbose go with --abi");
	err = take_separate(options, options->separate ? options->separate : SEPARATE_DEFAULT);
	if (!err)
		err = take_types(options);
	if (!err && !options->output) {
		options->output = strdup(strrchr(OP_SESSION_CURRENT, '/') + 1);
		err = options->output ? 0 : opr_no_memory();
	}
	return err ? err : take_file(options, words);
}

#define FIELD(name) offsetof(struct opi_options, name)

static const struct opr_option rows[] = {
	{ "abi", 'a', FIELD(abi), opr_take_string, "FILE is a sample file of a machine that this file describes", "file" },
	{ "force", 'f', FIELD(force), NULL, "with --abi, even if the files of both machines have the same form", NULL },
	{ "ibs-fetch", 0, FIELD(ibs_types[OP_IBS_FETCH]), opr_take_string, "the PMU with this number is ibs_fetch", "TYPE" },
	{ "ibs-op", 0, FIELD(ibs_types[OP_IBS_OP]), opr_take_string, "the PMU with this number is ibs_op", "TYPE" },
	{ "output", 'o', FIELD(output), opr_take_string, "the new session (default current); with --abi, the new sample file",
	  "NAME" },
	{ "quiet", 'q', FIELD(quiet), NULL, "do not print what was read and stored", NULL },
	{ "separate", 0, FIELD(separate), opr_take_string,
	  "what is kept in separate sample files (default " SEPARATE_DEFAULT ")",
	  "none,library,kernel,thread,cpu,all,process-name" },
	{ "session-dir", 0, FIELD(session_dir), opr_take_string, "where sessions are kept", "DIR" },
	{ "verbose", 'V', FIELD(verbose), NULL, "with --abi, print what is read", NULL },
	{ "vmlinux", 'k', FIELD(vmlinux), opr_take_string, "the image of the kernel", "FILE" },
};

#undef FIELD

static const struct opr_command command = {
	.program = "opimport",
	.arguments = "[FILE]",
	.rows = rows,
	.nr_rows = op_array_size(rows),
};

int opi_options_parse(struct opi_options *options, int argc, const char **argv, enum opr_request *ret_request)
{
	struct opr_words words = { 0 };
	int err;

	op_setup_init(&options->separation);
	err = opr_command_read(&command, argc, argv, options, &words, ret_request);
	if (!err && *ret_request == OPR_RUN)
		err = finish(options, &words);
	opr_words_free(&words);
	return err;
}

void opi_options_free(struct opi_options *options)
{
	opr_command_free(&command, options);
	op_setup_free(&options->separation);
	free(options->file);
}
