/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Sinks take what a pipeline counts: samples whose image is found, and stacks. The pipeline has a
 * list of them, opd_count.sinks. The first two are the sample files and the file of stacks
 * (file_sinks.h). They decide what is stored. A sink behind them is given all samples and sees
 * which are stored (`is_stored`), and it is given the stacks that are stored. So what it adds up
 * equals the sample files, the file of stacks and `stored` of the ledger.
 *
 * One thread calls all functions: in opd the sync thread. A function may be NULL. Samples, stacks
 * and what they point to are valid during the call. A sink changes them only where this page says
 * so. It does not call the pipeline, and it waits neither for a disk nor for a process. An error is
 * its own: it counts what it loses, and goes on.
 */
#ifndef OPD_SINK_H
#define OPD_SINK_H

#include <assert.h>

#include "libop/base/compiler.h"

#define OPD_SINKS_MAX 8u

struct opd_keyed_sample; /* state.h */
struct opd_stack;   /* pipeline/stacks/stack.h */

struct opd_sink {
	const char *name;
	/*
	 * Samples, in the order in which rings are read: at most OPD_WAITING_MAX at once, when so
	 * many wait and at the end of each ring. Their order in time is that of one CPU. Among them
	 * are calls and facts of the memory view; these are not samples, and never `is_stored`.
	 * The sample files set is_stored, and the key, offset and unattributed as they are filed.
	 */
	void (*sample)(void *host, struct opd_keyed_sample *samples, size_t nr);
	/*
	 * A stack, when it is complete: up to 10 seconds after its sample, which came before as a
	 * sample of its own unless it is of STACKS. The file of stacks sets node, has_room and
	 * error; with an error the sinks behind it do not get the stack.
	 */
	void (*stack)(void *host, struct opd_stack *stack);
	/*
	 * All rings were read and all samples handed over: in each turn of the loop (every 250 ms,
	 * at rest every 5 s), and by opimport after each slice of a recording. now_ns is
	 * op_now_ns(). What is older than horizon_ns comes no more. Of a recording, both are times
	 * of the recording.
	 */
	void (*end_turn)(void *host, uint64_t now_ns, uint64_t horizon_ns);
	/*
	 * The session ends: everything was handed over, and nothing of it comes any more. The
	 * directory of the session may have another name already. What comes next is of the next
	 * session. The last sink is called first. Closing twice is allowed.
	 */
	void (*close)(void *host);
	void *host; /* the argument of the functions; it lives until the last `close` */
};

struct opd_sinks {
	struct opd_sink rows[OPD_SINKS_MAX];
	size_t nr;
};

/* Adds a sink at the end; the row is copied. Before the first sample, or between two turns. */
static inline void opd_sinks_add(struct opd_sinks *sinks, const struct opd_sink *sink)
{
	assert(sinks->nr < OPD_SINKS_MAX);
	sinks->rows[sinks->nr++] = *sink;
}

/* Hands a stack to all sinks, which set its node, has_room and error. */
void opd_sinks_stack(const struct opd_sinks *sinks, struct opd_stack *stack) OP_NONNULL;

/* Tells all sinks that the session ends. Samples were flushed. */
void opd_sinks_close(const struct opd_sinks *sinks) OP_NONNULL;

#endif
