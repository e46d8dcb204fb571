/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The CPUs that are captured, the rings of each CPU, and each event's counts on each CPU. Two kinds
 * of source fill the rings: the kernel (kernel_source.h) and a writer in user space
 * (memory_source.h). All later stages read both in the same way.
 *
 * Sync thread only, except before it starts and after it ends.
 */
#ifndef OPD_CPU_RINGS_H
#define OPD_CPU_RINGS_H

#include "libop/base/compiler.h"
#include "libop/events/event.h"
#include "libop/ring/kernel_pair.h"
#include "libop/ring/memory_pair.h"
#include "libop/ring/reader.h"
#include "libop/session/ledger.h"
#include "pipeline/capture/plan.h"

struct opd_cpu;

/* Descriptors to wait for; -1: none. */
struct opd_source_fds {
	int samples[2];
	int stacks[2];
	int sideband;
};

/* How the rings of a CPU are used, whoever writes them. */
struct opd_source {
	/*
	 * True for the CPUs of this host: they come and go with its own, their processes are in its
	 * /proc, and their events can be switched on and off. False for a memory pair, whose writer
	 * decides all of that.
	 */
	bool is_host;
	uint32_t epoll_events; /* for the descriptors */
	void (*fds)(const struct opd_cpu *cpu, struct opd_source_fds *ret_fds);

	/* The bytes of records that were not read. */
	uint64_t (*pending)(const struct opd_cpu *cpu);

	/*
	 * Swaps the write ring and the read ring at once. NULL: a swap takes long, and the swapping
	 * threads do it (swappers.h). 0; -EBUSY: the read ring has to be read first; -EAGAIN: the
	 * writer is still inside the read ring, and the next visit finds its records.
	 */
	int (*swap)(struct opd_cpu *cpu);

	/*
	 * The ring to be read. Nobody writes it, unless the CPU is in_place. NULL while a writer is
	 * inside.
	 */
	struct op_ring *(*read_ring)(struct opd_cpu *cpu);

	/* The same for the rings of STACKS. NULL: there are none. */
	struct op_ring *(*stack_ring)(struct opd_cpu *cpu);
};

/* The descriptors of one event for several tasks, in the order of their ids (task_source.h). */
struct opd_task_fds {
	int *fds;
	uint64_t *ids; /* PERF_SAMPLE_IDENTIFIER */
	size_t nr;
};

/* The rings of a memory source. The caller of opd_capture_open_memory owns the memory. */
struct opd_memory_rings {
	struct op_mring_pair_reader reader;
	int wake_fd, sideband_wake_fd;
};

/* What the kernel tells of an event on a CPU. */
struct opd_counts {
	uint64_t taken, lost;
	uint64_t enabled_ns, counted_ns; /* as in struct op_ledger_event */
};

/*
 * One sampling event on one CPU, and its part of the ledger. The sync thread is the only writer of
 * all but fd and id.
 */
struct opd_event {
	/* -1: none, because the CPU is offline, or a memory source, or the event is derived */
	int fd;
	uint64_t id;              /* PERF_SAMPLE_IDENTIFIER */
	struct opd_task_fds more; /* of the tasks after the first one */
	struct opd_counts base;   /* when the ledger began, or when the CPU came online */
	struct opd_counts before; /* of descriptors that are closed: the CPU went offline */
	uint64_t lost_records; /* sum of PERF_RECORD_LOST; used on kernels before 6.0 only */
	/* sum of PERF_RECORD_LOST_SAMPLES: dropped before they reached a ring, so always added */
	uint64_t lost_samples;
	uint64_t received, stored, unattributed, filtered;
	uint64_t received_before; /* calls_of_stacks: up to the last stack */
	uint64_t lost[OP_NR_LOSS];
	uint64_t ends[OP_NR_STACK_ENDS]; /* how the walks of its stacks ended */
	uint64_t throttled_since_ns; /* 0: it is not throttled */
	uint64_t throttled_ns, nr_throttles;
};

struct opd_cpu {
	uint32_t cpu;
	bool online; /* its rings are open; the counts of an offline CPU stay */
	/*
	 * opd_cpu_online_id() when the CPU was opened. Another value means that the CPU was offline
	 * in between: the kernel has removed its events.
	 */
	uint64_t online_id;
	const struct opd_source *source;
	struct op_ring_pair pair; /* the rings of a kernel source; its counts serve both sources */
	/*
	 * The rings of STACKS. Its samples are large; here they take no room of the others.
	 * All zero: there are none.
	 */
	struct op_ring_pair stack_pair;
	struct opd_memory_rings memory;
	/* the event of notes about samples of STACKS, in the same ring; id 0: there is none */
	int notes_fd;
	uint64_t notes_id;
	int sideband_fd;
	struct opd_task_fds tracking; /* events of tasks that write to the side band */
	struct op_ring sideband;
	struct opd_event *events; /* in the order of the capture's events */
	bool due;                 /* in the list of CPUs to be visited (pipeline/drive/visit.h) */
	struct op_ring *frozen;   /* to be read in this visit; NULL: a writer was inside */
	struct op_ring *frozen_stacks;
	/* one ring of each kind, read while it is written: a visit reads up to these positions */
	bool in_place;
	uint64_t frozen_head, frozen_stacks_head;
	uint64_t sideband_bytes, sideband_lost;
	/*
	 * Side-band records dropped since it was opened: the largest known number, and the sum of
	 * the LOST records.
	 */
	uint64_t sideband_known, sideband_reported;
	/*
	 * The side band was full or nearly full at the last drain, so a later record may report
	 * more losses.
	 */
	bool sideband_was_full;
	const struct op_ring *reading;       /* the ring that is being read, */
	struct op_ring_pair *reading_pair;   /* of this pair */
	struct op_swap_counts counts_before; /* of pairs that are closed: the CPU went offline */
};

