/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/operf/options.h"

#include <errno.h>
#include <limits.h>
#include <sys/stat.h>

#include "libop/base/parse.h"
#include "tools/common/log.h"
#include "tools/common/option_values.h"

static int take_pid(void *field, const char *value)
{
	uint64_t pid;

	if (op_parse_u64(value, 1, INT_MAX, &pid) < 0)
		return opr_error(-EINVAL, "--pid=%s: not the number of a process", value);
	*(pid_t *)field = (pid_t)pid;
	return 0;
}

/* The session keeps the path, so it must hold in any directory. */
static int take_vmlinux(void *field, const char *value)
{
	char *path = realpath(value, NULL);
	struct stat st;

	if (!path)
		return opr_error(-errno, "--vmlinux=%s: %s", value, strerror(errno));
	if (stat(path, &st) < 0 || !S_ISREG(st.st_mode)) {
		free(path);
		return opr_error(-EINVAL, "--vmlinux=%s: not a file", value);
	}
	free(*(char **)field);
	*(char **)field = path;
	return 0;
}

#define FIELD(name) offsetof(struct opf_options, name)

static const struct opr_option rows[] = {
	{ "append", 'a', FIELD(append), NULL, "add to the samples of the last call, which otherwise become session:previous",
	  NULL },
	{ "callgraph", 'g', FIELD(callgraph), NULL, "record who calls whom, for opreport --callgraph", NULL },
	{ "events", 'e', FIELD(events), opr_take_more_words,
	  "the events to sample, NAME:COUNT[:UNITMASK[:KERNEL[:USER]]], with commas between (ophelp lists the names)", "event" },
	{ "lazy-conversion", 'l', FIELD(lazy), NULL, "without effect: samples are counted while the command runs", NULL },
	{ "pid", 'p', FIELD(pid), take_pid, "profile a process that runs, and its later children, until it ends", "PID" },
	{ "separate-cpu", 'c', FIELD(separate_cpu), NULL, "keep the samples of each CPU apart", NULL },
	{ "separate-thread", 't', FIELD(separate_thread), NULL, "keep the samples of each process and thread apart", NULL },
	{ "session-dir", 'd', FIELD(session_dir), opr_take_string, "where the samples go (default ./oprofile_data)", "directory" },
	{ "stacks", 0, FIELD(stacks), NULL, "take whole stacks, too, 99 times a second, for opreport --stacks", NULL },
	{ "system-wide", 's', FIELD(system_wide), NULL, "profile all processes, until Ctrl-C (as root)", NULL },
	{ "verbose", 'V', 0, opr_take_verbose, "print details to stderr", "all,details,debug,bfd,level1,sfile,stats,xml" },
	{ "vmlinux", 'k', FIELD(vmlinux), take_vmlinux, "the image of the kernel", "file" },
};

static const struct opr_command command = {
	.program = "operf",
	.arguments = "COMMAND [ARGUMENT]...",
	.rows = rows,
	.nr_rows = op_array_size(rows),
	.words = OPR_WORDS_COMMAND,
};

static int check(const struct opf_options *options)
{
	int nr_targets = !!options->command.nr_words + !!options->pid + options->system_wide;

	if (!nr_targets)
		return opr_error(-EINVAL, "nothing to profile: give a command, --pid=PID or --system-wide (see operf --help)");
	if (nr_targets > 1)
		return opr_error(-EINVAL, "a command, --pid and --system-wide do not go together");
	if (options->session_dir && !*options->session_dir)
		return opr_error(-EINVAL, "--session-dir: the name is empty; give a directory");
	if (options->lazy)
		opr_note("--lazy-conversion has no effect: samples are counted while the command runs");
	return 0;
}

int opf_options_parse(struct opf_options *options, int argc, const char **argv, enum opr_request *ret_request)
{
	int err = opr_command_read(&command, argc, argv, options, &options->command, ret_request);

	return err || *ret_request == OPR_DONE ? err : check(options);
}

void opf_options_free(struct opf_options *options)
{
	opr_command_free(&command, options);
	opr_words_free(&options->events);
	opr_words_free(&options->command);
	free(options->vmlinux);
}
