/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/opd-tables/frame_state.h"

#include <elf.h>
#include <errno.h>

#define REMEMBERED_MAX 32u

/* DWARF 5, section 7.24, and the extensions that compilers use. */
enum {
	CFA_ADVANCE = 0x40, /* in the upper two bits, as the next two */
	CFA_OFFSET = 0x80,
	CFA_RESTORE = 0xc0,
	CFA_NOP = 0x00,
	CFA_SET_LOC = 0x01,
	CFA_ADVANCE1 = 0x02,
	CFA_ADVANCE2 = 0x03,
	CFA_ADVANCE4 = 0x04,
	CFA_OFFSET_EXTENDED = 0x05,
	CFA_RESTORE_EXTENDED = 0x06,
	CFA_UNDEFINED = 0x07,
	CFA_SAME_VALUE = 0x08,
	CFA_REGISTER = 0x09,
	CFA_REMEMBER = 0x0a,
	CFA_RECALL = 0x0b,
	CFA_DEF = 0x0c,
	CFA_DEF_REGISTER = 0x0d,
	CFA_DEF_OFFSET = 0x0e,
	CFA_DEF_EXPRESSION = 0x0f,
	CFA_EXPRESSION = 0x10,
	CFA_OFFSET_EXTENDED_SF = 0x11,
	CFA_DEF_SF = 0x12,
	CFA_DEF_OFFSET_SF = 0x13,
	CFA_VALUE_OFFSET = 0x14,
	CFA_VALUE_OFFSET_SF = 0x15,
	CFA_VALUE_EXPRESSION = 0x16,
	CFA_ADVANCE8 = 0x1d,        /* MIPS */
	CFA_NEGATE_RA_STATE = 0x2d, /* arm64: the return address is signed, or not */
	CFA_ARGUMENTS_SIZE = 0x2e,  /* GNU */
	CFA_NEGATIVE_OFFSET = 0x2f, /* GNU */
};

/* DWARF 5, section 7.7.1. */
enum {
	OP_DEREFERENCE = 0x06,
	OP_AND = 0x1a,
	OP_PLUS = 0x22,
	OP_PLUS_CONSTANT = 0x23,
	OP_SHL = 0x24,
	OP_GE = 0x2a,
	OP_LITERAL = 0x30,       /* 0x30 to 0x4f: 0 to 31 */
	OP_BASE_REGISTER = 0x70, /* 0x70 to 0x8f: registers 0 to 31 */
	OP_LITERAL_END = 0x50,
	OP_BASE_REGISTER_END = 0x90,
};

enum { X86_RBX = 3, X86_RBP = 6, X86_RSP = 7, X86_RIP = 16, ARM64_FP = 29 };

struct run {
	struct opt_frame *frame;
	const struct opt_frame *initial;
	struct opr_bytes *program;
	struct opt_rows *rows;
	uint64_t address;
	struct opt_state remembered[REMEMBERED_MAX];
	size_t nr_remembered;
	bool is_bad;
};

void opt_frame_begin(struct opt_frame *frame, uint16_t machine, uint8_t ra_reg)
{
	frame->machine = machine;
	frame->ra_reg = ra_reg;
	frame->fp_reg = machine == EM_X86_64 ? X86_RBP : ARM64_FP;
	frame->state = (struct opt_state){ .cfa_how = OP_CFA_NONE };
}

/* ---- expressions ---- */

/* A register plus a constant: how every expression begins that is understood here. */
static bool read_base(struct opr_bytes *expression, uint8_t *ret_reg, int64_t *ret_offset)
{
	uint64_t operation = opr_bytes_unsigned(expression, 1);

	if (operation < OP_BASE_REGISTER || operation >= OP_BASE_REGISTER_END)
		return false;
	*ret_reg = (uint8_t)(operation - OP_BASE_REGISTER);
	*ret_offset = opr_bytes_sleb(expression);
	return !expression->is_bad;
}

/*
 * The linker's expression for entries of the PLT: rsp + 8, and 8 more behind the push at byte 11 of
 * an entry (10 with -z ibtplt). True: the rest is that.
 */
