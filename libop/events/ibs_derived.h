/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The derived events of IBS: names for what a sample says. One hardware sample may be one of each. A row is a set of facts, all of
 * which must hold, and what the sample then adds: 1, or a number out of it. doc/ibs.md has the table in words.
 */
#ifndef OP_IBS_EVENTS_H
#define OP_IBS_EVENTS_H

#include "libop/events/ibs.h"

/* What an event adds up. */
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
	const char *description; /* what it counts, in words */
	uint16_t number;         /* header field ctr_event; oprofile's own where it has the event */
	enum op_ibs_kind kind;
	enum op_ibs_amount amount;
	uint64_t facts;      /* all of them must hold; OP_IBS_FACT of enum op_ibs_fetch_fact or op_ibs_op_fact */
	uint32_t caps;       /* enum op_ibs_caps: the CPU has the event when it has all of these */
	uint32_t traits_instead; /* enum op_ibs_trait: or one of these */
	uint32_t traits;     /* and all of these */
	uint32_t not_traits; /* and none of these */
	bool oprofile;       /* one of the 60 of oprofile 0.9.9 */
};

/* Row `index` of the table, from 0; NULL after the last. In the order of the numbers. */
const struct op_ibs_event *op_ibs_event(size_t index) OP_MUST_CHECK;

/* By name, without regard to case, or by number; NULL when there is none. */
const struct op_ibs_event *op_ibs_event_find(const char *name) OP_NONNULL OP_MUST_CHECK;
const struct op_ibs_event *op_ibs_event_by_number(uint32_t number) OP_MUST_CHECK;

/*
 * What is behind the name of an event in a session: as op_ibs_event_find, and NAME_2, NAME_3 ..., as the second and third event of a name and count are called. Whoever
 * wants to know of a session's event what it is and what it adds up asks here.
 */
const struct op_ibs_event *op_ibs_event_of_session(const char *name) OP_NONNULL OP_MUST_CHECK;

/* True when a CPU with these capabilities can ever have it. */
bool op_ibs_event_is_there(const struct op_ibs_event *event, const struct op_ibs_cpu *cpu, uint32_t caps) OP_NONNULL OP_MUST_CHECK;

/* What a sample of any kind adds to the event: 0 when it is none of it. */
uint32_t op_ibs_event_adds(const struct op_ibs_event *event, const struct op_ibs *ibs) OP_NONNULL OP_MUST_CHECK;

/* What is counted: "samples", "cycles", "misses". */
const char *op_ibs_event_unit(const struct op_ibs_event *event) OP_NONNULL OP_MUST_CHECK;

/* The sampler behind the events of a kind, as the kernel's PMU is called: "ibs_fetch", "ibs_op". */
const char *op_ibs_sampler_name(enum op_ibs_kind kind) OP_MUST_CHECK;

/* A unit mask of a kind: row `index`, from 0; NULL after the last. The first one that the CPU has is the default. */
struct op_ibs_unit_mask {
	uint32_t value;
	const char *description;
	uint32_t caps; /* enum op_ibs_caps that it needs */
};
const struct op_ibs_unit_mask *op_ibs_unit_mask(enum op_ibs_kind kind, size_t index) OP_MUST_CHECK;

#endif
