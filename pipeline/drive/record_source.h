/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A source of records takes the samples of an event. The rings of a CPU hold records of many
 * events: each record says its event, and the event says its source. Samples of plain events have
 * none: drain.c counts them itself. The sources of every pipeline are copies of stacks and IBS
 * (sources.c). Another one, such as a program in the kernel whose output event writes to the same
 * rings, adds a row with opd_record_source_add, and changes no other source.
 *
 * What a source makes goes to the sinks (pipeline/count/sink.h): samples by opd_count_attributed
 * (attribute.h), stacks by opd_stack_book (stack_booking.h). It books each of its samples in the
 * account of the event: `received`, then `stored`, `filtered` or lost.
 *
 * One thread calls all functions: in opd the sync thread. All but `name`, is_of and `take` may be
 * NULL.
 */
#ifndef OPD_RECORD_SOURCE_H
#define OPD_RECORD_SOURCE_H

#include <assert.h>
#include <linux/perf_event.h>

#include "libop/base/compiler.h"
#include "libop/events/event.h"
#include "libop/perf/record.h"
#include "pipeline/capture/cpu_rings.h"

#define OPD_RECORD_SOURCES_MAX 8u

/* A sample record, in its ring. All of it is valid during `take` alone. */
struct opd_record {
	const struct perf_event_header *header;
	struct op_sample *sample; /* decoded from it; the source may correct the address */
	struct opd_cpu *cpu;
	struct opd_event *account; /* of the event on this CPU */
	uint32_t event;            /* index of the event */
};

struct opd_record_source {
	const char *name;
	/*
	 * Whether the samples of this event are its own. It is asked only about events whose role
	 * is not OP_EVENT_PLAIN; the source that was added last is asked first.
	 */
	bool (*is_of)(const struct op_event *event);
	/* Takes a sample, which is not booked as received yet. A copy of it may wait. */
	void (*take)(void *host, const struct opd_record *record);
	/* In each turn, after all rings were read, and when `fd` is readable. */
	void (*turn)(void *host);
	/* The session ends: what waits is counted, within wait_ns. */
	void (*finish)(void *host, uint64_t wait_ns);
	/*
	 * Another session begins. What waits will be in it; with is_reset it belongs to nothing any
	 * more, and is forgotten.
	 */
	void (*begin_session)(void *host, bool is_reset);
	/*
	 * The time of the oldest sample that waits: mappings of that time are kept. UINT64_MAX:
	 * none waits.
	 */
	uint64_t (*oldest_ns)(void *host);
	/* A descriptor for epoll(7), when the loop is opened; -1: none. */
	int (*fd)(void *host);
	void *host; /* the argument of the functions; it lives as long as the pipeline */
};

/* Those that were added. */
struct opd_record_sources {
	struct opd_record_source rows[OPD_RECORD_SOURCES_MAX];
	size_t nr;
};

/* Adds a source; the row is copied. Before the first record. */
static inline void opd_record_source_add(struct opd_record_sources *sources, const struct opd_record_source *source)
{
	assert(sources->nr < OPD_RECORD_SOURCES_MAX);
	sources->rows[sources->nr++] = *source;
}

#endif
