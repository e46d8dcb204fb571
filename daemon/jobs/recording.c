/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "daemon/jobs/recording.h"

#include <errno.h>

#include "libop/base/clock.h"
#include "libop/base/log.h"
#include "libop/session/layout.h"
#include "pipeline/capture/kernel_source.h"
#include "pipeline/count/jit_objects.h"
#include "pipeline/drive/sources.h"
#include "pipeline/resolve/jit_lookup.h"
#include "pipeline/waits/source.h"

/* after the end of sampling: for row tables that are being made */
#define TABLES_WAIT_NS ((uint64_t)OP_NS_PER_S)

int opd_recording_switch(struct opd_recording *recording, bool on)
{
	struct opd_capture *capture = &recording->pipeline->capture;
	uint64_t now_ns;
	int err;

	if (capture->enabled == on)
		return 0;
	if (on)
		opd_ledger_begin(&recording->pipeline->ledger);
	err = opd_capture_enable(capture, on);
	now_ns = op_now_ns();
	if (capture->enabled && recording->pipeline->waits)
		opd_waits_begin(recording->pipeline->waits);
	if (capture->enabled)
		recording->running_since_ns = now_ns;
	else if (!on)
		recording->running_ns += now_ns - recording->running_since_ns;
	if (!capture->enabled)
		opd_ledger_stop(&recording->pipeline->ledger);
	return err;
}

/* An event that is stopped while it is throttled gets no record of the end. */
static void end_throttling(struct opd_capture *capture, uint64_t now_ns)
{
	for (size_t c = 0; c < capture->nr_cpus; c++) {
		for (size_t e = 0; e < capture->nr_events; e++) {
			struct opd_event *event = &capture->cpus[c].events[e];

			if (event->throttled_since_ns && now_ns > event->throttled_since_ns)
				event->throttled_ns += now_ns - event->throttled_since_ns;
			event->throttled_since_ns = 0;
		}
	}
}

int opd_recording_stop(struct opd_recording *recording)
{
	int err = opd_recording_switch(recording, false);

	opd_visit_until_quiet(&recording->visits);
	opd_sources_finish(recording->pipeline, TABLES_WAIT_NS);
	end_throttling(&recording->pipeline->capture, op_now_ns());
	return err;
}

/* ---- the ledger ---- */

void opd_recording_explain_ledger(const struct opd_recording *recording, char text[256])
{
	const char *path = opd_ledger_in_the_way(&recording->pipeline->ledger);

	snprintf(text, 256, "cannot write the session's ledger%s%s", path ? ", " : "", path ? path : "");
}

int opd_recording_write_ledger(struct opd_recording *recording, enum op_session_end ended, bool always)
{
	static struct op_rate rate;
	struct opd_pipeline *pipeline = recording->pipeline;
	struct op_session_ledger ledger;
	struct op_wait_ledger waits;
	char text[256];
	int err;

	if (!recording->running_since_ns && !always)
		return 0;
	opd_count_flush(&pipeline->count);
	pipeline->ledger.hides_kernel = !pipeline->resolver.kernel.text_start;
	if (pipeline->waits) {
		opd_waits_sum(pipeline->waits, &waits);
		opd_ledger_set_waits(&pipeline->ledger, &waits);
	}
	err = opd_ledger_sum(&pipeline->ledger, ended, &ledger);
	if (!err) {
		err = opd_ledger_write(&pipeline->ledger, &ledger);
		op_session_ledger_free(&ledger);
	}
	if (err) {
		opd_recording_explain_ledger(recording, text);
		op_log_failure(&rate, op_now_ns(), text, err);
	}
	return err;
}

/* ---- files that are gone ---- */

/*
 * opd may not know all files. Then only the sum of all files shows how many samples are gone. When
 * adding them up fails, the next missing file causes another attempt.
 */
static void recount(struct opd_pipeline *pipeline)
{
	static struct op_rate rate;
	int err = pipeline->count.limit.strangers ? opd_ledger_recount(&pipeline->ledger) : 0;

	if (err)
		op_log_failure(&rate, op_now_ns(), "adding up the files of " OP_SESSION_CURRENT, err);
}

void opd_recording_check_files(struct opd_recording *recording, bool thorough)
{
	if (!opd_count_check_files(&recording->pipeline->count, thorough))
		return;
	recount(recording->pipeline);
	opd_dump_note_removed(&recording->dumps);
}

void opd_recording_forget_removed(struct opd_recording *recording)
{
	struct opd_pipeline *pipeline = recording->pipeline;

	if (!opd_dump_take_removed(&recording->dumps))
		return;
	if (opd_count_forget_missing(&pipeline->count))
		recount(pipeline);
	/* Without memory the next dump writes the table. */
	if (op_dcookie_none_written(pipeline->resolver.table) < 0)
		op_log(OP_LOG_WARNING, "no memory");
}
