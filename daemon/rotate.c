/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "daemon/rotate.h"

#include <errno.h>

#include "daemon/count/jit_objects.h"
#include "libop/base/log.h"
#include "daemon/sync.h"
#include "libop/base/clock.h"
#include "libop/session/close.h"
#include "libop/base/sys.h"

#define NS_PER_US  1000u
#define NS_PER_MIN (60 * (uint64_t)OP_NS_PER_S)
#define RETRY_NS   (10 * (uint64_t)OP_NS_PER_S)
#define HELD_NS    (10 * (uint64_t)OP_NS_PER_S) /* until it is told */
#define USE_SHARE  4                            /* of SessionMaxUse: what a session takes until it is closed before its time */
#define STEP_NS    (int64_t) OP_NS_PER_S        /* less is the clock being slewed */

/* ---- closing ---- */

/* Nothing of the session that was closed is known any more; numbers of images and the counters of the capture go on. */
static void begin_next(struct opd_sync *sync)
{
	struct opd_pipeline *pipeline = sync->pipeline;

	opd_retain_note_closed(sync);
	opd_count_close_files(&pipeline->count);
	if (pipeline->count.cookie_file)
		opd_cookie_file_reset(pipeline->count.cookie_file);
	opd_ledger_turn_page(&sync->pipeline->ledger);
	sync->rotation.nr_closed++;
	sync->rotation.held_ns = 0;
	sync->rotation.held_told = false;
	sync->retention.due_ns = 0;
	opd_sync_write_book(sync, OP_SESSION_open);
}

/* The ledger says closed before the session is: when it cannot be written, the session stays, and the ledger is as it was. */
static int close_session(struct opd_sync *sync, const struct op_session_ledger *ledger, char name[OP_SESSION_NAME_BYTES])
{
	int session_fd = sync->pipeline->count.session_fd, err = opd_ledger_write(&sync->pipeline->ledger, ledger);

	if (err)
		return err;
	if (sync->pipeline->count.cookie_file)
		opd_cookie_file_stop_publishing(sync->pipeline->count.cookie_file);
	err = ledger->ended == OP_SESSION_saved ? op_session_close(session_fd, name) : op_session_close_timed(session_fd, name);
	if (err)
		opd_sync_write_book(sync, OP_SESSION_open);
	return err;
}

static int change_session(struct opd_sync *sync, const struct op_session_ledger *ledger, struct opd_job *job,
			  char name[OP_SESSION_NAME_BYTES])
{
	struct opd_pipeline *pipeline = sync->pipeline;
	struct opd_write_out *out;
	int err;

	opd_jit_write(pipeline->resolver.jit, &pipeline->count, op_now_ns(), true);
	err = opd_write_out_begin(sync, job, true, &out);
	if (err)
		return err;
	err = close_session(sync, ledger, name);
	if (err) {
		opd_write_out_drop(out);
		return err;
	}
	begin_next(sync);
	return opd_write_out_go(out);
}

int opd_rotate_save(struct opd_sync *sync, struct opd_job *job)
{
	struct op_session_ledger ledger;
	int err;

	opd_visit_all(&sync->visits);
	opd_sync_look(sync, true);
	err = opd_ledger_sum(&sync->pipeline->ledger, OP_SESSION_saved, &ledger);
	if (err)
		return err;
	err = op_session_ledger_is_empty(&ledger) ? -ENODATA : change_session(sync, &ledger, job, job->name);
	op_session_ledger_free(&ledger);
	return err;
}

/* ---- when ---- */

uint64_t opd_rotate_boundary(uint64_t wall_ns, uint64_t interval_ns)
{
	return (wall_ns / interval_ns + 1) * interval_ns;
}

