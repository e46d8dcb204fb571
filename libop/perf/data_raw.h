/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Finds PERF_SAMPLE_CALLCHAIN and PERF_SAMPLE_RAW in a sample of a perf.data file. Source:
 * perf_event_open(2). Any thread.
 */
#ifndef OP_PERF_RAW_H
#define OP_PERF_RAW_H

#include "libop/base/compiler.h"
#include "libop/perf/data_event.h"

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

#endif
