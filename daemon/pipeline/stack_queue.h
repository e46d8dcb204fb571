/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Samples whose stack cannot be walked yet: the row table of an image is being made, or the user
 * part of their chain is deferred. They wait as they came, in memory of bounded size that is in no
 * core dump and is cleared at once, because copies of stacks hold secrets.
 *
 * Sync thread only.
 */
#ifndef OPD_STACK_QUEUE_H
#define OPD_STACK_QUEUE_H

#include <linux/perf_event.h>

#include "daemon/capture/cpu_rings.h"
#include "daemon/tables/tables.h"
#include "libop/base/compiler.h"
#include "libop/perf/record.h"

#define OPD_STACK_QUEUE_BYTES (16u << 20)

/* A sample with a stack, in its ring or in the queue. */
struct opd_stack_sample {
	const struct perf_event_header *header;
	struct op_sample sample;
	struct opd_event *account;
	uint32_t event;
	/* For --callgraph: the calls are so many of this event. 0: there are none. */
	uint32_t nr_calls, calls_event;
	struct opd_event *calls_account;
};

struct opd_stack_waiting {
	uint32_t nr_bytes; /* of this entry, with the record behind it */
	bool is_done;
	uint64_t since_ns;
	uint64_t deferred; /* cookie of the deferred chain; 0: it waits for a table */
	uint64_t pending_cookie;
	struct opd_table_source pending_source;
	struct opd_stack_sample taken; /* its header points behind this struct */
};

struct opd_stack_queue {
	uint8_t *arena; /* NULL: nothing has waited yet */
	size_t head, tail; /* offsets; the same: it is empty */
	size_t end;        /* while tail < head: where the entries from head on end */
	size_t nr;         /* entries that are not done */
};

/* Adds a copy of the sample. The caller fills the rest of the entry. -ENOSPC: full; -ENOMEM. */
int opd_stack_queue_add(struct opd_stack_queue *queue, const struct opd_stack_sample *taken,
			struct opd_stack_waiting **ret_waiting) OP_NONNULL OP_MUST_CHECK;

/* The first entry, and the one behind another; NULL: none. Entries may be done. */
struct opd_stack_waiting *opd_stack_queue_first(const struct opd_stack_queue *queue) OP_NONNULL;
struct opd_stack_waiting *opd_stack_queue_next(const struct opd_stack_queue *queue,
					       const struct opd_stack_waiting *waiting) OP_NONNULL;

/* Clears an entry. opd_stack_queue_trim then frees what is done. */
void opd_stack_queue_done(struct opd_stack_queue *queue, struct opd_stack_waiting *waiting) OP_NONNULL;
void opd_stack_queue_trim(struct opd_stack_queue *queue) OP_NONNULL;

/* Clears and frees everything; allowed on a zeroed queue. */
void opd_stack_queue_free(struct opd_stack_queue *queue) OP_NONNULL;

#endif
