/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What the daemon does in a turn beside sampling (pipeline/drive/loop.h): it opens CPUs that came
 * online and closes those that went offline, rotates and removes sessions, and logs losses. Sync
 * thread only.
 */
#ifndef OPD_TURN_H
#define OPD_TURN_H

#include "daemon/jobs/recording.h"
#include "daemon/jobs/rotate.h"
#include "libop/base/compiler.h"
#include "libop/control/config.h"
#include "pipeline/drive/loop.h"
#include "pipeline/ledger/event_sums.h"

struct opd_turns {
	struct opd_recording *recording;
	struct opd_rotation *rotation;
	const struct op_config *config;
	const char *session_dir;
	struct opd_loop *loop;
	uint64_t next_rate_check_ns; /* op_now_ns() */
	struct opd_losses reported; /* losses that the log has named */
	uint64_t nr_helpers_ended;  /* that the log has named */
	uint64_t nr_cookie_errors;  /* errors of the dcookie table that the log has named */
	uint64_t max_sample_rate;   /* kernel.perf_event_max_sample_rate at the last look */
};

/* Opens and closes the rings of CPUs that came and went. */
void opd_turn_check_cpus(struct opd_turns *turns) OP_NONNULL;

/* After the rings were read: logs failures, and does what is due with sessions. */
void opd_turn_end(struct opd_turns *turns, uint64_t now_ns) OP_NONNULL;

/*
 * Logs samples that were lost since the last line about them, with the reason and a remedy: once a
 * minute, but is_last always.
 */
void opd_turn_report_losses(struct opd_turns *turns, uint64_t now_ns, bool is_last) OP_NONNULL;

#endif
