/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/common/completion.h"
#include "tools/opcontrol/main.h"

#include <popt.h>
#include <stdarg.h>
#include <unistd.h>

#define HELP_COLUMN 32

OP_PRINTF(2, 0) static void say(const char *intro, const char *format, va_list args)
{
	fflush(stdout);
	fputs(intro, stderr);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
}

int ctl_fail(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say("opcontrol: ", format, args);
	va_end(args);
	return 1;
}

void ctl_warn(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say("opcontrol: warning: ", format, args);
	va_end(args);
}

void ctl_verbose(const struct opcontrol *ctl, const char *format, ...)
{
	va_list args;

	if (!ctl->verbose)
		return;
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
}

/* ---- the table of options ---- */

enum word { WORD_SETUP, WORD_APPLY, WORD_STATUS, WORD_JSON, WORD_CONFIG, WORD_VERBOSE, WORD_VERSION, WORD_HELP, NR_WORDS };

/* In the order of enum word. */
static const struct ctl_option words[NR_WORDS] = {
	[WORD_SETUP] = { .name = "setup", .help = "keep the setup options given with it; the word may be left out" },
	[WORD_APPLY] = { .name = "apply", .help = "with setup options: a daemon that runs is started again with them at once" },
	[WORD_STATUS] = { .name = "status", .help = "show the state of the daemon, its setup and the ledger of all samples" },
	[WORD_JSON] = { .name = "json", .help = "with --status: one JSON object" },
	[WORD_CONFIG] = { .name = "config", .arg = "FILE", .help = "the opd.conf to use; also environment OPD_CONFIG" },
	[WORD_VERBOSE] = { .name = "verbose",
			   .letter = 'V',
			   .arg = "LIST",
			   .optional = true,
			   .help = "with --start and --start-daemon: say what is done" },
	[WORD_VERSION] = { .name = "version", .letter = 'v', .help = "show the version" },
	[WORD_HELP] = { .name = "help", .letter = '?', .help = "show this" },
};

static const struct ctl_option requests[] = {
	{ .name = "init", .run = ctl_run_init, .help = "for oprofile's scripts: there is nothing to load" },
	{ .name = "start-daemon", .run = ctl_run_start_daemon, .help = "start the daemon, not yet profiling" },
	{ .name = "start", .letter = 's', .run = ctl_run_start, .help = "start profiling, and the daemon if needed" },
	{ .name = "dump", .letter = 'd', .run = ctl_run_dump, .anybody = true, .help = "write to the disk what was counted" },
	{ .name = "stop", .letter = 't', .run = ctl_run_stop, .undemanding = true, .help = "stop profiling; the daemon stays" },
	{ .name = "shutdown",
	  .letter = 'h',
	  .run = ctl_run_shutdown,
	  .undemanding = true,
	  .help = "stop profiling and end the daemon" },
	{ .name = "reset", .run = ctl_run_reset, .help = "remove the samples of the current session" },
	{ .name = "save", .arg = "NAME", .run = ctl_run_save, .help = "close the current session and keep its samples as session NAME" },
	{ .name = "deinit",
	  .run = ctl_run_deinit,
	  .undemanding = true,
	  .help = "for oprofile's scripts: as --shutdown, there is nothing to unload" },
	{ .name = "list-events", .letter = 'l', .run = ctl_run_list_events, .anybody = true, .help = "list the events" },
};

#define FIELD(name) offsetof(struct op_setup, name)

