/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/opcontrol/options.h"

#include <unistd.h>

#include "libop/base/grow.h"
#include "tools/common/log.h"
#include "tools/common/option_values.h"

#define INERT         " (kept in the setup, but opd ignores it)"
#define IGNORED       " (ignored)"
#define SETUP(name)   offsetof(struct op_setup, name)
#define LINE(name)    offsetof(struct ctl_command_line, name)
#define NO_HYPERVISOR "opd profiles no hypervisor"

static int take_format(void *field, const char *value)
{
	static const char *const words[] = { [CTL_TEXT] = "text", [CTL_JSON] = "json", [CTL_PROMETHEUS] = "prometheus" };
	size_t index;

	if (!opr_find_word(words, op_array_size(words), value, &index))
		return opr_refuse_word("unknown format", value, words, op_array_size(words));
	*(enum ctl_format *)field = (enum ctl_format)index;
	return 0;
}

static const struct ctl_option options[] = {
	{ .row = { .help = "Requests, one in a call:" } },
	{ { "init", 0, 0, NULL, "for oprofile's scripts: there is nothing to load", NULL }, .run = ctl_run_init },
	{ { "start-daemon", 0, 0, NULL, "start the daemon, not yet profiling", NULL }, .run = ctl_run_start_daemon },
	{ { "start", 's', 0, NULL, "start profiling, and the daemon if needed", NULL }, .run = ctl_run_start },
	{ { "dump", 'd', 0, NULL, "write to the disk what was counted", NULL }, .run = ctl_run_dump, .any_user = true },
	{ { "stop", 't', 0, NULL, "stop profiling; the daemon stays", NULL }, .act = ctl_stop, .without_setup = true },
	{ { "shutdown", 'h', 0, NULL, "stop profiling and end the daemon", NULL }, .act = ctl_shutdown, .without_setup = true },
	{ { "reset", 0, 0, NULL, "remove the samples of the current session", NULL }, .act = ctl_reset },
	{ { "save", 0, 0, NULL, "close the current session and keep its samples as session NAME", "NAME" }, .act = ctl_save },
	{ { "unpack", 0, 0, NULL, "make the sample files of a packed session anew, for the tools of oprofile", "NAME" },
	  .run = ctl_run_unpack },
	{ { "deinit", 0, 0, NULL, "for oprofile's scripts: as --shutdown, there is nothing to unload", NULL },
	  .act = ctl_deinit,
	  .without_setup = true },
	{ { "history", 0, 0, NULL, "list what is kept: sessions, minutes, bytes, and gaps with their reason", NULL },
	  .run = ctl_run_history,
	  .any_user = true },
	{ { "list-events", 'l', 0, NULL, "list the events", NULL }, .run = ctl_run_list_events, .any_user = true },

	{ .row = { .help = "Setup, alone or with --start and --start-daemon:" } },
	{ { "event", 'e', 0, NULL, "count an event, NAME:count[:unitmask[:kernel[:user]]], or 'default'; may be repeated. "
	    "+NAME... adds to the events of the setup, without + it replaces them",
	    "EVENT" },
	  .edit = ctl_edit_event },
	{ { "separate", 'p', 0, NULL, "what opd keeps in separate sample files",
	    "none,library,kernel,thread,cpu,all,cgroup,process-name,user" },
	  .edit = ctl_edit_separate },
	{ { "vmlinux", 0, 0, NULL, "the uncompressed kernel that runs", "FILE" }, .edit = ctl_edit_vmlinux },
	{ { "no-vmlinux", 0, 0, NULL, "no kernel file: symbols come from /proc/kallsyms", NULL }, .edit = ctl_edit_no_vmlinux },
	{ { "session-dir", 0, 0, NULL, "where the daemon keeps its samples", "DIR" }, .edit = ctl_edit_session_dir },
	{ { "callgraph", 'c', 0, NULL, "record up to DEPTH callers of a sample; 0: none", "DEPTH" }, .edit = ctl_edit_callgraph },
	{ { "stacks", 0, 0, NULL, "whole stacks, at a rate of their own, or with each sample of the events",
	    "on,off,event,RATE[:BYTES]" },
	  .edit = ctl_edit_stacks },
	{ { "image", 'i', 0, NULL, "keep the samples of these images alone, separated by commas; 'all': of all images", "FILE" },
	  .edit = ctl_edit_image },
	{ { "kernel-range", 0, 0, NULL, "addresses of the kernel" INERT, "START,END" },
	  .edit = ctl_edit_kernel_range,
	  .without_effect = true },
	{ { "buffer-size", 0, SETUP(buffer_size), NULL, "event buffer" INERT, "N" },
	  .edit = ctl_edit_number,
	  .without_effect = true },
	{ { "buffer-watershed", 0, SETUP(buffer_watershed), NULL, "watershed of the event buffer" INERT, "N" },
	  .edit = ctl_edit_number,
	  .without_effect = true },
	{ { "cpu-buffer-size", 0, SETUP(cpu_buffer_size), NULL, "buffer of a CPU" INERT, "N" },
	  .edit = ctl_edit_number,
	  .without_effect = true },
	{ { "xen", 0, 0, NULL, "a Xen kernel" IGNORED, "FILE" }, .edit = ctl_edit_nothing, .ignored = NO_HYPERVISOR },
	{ { "active-domains", 0, 0, NULL, "Xen domains" IGNORED, "LIST" }, .edit = ctl_edit_nothing, .ignored = NO_HYPERVISOR },
	{ { "s390hwsampbufsize", 0, 0, NULL, "buffer of the hardware sampler of s390" IGNORED, "N" },
	  .edit = ctl_edit_nothing,
	  .ignored = "the kernel's perf events have buffers of their own" },

	{ .row = { .help = "Others:" } },
	{ .row = { "setup", 0, LINE(setup), NULL, "save the setup options; --setup itself is optional", NULL } },
	{ .row = { "apply", 0, LINE(apply), NULL, "with setup options: restart a running daemon with them",
		   NULL } },
	{ .row = { "status", 0, LINE(status), NULL, "show the state of the daemon, its setup and the ledger of all samples",
		   NULL } },
	{ .row = { "format", 0, LINE(format), take_format, "with --status: the form (default text)", "text|json|prometheus" } },
	{ .row = { "json", 0, LINE(json), NULL, "with --status (as --format=json) and --history: one JSON object", NULL } },
	{ .row = { "config", 0, LINE(config), opr_take_string, "the opd.conf to use; also environment OPD_CONFIG", "FILE" } },
	{ .row = { "verbose", 'V', LINE(verbose), NULL,
		   "with --status: all numbers; with --start and --start-daemon: say what is done", "[LIST]" } },
};

