/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A writer in user space as the source of records: recorded streams, generated streams, and records
 * of another machine. A CPU has a memory pair, a memory ring as its side band, and no event
 * descriptors.
 */
#ifndef OPD_MEMORY_SOURCE_H
#define OPD_MEMORY_SOURCE_H

#include "libop/base/compiler.h"
#include "pipeline/capture/cpu_rings.h"

extern const struct opd_source opd_source_memory;

/* One CPU to be opened. */
struct opd_memory_cpu {
	uint32_t cpu; /* its number in profiles and in the status */
	const struct op_mring_pair *pair;
	const struct op_mring *sideband;
	/* the identifiers in the records, one for each opened event (libop/events/event_list.h) */
	const uint64_t *ids;
};

/*
 * Opens a capture of memory pairs, in place of opd_capture_open. Every CPU is online at once, and
 * its writers may already be at work. Records that they drop come as LOST records and are the
 * ledger's lost_kernel. No event may have every_event, because nothing but the records counts. 0,
 * -EINVAL or -ENOMEM.
 */
int opd_capture_open_memory(struct opd_capture *capture, const struct op_event *events, size_t nr_events,
			    const struct opd_memory_cpu *cpus, size_t nr_cpus) OP_NONNULL OP_MUST_CHECK;

/*
 * Adds one CPU behind the others. The CPUs may move in memory, so no thread may use the capture
 * meanwhile. 0; or -ENOMEM, and the capture is as it was.
 */
int opd_capture_add_memory(struct opd_capture *capture, const struct opd_memory_cpu *cpu) OP_NONNULL OP_MUST_CHECK;

#endif
