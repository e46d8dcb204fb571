/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The program of a function (DWARF 5, section 6.4.2): how the CFA and the caller's registers are
 * computed, from one address to the next. Only the CFA, the return address, the frame pointer and
 * rbx are followed: the walk needs no other register.
 */
#ifndef OPT_FRAME_STATE_H
#define OPT_FRAME_STATE_H

#include "libop/base/compiler.h"
#include "tools/elf/bytes.h"
#include "tools/opd-tables/rows.h"

struct opt_value {
	uint8_t how, reg; /* enum op_value_how */
	int64_t offset;
};

/* What holds at an address. */
struct opt_state {
	uint8_t cfa_how, cfa_reg; /* enum op_cfa_how */
	int64_t cfa_offset, cfa_more;
	struct opt_value ra, fp, bx;
};

struct opt_frame {
	uint16_t machine;
	uint8_t ra_reg, fp_reg;
	bool is_signal;
	uint64_t code_factor;
	int64_t data_factor;
	struct opt_state state;
};

/* Sets the registers of the machine, and the state before the first instruction. */
void opt_frame_begin(struct opt_frame *frame, uint16_t machine, uint8_t ra_reg) OP_NONNULL;

/*
 * Runs a program. `initial` is the state after the program of the CIE; NULL: this is that program.
 * Adds a row to `rows` (NULL: does not) for each address from `address` on. Counts the operations.
 * 0; -EBADMSG: damaged; -ENOMEM.
 */
int opt_frame_run(struct opt_frame *frame, struct opr_bytes *program, const struct opt_frame *initial, uint64_t address,
		  struct opt_rows *rows, uint64_t *nr_operations) OP_NONNULL_ARGS(1, 2, 6) OP_MUST_CHECK;

#endif
