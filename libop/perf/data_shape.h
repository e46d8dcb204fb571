/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What an event's samples are, found from the samples: where a perf.data file has no list of PMUs, because it was cut or perf was killed, and
 * where the kernel had AMD's sampler take the samples of another event (cycles:P). Registers of IBS are taken for such when everything
 * about them is as it should be, and their address is where the sample is, or near (doc/ibs.md). One thread.
 */
#ifndef OP_PERF_SHAPE_H
#define OP_PERF_SHAPE_H

#include "libop/base/compiler.h"
#include "libop/perf/data_event.h"
#include "libop/perf/data_feature.h"

/* Whether an event's PERF_SAMPLE_RAW may be registers of IBS though nothing says so. */
bool op_perf_may_be_ibs(const struct op_perf_features *features, const struct op_perf_event *event) OP_NONNULL OP_MUST_CHECK;

/* Looks at the raw data of a sample of an event of which that holds. True: it is recognised now, and all others of its PMU with it. */
bool op_perf_recognise(struct op_perf_events *events, uint32_t event, const uint8_t *raw, uint32_t raw_bytes,
		       uint64_t ip) OP_NONNULL;

#endif
