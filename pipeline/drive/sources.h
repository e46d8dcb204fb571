/* SPDX-License-Identifier: GPL-3.0-or-later */
/* All sources of records of a pipeline (record_source.h). Sync thread only. */
#ifndef OPD_SOURCES_H
#define OPD_SOURCES_H

#include "libop/base/compiler.h"
#include "pipeline/drive/pipeline.h"

/* Gives a sample to the source of its event. False: none has it. */
bool opd_sources_take(struct opd_pipeline *pipeline, const struct opd_record *record) OP_NONNULL OP_MUST_CHECK;

/* These call the function of that name of all sources. */
void opd_sources_turn(struct opd_pipeline *pipeline) OP_NONNULL;
void opd_sources_finish(struct opd_pipeline *pipeline, uint64_t wait_ns) OP_NONNULL;
void opd_sources_begin_session(struct opd_pipeline *pipeline, bool is_reset) OP_NONNULL;

/* The time of the oldest sample that waits in any source; UINT64_MAX: none does. */
uint64_t opd_sources_oldest_ns(struct opd_pipeline *pipeline) OP_NONNULL;

/* How many there are; the descriptor of one, -1: none; its turn, when that is readable. */
size_t opd_sources_nr(const struct opd_pipeline *pipeline) OP_NONNULL;
int opd_source_fd(struct opd_pipeline *pipeline, size_t index) OP_NONNULL;
void opd_source_turn(struct opd_pipeline *pipeline, size_t index) OP_NONNULL;

#endif
