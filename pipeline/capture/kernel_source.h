/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The kernel as the source of records: all users of perf_event_open. Each online CPU gets a ring
 * pair on two anchors, a side-band ring on a tracking event, and one sampling event per configured
 * event. This file needs all of opd's privileges:
 *
 *   perf_event_open of a CPU, all processes      CAP_PERFMON, or kernel.perf_event_paranoid <= 0
 *   ring memory beyond perf_event_mlock_kb       CAP_IPC_LOCK
 *   one descriptor per event and CPU             RLIMIT_NOFILE
 */
#ifndef OPD_KERNEL_SOURCE_H
#define OPD_KERNEL_SOURCE_H

#include "libop/base/compiler.h"
#include "libop/control/config.h"
#include "pipeline/capture/cpu_rings.h"

extern const struct opd_source opd_source_kernel;

/*
 * Opens the rings and events of all online CPUs. Only the tracking events are enabled. A CPU that
 * goes offline meanwhile is left out. `events` must outlive the capture; STACKS among them gets the
 * rate of the plan. 0; or -errno and *ret_why, one line with the failure and its remedy, which the
 * caller frees; then nothing is left open. Called by the main thread, before the sync thread is
 * started.
 */
int opd_capture_open(struct opd_capture *capture, const struct op_config *config, struct op_event *events, size_t nr_events,
		     bool with_cgroup, uint32_t callgraph, char **ret_why) OP_NONNULL OP_MUST_CHECK;

/*
 * Opens a CPU that came online; it samples when the others do. 0; the CPU is not online when it
 * went again meanwhile. Else -errno and *ret_why as above, and the CPU stays offline.
 */
int opd_capture_cpu_open(struct opd_capture *capture, struct opd_cpu *cpu, char **ret_why) OP_NONNULL OP_MUST_CHECK;

/*
 * Raises the limit on descriptors, within the hard limit, to make room for nr_wanted more than the
 * capture and the daemon need. Returns the first descriptor number that optional users must not
 * reach: the numbers from there on are for all CPUs and the daemon.
 */
int opd_capture_spare_descriptors(const struct opd_capture *capture, size_t nr_wanted) OP_NONNULL;

/* Starts or stops sampling on all CPUs; the side band goes on. 0 or the first -errno. */
int opd_capture_enable(struct opd_capture *capture, bool enable) OP_NONNULL OP_MUST_CHECK;

/*
 * From now on a BPF program of the type perf_event runs before each sample of STACKS is written,
 * also on CPUs that come later. An event has one program at most. Where the kernel refuses, a line
 * in the log says so, and samples are taken without it. The descriptor stays the caller's, and is
 * open as long as the capture. What the program writes goes to the event of notes of the CPU
 * (cpu_rings.h), into the ring of STACKS. The rights to open events are enough.
 */
void opd_capture_run_before_stacks(struct opd_capture *capture, int program_fd) OP_NONNULL;

/* ---- what task_source.c shares ---- */

/* The attributes of a sampling event, and of the event that fills the side band. */
void opd_capture_sampling_attr(const struct opd_capture *capture, const struct op_event *event,
			       struct perf_event_attr *ret_attr) OP_NONNULL;
void opd_capture_tracking_attr(const struct opd_capture *capture, size_t watermark_bytes,
			       struct perf_event_attr *ret_attr) OP_NONNULL;

/* Opens an event with the capture's clock; task -1: all. A descriptor or -errno. */
int opd_capture_open_event(struct opd_capture *capture, struct perf_event_attr *attr, pid_t task, int cpu) OP_NONNULL OP_MUST_CHECK;

/* Opens a sampling event of a CPU. A descriptor or -errno. */
int opd_capture_open_sampling(struct opd_capture *capture, const struct op_event *event, int cpu) OP_NONNULL OP_MUST_CHECK;

/* Gives the capture these CPUs, all closed. 0 or -ENOMEM. */
int opd_capture_make_cpus(struct opd_capture *capture, const struct opd_source *source, const uint32_t *possible,
			  size_t nr_possible) OP_NONNULL OP_MUST_CHECK;

/*
 * Raises the limit on descriptors. 0; -EMFILE, and *ret_limit is as far as it goes; another -errno.
 */
int opd_capture_raise_descriptors(uint64_t need, uint64_t *ret_limit) OP_NONNULL OP_MUST_CHECK;

#endif
