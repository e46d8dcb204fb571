/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "daemon/jobs/rotate.h"

#include <errno.h>

#include "libop/base/clock.h"
#include "libop/base/log.h"
#include "libop/base/sys.h"
#include "libop/session/close.h"
#include "pipeline/count/jit_objects.h"
#include "pipeline/drive/sources.h"

#define NS_PER_US       1000u
#define NS_PER_MIN      (60 * (uint64_t)OP_NS_PER_S)
#define RETRY_NS        (10 * (uint64_t)OP_NS_PER_S)
#define REPORT_AFTER_NS (10 * (uint64_t)OP_NS_PER_S) /* a session that is too large and goes on */
/* a session may take this part of SessionMaxUse before it is closed early */
#define USE_SHARE       4
/* a smaller difference is the clock being slewed */
#define STEP_NS         (int64_t) OP_NS_PER_S

/* ---- closing ---- */

/* Forgets the closed session. Numbers of images and counters of the capture go on. */
static void begin_next(struct opd_rotation *rotation)
{
	struct opd_pipeline *pipeline = rotation->recording->pipeline;

	opd_retain_note_closed(rotation->retention);
	opd_count_close_files(&pipeline->count);
	opd_sources_begin_session(pipeline, false);
	if (pipeline->count.cookie_file)
		opd_cookie_file_reset(pipeline->count.cookie_file);
	opd_ledger_begin_next(&pipeline->ledger);
	rotation->nr_closed++;
	rotation->too_large_ns = 0;
	rotation->is_reported = false;
	rotation->retention->due_ns = 0;
	opd_recording_write_ledger(rotation->recording, OP_SESSION_open, false);
}

/* The ledger says "closed" first. When it cannot be written, the session stays as it is. */
static int close_session(struct opd_recording *recording, const struct op_session_ledger *ledger, char name[OP_SESSION_NAME_BYTES])
{
	struct opd_count *count = &recording->pipeline->count;
	int err = opd_ledger_write(&recording->pipeline->ledger, ledger);

	if (err)
		return err;
	if (count->cookie_file)
		opd_cookie_file_stop_publishing(count->cookie_file);
	err = ledger->ended == OP_SESSION_saved ? op_session_close(count->session_fd, name)
						: op_session_close_timed(count->session_fd, name);
	if (err)
		opd_recording_write_ledger(recording, OP_SESSION_open, false);
	return err;
}

static int change_session(struct opd_rotation *rotation, const struct op_session_ledger *ledger, struct opd_job *job,
			  char name[OP_SESSION_NAME_BYTES])
{
	struct opd_recording *recording = rotation->recording;
	struct opd_pipeline *pipeline = recording->pipeline;
	struct opd_dump *dump;
	int err;

	/* Again, for functions that were sampled meanwhile; for a short time only. */
	opd_jit_write(pipeline->resolver.jit, &pipeline->count, op_now_ns());
	err = opd_dump_begin(&recording->dumps, job, true, &dump);
	if (err)
		return err;
	err = close_session(recording, ledger, name);
	if (err) {
		opd_dump_drop(dump);
		return err;
	}
	begin_next(rotation);
	return opd_dump_go(dump);
}

int opd_rotate_save(struct opd_rotation *rotation, struct opd_job *job)
{
	struct opd_recording *recording = rotation->recording;
	struct op_session_ledger ledger;
	int err;

	opd_visit_all(&recording->visits);
	opd_visits_write_objects(&recording->visits);
	opd_recording_check_files(recording, true);
	err = opd_ledger_sum(&recording->pipeline->ledger, OP_SESSION_saved, &ledger);
	if (err)
		return err;
	err = op_session_ledger_is_empty(&ledger) ? -ENODATA : change_session(rotation, &ledger, job, job->name);
	op_session_ledger_free(&ledger);
	return err;
}

/* ---- when ---- */

/* The first boundary after a time. All in ns since 1970. */
static uint64_t boundary_after(uint64_t wall_ns, uint64_t interval_ns)
{
	return (wall_ns / interval_ns + 1) * interval_ns;
}

