/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A profile that is being taken: the pipeline and its loop (pipeline/drive/loop.h) in this
 * process. One thread, beside those that swap.
 */
#ifndef OPF_PROFILE_H
#define OPF_PROFILE_H

#include "libop/events/event_list.h"
#include "pipeline/drive/loop.h"
#include "pipeline/timeline/by_time.h"
#include "tools/common/workload.h"
#include "tools/operf/options.h"
#include "tools/operf/session.h"

struct opf_profile {
	const struct opf_options *options; /* the caller's */
	struct opr_workload command;
	/* of root, whom a file system of another user must not keep waiting; else NULL */
	struct op_nursery *nursery;
	struct opd_lookers *lookers;
	struct opd_tables *tables; /* NULL: no stacks are taken */
	struct op_event_list events;
	bool user_only; /* the kernel is left out */
	struct opf_session session;
	struct opd_pipeline pipeline;
	struct opd_by_time by_time;
	bool is_counting; /* the pipeline is open */
	struct opd_visits visits;
	struct opd_loop loop;
	int signal_fd;
	int pid_fd; /* of options->pid; -1: none */
	bool is_refused;
	bool missed_cpus; /* a CPU came online that has no events */
	/* at the end, of the ledger or of the table of images */
	int write_error;
};

/* Opens everything, and begins to sample. 0 or -errno after a message. */
int opf_profile_open(struct opf_profile *profile, const struct opf_options *options) OP_NONNULL OP_MUST_CHECK;

/* Samples until the command or the process ends, or a signal comes. */
void opf_profile_run(struct opf_profile *profile) OP_NONNULL;

/* Counts what was taken, and completes the session. */
void opf_profile_finish(struct opf_profile *profile) OP_NONNULL;

/* Closes what _open opened, also after a failure. */
void opf_profile_close(struct opf_profile *profile) OP_NONNULL;

#endif
