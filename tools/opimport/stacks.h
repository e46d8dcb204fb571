/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Whole stacks of a recording: perf record --call-graph dwarf and fp. The pipeline walks them as in
 * the daemon (pipeline/drive/stack_records.h), with row tables of the files of this host that are
 * the recorded ones. One thread.
 */
#ifndef OPI_STACKS_H
#define OPI_STACKS_H

#include "libop/base/compiler.h"
#include "libop/perf/data_feature.h"
#include "libop/process/nursery.h"
#include "libop/process/stop.h"
#include "pipeline/drive/pipeline.h"
#include "tools/opimport/witness.h"

/*
 * Where opd-tables comes from, and what is known of this host. The nursery stays the caller's;
 * NULL: no tables are made.
 */
struct opi_stacks_config {
	struct op_nursery *nursery;
	const struct op_stop *stop;
	bool is_own_kernel;   /* the kernel of the recording runs here: it has this vdso */
	/* says when the recording was made, if on this host; NULL: it was made elsewhere */
	const struct opi_witness *witness;
	uint64_t wait_ns;     /* for all tables together; 0: OPI_STACKS_WAIT_NS */
};

#define OPI_STACKS_WAIT_NS (600ull * 1000000000u)

/* True when an event of the file has stacks. */
bool opi_stacks_are_in(const struct op_perf_events *events) OP_NONNULL;

/*
 * With the events of the capture, and before the first sample. *ret_tables is to be freed after the
 * pipeline; NULL when no event has stacks. 0 or -errno.
 */
int opi_stacks_open(struct opd_pipeline *pipeline, const struct op_perf_events *events, const struct op_perf_features *features,
		    const struct opi_stacks_config *config, struct opd_tables **ret_tables) OP_NONNULL OP_MUST_CHECK;

#endif
