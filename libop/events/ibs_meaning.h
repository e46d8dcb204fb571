/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The second half of op_ibs_decode: what the registers of a sample mean. doc/ibs.md has the
 * conditions.
 */
#ifndef OP_IBS_MEANING_H
#define OP_IBS_MEANING_H

#include "libop/events/ibs_cpu.h"
#include "libop/events/ibs_decoded.h"

/* Fill the values behind `has`, the source and the facts, which are all 0 before. */
void op_ibs_fetch_meaning(const struct op_ibs_cpu *cpu, struct op_ibs *ibs) OP_NONNULL;
void op_ibs_op_meaning(const struct op_ibs_cpu *cpu, struct op_ibs *ibs) OP_NONNULL;

#endif