struct opd_capture {
	const struct op_event *events;
	size_t nr_events;
	/* the first events have samples; the rest is derived (libop/events/event_list.h) */
	size_t nr_opened;
	struct opd_cpu *cpus; /* every CPU that can be online, in order of their numbers */
	size_t nr_cpus, nr_online;
	struct opd_plan plan;
	size_t ring_bytes; /* of each ring: RingSize=, or the plan's, or smaller */
	size_t stack_ring_bytes; /* of each ring of STACKS; 0: there are none */
	bool is_shrunk; /* rings are smaller than planned: no more memory may be locked */
	size_t watermark_bytes;
	/* nobody asked for a watermark: a ring that woke its reader with less in it can wait */
	bool may_leave_woken;
	size_t sideband_bytes; /* SidebandSize=, or the plan's */
	/* samples after which a ring wakes the reader; 0: by bytes alone */
	uint32_t wakeup_records;
	/* callers followed per sample, at most; 0: samples have no call chain */
	uint32_t callgraph;
	uint32_t max_stack;   /* frames that the kernel follows at most (op_chain_max_stack) */
	/* the kernel may hand in the user part of a chain later (PERF_RECORD_CALLCHAIN_DEFERRED) */
	bool defers_chains;
	bool with_cgroup;     /* all samples have their cgroup */
	bool has_format_lost; /* the kernel counts lost samples per event (6.0 and later) */
	bool has_tasks;       /* events of tasks: enabled on all CPUs while the task runs on one */
	bool enabled;
	bool has_program; /* a BPF program runs before each sample of STACKS: */
	int program_fd;   /* its descriptor, which the capture does not close */
};

/*
 * True when samples of the event have a call chain whose callers become arcs. The chain of an event
 * with stacks is a part of its stack.
 */
static inline bool opd_capture_has_chain(const struct opd_capture *capture, const struct op_event *event)
{
	return capture->callgraph && !event->without_chain && !op_event_has_stack(event);
}

static inline bool opd_cpu_has_stack_pair(const struct opd_cpu *cpu)
{
	return cpu->stack_pair.rings[0].k_control;
}

/* The pair that an event of this CPU writes to. */
static inline struct op_ring_pair *opd_cpu_pair_of(struct opd_cpu *cpu, const struct op_event *event)
{
	return op_event_is_stacks(event->role) && opd_cpu_has_stack_pair(cpu) ? &cpu->stack_pair : &cpu->pair;
}

/* The bytes of records of STACKS that were not read. */
static inline uint64_t opd_cpu_stacks_pending(const struct opd_cpu *cpu)
{
	if (!opd_cpu_has_stack_pair(cpu))
		return 0;
	return op_ring_pending(&cpu->stack_pair.rings[0]) + (cpu->in_place ? 0 : op_ring_pending(&cpu->stack_pair.rings[1]));
}

/* What the samples of an event hold: perf_event_attr.sample_type. */
uint64_t opd_capture_sample_type(const struct opd_capture *capture, const struct op_event *event) OP_NONNULL;

/* The counts of one event on one CPU since the ledger began. */
void opd_capture_counts(const struct opd_capture *capture, const struct opd_event *event, struct opd_counts *ret_counts) OP_NONNULL;

/*
 * Records that the kernel dropped from a CPU's side band since it was opened. A LOST record reports
 * the same, but only with the next record, which may come much later. 0 for a memory source and
 * before Linux 6.0. Interrupts the CPU.
 */
uint64_t opd_capture_sideband_dropped(const struct opd_cpu *cpu) OP_NONNULL;

/* Sets all counters of the ledger to 0. Sampling is stopped and the rings are empty. */
void opd_capture_reset_ledger(struct opd_capture *capture) OP_NONNULL;

/* Closes the rings and events of a CPU; its counts are left alone. For the sources, on failure. */
void opd_cpu_close_rings(struct opd_cpu *cpu, size_t nr_events) OP_NONNULL;

/*
 * A CPU went offline, and its rings were read: adds its counts to those of before and closes
 * everything.
 */
void opd_capture_cpu_close(struct opd_capture *capture, struct opd_cpu *cpu) OP_NONNULL;

/* Closes everything that a source opened. */
void opd_capture_close(struct opd_capture *capture);

#endif
