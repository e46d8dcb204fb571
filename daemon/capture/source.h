/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Where the records of a CPU come from: the kernel writes its ring pair, or somebody in user space writes a memory pair (a
 * recorded or made-up stream, or records that another machine took). What follows in the pipeline is the same code for both.
 *
 *   opd_source_kernel   struct opd_cpu: pair, the sampling events' descriptors, a side band that belongs to a tracking event
 *   opd_source_memory   struct opd_cpu: memory, no descriptors, a side band that is a memory ring
 *
 * Sync thread only, but for opd_capture_open_memory before it starts.
 */
#ifndef OPD_SOURCE_H
#define OPD_SOURCE_H

#include "libop/base/compiler.h"
#include "libop/events/event.h"
#include "libop/ring/reader.h"
#include "libop/ring/memory_pair.h"

struct opd_capture;
struct opd_cpu;

/* Descriptors to wait for; -1: none. */
struct opd_source_fds {
	int samples[2];
	int sideband;
};

struct opd_source {
	/*
	 * True for the CPUs of this host: they come and go with its own, their processes are in its /proc, and their events are
	 * switched on and off. Who writes a memory pair decides all that.
	 */
	bool is_host;
	uint32_t epoll_events; /* for the descriptors */
	void (*fds)(const struct opd_cpu *cpu, struct opd_source_fds *ret_fds);

	/* Something has been written that was not read. */
	bool (*pending)(const struct opd_cpu *cpu);

	/*
	 * The write ring becomes the read ring, at once. NULL: it takes long, the swapping threads do it (swappers.h). 0; -EBUSY:
	 * not before the read ring is read, which is to be tried now; -EAGAIN: the writer is still inside the read ring, its records
	 * are there at the next visit.
	 */
	int (*swap)(struct opd_cpu *cpu);

	/* The ring that is not written; NULL as long as a writer is inside. */
	struct op_ring *(*read_ring)(struct opd_cpu *cpu);
};

extern const struct opd_source opd_source_kernel, opd_source_memory;

/* In struct opd_cpu. The memory is the maker's and outlives the capture. */
struct opd_memory_rings {
	struct op_mring_pair_reader reader;
	int wake_fd, sideband_wake_fd;
};

/* One CPU to be opened. */
struct opd_memory_cpu {
	uint32_t cpu; /* its number in profiles and in the status */
	const struct op_mring_pair *pair;
	const struct op_mring *sideband;
	const uint64_t *ids; /* for each event that is opened (libop/events/event_list.h) the identifier that the records have */
};

/*
 * A capture of memory pairs instead of opd_capture_open, closed like any: each CPU is open from now on, and its writers may be
 * at work already. What they dropped comes as LOST records and is the ledger's lost_kernel. No event may have every_event,
 * since nobody counts beside the records. 0, -EINVAL or -ENOMEM.
 */
int opd_capture_open_memory(struct opd_capture *capture, const struct op_event *events, size_t nr_events,
			    const struct opd_memory_cpu *cpus, size_t nr_cpus) OP_NONNULL OP_MUST_CHECK;

/*
 * One CPU more, behind the others; those may move in memory, so nobody may be at work with the capture. 0 or -ENOMEM, and then
 * the capture is as it was.
 */
int opd_capture_add_memory(struct opd_capture *capture, const struct opd_memory_cpu *cpu) OP_NONNULL OP_MUST_CHECK;

#endif
