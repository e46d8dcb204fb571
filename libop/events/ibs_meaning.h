/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the registers of a sample mean: the second half of op_ibs_decode. doc/ibs.md has the gates. */
#ifndef OP_IBS_MEANING_H
#define OP_IBS_MEANING_H

#include "libop/events/ibs.h"

/* From the fields of the registers to the values behind `has`, the source and the facts, which are all 0 before. */
void op_ibs_fetch_meaning(const struct op_ibs_cpu *cpu, struct op_ibs *ibs) OP_NONNULL;
void op_ibs_op_meaning(const struct op_ibs_cpu *cpu, struct op_ibs *ibs) OP_NONNULL;

#endif