static bool is_plt(struct opr_bytes *expression, int64_t *ret_push)
{
	static const uint8_t before[] = { OP_BASE_REGISTER + X86_RIP, 0, OP_LITERAL + 15, OP_AND };
	static const uint8_t after[] = { OP_GE, OP_LITERAL + 3, OP_SHL, OP_PLUS };
	const uint8_t *at = expression->at;

	if (expression->end - at != sizeof(before) + 1 + sizeof(after) || memcmp(at, before, sizeof(before)) != 0 ||
	    memcmp(at + sizeof(before) + 1, after, sizeof(after)) != 0)
		return false;
	*ret_push = (int64_t)at[sizeof(before)] - OP_LITERAL;
	return *ret_push >= 0 && at[sizeof(before)] < OP_LITERAL_END;
}

/* What a walk cannot compute from registers and the stack is not known. */
static void set_cfa_expression(struct run *run, struct opr_bytes expression)
{
	struct opt_state *state = &run->frame->state;

	state->cfa_how = OP_CFA_NONE;
	state->cfa_offset = state->cfa_more = 0;
	if (!read_base(&expression, &state->cfa_reg, &state->cfa_offset))
		return;
	if (expression.at == expression.end) {
		state->cfa_how = OP_CFA_REG;
		return;
	}
	if (run->frame->machine == EM_X86_64 && state->cfa_reg == X86_RSP && is_plt(&expression, &state->cfa_more)) {
		state->cfa_how = OP_CFA_PLT;
		return;
	}
	if (opr_bytes_unsigned(&expression, 1) != OP_DEREFERENCE)
		return;
	if (expression.at != expression.end && opr_bytes_unsigned(&expression, 1) == OP_PLUS_CONSTANT)
		state->cfa_more = (int64_t)opr_bytes_uleb(&expression);
	if (expression.at == expression.end && !expression.is_bad)
		state->cfa_how = OP_CFA_DEREF;
}

static struct opt_value value_at_expression(struct opr_bytes expression)
{
	struct opt_value value = { .how = OP_VALUE_AT_REG };

	if (!read_base(&expression, &value.reg, &value.offset) || expression.at != expression.end)
		value = (struct opt_value){ .how = OP_VALUE_UNKNOWN };
	return value;
}

static struct opr_bytes take_block(struct opr_bytes *program)
{
	uint64_t nr_bytes = opr_bytes_uleb(program);
	const uint8_t *at = opr_bytes_take(program, nr_bytes);

	return (struct opr_bytes){ at, at ? at + nr_bytes : at, !at, false };
}

/* ---- rows ---- */

static bool fits(int64_t number)
{
	return number >= INT32_MIN && number <= INT32_MAX;
}

static void set_value(const struct opt_value *value, uint8_t *ret_how, uint8_t *ret_reg, int32_t *ret_offset)
{
	*ret_how = fits(value->offset) ? value->how : OP_VALUE_UNKNOWN;
	*ret_reg = value->reg;
	*ret_offset = fits(value->offset) ? (int32_t)value->offset : 0;
}

/*
 * What the dynamic linker of glibc 2.36 for arm64 says of _dl_runtime_resolve leaves out the two
 * words that the PLT has pushed: lr would be saved above the CFA, where no function can save it.
 */
static void add_pushed_by_plt(struct op_row_rule *rule)
{
	int32_t nr_bytes = rule->ra_offset + 8;

	if (rule->cfa_how != OP_CFA_REG || rule->ra_how != OP_VALUE_AT_CFA || rule->ra_offset < 0 || rule->ra_offset > 8)
		return;
	rule->cfa_offset += nr_bytes;
	rule->ra_offset -= nr_bytes;
	if (rule->fp_how == OP_VALUE_AT_CFA)
		rule->fp_offset -= nr_bytes;
}

static int add_row(const struct run *run)
{
	const struct opt_state *state = &run->frame->state;
	struct op_row_rule rule = { .flags = run->frame->is_signal ? OP_ROW_IS_SIGNAL : 0 };
	uint8_t bx_reg;

	if (!run->rows)
		return 0;
	if (state->cfa_how != OP_CFA_NONE && fits(state->cfa_offset) && fits(state->cfa_more)) {
		rule.cfa_how = state->cfa_how;
		rule.cfa_reg = state->cfa_reg;
		rule.cfa_offset = (int32_t)state->cfa_offset;
		rule.cfa_more = (int32_t)state->cfa_more;
	}
	/* The end of all stacks needs no CFA: _start has none on some systems. */
	if (rule.cfa_how == OP_CFA_NONE && state->ra.how == OP_VALUE_UNDEFINED)
		rule.cfa_how = OP_CFA_REG;
	set_value(&state->ra, &rule.ra_how, &rule.ra_reg, &rule.ra_offset);
	set_value(&state->fp, &rule.fp_how, &rule.fp_reg, &rule.fp_offset);
	set_value(&state->bx, &rule.bx_how, &bx_reg, &rule.bx_offset);
	if (rule.bx_how != OP_VALUE_SAME && rule.bx_how != OP_VALUE_AT_CFA) {
		rule.bx_how = OP_VALUE_UNKNOWN;
		rule.bx_offset = 0;
	}
	if (run->frame->machine == EM_AARCH64)
		add_pushed_by_plt(&rule);
	return opt_rows_add(run->rows, run->address, &rule);
}

