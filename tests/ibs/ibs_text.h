/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Names of decoded IBS values and of the kernel's data source, which the tests print and compare.
 */
#ifndef OPD_TESTS_IBS_TEXT_H
#define OPD_TESTS_IBS_TEXT_H

#include "libop/events/ibs.h"

/* A reason in words ("no whole number of registers"). */
const char *op_ibs_reason_text(enum op_ibs_reason reason) OP_MUST_CHECK;

/* The word for a source ("near cache"). */
const char *op_ibs_source_text(enum op_ibs_source source) OP_MUST_CHECK;

/* PERF_SAMPLE_DATA_SRC of an op, as Linux 6.6 and later derive it on this CPU. */
uint64_t op_ibs_data_src(const struct op_ibs_cpu *cpu, const struct op_ibs *ibs) OP_NONNULL OP_MUST_CHECK;

/* A field of a register: row `index` of a kind, from 0; NULL after the last. */
struct op_ibs_field {
	const char *name; /* as in the manual, without the prefix */
	uint16_t offset, nr_bytes; /* in struct op_ibs */
};
const struct op_ibs_field *op_ibs_field(enum op_ibs_kind kind, size_t index) OP_MUST_CHECK;
uint64_t op_ibs_field_value(const struct op_ibs *ibs, const struct op_ibs_field *field) OP_NONNULL OP_MUST_CHECK;

#endif
