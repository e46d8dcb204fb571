/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Samples whose stack cannot be walked yet: the row table of an image is being made, or the user
 * part of their chain is deferred. They wait as they came, in memory of bounded size that is in no
 * core dump and in no swap space and is cleared at once, because copies of stacks hold secrets.
 *
 * Sync thread only.
 */
#ifndef OPD_STACK_QUEUE_H
#define OPD_STACK_QUEUE_H

#include <linux/perf_event.h>

#include "libop/base/compiler.h"
#include "libop/session/wait_states.h"
#include "libop/perf/record.h"
#include "pipeline/capture/cpu_rings.h"
#include "pipeline/runtimes/interpreters.h"
#include "pipeline/stacks/tables.h"
#include "pipeline/stacks/waker.h"

#define OPD_STACK_QUEUE_BYTES   (16u << 20) /* of records */
#define OPD_STACK_QUEUE_WAIT_BYTES (4u << 20) /* of these, of waits: they leave room for samples */
#define OPD_STACK_QUEUE_ENTRIES (1u << 15)

/* A sample with a stack, in its ring or in the queue. */
struct opd_stack_sample {
	const struct perf_event_header *header;
	struct op_sample sample;
	struct opd_event *account;
	uint32_t event;
	uint64_t weight; /* of its stack, in the unit of the event */
	enum op_wait_state state; /* of a wait */
	bool goes_on; /* as in struct opd_stack */
	struct opd_waker waker;
	uint32_t stack_distance; /* from its stack pointer to the top of the stack; 0: unknown */
	/*
	 * The functions of a runtime that its thread ran; NULL: none is known. The queue has a copy
	 * of its own.
	 */
	struct opd_interpreter_stack *runtime;
	uint32_t nr_skipped; /* words of the chain that stand in front of the sample */
	/* For --callgraph: the calls are so many of this event. 0: there are none. */
	uint32_t nr_calls, calls_event;
	struct opd_event *calls_account;
};

struct opd_stack_waiting {
	size_t at;         /* offset of its record */
	uint32_t nr_bytes; /* of its record, rounded up */
	bool is_done;
	uint64_t since_ns;
	uint64_t deferred; /* cookie of the deferred chain; 0: it waits for a table or a runtime */
	bool awaits_runtime;
	uint64_t pending_cookie;
	struct opd_table_source pending_source;
	struct opd_stack_sample taken;
};

/* Entries lie apart from the records, because all of them are often looked at. */
struct opd_stack_queue {
	uint8_t *records; /* NULL: nothing has waited yet */
	size_t head, tail; /* offsets; the same: it is empty */
	struct opd_stack_waiting *entries;
	uint32_t first, end; /* indexes, modulo OPD_STACK_QUEUE_ENTRIES */
	size_t nr;           /* entries that are not done */
	size_t wait_bytes;   /* of their records, of waits */
	uint64_t oldest_ns;  /* the oldest of their times; 0: not known */
};

/*
 * Adds a copy of the sample. The caller fills the rest of the entry. -ENOSPC: full, also of waits;
 * -ENOMEM.
 */
int opd_stack_queue_add(struct opd_stack_queue *queue, const struct opd_stack_sample *taken,
			struct opd_stack_waiting **ret_waiting) OP_NONNULL OP_MUST_CHECK;

/* The first sample that waits, and the one behind another; NULL: none. */
struct opd_stack_waiting *opd_stack_queue_first(const struct opd_stack_queue *queue) OP_NONNULL;
struct opd_stack_waiting *opd_stack_queue_next(const struct opd_stack_queue *queue,
					       const struct opd_stack_waiting *waiting) OP_NONNULL;

/* The time of the oldest sample that waits; UINT64_MAX: none does. Its mappings must be kept. */
uint64_t opd_stack_queue_oldest_ns(struct opd_stack_queue *queue) OP_NONNULL;

/* Clears a record. opd_stack_queue_trim then frees what is done. */
void opd_stack_queue_done(struct opd_stack_queue *queue, struct opd_stack_waiting *waiting) OP_NONNULL;
void opd_stack_queue_trim(struct opd_stack_queue *queue) OP_NONNULL;

/* Clears and frees everything; allowed on a zeroed queue. */
void opd_stack_queue_free(struct opd_stack_queue *queue) OP_NONNULL;

#endif
