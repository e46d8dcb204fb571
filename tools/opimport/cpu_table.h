/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The memory ring pairs of an import: one for each CPU that the records name, made when it is named first, and a side band,
 * which the first has. Who writes them is who reads them, so a ring that is full is read, and no descriptor is kept for any.
 *
 * The first pair is of CPU 0, and of all those that there is no room for: beyond OPI_IMPORT_CPUS_MAX, or without memory or descriptors. Where samples are counted by CPU it
 * is read before it takes a record of another one.
 */
#ifndef OPI_IMPORT_CPUS_H
#define OPI_IMPORT_CPUS_H

#include "daemon/pipeline/drain.h"
#include "libop/base/compiler.h"

struct opi_import_cpu;

struct opi_import_cpus {
	struct opd_pipeline *pipeline;
	const uint64_t *ids; /* the identifiers of the events; the caller's */
	struct opi_import_cpu **cpus;
	size_t nr_cpus;
	size_t nr_shared; /* CPUs that have the first pair, beside CPU 0 */
	bool is_full;     /* there was no room for another one */
	uint16_t *by_number; /* index + 1 of the CPU with that number */
	struct op_mring_writer *ring; /* of the CPU whose writer is inside, for a run of its records; NULL: none is */
	uint32_t number, index;       /* of that CPU */
	uint64_t sideband_records;
};

/* Opens the pipeline's capture, with CPU 0. `events` must outlive it. 0 or -errno. */
int opi_import_cpus_open(struct opi_import_cpus *cpus, struct opd_pipeline *pipeline, const struct op_event *events,
			 size_t nr_events, const uint64_t *ids) OP_NONNULL OP_MUST_CHECK;

/* Writes a record to the ring of a CPU, one whose number cannot be as CPU 0's; or to the side band. 0 or -errno. */
int opi_import_cpus_put(struct opi_import_cpus *cpus, uint32_t number,
			const struct perf_event_header *record) OP_NONNULL OP_MUST_CHECK;
int opi_import_cpus_put_sideband(struct opi_import_cpus *cpus, const struct perf_event_header *record) OP_NONNULL OP_MUST_CHECK;

/* Reads what is in the rings, the side band first. 0 or -errno. */
int opi_import_cpus_visit_all(struct opi_import_cpus *cpus) OP_NONNULL OP_MUST_CHECK;

/* After opd_capture_close. */
void opi_import_cpus_close(struct opi_import_cpus *cpus) OP_NONNULL;

#endif
