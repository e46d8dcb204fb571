/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Records that wait until all older ones have come: records for rings, in the order of the file,
 * and the side band, in the order of time. Of each, at most memory_bytes are in memory, and then
 * all are in a file (spill.h). One thread.
 */
#ifndef OPI_BACKLOG_H
#define OPI_BACKLOG_H

#include "tools/opimport/spill.h"
#include "libop/base/compiler.h"
#include "libop/perf/data_record.h"

struct opi_backlog_index;

struct opi_backlog {
	struct opi_spill ring, sideband;
	size_t nr_ring;                  /* records for rings */
	struct opi_backlog_index *index; /* of the side band; those before `first` are taken */
	size_t nr_index, max_index, first;
	bool is_sorted;
};

/* dir_fd, for the files, stays the caller's. */
void opi_backlog_init(struct opi_backlog *backlog, int dir_fd, size_t memory_bytes) OP_NONNULL;

/* Adds a copy of a record. 0, -ENOMEM, or -errno of the file. */
int opi_backlog_add(struct opi_backlog *backlog, const struct op_perf_record *record) OP_NONNULL OP_MUST_CHECK;
int opi_backlog_add_sideband(struct opi_backlog *backlog, const struct op_perf_record *record) OP_NONNULL OP_MUST_CHECK;

/* The end of a slice of the side band of about memory_bytes, at most until_ns. */
uint64_t opi_backlog_slice(struct opi_backlog *backlog, uint64_t until_ns) OP_NONNULL;

/*
 * Calls `put` for each record up to a time, and removes it. Records of the side band come in the
 * order of time; those of the same time in the order of the file. 0, or the error of `put`.
 */
typedef int (*opi_backlog_putter)(void *arg, uint32_t cpu, const struct perf_event_header *record);

int opi_backlog_take(struct opi_backlog *backlog, uint64_t until_ns, opi_backlog_putter put, void *arg)
	OP_NONNULL_ARGS(1, 3) OP_MUST_CHECK;
int opi_backlog_take_sideband(struct opi_backlog *backlog, uint64_t until_ns, opi_backlog_putter put, void *arg)
	OP_NONNULL_ARGS(1, 3) OP_MUST_CHECK;

/* Frees the room of taken records of the side band. 0, -ENOMEM, or -errno of the file. */
int opi_backlog_compact(struct opi_backlog *backlog) OP_NONNULL OP_MUST_CHECK;

/* A zeroed backlog is allowed. */
void opi_backlog_free(struct opi_backlog *backlog) OP_NONNULL;

#endif
