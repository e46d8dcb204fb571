/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/opcontrol/options.h"

#include <unistd.h>

#include "libop/base/grow.h"
#include "tools/common/log.h"
#include "tools/common/option_values.h"

#define INERT             " (kept, but of no effect in opd)"
#define IGNORED           " (ignored)"
#define SETUP_FIELD(name) offsetof(struct op_setup, name)
#define LINE_FIELD(name)  offsetof(struct ctl_command_line, name)

static const struct ctl_option options[] = {
	{ .row = { .help = "Requests, one in a call:" } },
	{ .row = { .name = "init", .help = "for oprofile's scripts: there is nothing to load" }, .run = ctl_run_init },
	{ .row = { .name = "start-daemon", .help = "start the daemon, not yet profiling" }, .run = ctl_run_start_daemon },
	{ .row = { .name = "start", .short_name = 's', .help = "start profiling, and the daemon if needed" },
	  .run = ctl_run_start },
	{ .row = { .name = "dump", .short_name = 'd', .help = "write to the disk what was counted" },
	  .run = ctl_run_dump,
	  .anybody = true },
	{ .row = { .name = "stop", .short_name = 't', .help = "stop profiling; the daemon stays" },
	  .act = ctl_stop,
	  .undemanding = true },
	{ .row = { .name = "shutdown", .short_name = 'h', .help = "stop profiling and end the daemon" },
	  .act = ctl_shutdown,
	  .undemanding = true },
	{ .row = { .name = "reset", .help = "remove the samples of the current session" }, .act = ctl_reset },
	{ .row = { .name = "save", .value_help = "NAME", .help = "close the current session and keep its samples as session NAME" },
	  .act = ctl_save },
	{ .row = { .name = "deinit", .help = "for oprofile's scripts: as --shutdown, there is nothing to unload" },
	  .act = ctl_deinit,
	  .undemanding = true },
	{ .row = { .name = "list-events", .short_name = 'l', .help = "list the events" },
	  .run = ctl_run_list_events,
	  .anybody = true },

	{ .row = { .help = "Setup, alone or with --start and --start-daemon:" } },
	{ .row = { .name = "event",
		   .short_name = 'e',
		   .value_help = "EVENT",
		   .help = "count an event, NAME:count[:unitmask[:kernel[:user]]], or 'default'; may be repeated" },
	  .edit = ctl_edit_event },
	{ .row = { .name = "separate",
		   .short_name = 'p',
		   .value_help = "none,library,kernel,thread,cpu,all,cgroup",
		   .help = "what gets sample files of its own" },
	  .edit = ctl_edit_separate },
	{ .row = { .name = "vmlinux", .value_help = "FILE", .help = "the uncompressed kernel that runs" },
	  .edit = ctl_edit_vmlinux },
	{ .row = { .name = "no-vmlinux", .help = "no kernel file: symbols come from /proc/kallsyms" },
	  .edit = ctl_edit_no_vmlinux },
	{ .row = { .name = "session-dir", .value_help = "DIR", .help = "where the daemon keeps its samples" },
	  .edit = ctl_edit_session_dir },
	{ .row = { .name = "callgraph",
		   .short_name = 'c',
		   .value_help = "DEPTH",
		   .help = "follow so many callers of each sample; 0: none" },
	  .edit = ctl_edit_callgraph },
	{ .row = { .name = "image",
		   .short_name = 'i',
		   .value_help = "FILE",
		   .help = "keep the samples of these images alone, separated by commas; 'all': of all images" },
	  .edit = ctl_edit_image },
	{ .row = { .name = "kernel-range", .value_help = "START,END", .help = "addresses of the kernel" INERT },
	  .edit = ctl_edit_kernel_range,
	  .inert = true },
	{ .row = { .name = "buffer-size", .value_help = "N", .offset = SETUP_FIELD(buffer_size), .help = "event buffer" INERT },
	  .edit = ctl_edit_number,
	  .inert = true },
	{ .row = { .name = "buffer-watershed",
		   .value_help = "N",
		   .offset = SETUP_FIELD(buffer_watershed),
		   .help = "watershed of the event buffer" INERT },
	  .edit = ctl_edit_number,
	  .inert = true },
	{ .row = { .name = "cpu-buffer-size",
		   .value_help = "N",
		   .offset = SETUP_FIELD(cpu_buffer_size),
		   .help = "buffer of a CPU" INERT },
	  .edit = ctl_edit_number,
	  .inert = true },
	{ .row = { .name = "xen", .value_help = "FILE", .help = "a Xen kernel" IGNORED },
	  .edit = ctl_edit_nothing,
	  .ignored = "opd profiles no hypervisor" },
	{ .row = { .name = "active-domains", .value_help = "LIST", .help = "Xen domains" IGNORED },
	  .edit = ctl_edit_nothing,
	  .ignored = "opd profiles no hypervisor" },
	{ .row = { .name = "s390hwsampbufsize", .value_help = "N", .help = "buffer of the hardware sampler of s390" IGNORED },
	  .edit = ctl_edit_nothing,
	  .ignored = "the kernel's perf events have buffers of their own" },

	{ .row = { .help = "Others:" } },
	{ .row = { .name = "setup",
		   .offset = LINE_FIELD(setup),
		   .help = "keep the setup options given with it; the word may be left out" } },
	{ .row = { .name = "apply",
		   .offset = LINE_FIELD(apply),
		   .help = "with setup options: a daemon that runs is started again with them at once" } },
	{ .row = { .name = "status",
		   .offset = LINE_FIELD(status),
		   .help = "show the state of the daemon, its setup and the ledger of all samples" } },
	{ .row = { .name = "json", .offset = LINE_FIELD(json), .help = "with --status: one JSON object" } },
	{ .row = { .name = "config",
		   .offset = LINE_FIELD(config),
		   .take = opr_take_string,
		   .value_help = "FILE",
		   .help = "the opd.conf to use; also environment OPD_CONFIG" } },
	{ .row = { .name = "verbose",
		   .short_name = 'V',
		   .offset = LINE_FIELD(verbose),
		   .value_help = "[LIST]",
		   .help = "with --start and --start-daemon: say what is done" } },
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

/* --status makes everything else of the call void. */
static int check(const struct ctl_command_line *line)
{
	const struct ctl_option *request = line->request;
	bool may_have_setup = !request || request->run == ctl_run_start || request->run == ctl_run_start_daemon;

	if (line->json && !line->status)
		return opr_error(1, "--json is for --status only");
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
	if (geteuid() != 0 && (!request || !request->anybody))
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