/* A boundary that a step back has moved away comes nearer again. */
static void look_at_clock(struct opd_rotation *rotation, uint64_t wall_ns, uint64_t interval_ns)
{
	int64_t offset_ns = (int64_t)wall_ns - (int64_t)op_sys_boot_ns(), step_ns = offset_ns - rotation->offset_ns;

	if (step_ns > STEP_NS || step_ns < -STEP_NS)
		rotation->due_ns = op_min_u64(rotation->due_ns, opd_rotate_boundary(wall_ns, interval_ns));
	rotation->offset_ns = offset_ns;
}

static void rotate(struct opd_sync *sync, uint64_t wall_ns, uint64_t interval_ns)
{
	struct op_session_ledger ledger;
	char name[OP_SESSION_NAME_BYTES];
	int err;

	opd_sync_look(sync, true);
	err = opd_ledger_sum(&sync->pipeline->ledger, OP_SESSION_rotated, &ledger);
	if (err)
		goto failed;
	op_session_time_name(ledger.begin_ns, wall_ns < sync->rotation.due_ns || interval_ns % NS_PER_MIN, name);
	if (op_session_ledger_is_empty(&ledger)) {
		opd_ledger_turn_page(&sync->pipeline->ledger);
		opd_sync_write_book(sync, OP_SESSION_open);
	} else {
		err = change_session(sync, &ledger, NULL, name);
	}
	if (!err && !op_session_ledger_is_empty(&ledger))
		op_log(OP_LOG_INFO, "session %s is closed", name);
	op_session_ledger_free(&ledger);
	if (err)
		goto failed;
	sync->rotation.due_ns = opd_rotate_boundary(wall_ns, interval_ns);
	return;
failed:
	sync->rotation.nr_failed++;
	op_log(OP_LOG_WARNING, "the session cannot be closed: %s; counting goes on in it, it is tried again", strerror(-err));
}

static void tell_held(struct opd_rotation *rotation, uint64_t now_ns)
{
	if (!rotation->held_ns)
		rotation->held_ns = now_ns;
	if (rotation->held_told || now_ns - rotation->held_ns < HELD_NS)
		return;
	rotation->held_told = true;
	op_log(OP_LOG_WARNING, "the session takes more than a quarter of SessionMaxUse, but goes on: what the others take has to "
			    "become less before");
}

/* Too large, and what is closed can be removed before more is. */
static bool is_to_be_closed(struct opd_sync *sync, uint64_t now_ns)
{
	uint64_t most = sync->config->session_max_use, bytes = opd_file_limit_bytes(&sync->pipeline->count.limit);

	if (!most || bytes <= most / USE_SHARE) {
		sync->rotation.held_ns = 0;
		return false;
	}
	if (opd_retain_may_close(sync))
		return true;
	tell_held(&sync->rotation, now_ns);
	return false;
}

void opd_rotate_if_due(struct opd_sync *sync, uint64_t now_ns)
{
	uint64_t interval_ns = sync->config->session_interval_us * NS_PER_US, wall_ns = op_sys_wall_ns();
	struct opd_rotation *rotation = &sync->rotation;
	uint64_t nr_failed = rotation->nr_failed;

	if (!interval_ns || !sync->pipeline->ledger.begun) {
		rotation->due_ns = 0;
		return;
	}
	if (!rotation->due_ns) {
		rotation->due_ns = opd_rotate_boundary(opd_ledger_begin_ns(&sync->pipeline->ledger), interval_ns);
		rotation->offset_ns = (int64_t)wall_ns - (int64_t)op_sys_boot_ns();
	}
	look_at_clock(rotation, wall_ns, interval_ns);
	if ((wall_ns < rotation->due_ns && !is_to_be_closed(sync, now_ns)) || now_ns < rotation->retry_ns)
		return;
	if (wall_ns < rotation->due_ns)
		op_log(OP_LOG_NOTICE, "the session takes more than a quarter of SessionMaxUse: it is closed before its time");
	rotation->retry_ns = now_ns + RETRY_NS;
	rotate(sync, wall_ns, interval_ns);
	if (rotation->nr_failed == nr_failed)
		rotation->retry_ns = 0;
}
