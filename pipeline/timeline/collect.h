/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Collects minutes: a sink (pipeline/count/sink.h) adds what is stored to the span of its time, and
 * hands each span to the program when it is over and its last samples have come. Spans end at
 * multiples of the interval of the wall clock; where sampling stops; where the session ends; and
 * where the wall clock steps or the host was suspended.
 *
 * A sample belongs to the span of its time, a stack to that of its sample, unless it comes after
 * the end of that: then to the next one. So the spans of a session add up to its sample files, its
 * file of stacks, and its ledger.
 *
 * The program writes spans in a thread of its own. While it is busy, no span ends: the present one
 * becomes longer and is marked. So nothing is lost for a slow disk, and memory stays bounded.
 *
 * Sync thread only.
 */
#ifndef OPD_TIMELINE_H
#define OPD_TIMELINE_H

#include "libop/session/wait_states.h"
#include "libop/session/ledger.h"
#include "libop/timeline/minute.h"
#include "pipeline/count/sink.h"
#include "pipeline/timeline/host_state.h"

struct opd_count;
struct opd_ledger;
struct opd_tables;

/* What the program does with spans. */
struct opd_minute_host {
	/* True: a span waits for the disk. */
	bool (*is_busy)(void *host);
	/*
	 * Takes a span that is over, with its memory, and a descriptor of the directory of its
	 * session, to be closed.
	 */
	void (*take)(void *host, struct op_minute *minute, int dir_fd);
	/* The bytes that files grew since the last call. */
	uint64_t (*take_growth)(void *host);
	void *host;
};

/* An event of the pipeline: what its ledger and the session had when the present span began. */
struct opd_timeline_event {
	struct op_ledger_event before;
	uint64_t stored_before;
	uint64_t present, next; /* what these spans have got */
};

struct opd_timeline {
	struct opd_count *count;        /* the caller's, like the next three */
	struct opd_ledger *ledger;
	struct opd_tables *tables;      /* NULL: function starts are not known */
	const bool *is_sampling;
	struct opd_minute_host host;
	uint64_t interval_ns;           /* 0: off */
	uint32_t max_nodes;             /* of a span */

	struct op_minute present, next; /* next: samples after the end of the present one */
	uint32_t present_number, next_number; /* of these spans, from 1 on */
	uint32_t nr_spans;              /* the last number */
	struct opd_timeline_place *places; /* where images of samples are, by their hash */
	uint64_t nr_taken_back;         /* of the cgroups, when places were looked at */
	bool is_open;                   /* the present span has begun */
	uint64_t end_mono_ns, end_wall_ns; /* of the present span */
	struct op_timeline_clocks last_turn;
	uint32_t gap;                   /* before the span that begins next */
	int dir_fd;                     /* of the session's directory; -1: not open */
	struct opd_host_state host_state;
	struct opd_timeline_event *events; /* as many as the pipeline has */
	struct op_minute_step *steps;   /* of a stack */
	struct op_wait_ledger waits_before; /* when the present span began */
	uint64_t nr_no_memory;          /* spans that were lost for lack of it, or of descriptors */
	uint64_t unopened_wall_ns;      /* the last span of these that could not begin; 0: none */
	uint64_t nr_late;               /* spans that became longer */
};

/*
 * Begins to collect: adds the sink to count->sinks. The fields before `present` are set. 0 or
 * -ENOMEM.
 */
int opd_timeline_open(struct opd_timeline *timeline) OP_NONNULL OP_MUST_CHECK;

/*
 * For by_time.h: what a sample and a stack are in a span, which opd_timeline_add_events has begun.
 * Of the timeline they use count and tables, and `steps`, which is made here and freed with free.
 */
struct op_minute_step *opd_timeline_new_steps(void);
int opd_timeline_add_events(const struct opd_timeline *timeline, struct op_minute *minute) OP_NONNULL OP_MUST_CHECK;
void opd_timeline_add_sample(const struct opd_timeline *timeline, struct op_minute *minute,
			     const struct opd_keyed_sample *sample) OP_NONNULL;
void opd_timeline_add_stack(const struct opd_timeline *timeline, struct op_minute *minute,
			    const struct opd_stack *stack) OP_NONNULL;

/* The session is emptied: what was collected is dropped. */
void opd_timeline_reset(struct opd_timeline *timeline) OP_NONNULL;

/* The session ends: hands all spans over. Also done as a sink; twice is allowed. */
void opd_timeline_end_session(struct opd_timeline *timeline) OP_NONNULL;

/* Allowed on a zeroed one. What was not handed over is gone. */
void opd_timeline_close(struct opd_timeline *timeline) OP_NONNULL;

#endif