static const struct opr_option *nth_row(size_t index)
{
	return &options[index].row;
}

static int take_request(struct ctl_command_line *line, const struct ctl_option *option, const char *value)
{
	if (line->request) {
		fprintf(stderr, "Option \"--%s\" not valid with other options.\n", option->row.name);
		return 1;
	}
	line->request = option;
	line->request_arg = strdup(value);
	return line->request_arg ? 0 : opr_no_memory();
}

static int take_edit(struct ctl_command_line *line, const struct ctl_option *option, const char *value)
{
	char *arg = strdup(value);

	if (!arg || !op_grow(&line->edits, &line->edits_capacity, line->nr_edits + 1)) {
		free(arg);
		return opr_no_memory();
	}
	line->edits[line->nr_edits++] = (struct ctl_edit){ option, arg };
	return 0;
}

static int take(void *line, const struct opr_option *row, const char *value)
{
	/* its first member */
	const struct ctl_option *option = (const struct ctl_option *)(const void *)row;

	if (option->run || option->act)
		return take_request(line, option, value);
	return option->edit ? take_edit(line, option, value) : opr_option_take(line, row, value);
}

static const struct opr_command command = {
	.program = "opcontrol",
	.row = nth_row,
	.nr_rows = op_array_size(options),
	.take = take,
	.words = OPR_WORDS_NONE,
};

/* With --status, all other options are ignored. */
static int check(const struct ctl_command_line *line)
{
	const struct ctl_option *request = line->request;
	bool may_have_setup = !request || request->run == ctl_run_start || request->run == ctl_run_start_daemon;

	if (line->format && !line->status)
		return opr_error(1, "--format is for --status only");
	if (line->json && line->format)
		return opr_error(1, "--json is --format=json: leave out one of them");
	if (line->json && !line->status && !(request && request->run == ctl_run_history))
		return opr_error(1, "--json is for --status and --history only");
	if (line->status)
		return 0;
	if (!may_have_setup && (line->nr_edits || line->setup || line->verbose)) {
		fprintf(stderr, "Option \"--%s\" not valid with \"--%s\".\n", line->nr_edits || line->setup ? "setup" : "verbose",
			request->row.name);
		return 1;
	}
	if (line->apply && request)
		return opr_error(1, "--apply is for setup options alone, not for --%s", request->row.name);
	if (line->apply && !line->nr_edits)
		return opr_error(1, "--apply: no setup options are given");
	if (line->setup && !line->nr_edits) {
		fputs("No options specified\n", stderr);
		return 1;
	}
	if (!request && !line->nr_edits)
		return opr_error(1, "no request given (opcontrol --help shows them all)");
	if (geteuid() != 0 && (!request || !request->any_user))
		return opr_error(1, "--%s must be run as root", request ? request->row.name : "setup");
	return 0;
}

int ctl_command_line_read(struct ctl_command_line *line, int argc, const char **argv, enum opr_request *ret_request)
{
	struct opr_words words = { 0 };
	int rc;

	opr_log_init(command.program);
	if (argc < 2) {
		opr_help_write(stderr, &command);
		*ret_request = OPR_DONE;
		return 0;
	}
	rc = opr_command_read(&command, argc, argv, line, &words, ret_request);
	if (!rc && words.nr_words)
		rc = opr_error(1, "%s: opcontrol takes options only (opcontrol --help shows them all)", words.words[0]);
	else if (!rc && *ret_request == OPR_RUN)
		rc = check(line);
	opr_words_free(&words);
	return rc;
}

void ctl_command_line_free(struct ctl_command_line *line)
{
	for (size_t i = 0; i < line->nr_edits; i++)
		free(line->edits[i].arg);
	free(line->edits);
	free(line->request_arg);
	opr_command_free(&command, line);
}