/* After a step back the boundary is the next one by the new time. */
static void check_clock(struct opd_rotation *rotation, uint64_t wall_ns, uint64_t interval_ns)
{
	int64_t offset_ns = (int64_t)wall_ns - (int64_t)op_sys_boot_ns(), step_ns = offset_ns - rotation->offset_ns;

	if (step_ns > STEP_NS || step_ns < -STEP_NS)
		rotation->due_ns = op_min_u64(rotation->due_ns, boundary_after(wall_ns, interval_ns));
	rotation->offset_ns = offset_ns;
}

static void rotate(struct opd_rotation *rotation, uint64_t wall_ns, uint64_t interval_ns)
{
	struct opd_recording *recording = rotation->recording;
	struct op_session_ledger ledger;
	char name[OP_SESSION_NAME_BYTES];
	int err;

	opd_visits_write_objects(&recording->visits);
	opd_recording_check_files(recording, true);
	err = opd_ledger_sum(&recording->pipeline->ledger, OP_SESSION_rotated, &ledger);
	if (err)
		goto failed;
	op_session_time_name(ledger.begin_ns, wall_ns < rotation->due_ns || interval_ns % NS_PER_MIN, name);
	if (op_session_ledger_is_empty(&ledger)) {
		opd_ledger_begin_next(&recording->pipeline->ledger);
		opd_recording_write_ledger(recording, OP_SESSION_open, false);
	} else {
		err = change_session(rotation, &ledger, NULL, name);
		if (!err)
			op_log(OP_LOG_INFO, "session %s is closed", name);
	}
	op_session_ledger_free(&ledger);
	if (err)
		goto failed;
	rotation->due_ns = boundary_after(wall_ns, interval_ns);
	return;
failed:
	rotation->nr_failed++;
	op_log(OP_LOG_WARNING, "cannot close the session: %s; opd goes on counting in it and tries again", strerror(-err));
}

static void report_too_large(struct opd_rotation *rotation, uint64_t now_ns)
{
	if (!rotation->too_large_ns)
		rotation->too_large_ns = now_ns;
	if (rotation->is_reported || now_ns - rotation->too_large_ns < REPORT_AFTER_NS)
		return;
	rotation->is_reported = true;
	op_log(OP_LOG_WARNING, "the session takes more than a quarter of SessionMaxUse=, but opd does not close it yet: the other "
			       "sessions take too much, and opd must remove some of them first");
}

/* The session is too large, and retention can keep up with closing. */
static bool is_to_be_closed(struct opd_rotation *rotation, uint64_t now_ns)
{
	uint64_t most = rotation->config->session_max_use;

	if (!most || opd_file_limit_bytes(&rotation->recording->pipeline->count.limit) <= most / USE_SHARE) {
		rotation->too_large_ns = 0;
		return false;
	}
	if (opd_retain_may_close(rotation->retention))
		return true;
	report_too_large(rotation, now_ns);
	return false;
}

void opd_rotate_if_due(struct opd_rotation *rotation, uint64_t now_ns)
{
	const struct opd_ledger *ledger = &rotation->recording->pipeline->ledger;
	uint64_t interval_ns = rotation->config->session_interval_us * NS_PER_US, wall_ns = op_sys_wall_ns();
	uint64_t nr_failed = rotation->nr_failed;

	if (!interval_ns || !ledger->begun) {
		rotation->due_ns = 0;
		return;
	}
	if (!rotation->due_ns) {
		rotation->due_ns = boundary_after(opd_ledger_begin_ns(ledger), interval_ns);
		rotation->offset_ns = (int64_t)wall_ns - (int64_t)op_sys_boot_ns();
	}
	check_clock(rotation, wall_ns, interval_ns);
	if ((wall_ns < rotation->due_ns && !is_to_be_closed(rotation, now_ns)) || now_ns < rotation->retry_ns)
		return;
	if (wall_ns < rotation->due_ns)
		op_log(OP_LOG_NOTICE, "the session takes more than a quarter of SessionMaxUse=: opd closes it early");
	rotation->retry_ns = now_ns + RETRY_NS;
	rotate(rotation, wall_ns, interval_ns);
	if (rotation->nr_failed == nr_failed)
		rotation->retry_ns = 0;
}
