/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Finds the fields of variable size in a sample of a perf.data file: read values, call chain, raw
 * data, user registers, and the copy of the user stack. Source: perf_event_open(2). Any thread.
 */
#ifndef OP_PERF_RAW_H
#define OP_PERF_RAW_H

#include "libop/base/compiler.h"
#include "libop/perf/data_event.h"

/*
 * The counters that a sample read with those of its group (PERF_FORMAT_GROUP): for each, nr_words
 * from its value on, then its identifier. None for samples that read no group, or no identifiers.
 */
struct op_perf_group {
	const uint8_t *words;
	size_t nr_counters, nr_words;
};
int op_perf_group(const struct op_perf_event *event, const uint8_t *body, size_t nr_bytes, bool swapped,
		  struct op_perf_group *ret_group) OP_NONNULL OP_MUST_CHECK;

/*
 * The words of the call chain, in the byte order of the file. 0, and no words for an event without
 * it; -EBADMSG: cut short.
 */
int op_perf_chain(const struct op_perf_event *event, const uint8_t *body, size_t nr_bytes, bool swapped, const uint8_t **ret_words,
		  size_t *ret_nr_words) OP_NONNULL OP_MUST_CHECK;

/*
 * The bytes of PERF_SAMPLE_RAW, which the event has, in the byte order of the file. 0; -EBADMSG:
 * cut short.
 */
int op_perf_raw(const struct op_perf_event *event, const uint8_t *body, size_t nr_bytes, bool swapped, const uint8_t **ret_raw,
		uint32_t *ret_raw_bytes) OP_NONNULL OP_MUST_CHECK;

/* In the byte order of the file, and in the body of the sample. */
struct op_perf_stack {
	const uint8_t *chain;     /* nr_chain words */
	size_t nr_chain;
	uint64_t abi;             /* enum perf_sample_regs_abi; OP_STACK_ABI_MISSING */
	const uint8_t *registers; /* a word for each bit of sample_regs_user; NULL: none */
	const uint8_t *copy;      /* from the stack pointer on */
	size_t nr_copied;         /* bytes that the kernel wrote */
};

/*
 * The stack of a sample of an event that has one (op_perf_has_stack). 0; -EBADMSG: cut short, or
 * the fields contradict each other.
 */
int op_perf_stack(const struct op_perf_event *event, const uint8_t *body, size_t nr_bytes, bool swapped,
		  struct op_perf_stack *ret_stack) OP_NONNULL OP_MUST_CHECK;

#endif
