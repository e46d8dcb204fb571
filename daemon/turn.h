/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A turn of the sync thread, every 250 ms. It visits all CPUs. Then it does the periodic work: it
 * opens CPUs that came online and closes those that went offline, forgets old processes and kernel
 * code, rotates and removes sessions, and logs losses. While no process does anything that opd must
 * know, and no client asks for the status, a turn comes every five seconds. Sync thread only.
 */
#ifndef OPD_TURN_H
#define OPD_TURN_H

#include "daemon/jobs/recording.h"
#include "daemon/jobs/rotate.h"
#include "libop/base/compiler.h"
#include "libop/control/config.h"
#include "pipeline/ledger/event_sums.h"

struct opd_turns {
	struct opd_recording *recording;
	struct opd_rotation *rotation;
	const struct op_config *config;
	const char *session_dir;
	int epoll_fd; /* of the sync thread */
	/* op_now_ns() */
	uint64_t next_ns, next_prune_ns, next_rate_check_ns, next_trim_ns, next_ledger_ns;
	uint64_t begin_ns;   /* of the last turn */
	bool is_watched;     /* a client has asked for the status since then */
	uint64_t horizon_ns; /* samples from before it have been read */
	uint64_t nr_freed;   /* freed address spaces when memory was trimmed last */
	bool trim_again;
	struct opd_losses reported; /* losses that the log has named */
	uint64_t nr_helpers_ended;  /* that the log has named */
	uint64_t nr_cookie_errors;  /* errors of the dcookie table that the log has named */
	uint64_t max_sample_rate;   /* kernel.perf_event_max_sample_rate at the last look */
};

void opd_turn(struct opd_turns *turns) OP_NONNULL;

/*
 * Logs samples that were lost since the last line about them, with the reason and a remedy: once a
 * minute, but is_last always.
 */
void opd_turn_report_losses(struct opd_turns *turns, uint64_t now_ns, bool is_last) OP_NONNULL;

/*
 * Adds the descriptors of a CPU to the epoll set of the sync thread. The tag of its ring pair is
 * its index in the capture. The tag of its side band is that index + nr_cpus. 0 or -errno.
 */
int opd_turn_watch_cpu(const struct opd_turns *turns, size_t index) OP_NONNULL OP_MUST_CHECK;

#endif
