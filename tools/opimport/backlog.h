/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Records that wait until everything older has come: those for rings in the order of the file, and the side band, which is taken by time.
 * As many as there are: what is more than memory_bytes of either lies in a file without a name (tools/opimport/spill.h). One thread.
 */
#ifndef OPI_BACKLOG_H
#define OPI_BACKLOG_H

#include "tools/opimport/spill.h"
#include "libop/base/compiler.h"
#include "libop/perf/data_record.h"

struct opi_backlog_index;

struct opi_backlog {
	struct opi_spill ring, sideband;
	size_t nr_ring;               /* records for rings */
	struct opi_backlog_index *index; /* of the side band; those before `first` have been taken */
	size_t nr_index, max_index, first;
	bool is_sorted;
};

/* The directory is the caller's. */
void opi_backlog_init(struct opi_backlog *held, int dir_fd, size_t memory_bytes) OP_NONNULL;

/* Keeps a copy of a record. 0; -ENOMEM; -errno of the file. */
int opi_backlog_add(struct opi_backlog *held, const struct op_perf_record *record) OP_NONNULL OP_MUST_CHECK;
int opi_backlog_add_sideband(struct opi_backlog *held, const struct op_perf_record *record) OP_NONNULL OP_MUST_CHECK;

/* Until when about memory_bytes of the side band go, at most until_ns: who takes so much at a time and forgets what has passed needs no more memory. */
uint64_t opi_backlog_slice(struct opi_backlog *held, uint64_t until_ns) OP_NONNULL;

/* Gives every record that is not younger, and keeps the rest; the side band in the order of time, and nothing at the same time in another than that of the file. 0, or what `put` said. */
typedef int (*opi_backlog_putter)(void *arg, uint32_t cpu, const struct perf_event_header *record);

int opi_backlog_take(struct opi_backlog *held, uint64_t until_ns, opi_backlog_putter put, void *arg) OP_NONNULL_ARGS(1, 3) OP_MUST_CHECK;
int opi_backlog_take_sideband(struct opi_backlog *held, uint64_t until_ns, opi_backlog_putter put, void *arg)
	OP_NONNULL_ARGS(1, 3) OP_MUST_CHECK;

/* Gives the room of what was taken of the side band back. 0; -ENOMEM; -errno. */
int opi_backlog_settle(struct opi_backlog *held) OP_NONNULL OP_MUST_CHECK;

/* Allowed on zeroed ones. */
void opi_backlog_free(struct opi_backlog *held) OP_NONNULL;

#endif
