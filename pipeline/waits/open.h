/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Threads that wait now, as the iterator of the program tells them (shared.h). Each becomes a
 * sample of its own, with a copy of its stack. Sync thread only.
 */
#ifndef OPD_WAITS_OPEN_H
#define OPD_WAITS_OPEN_H

#include <linux/perf_event.h>

#include "libop/base/compiler.h"
#include "pipeline/waits/shared.h"

#define OPD_OPEN_WAITS_MAX  16384u /* threads; of more there is no stack until their wait ends */
#define OPD_OPEN_COPIES_MAX (4u << 20) /* bytes of copies of stacks */

struct opd_lookers;
struct opd_open_waits;

/* What a record of the event has: perf_event_attr of the event WAIT. */
struct opd_open_layout {
	uint64_t sample_type;
	uint64_t registers;
	uint16_t machine;
	uint32_t stack_bytes;
};

/*
 * Takes what a thread has waited: `ns` more. The record is a PERF_RECORD_SAMPLE of the event.
 * goes_on: the wait was taken before.
 */
typedef void (*opd_open_book)(void *host, const struct opd_wait_open *open, const struct perf_event_header *record, uint64_t ns,
			      bool goes_on);

/* Without lookers there are no copies. 0 or -ENOMEM. */
int opd_open_waits_new(struct opd_lookers *lookers, const struct opd_open_layout *layout, opd_open_book book, void *host,
		       struct opd_open_waits **ret_waits) OP_NONNULL_ARGS(2, 3, 5) OP_MUST_CHECK;
void opd_open_waits_free(struct opd_open_waits *waits);

/*
 * Takes all that a reading of the iterator tells, and asks for so many copies at most: the others
 * wait for the next reading. 0 or -errno.
 */
int opd_open_waits_read(struct opd_open_waits *waits, int fd, size_t max_copies) OP_NONNULL OP_MUST_CHECK;

/* A wait that was told is over. Returns what was not booked, in ns; *ret_goes_on: some was. */
uint64_t opd_open_waits_end(struct opd_open_waits *waits, uint32_t tid, uint64_t begin_ns, bool *ret_goes_on) OP_NONNULL;

/* Another session begins: what is not booked yet will be in it. Nothing is booked now. */
void opd_open_waits_begin_session(struct opd_open_waits *waits) OP_NONNULL;

/* Books what has no stack yet, with what is known of it, and forgets all threads. */
void opd_open_waits_forget(struct opd_open_waits *waits) OP_NONNULL;

#endif
