/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * IBS: one record becomes samples of the derived events that the user chose, and entries of the
 * memory view (libop/session/memory_view.h). All are counted at the address in the registers of the
 * record. Sync thread only.
 */
#ifndef OPD_IBS_H
#define OPD_IBS_H

#include "libop/base/compiler.h"
#include "pipeline/drive/pipeline.h"

/* The source of records (record_source.h) whose events are samplers. The host is the pipeline. */
bool opd_ibs_is_of(const struct op_event *event) OP_NONNULL;
void opd_ibs_take(void *host, const struct opd_record *record) OP_NONNULL;

#endif
