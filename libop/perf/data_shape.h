/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Recognises IBS registers by the contents of samples. That is needed for a perf.data file without
 * a list of PMUs (it was cut, or perf was killed), and when the kernel used AMD's sampler for
 * another event (cycles:P). Raw data are IBS registers when they decode without any doubt and their
 * address is at or near that of the sample (doc/ibs.md). One thread.
 */
#ifndef OP_PERF_SHAPE_H
#define OP_PERF_SHAPE_H

#include "libop/base/compiler.h"
#include "libop/perf/data_event.h"
#include "libop/perf/data_feature.h"

/* True when PERF_SAMPLE_RAW of an event may be IBS registers although the file does not say so. */
bool op_perf_may_be_ibs(const struct op_perf_features *features, const struct op_perf_event *event) OP_NONNULL OP_MUST_CHECK;

/*
 * Checks the raw data of a sample of such an event. True: the event and all others of its PMU are
 * now known as IBS.
 */
bool op_perf_recognise(struct op_perf_events *events, uint32_t event, const uint8_t *raw, uint32_t raw_bytes,
		       uint64_t ip) OP_NONNULL;

#endif
