/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/opd-tables/go.h"

#include <elf.h>

#define RANGES_MAX 20000000u /* of all functions together; kubelet has half a million */

/*
 * On x86-64 a call pushes the return address. On arm64 it is in lr, until a function that makes a
 * frame stores it at the bottom. Go keeps frame pointers, but assembly may do so elsewhere.
 */
static struct op_row_rule rule_of(uint16_t machine, const struct opr_go_function *function, int64_t depth)
{
	enum { X86_RSP = 7, ARM64_SP = 31, WORD = 8 };
	bool is_x86 = machine == EM_X86_64;
	struct op_row_rule rule = {
		.cfa_how = OP_CFA_REG,
		.cfa_reg = is_x86 ? X86_RSP : ARM64_SP,
		.cfa_offset = (int32_t)depth + (is_x86 ? WORD : 0),
		.ra_how = is_x86 || depth ? OP_VALUE_AT_CFA : OP_VALUE_SAME,
		.ra_offset = is_x86 ? -WORD : -(int32_t)depth,
		.fp_how = depth ? OP_VALUE_UNKNOWN : OP_VALUE_SAME,
		.bx_how = OP_VALUE_UNKNOWN,
	};

	if (function->is_start)
		return (struct op_row_rule){
			.cfa_how = OP_CFA_REG,
			.cfa_reg = rule.cfa_reg,
			.ra_how = OP_VALUE_UNDEFINED,
			.fp_how = OP_VALUE_UNKNOWN,
			.bx_how = OP_VALUE_UNKNOWN,
		};
	/* the callers are on another stack, or the table is wrong */
	if (function->moves_stack || depth < 0 || depth > INT32_MAX - WORD)
		rule = (struct op_row_rule){ .cfa_how = OP_CFA_NONE };
	return rule;
}

int opt_go_read_rows(const struct opr_go_table *table, uint16_t machine, struct opt_rows *rows, bool *ret_is_whole)
{
	struct opr_go_function function;
	uint64_t nr_ranges = 0, end = 0;
	bool is_code;
	int err = 0;

	for (uint64_t i = 0; i < table->nr_functions && !err; i++) {
		struct opr_go_values values;

		if (nr_ranges > RANGES_MAX || !opr_go_function(table, i, &function) || function.start < end) {
			*ret_is_whole = false;
			continue;
		}
		end = function.end;
		err = opt_rows_begin(rows, function.start, function.end, &is_code);
		values = opr_go_values(table, &function, function.depths);
		while (!err && is_code && nr_ranges++ <= RANGES_MAX && opr_go_next(&values)) {
			struct op_row_rule rule = rule_of(machine, &function, values.value);

			err = opt_rows_add(rows, values.start, &rule);
		}
	}
	return err;
}
