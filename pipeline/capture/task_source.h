/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The events of some tasks and their children as the source of records, for a user without
 * privileges (kernel.perf_event_paranoid <= 2). Each online CPU has a ring pair and a side band on
 * anchors of the calling thread, which must outlive the capture. For each task and CPU there is a
 * sampling event per configured event, and one for the side band. Children inherit them, and write
 * to the rings of the CPU where they run.
 *
 * A CPU that goes offline needs no work: its events count again when it returns. What runs on a CPU
 * that came online later is not sampled.
 */
#ifndef OPD_TASK_SOURCE_H
#define OPD_TASK_SOURCE_H

#include <sys/types.h>

#include "libop/base/compiler.h"
#include "pipeline/capture/cpu_rings.h"

extern const struct opd_source opd_source_tasks;

/* More events than this on a CPU make its swaps long (libop/ring/kernel_pair.h). */
#define OPD_TASK_SWAPPED_MAX 8u

struct opd_task_options {
	uint32_t callgraph;
	uint64_t visit_ns; /* time between two visits */
	bool on_exec;      /* the events begin when their task calls exec(2) */
	size_t nr_tasks;   /* how many will be added; above OPD_TASK_SWAPPED_MAX events: in_place */
};

/*
 * Opens the rings. Their size is the plan's, or smaller where the memory that a user may lock does
 * not suffice. `events` must outlive the capture; STACKS among them gets the rate that fits. 0; or
 * -errno and *ret_why, one line with the failure and its remedy, which the caller frees; then
 * nothing is open.
 */
int opd_capture_open_tasks(struct opd_capture *capture, struct op_event *events, size_t nr_events,
			   const struct opd_task_options *options, char **ret_why) OP_NONNULL OP_MUST_CHECK;

/*
 * Opens the events of a task on all CPUs. Its side band begins at once; its samples on_exec, or
 * with opd_capture_enable. 0; -ESRCH: there is no such task (any more); another -errno and *ret_why
 * as above, and some events of the task may be open.
 */
int opd_capture_add_task(struct opd_capture *capture, const struct opd_task_options *options, pid_t task,
			 char **ret_why) OP_NONNULL OP_MUST_CHECK;

#endif
