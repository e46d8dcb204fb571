/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The memory ring pairs of an import: one for each CPU, made at its first record, and one side
 * band, of CPU 0. One thread writes and reads them, so it reads a full ring at once, and the rings
 * need no descriptors.
 *
 * CPUs share the pair of CPU 0 when there is no room for another one: beyond OPI_CPU_TABLE_MAX, or
 * without memory or descriptors. If samples are separated by CPU, that pair is read before it takes
 * a record of another CPU.
 */
#ifndef OPI_CPU_TABLE_H
#define OPI_CPU_TABLE_H

#include "libop/base/compiler.h"
#include "pipeline/drive/drain.h"

#define OPI_CPU_TABLE_MAX 4096u

struct opi_cpu;

struct opi_cpu_table {
	struct opd_pipeline *pipeline;
	const uint64_t *ids; /* the identifiers of the events; the caller's */
	struct opi_cpu **cpus;
	size_t nr_cpus;
	size_t nr_shared;             /* CPUs that share the pair of CPU 0 */
	bool is_full;                 /* there was no room for another pair */
	bool has_stacks;              /* records may be as long as records can be */
	uint16_t *by_number;          /* by the number of a CPU: its index in `cpus` + 1; 0: none */
	struct op_mring_writer *ring; /* the ring that is being written; NULL: none */
	uint32_t number, index;       /* of its CPU */
	uint64_t sideband_records;
};

/* Opens the pipeline's capture, with CPU 0. `events` must outlive it. 0 or -errno. */
int opi_cpu_table_open(struct opi_cpu_table *table, struct opd_pipeline *pipeline, const struct op_event *events, size_t nr_events,
		       const uint64_t *ids) OP_NONNULL OP_MUST_CHECK;

/* Writes a record to the ring of a CPU, or to the side band. 0 or -errno. */
int opi_cpu_table_put(struct opi_cpu_table *table, uint32_t number,
		      const struct perf_event_header *record) OP_NONNULL OP_MUST_CHECK;
int opi_cpu_table_put_sideband(struct opi_cpu_table *table, const struct perf_event_header *record) OP_NONNULL OP_MUST_CHECK;

/* Reads all rings, the side band first. 0 or -errno. */
int opi_cpu_table_visit_all(struct opi_cpu_table *table) OP_NONNULL OP_MUST_CHECK;

/* After opd_capture_close. */
void opi_cpu_table_close(struct opi_cpu_table *table) OP_NONNULL;

#endif
