/* SPDX-License-Identifier: GPL-3.0-or-later */
/* One capture through real ring pairs for some seconds, and its cost. */
#ifndef CAPTURE_RUN_H
#define CAPTURE_RUN_H

#include "libop/base/compiler.h"

enum capture_how {
	CAPTURE_SWAP,	  /* as opd does: swap, then read what was the write ring */
	CAPTURE_IN_PLACE, /* the ring is read while it is written */
	/* overwrite mode: as CAPTURE_SWAP, and settle before reading, newest first */
	CAPTURE_SNAPSHOT,
};

enum capture_load {
	CAPTURE_BUSY,	/* a process on each CPU that computes */
	CAPTURE_FAULTS, /* a process on each CPU that touches pages */
	CAPTURE_NR_LOADS,
};

#define CAPTURE_EVENTS_MAX 8

struct capture_wanted {
	const char *name;
	uint64_t event;	       /* PERF_COUNT_SW_... */
	uint64_t period;
	size_t ring_bytes, watermark_bytes;
	/* perf_event_attr.wakeup_events, as WakeupRecords=; 0: by the watermark alone */
	unsigned int wakeup_records;
	enum capture_how how;
	enum capture_load load;
	unsigned int nr_events;	 /* of that kind on each CPU, up to CAPTURE_EVENTS_MAX; 0: one */
	unsigned int nr_threads; /* that swap, as opd's swappers; 0: one */
	unsigned int turn_ms;	 /* from one visit to all CPUs to the next; 0: as opd */
};

struct capture_result {
	uint64_t samples, lost, undecodable, throttles;
	uint64_t wakeups;      /* returns of poll before its time */
	uint64_t swaps, swap_wait_ns;
	uint64_t settles, settle_wait_ns, overwritten_bytes; /* CAPTURE_SNAPSHOT */
	/* visits to all CPUs with something to read, and the time they took */
	uint64_t turns, turn_ns;
	uint64_t reader_cpu_ns; /* of the reading thread: poll, swap, drain, decode */
	uint64_t drain_cpu_ns; /* of that, drain and decode; not with CAPTURE_IN_PLACE */
	uint64_t elapsed_ns;
	uint64_t checksum;     /* of all addresses: decoding cannot be left out */
};

/*
 * Captures on all CPUs that the process may use. 0 or -errno; -EPERM and -EACCES: it may not open
 * system-wide events.
 */
int capture_run(const struct capture_wanted *wanted, unsigned int seconds, struct capture_result *ret_result)
	OP_NONNULL OP_MUST_CHECK;

#endif