static const struct ctl_option setups[] = {
	{ .name = "event",
	  .letter = 'e',
	  .arg = "SPEC",
	  .values = "event",
	  .edit = ctl_edit_event,
	  .help = "count an event, NAME:count[:unitmask[:kernel[:user]]], or 'default'; may be repeated" },
	{ .name = "separate",
	  .letter = 'p',
	  .arg = "LIST",
	  .values = "none,library,kernel,thread,cpu,all,cgroup",
	  .edit = ctl_edit_separate,
	  .help = "file samples by none, library, kernel, thread, cpu, all, cgroup" },
	{ .name = "vmlinux", .arg = "FILE", .edit = ctl_edit_vmlinux, .help = "the uncompressed kernel that runs" },
	{ .name = "no-vmlinux", .edit = ctl_edit_no_vmlinux, .help = "no kernel file: symbols come from /proc/kallsyms" },
	{ .name = "session-dir", .arg = "DIR", .edit = ctl_edit_session_dir, .help = "where the daemon keeps its samples" },
	{ .name = "callgraph",
	  .letter = 'c',
	  .arg = "DEPTH",
	  .edit = ctl_edit_callgraph,
	  .help = "follow so many callers of each sample; 0: none" },
	{ .name = "image",
	  .letter = 'i',
	  .arg = "LIST",
	  .values = "file",
	  .edit = ctl_edit_image,
	  .help = "keep the samples of these images alone, or of 'all'" },
	{ .name = "kernel-range",
	  .arg = "START,END",
	  .edit = ctl_edit_kernel_range,
	  .inert = true,
	  .help = "addresses of the kernel" },
	{ .name = "buffer-size",
	  .arg = "N",
	  .edit = ctl_edit_number,
	  .offset = FIELD(buffer_size),
	  .inert = true,
	  .help = "event buffer" },
	{ .name = "buffer-watershed",
	  .arg = "N",
	  .edit = ctl_edit_number,
	  .offset = FIELD(buffer_watershed),
	  .inert = true,
	  .help = "watershed of the event buffer" },
	{ .name = "cpu-buffer-size",
	  .arg = "N",
	  .edit = ctl_edit_number,
	  .offset = FIELD(cpu_buffer_size),
	  .inert = true,
	  .help = "buffer of a CPU" },
	{ .name = "xen", .arg = "FILE", .edit = ctl_edit_nothing, .ignored = "opd profiles no hypervisor", .help = "a Xen kernel" },
	{ .name = "active-domains",
	  .arg = "LIST",
	  .edit = ctl_edit_nothing,
	  .ignored = "opd profiles no hypervisor",
	  .help = "Xen domains" },
	{ .name = "s390hwsampbufsize",
	  .arg = "N",
	  .edit = ctl_edit_nothing,
	  .ignored = "the kernel's perf events have buffers of their own",
	  .help = "buffer of the hardware sampler of s390" },
};

static const struct {
	const char *title;
	const struct ctl_option *rows;
	size_t nr_rows;
} groups[] = {
	{ "Requests, one in a call", requests, op_array_size(requests) },
	{ "Setup, alone or with --start and --start-daemon", setups, op_array_size(setups) },
	{ "Others", words, op_array_size(words) },
};

#define NR_OPTIONS (op_array_size(requests) + op_array_size(setups) + op_array_size(words))

/* ---- the command line ---- */

#define NR_ROWS (NR_OPTIONS + 2) /* the last ones: --completion, and the end */

struct command_line {
	const struct ctl_option *request;
	char *request_arg; /* NULL: it takes none */
	struct ctl_edit *edits;
	size_t nr_edits;
	bool is_done;
	bool has_word[NR_WORDS];
	char *word_args[NR_WORDS]; /* NULL: none */
};

/* n is below NR_OPTIONS. */
static const struct ctl_option *nth_option(size_t n)
{
	size_t i = 0;

	while (n >= groups[i].nr_rows)
		n -= groups[i++].nr_rows;
	return &groups[i].rows[n];
}

static void fill_popt_table(struct poptOption table[NR_ROWS])
{
	static const struct poptOption tail[] = { OPR_COMPLETION_ROW POPT_TABLEEND };

	for (size_t i = 0; i < NR_OPTIONS; i++) {
		const struct ctl_option *option = nth_option(i);
		unsigned int info = option->arg ? POPT_ARG_STRING : POPT_ARG_NONE;

		if (option->optional)
			info |= POPT_ARGFLAG_OPTIONAL;
		table[i] = (struct poptOption){
			.longName = option->name,
			.shortName = option->letter,
			.argInfo = info,
			.val = (int)i + 1,
			.descrip = option->help,
			.argDescrip = option->values ? option->values : option->arg,
		};
	}
	memcpy(table + NR_OPTIONS, tail, sizeof(tail));
}

static int take_word(struct command_line *line, size_t word, char *arg)
{
	free(line->word_args[word]);
	line->word_args[word] = arg;
	line->has_word[word] = true;
	return 0;
}

