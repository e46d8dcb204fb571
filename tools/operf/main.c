/* SPDX-License-Identifier: GPL-3.0-or-later */
/* operf: profiles a command, a process or the whole system, as the user who calls it. */
#include <inttypes.h>

#include "libop/base/text.h"
#include "pipeline/ledger/event_sums.h"
#include "tools/common/log.h"
#include "tools/operf/profile.h"

/* A loss of the kernel has a remedy that depends on who may lock memory. */
static void add_losses(const struct opf_profile *profile, const struct op_ledger_event *event, struct op_text *text)
{
	const char *between = "";

	op_text_printf(text, "lost of %s: ", event->name);
	if (event->lost_kernel) {
		op_text_printf(text,
			       "%" PRIu64 " lost_kernel (the rings of %zu KiB were full: use a larger count, or raise "
			       "kernel.perf_event_mlock_kb)",
			       event->lost_kernel, profile->pipeline.capture.ring_bytes / 1024);
		between = ", ";
	}
	for (size_t i = 0; i < OP_NR_LOSS; i++) {
		if (!event->lost[i])
			continue;
		op_text_printf(text, "%s%" PRIu64 " lost_%s (%s)", between, event->lost[i], op_loss_name((enum op_loss)i),
			       op_loss_meaning((enum op_loss)i));
		between = ", ";
	}
}

static void report_losses(const struct opf_profile *profile, const struct op_ledger_event *event)
{
	struct op_text text = { 0 };

	if (!event->lost_kernel && !op_ledger_lost(event))
		return;
	add_losses(profile, event, &text);
	opr_warn("%s", op_text_get(&text));
	op_text_free(&text);
}

/* With --system-wide. The times of tasks are not known. */
static void report_counted_time(const struct op_ledger_event *event)
{
	double share = op_ledger_counted_share(event);

	if (share < OP_COUNTED_NEEDED)
		opr_warn("%s was counted for %.1f %% of the time: there are more events than counters", event->name, 100 * share);
}

static void add_next_command(const struct opf_profile *profile, struct op_text *text)
{
	const char *dir = profile->options->session_dir;

	op_text_add(text, "; next: opreport");
	if (dir)
		op_text_printf(text, " --session-dir=%s", dir);
}

/* One line with the samples, the losses, and the next command; then what was lost, and why. */
static void report(const struct opf_profile *profile)
{
	const struct opd_capture *capture = &profile->pipeline.capture;
	struct op_text line = { 0 };
	uint64_t nr_samples = 0, nr_lost = 0;

	for (size_t i = 0; i < capture->nr_opened; i++) {
		struct op_ledger_event event;

		opd_sum_event(capture, i, &event);
		nr_samples += event.taken;
		nr_lost += event.lost_kernel + op_ledger_lost(&event);
		op_text_printf(&line, "%s%" PRIu64 " samples of %s:%" PRIu64, i ? ", " : "", event.taken, event.name, event.count);
		report_losses(profile, &event);
		report_counted_time(&event);
	}
	op_text_printf(&line, ", %" PRIu64 " lost", nr_lost);
	add_next_command(profile, &line);
	fprintf(stderr, "operf: %s\n", op_text_get(&line));
	op_text_free(&line);
	if (profile->is_refused)
		opr_warn("the command runs a set-user-ID program, or one that you may not read: the kernel samples such programs "
			 "for root only, with operf --system-wide");
	else if (!nr_samples)
		opr_note("no samples: the command used less CPU time than the count of its event");
}

static int run(const struct opf_options *options)
{
	struct opf_profile profile;
	int err = opf_profile_open(&profile, options), exit_code;

	if (!err) {
		opf_profile_run(&profile);
		opf_profile_finish(&profile);
		report(&profile);
		err = profile.write_error;
	}
	exit_code = profile.command.exit_code;
	opf_profile_close(&profile);
	return exit_code ? exit_code : err ? EXIT_FAILURE : EXIT_SUCCESS;
}

int main(int argc, const char **argv)
{
	struct opf_options options = { 0 };
	enum opr_request request;
	int exit_code;

	opr_log_init("operf");
	opr_workload_note_signals();
	exit_code = opf_options_parse(&options, argc, argv, &request) ? EXIT_FAILURE : EXIT_SUCCESS;
	if (!exit_code && request == OPR_RUN)
		exit_code = run(&options);
	opf_options_free(&options);
	return exit_code;
}
