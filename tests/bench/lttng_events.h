/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The records of the benchmark as LTTng-UST tracepoints: the body only, since LTTng writes its own
 * header.
 */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER opd_bench

#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "tests/bench/lttng_events.h"

#if !defined(LTTNG_EVENTS_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define LTTNG_EVENTS_H

#include <lttng/tracepoint.h>

LTTNG_UST_TRACEPOINT_EVENT(opd_bench, record32, LTTNG_UST_TP_ARGS(const uint64_t *, words),
			   LTTNG_UST_TP_FIELDS(lttng_ust_field_array(uint64_t, words, words, 3)))
LTTNG_UST_TRACEPOINT_EVENT(opd_bench, record64, LTTNG_UST_TP_ARGS(const uint64_t *, words),
			   LTTNG_UST_TP_FIELDS(lttng_ust_field_array(uint64_t, words, words, 7)))
LTTNG_UST_TRACEPOINT_EVENT(opd_bench, record256, LTTNG_UST_TP_ARGS(const uint64_t *, words),
			   LTTNG_UST_TP_FIELDS(lttng_ust_field_array(uint64_t, words, words, 31)))

#endif

#include <lttng/tracepoint-event.h>