/* `arg` is the command line's from here on. */
static int take_option(struct command_line *line, const struct ctl_option *option, char *arg)
{
	struct ctl_edit *edits;

	if (option->run) {
		if (line->request) {
			fprintf(stderr, "Option \"--%s\" not valid with other options.\n", option->name);
			free(arg);
			return 1;
		}
		line->request = option;
		line->request_arg = arg;
		return 0;
	}
	if (!option->edit)
		return take_word(line, (size_t)(option - words), arg);
	edits = reallocarray(line->edits, line->nr_edits + 1, sizeof(*edits));
	if (!edits) {
		free(arg);
		return ctl_fail("no memory");
	}
	line->edits = edits;
	edits[line->nr_edits++] = (struct ctl_edit){ option, arg };
	return 0;
}

/* Writes the completion for a shell: nothing else is to be done then. */
static int take_shell(struct command_line *line, const struct poptOption *table, char *shell)
{
	const struct opr_completion completion = { .program = "opcontrol", .table = table };
	int err = opr_completion_write(stdout, &completion, shell ? shell : "");

	if (err < 0)
		ctl_fail("--completion=%s: bash or zsh", shell ? shell : "");
	free(shell);
	line->is_done = true;
	return err < 0;
}

static void free_command_line(struct command_line *line)
{
	for (size_t i = 0; i < line->nr_edits; i++)
		free(line->edits[i].arg);
	for (size_t i = 0; i < NR_WORDS; i++)
		free(line->word_args[i]);
	free(line->edits);
	free(line->request_arg);
}

static int parse_command_line(int argc, const char **argv, struct command_line *line)
{
	struct poptOption table[NR_ROWS];
	poptContext context;
	const char *rest;
	int value, rc = 0;

	fill_popt_table(table);
	context = poptGetContext("opcontrol", argc, argv, table, 0);
	if (!context)
		return ctl_fail("no memory");
	while (!rc && (value = poptGetNextOpt(context)) > 0)
		rc = value == OPR_COMPLETION_VALUE ?
			     take_shell(line, table, poptGetOptArg(context)) :
			     take_option(line, nth_option((size_t)value - 1), poptGetOptArg(context));
	if (!rc && value < -1)
		rc = ctl_fail("%s: %s (opcontrol --help shows all options)", poptBadOption(context, 0), poptStrerror(value));
	rest = rc ? NULL : poptGetArg(context);
	if (rest)
		rc = ctl_fail("%s: opcontrol takes options only (opcontrol --help shows them all)", rest);
	poptFreeContext(context);
	return rc;
}

static bool may_have_setup(const struct ctl_option *request)
{
	return !request || request->run == ctl_run_start || request->run == ctl_run_start_daemon;
}

/* What goes with what; --status makes everything else void. */
static int check_command_line(const struct command_line *line)
{
	if (line->has_word[WORD_JSON] && !line->has_word[WORD_STATUS])
		return ctl_fail("--json is for --status only");
	if (line->has_word[WORD_STATUS])
		return 0;
	if ((line->nr_edits || line->has_word[WORD_SETUP]) && !may_have_setup(line->request)) {
		fprintf(stderr, "Option \"--setup\" not valid with \"--%s\".\n", line->request->name);
		return 1;
	}
	if (line->has_word[WORD_VERBOSE] && !may_have_setup(line->request)) {
		fprintf(stderr, "Option \"--verbose\" not valid with \"--%s\".\n", line->request->name);
		return 1;
	}
	if (line->has_word[WORD_APPLY] && line->request)
		return ctl_fail("--apply is for setup options alone, not for --%s", line->request->name);
	if (line->has_word[WORD_APPLY] && !line->nr_edits)
		return ctl_fail("--apply: no setup options are given");
	if (line->has_word[WORD_SETUP] && !line->nr_edits) {
		fputs("No options specified\n", stderr);
		return 1;
	}
	if (!line->request && !line->nr_edits)
		return ctl_fail("no request given (opcontrol --help shows them all)");
	return 0;
}

static int check_root(const struct command_line *line)
{
	const char *name = line->request ? line->request->name : "setup";

	if (geteuid() == 0 || (line->request && line->request->anybody) || line->has_word[WORD_STATUS])
		return 0;
	return ctl_fail("--%s must be run as root", name);
}

/* ---- help ---- */

