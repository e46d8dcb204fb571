/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The table of derived events of IBS. A row has a set of facts, which must all hold for a sample,
 * and the amount that the sample then adds: 1 or one of its values. One sample may count for many
 * events. doc/ibs.md has the table in words. Any thread.
 */
#ifndef OP_IBS_EVENTS_H
#define OP_IBS_EVENTS_H

#include "libop/events/ibs.h"

/* What an event sums up. */
enum op_ibs_amount {
	OP_IBS_SAMPLES,
	OP_IBS_LATENCY, /* cycles, as the next three */
	OP_IBS_TLB_REFILL,
	OP_IBS_TAG_TO_RET,
	OP_IBS_COMP_TO_RET,
	OP_IBS_DEPTH, /* outstanding misses */
	OP_IBS_NR_AMOUNTS,
};

struct op_ibs_event {
	const char *name;
	const char *description; /* what the event counts, in words */
	uint16_t number;         /* header field ctr_event; that of oprofile if it has the event */
	enum op_ibs_kind kind;
	enum op_ibs_amount amount;
	/* all of them must hold; OP_IBS_FACT of enum op_ibs_fetch_fact or op_ibs_op_fact */
	uint64_t facts;
	/*
	 * A CPU has the event when it has all caps, or one of traits_instead, all traits and no
	 * not_traits.
	 */
	uint32_t caps;       /* enum op_ibs_caps */
	uint32_t traits_instead, traits, not_traits; /* enum op_ibs_trait */
	bool oprofile;       /* one of the 60 of oprofile 0.9.9 */
};

/* Row `index` of the table, from 0, by number; NULL after the last. */
const struct op_ibs_event *op_ibs_event(size_t index) OP_MUST_CHECK;

/* By name, in any case; NULL when there is none. */
const struct op_ibs_event *op_ibs_event_find(const char *name) OP_NONNULL OP_MUST_CHECK;

/*
 * The event by its name in a session: as op_ibs_event_find, and also NAME_2, NAME_3 ..., the names
 * of further events with the same name and count.
 */
const struct op_ibs_event *op_ibs_event_of_session(const char *name) OP_NONNULL OP_MUST_CHECK;

/* True when a CPU with these capabilities has the event. */
bool op_ibs_event_is_there(const struct op_ibs_event *event, const struct op_ibs_cpu *cpu, uint32_t caps) OP_NONNULL OP_MUST_CHECK;

/* The amount that a sample of any kind adds to the event, 0 for none. */
uint32_t op_ibs_event_adds(const struct op_ibs_event *event, const struct op_ibs *ibs) OP_NONNULL OP_MUST_CHECK;

/* The unit of the counts: "samples", "cycles", "misses". */
const char *op_ibs_event_unit(const struct op_ibs_event *event) OP_NONNULL OP_MUST_CHECK;

/* The name of the PMU of a kind: "ibs_fetch", "ibs_op". */
const char *op_ibs_sampler_name(enum op_ibs_kind kind) OP_MUST_CHECK;

/*
 * A unit mask of a kind: row `index`, from 0; NULL after the last. The default is the first that
 * the CPU has.
 */
struct op_ibs_unit_mask {
	uint32_t value;
	const char *description;
	uint32_t caps; /* enum op_ibs_caps that the mask needs */
};
const struct op_ibs_unit_mask *op_ibs_unit_mask(enum op_ibs_kind kind, size_t index) OP_MUST_CHECK;

#endif
