/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Samples with stacks: each is made, stored and booked (stack_booking.h). One that comes before the
 * row table of one of its images waits (pipeline/stacks/queue.h), and so does one whose chain is
 * deferred. After OPD_STACK_RECORDS_WAIT_NS it is made with what there is. A waiting sample of
 * STACKS is not booked yet, as if it were in its ring.
 *
 * Sync thread only.
 */
#ifndef OPD_STACK_RECORDS_H
#define OPD_STACK_RECORDS_H

#include "libop/base/compiler.h"
#include "pipeline/drive/pipeline.h"
#include "pipeline/stacks/state.h"

#define OPD_STACK_RECORDS_WAIT_NS (10u * (uint64_t)OP_NS_PER_S)

/* Takes the stack of a sample. */
void opd_stack_records_take(struct opd_pipeline *pipeline, const struct opd_stack_sample *taken) OP_NONNULL;

/* Gives a sample that is in its ring what its notes say (notes.h), before it is taken. */
void opd_stack_records_join(struct opd_pipeline *pipeline, struct opd_stack_sample *taken) OP_NONNULL;

/* Takes a PERF_RECORD_CALLCHAIN_DEFERRED: the samples that waited for it go on. */
void opd_stack_records_take_deferred(struct opd_pipeline *pipeline, const struct perf_event_header *header) OP_NONNULL;

/*
 * For records of a file, which come when they are wanted: as opd_stack_records_finish, within
 * block_ns of struct opd_stacks.
 */
void opd_stack_records_block(struct opd_pipeline *pipeline) OP_NONNULL;

/*
 * The source of records (record_source.h). The host is the pipeline; nothing happens without
 * pipeline->stacks. take_record also takes the stack of a sample of a plain event, which is counted
 * already. A turn takes finished tables, and walks samples whose tables have come or that have
 * waited for too long. `finish` waits up to wait_ns for tables that are being made.
 */
bool opd_stack_records_is_of(const struct op_event *event) OP_NONNULL;
void opd_stack_records_take_record(void *host, const struct opd_record *record) OP_NONNULL;
void opd_stack_records_turn(void *host) OP_NONNULL;
void opd_stack_records_finish(void *host, uint64_t wait_ns) OP_NONNULL;
void opd_stack_records_begin_session(void *host, bool is_reset) OP_NONNULL;
uint64_t opd_stack_records_oldest_ns(void *host) OP_NONNULL;
int opd_stack_records_fd(void *host) OP_NONNULL;

#endif