static void show_option(const struct ctl_option *option)
{
	char left[HELP_COLUMN * 2], letter[8] = "";
	int width;

	if (option->letter)
		snprintf(letter, sizeof(letter), "-%c, ", option->letter);
	width = snprintf(left, sizeof(left), "  %4s--%s%s%s%s%s", letter, option->name, option->optional ? "[" : "",
			 option->arg ? "=" : "", option->arg ? option->arg : "", option->optional ? "]" : "");
	if (width >= HELP_COLUMN)
		fprintf(stderr, "%s\n%*s", left, HELP_COLUMN, "");
	else
		fprintf(stderr, "%-*s", HELP_COLUMN, left);
	fprintf(stderr, "%s%s\n", option->help, option->inert	  ? " (kept, but of no effect in opd)"
					 : option->ignored ? " (ignored)"
							   : "");
}

static int show_help(void)
{
	fputs("usage: opcontrol OPTION...\nSteers opd, the system-wide profiler. See opcontrol(1).\n", stderr);
	for (size_t i = 0; i < op_array_size(groups); i++) {
		fprintf(stderr, "\n%s:\n", groups[i].title);
		for (size_t j = 0; j < groups[i].nr_rows; j++)
			show_option(&groups[i].rows[j]);
	}
	return 0;
}

static int show_version(void)
{
	puts("opcontrol: opd " PACKAGE_VERSION);
	return 0;
}

/* ---- from the command line to the work ---- */

static int load_config(struct opcontrol *ctl, const char *option)
{
	struct op_text warnings = { 0 };
	int err = op_config_init(&ctl->config);

	if (err < 0)
		return ctl_fail("no memory");
	ctl->config_path = op_config_path(option, &ctl->config_explicit);
	err = op_config_read(&ctl->config, ctl->config_path, ctl->config_explicit, &warnings);
	if (err < 0)
		ctl_fail("cannot read the configuration %s: %s", ctl->config_path, strerror(-err));
	else
		fputs(op_text_get(&warnings), stderr);
	op_text_free(&warnings);
	return err < 0;
}

static int run_status(struct opcontrol *ctl)
{
	struct ctl_daemon daemon;
	int rc = ctl_find_daemon(ctl, &daemon);

	if (rc)
		return rc;
	rc = ctl_show_status(ctl, &daemon);
	ctl_daemon_free(&daemon);
	return rc;
}

static int save_setup(struct opcontrol *ctl, const struct command_line *line)
{
	struct ctl_daemon daemon;
	int rc = ctl_find_daemon(ctl, &daemon);

	if (rc)
		return rc;
	rc = ctl_save_setup(ctl, daemon.presence != CTL_ABSENT, line->edits, line->nr_edits);
	if (!rc && daemon.presence != CTL_ABSENT)
		rc = line->has_word[WORD_APPLY] ? ctl_restart_daemon(ctl, &daemon) : ctl_say_setup_waits();
	ctl_daemon_free(&daemon);
	return rc;
}

static int work(struct opcontrol *ctl, const struct command_line *line)
{
	bool status = line->has_word[WORD_STATUS], needs_setup = status || !line->request || !line->request->anybody;
	int rc = 0;

	ctl->session_dir = ctl->config.session_dir;
	ctl->request_arg = line->request_arg;
	ctl->changes_setup = line->nr_edits && !status;
	if (needs_setup)
		rc = ctl_load_setup(ctl, !status);
	if (rc && !status && !(line->request && line->request->undemanding))
		return rc;
	if (status)
		return run_status(ctl);
	rc = line->nr_edits ? save_setup(ctl, line) : 0;
	if (!rc && line->request)
		rc = line->request->run(ctl);
	return rc;
}

static int run_line(const struct command_line *line)
{
	struct opcontrol ctl = { .json = line->has_word[WORD_JSON], .verbose = line->has_word[WORD_VERBOSE] };
	int rc;

	op_setup_init(&ctl.setup);
	rc = load_config(&ctl, line->word_args[WORD_CONFIG]);
	if (!rc)
		rc = work(&ctl, line);
	op_setup_free(&ctl.setup);
	op_config_free(&ctl.config);
	return rc;
}

int main(int argc, const char **argv)
{
	struct command_line line = { 0 };
	int rc = parse_command_line(argc, argv, &line);

	if (!rc && (argc < 2 || line.has_word[WORD_HELP]))
		rc = show_help();
	else if (!rc && !line.is_done && line.has_word[WORD_VERSION])
		rc = show_version();
	else if (!rc && !line.is_done)
		rc = check_command_line(&line) || check_root(&line) || run_line(&line);
	free_command_line(&line);
	if (fflush(stdout) == EOF || ferror(stdout))
		rc = ctl_fail("cannot write to the standard output");
	return rc;
}