static int advance(struct run *run, uint64_t nr_bytes)
{
	int err = add_row(run);

	run->address += nr_bytes;
	return err;
}

/* ---- operations ---- */

/* The value of a register that is followed; NULL: it is another one. */
static struct opt_value *value_of(struct run *run, struct opt_state *state, uint64_t reg)
{
	if (run->frame->machine == EM_X86_64 && reg == X86_RBX)
		return &state->bx;
	return reg == run->frame->ra_reg ? &state->ra : reg == run->frame->fp_reg ? &state->fp : NULL;
}

static void set_register(struct run *run, uint64_t reg, struct opt_value value)
{
	struct opt_value *set = value_of(run, &run->frame->state, reg);

	if (set)
		*set = value;
}

static void restore(struct run *run, uint64_t reg)
{
	const struct opt_value *value;
	struct opt_state initial;

	if (!run->initial) {
		run->is_bad = true;
		return;
	}
	initial = run->initial->state;
	value = value_of(run, &initial, reg);
	if (value)
		set_register(run, reg, *value);
}

static struct opt_value at_cfa(const struct run *run, int64_t factored)
{
	struct opt_value value = { .how = OP_VALUE_AT_CFA };

	if (__builtin_mul_overflow(factored, run->frame->data_factor, &value.offset))
		value.how = OP_VALUE_UNKNOWN;
	return value;
}

static struct opt_value is_cfa(const struct run *run, int64_t factored)
{
	struct opt_value value = at_cfa(run, factored);

	if (value.how == OP_VALUE_AT_CFA)
		value.how = OP_VALUE_IS_CFA;
	return value;
}

static void define_cfa(struct run *run, uint64_t reg, int64_t offset)
{
	struct opt_state *state = &run->frame->state;

	state->cfa_how = reg < OP_UNWIND_REGISTERS ? OP_CFA_REG : OP_CFA_NONE;
	state->cfa_reg = reg < OP_UNWIND_REGISTERS ? (uint8_t)reg : 0;
	state->cfa_offset = offset;
	state->cfa_more = 0;
}

static int64_t factored(const struct run *run, int64_t number)
{
	int64_t product;

	return __builtin_mul_overflow(number, run->frame->data_factor, &product) ? INT64_MAX : product;
}

static struct opt_value in_register(uint64_t reg)
{
	if (reg >= OP_UNWIND_REGISTERS)
		return (struct opt_value){ .how = OP_VALUE_UNKNOWN };
	return (struct opt_value){ .how = OP_VALUE_IN_REG, .reg = (uint8_t)reg };
}

static void remember(struct run *run)
{
	if (run->nr_remembered == REMEMBERED_MAX)
		run->is_bad = true;
	else
		run->remembered[run->nr_remembered++] = run->frame->state;
}

static void recall(struct run *run)
{
	if (!run->nr_remembered)
		run->is_bad = true;
	else
		run->frame->state = run->remembered[--run->nr_remembered];
}

