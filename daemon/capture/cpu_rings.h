/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Capture: everything of perf_event_open. Per online CPU a ring pair on two anchors, a side-band ring on a tracking event, and one
 * sampling event per configured event. What needs privilege in opd is here:
 *
 *   perf_event_open of a CPU, all processes      CAP_PERFMON, or kernel.perf_event_paranoid <= 0
 *   ring memory beyond perf_event_mlock_kb       CAP_IPC_LOCK
 *   one descriptor per event and CPU             RLIMIT_NOFILE
 *
 * Opened by the main thread before the sync thread starts, the sync thread's afterwards.
 */
#ifndef OPD_CAPTURE_H
#define OPD_CAPTURE_H

#include "daemon/capture/plan.h"
#include "daemon/capture/source.h"
#include "libop/base/compiler.h"
#include "libop/control/config.h"
#include "libop/events/event.h"
#include "libop/session/ledger.h"
#include "libop/ring/kernel_pair.h"

/* One sampling event on one CPU, and its part of the ledger. Everything but fd and id has one writer, the sync thread. */
struct opd_event {
	int fd;              /* -1: none, the CPU is offline or a memory pair, or the event is derived */
	uint64_t id;         /* PERF_SAMPLE_IDENTIFIER */
	uint64_t taken_base; /* counts of the descriptor when the ledger began, or when the CPU came */
	uint64_t lost_base;
	uint64_t taken_before; /* counts of descriptors that were closed when the CPU went */
	uint64_t lost_before;
	uint64_t lost_records; /* told by PERF_RECORD_LOST; believed on kernels before 6.0 only */
	uint64_t lost_samples; /* told by PERF_RECORD_LOST_SAMPLES: given up before a ring was asked for room, so always added */
	uint64_t received, stored, unattributed, filtered;
	uint64_t lost[OP_NR_LOSS];
	uint64_t throttled_since_ns; /* 0: it is not */
	uint64_t throttled_ns, nr_throttles;
};

struct opd_cpu {
	uint32_t cpu;
	bool online; /* open; the ledger of a CPU that went stays */
	uint64_t stay; /* opd_cpu_stay when it was opened: its events are gone for good when that is another one */
	const struct opd_source *source;
	struct op_ring_pair pair;       /* one of the two is in use, as source says; the counts are in pair */
	struct opd_memory_rings memory;
	int sideband_fd;
	struct op_ring sideband;
	struct opd_event *events; /* in the order of the capture's events */
	bool due;	     /* in the list of CPUs to be visited (daemon/pipeline/visit.h) */
	struct op_ring *frozen; /* to be read in this visit; NULL: a writer was inside when the side band was about to be read */
	uint64_t sideband_bytes, sideband_lost;
	uint64_t sideband_known, sideband_told; /* records that were dropped since it is open: as far as is known, as LOST records told */
	bool sideband_was_full; /* or nearly, when it was drained last: what was dropped then may not have been told */
	const struct op_ring *reading; /* the ring of the pair that is being read */
	struct op_swap_counts counts_before; /* of pairs that were closed when the CPU went */
};

struct opd_capture {
	const struct op_event *events;
	size_t nr_events;
	size_t nr_opened;    /* the first of them have samples of their own; the others are derived from those (libop/events/event_list.h) */
	struct opd_cpu *cpus; /* all that can be online (possible), in order of their numbers */
	size_t nr_cpus, nr_online;
	struct opd_plan plan;
	size_t ring_bytes;	 /* of each ring: RingSize=, or the plan's */
	size_t watermark_bytes;
	size_t sideband_bytes; /* SidebandSize=, or the plan's */
	uint32_t wakeup_records; /* samples of all events of a CPU after which its ring wakes; 0: by bytes alone */
	uint32_t callgraph;   /* callers of a sample that are followed at most; 0: none, and samples have no call chain */
	uint32_t max_stack;   /* frames that the kernel follows at most (op_chain_max_stack) */
	bool with_cgroup;     /* samples say in which cgroup they were taken, the side band which cgroups come to be */
	bool has_format_lost; /* the kernel counts lost samples per event (6.0 and later) */
	bool enabled;
};

/*
 * Opens everything, disabled but for the tracking events. A CPU that goes offline meanwhile is one that is offline. 0; -errno
 * and *ret_why, one line that names what failed and the remedy, to be freed by the caller; then nothing is left open. `events`
 * must outlive the capture.
 */
int opd_capture_open(struct opd_capture *capture, const struct op_config *config, const struct op_event *events, size_t nr_events,
		     bool with_cgroup, uint32_t callgraph, char **ret_why) OP_NONNULL OP_MUST_CHECK;

/*
 * A CPU that came: opened, and sampling when the others do. One that went: its rings must have been read; the counts of its
 * events are kept and everything is closed. opd_capture_cpu_open: 0, also when the CPU went meanwhile, and then it is not
 * online; or -errno and *ret_why as above, and the CPU stays offline.
 */
int opd_capture_cpu_open(struct opd_capture *capture, struct opd_cpu *cpu, char **ret_why) OP_NONNULL OP_MUST_CHECK;
void opd_capture_cpu_close(struct opd_capture *capture, struct opd_cpu *cpu) OP_NONNULL;

/* True when samples of the event have a call chain. */
static inline bool opd_capture_has_chain(const struct opd_capture *capture, const struct op_event *event)
{
	return capture->callgraph && !event->without_chain;
}

/*
 * Raises the limit on descriptors, within the hard one, so that there are nr_wanted beside those that must be had. Returns how
 * many numbers, from 0 on, are free for what can do without: behind them there is room for all CPUs and what else opd opens.
 */
int opd_capture_spare_descriptors(const struct opd_capture *capture, size_t nr_wanted) OP_NONNULL;

/* What the samples of an event hold: perf_event_attr.sample_type. */
uint64_t opd_capture_sample_type(const struct opd_capture *capture, const struct op_event *event) OP_NONNULL;

/* Starts or stops sampling on all CPUs; the side band goes on. 0 or the first -errno. */
int opd_capture_enable(struct opd_capture *capture, bool enable) OP_NONNULL OP_MUST_CHECK;

/* What the kernel counted for one event on one CPU since the ledger began: taken and lost, also while the CPU was here before. */
void opd_capture_counts(const struct opd_capture *capture, const struct opd_event *event, uint64_t *ret_taken,
			uint64_t *ret_lost) OP_NONNULL;

/*
 * Records that the kernel dropped of a CPU's side band since it is open. A LOST record says so when there is room again and something else is to
 * be told, which may be long after. 0 of a memory ring and before Linux 6.0. Interrupts the CPU.
 */
uint64_t opd_capture_sideband_dropped(const struct opd_cpu *cpu) OP_NONNULL;

/* The ledger begins anew: counters at 0, the kernel's counts so far are the base. Sampling is stopped and the rings are empty. */
void opd_capture_reset_ledger(struct opd_capture *capture) OP_NONNULL;

void opd_capture_close(struct opd_capture *capture);

#endif
