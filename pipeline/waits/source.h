/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Waits as a source of stacks (pipeline/drive/record_source.h): the records of the event WAIT, and
 * the threads that wait now. Weights are microseconds.
 *
 * A wait that lasts is told every OPD_WAITS_TELL_NS. Its stack is copied by a looker, once: the
 * thread does not move. The copy counts when a later reading finds the thread in the same wait.
 * Where there is no copy, the record at the end of the wait brings the stack, and the time that was
 * told waits for it.
 *
 * Sync thread only.
 */
#ifndef OPD_WAITS_SOURCE_H
#define OPD_WAITS_SOURCE_H

#include "libop/base/compiler.h"
#include "libop/session/ledger.h"
#include "pipeline/drive/pipeline.h"
#include "pipeline/waits/program.h"

#define OPD_WAITS_TELL_NS (5 * (uint64_t)OP_NS_PER_S)

struct opd_waits;

/*
 * The program stays the caller's. The pipeline is open, its capture has an event WAIT, and it gets
 * a source more. budget: bytes of records in a second, on all CPUs. 0 or -ENOMEM.
 */
int opd_waits_new(struct opd_pipeline *pipeline, struct opd_wait_program *program, uint64_t budget,
		  struct opd_waits **ret_waits) OP_NONNULL OP_MUST_CHECK;
void opd_waits_free(struct opd_waits *waits);

/* opd begins to sample. opd_sources_finish ends it. */
void opd_waits_begin(struct opd_waits *waits) OP_NONNULL;

/* Books what threads have waited up to now, also those that still wait. For opcontrol --dump. */
void opd_waits_tell(struct opd_waits *waits) OP_NONNULL;

/* Switches and exact times since opd was started. Returns how much a record stands for, in ns. */
uint64_t opd_waits_sum(const struct opd_waits *waits, struct op_wait_ledger *ret_sums) OP_NONNULL;

#endif