/* Operations that say where a register is. */
static void run_register(struct run *run, uint8_t operation)
{
	struct opr_bytes *program = run->program;
	uint64_t reg = opr_bytes_uleb(program);

	switch (operation) {
	case CFA_OFFSET_EXTENDED:
		set_register(run, reg, at_cfa(run, (int64_t)opr_bytes_uleb(program)));
		break;
	case CFA_OFFSET_EXTENDED_SF:
		set_register(run, reg, at_cfa(run, opr_bytes_sleb(program)));
		break;
	case CFA_NEGATIVE_OFFSET:
		set_register(run, reg, at_cfa(run, -(int64_t)(opr_bytes_uleb(program) & INT64_MAX)));
		break;
	case CFA_VALUE_OFFSET:
		set_register(run, reg, is_cfa(run, (int64_t)opr_bytes_uleb(program)));
		break;
	case CFA_VALUE_OFFSET_SF:
		set_register(run, reg, is_cfa(run, opr_bytes_sleb(program)));
		break;
	case CFA_UNDEFINED:
		set_register(run, reg, (struct opt_value){ .how = OP_VALUE_UNDEFINED });
		break;
	case CFA_SAME_VALUE:
		set_register(run, reg, (struct opt_value){ .how = OP_VALUE_SAME });
		break;
	case CFA_REGISTER:
		set_register(run, reg, in_register(opr_bytes_uleb(program)));
		break;
	case CFA_EXPRESSION:
		set_register(run, reg, value_at_expression(take_block(program)));
		break;
	case CFA_VALUE_EXPRESSION:
		(void)take_block(program);
		set_register(run, reg, (struct opt_value){ .how = OP_VALUE_UNKNOWN });
		break;
	case CFA_RESTORE_EXTENDED:
		restore(run, reg);
		break;
	default:
		run->is_bad = true;
	}
}

/* Operations that define the CFA, and those without operands. */
static void run_frame(struct run *run, uint8_t operation)
{
	struct opt_state *state = &run->frame->state;
	struct opr_bytes *program = run->program;
	uint64_t reg;

	switch (operation) {
	case CFA_NOP:
	case CFA_NEGATE_RA_STATE: /* the walk strips signatures from every return address */
		break;
	case CFA_ARGUMENTS_SIZE:
		(void)opr_bytes_uleb(program);
		break;
	case CFA_DEF:
		reg = opr_bytes_uleb(program);
		define_cfa(run, reg, (int64_t)opr_bytes_uleb(program));
		break;
	case CFA_DEF_SF:
		reg = opr_bytes_uleb(program);
		define_cfa(run, reg, factored(run, opr_bytes_sleb(program)));
		break;
	case CFA_DEF_REGISTER:
		define_cfa(run, opr_bytes_uleb(program), state->cfa_offset);
		break;
	case CFA_DEF_OFFSET:
		state->cfa_offset = (int64_t)opr_bytes_uleb(program);
		break;
	case CFA_DEF_OFFSET_SF:
		state->cfa_offset = factored(run, opr_bytes_sleb(program));
		break;
	case CFA_DEF_EXPRESSION:
		set_cfa_expression(run, take_block(program));
		break;
	case CFA_REMEMBER:
		remember(run);
		break;
	case CFA_RECALL:
		recall(run);
		break;
	default:
		run_register(run, operation);
	}
}

static int run_one(struct run *run)
{
	struct opr_bytes *program = run->program;
	uint8_t operation = (uint8_t)opr_bytes_unsigned(program, 1), operand = operation & 0x3f;
	uint64_t factor = run->frame->code_factor;

	switch (operation & 0xc0) {
	case CFA_ADVANCE:
		return advance(run, operand * factor);
	case CFA_OFFSET:
		set_register(run, operand, at_cfa(run, (int64_t)opr_bytes_uleb(program)));
		return 0;
	case CFA_RESTORE:
		restore(run, operand);
		return 0;
	}
	switch (operation) {
	case CFA_ADVANCE1:
		return advance(run, opr_bytes_unsigned(program, 1) * factor);
	case CFA_ADVANCE2:
		return advance(run, opr_bytes_unsigned(program, 2) * factor);
	case CFA_ADVANCE4:
		return advance(run, opr_bytes_unsigned(program, 4) * factor);
	case CFA_ADVANCE8:
		return advance(run, opr_bytes_unsigned(program, 8) * factor);
	case CFA_SET_LOC: /* no compiler writes it */
		run->is_bad = true;
		return 0;
	}
	run_frame(run, operation);
	return 0;
}

int opt_frame_run(struct opt_frame *frame, struct opr_bytes *program, const struct opt_frame *initial, uint64_t address,
		  struct opt_rows *rows, uint64_t *nr_operations)
{
	struct run run = { .frame = frame, .initial = initial, .program = program, .rows = rows, .address = address };
	int err = 0;

	while (program->at < program->end && !err && !run.is_bad && !program->is_bad) {
		++*nr_operations;
		err = run_one(&run);
	}
	if (!err && (run.is_bad || program->is_bad))
		err = -EBADMSG;
	return err ? err : add_row(&run);
}
