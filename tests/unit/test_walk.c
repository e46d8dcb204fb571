// SPDX-License-Identifier: GPL-3.0-or-later
/* The walk over hand-made tables and stacks: each kind of rule, each end, and hostile input. */
#include <elf.h>
#include <errno.h>
#include <stdlib.h>

#include "pipeline/stacks/walk.h"
#include "tests/unit/cmocka_all.h"

#define STACK  0x7ffc00000000ull
#define WORDS  80
#define TABLED 0x400000ull /* code with rows */
#define JITTED 0x900000ull /* code without a table */
#define PENDED 0xa00000ull /* code whose table is not made yet */
#define BYTES  0x1000ull   /* of each */

enum { RBX = 3, RBP = 6, RSP = 7, R10 = 10 };

/* Positions of the rules in the table; each holds for 0x100 bytes. */
enum {
	RULE_PUSHED = 1,
	RULE_FRAME,
	RULE_DEREF,
	RULE_PLT,
	RULE_SIGNAL,
	RULE_END,
	RULE_RBX,
	RULE_SELF,
	RULE_IN_REG,
	RULE_SAVED,
	RULE_LOST,
	RULE_R10,
	NR_RULES,
};

static const struct op_row_rule rules[NR_RULES] = {
	[RULE_PUSHED] = { OP_CFA_REG, RSP, OP_VALUE_AT_CFA, 0, OP_VALUE_SAME, 0, 0, 0, 16, 0, -8, 0, 0 },
	[RULE_FRAME] = { OP_CFA_REG, RBP, OP_VALUE_AT_CFA, 0, OP_VALUE_AT_CFA, 0, 0, 0, 16, 0, -8, -16, 0 },
	[RULE_DEREF] = { OP_CFA_DEREF, RBP, OP_VALUE_AT_CFA, 0, OP_VALUE_AT_REG, RBP, 0, 0, -8, 8, -8, 0, 0 },
	[RULE_PLT] = { OP_CFA_PLT, RSP, OP_VALUE_AT_CFA, 0, OP_VALUE_SAME, 0, 0, 0, 8, 11, -8, 0, 0 },
	[RULE_SIGNAL] = { OP_CFA_DEREF, RSP, OP_VALUE_AT_REG, RSP, OP_VALUE_AT_REG, RSP, OP_ROW_IS_SIGNAL, 0, 160, 0, 168, 120, 0 },
	[RULE_END] = { OP_CFA_REG, RSP, OP_VALUE_UNDEFINED, 0, OP_VALUE_SAME, 0, 0, 0, 8, 0, 0, 0, 0 },
	[RULE_RBX] = { OP_CFA_REG, RBX, OP_VALUE_AT_CFA, 0, OP_VALUE_SAME, 0, 0, 0, 8, 0, -8, 0, 0 },
	[RULE_SELF] = { OP_CFA_REG, RSP, OP_VALUE_AT_CFA, 0, OP_VALUE_SAME, 0, 0, 0, 0, 0, 0, 0, 0 },
	[RULE_SAVED] = { OP_CFA_REG, RSP, OP_VALUE_AT_CFA, 0, OP_VALUE_SAME, 0, 0, OP_VALUE_AT_CFA, 16, 0, -8, 0, -16 },
	[RULE_LOST] = { OP_CFA_REG, RSP, OP_VALUE_AT_CFA, 0, OP_VALUE_SAME, 0, 0, OP_VALUE_UNKNOWN, 16, 0, -8, 0, 0 },
	[RULE_R10] = { OP_CFA_REG, R10, OP_VALUE_AT_CFA, 0, OP_VALUE_SAME, 0, 0, 0, 8, 0, -8, 0, 0 },
	[RULE_IN_REG] = { OP_CFA_REG, RSP, OP_VALUE_IN_REG, R10, OP_VALUE_UNKNOWN, 0, 0, 0, 8, 0, 0, 0, 0 },
};

struct box {
	char *bytes;
	size_t nr_bytes;
	struct op_row_table table;
	uint64_t stack[WORDS];
	struct opd_walk_start start;
	struct opd_walk_frame frames[OPD_WALK_FRAMES_MAX];
	enum opd_walk_end end;
};

/* A table with the rules above, one behind the other from position 0x100 on. */
static void make_table(struct box *box)
{
	struct op_row_table_header header = { .nr_rows = NR_RULES, .nr_rules = NR_RULES, .machine = EM_X86_64 };
	size_t at = sizeof(header);

	box->nr_bytes = sizeof(header) + NR_RULES * (sizeof(uint32_t) + sizeof(uint16_t)) + sizeof(rules);
	box->bytes = calloc(1, box->nr_bytes);
	memcpy(header.magic, OP_ROW_TABLE_MAGIC, OP_ROW_TABLE_MAGIC_BYTES);
	header.nr_bytes = (uint32_t)box->nr_bytes;
	memcpy(box->bytes, &header, sizeof(header));
	for (uint32_t i = 0; i < NR_RULES; i++, at += sizeof(uint32_t)) {
		uint32_t start = (i + 1) * 0x100;

		memcpy(box->bytes + at, &start, sizeof(start));
	}
	memcpy(box->bytes + at, rules, sizeof(rules));
	at += sizeof(rules);
	for (uint16_t i = 0; i < NR_RULES; i++, at += sizeof(uint16_t)) {
		uint16_t rule = i + 1 == NR_RULES ? 0 : (uint16_t)(i + 1);

		memcpy(box->bytes + at, &rule, sizeof(rule));
	}
}

/* The address of code with a rule. */
static uint64_t code(int rule)
{
	return TABLED + (uint64_t)rule * 0x100 + 0x10;
}

static int set_up(void **state)
{
	struct box *box = calloc(1, sizeof(*box));

	make_table(box);
	assert_int_equal(op_row_table_open(&box->table, box->bytes, box->nr_bytes), 0);
	box->start = (struct opd_walk_start){
		.machine = EM_X86_64,
		.stack = (const uint8_t *)box->stack,
		.nr_stack_bytes = sizeof(box->stack),
		.known = UINT64_MAX >> 31,
	};
	box->start.registers[RSP] = STACK;
	*state = box;
	return 0;
}

static int tear_down(void **state)
{
	struct box *box = *state;

	free(box->bytes);
	free(box);
	return 0;
}

static enum opd_walk_code find(void *arg, uint64_t address, struct opd_walk_frame *frame, const struct op_row_table **ret_table)
{
	struct box *box = arg;

	frame->position = address & (BYTES - 1);
	if (address - TABLED < BYTES) {
		*ret_table = &box->table;
		return OPD_CODE_TABLE;
	}
	if (address - PENDED < BYTES)
		return OPD_CODE_PENDING;
	return address - JITTED < BYTES ? OPD_CODE_NO_TABLE : OPD_CODE_NONE;
}

/* Walks from the code, and checks how it ends and how many frames there are. */
static void expect(struct box *box, uint64_t pc, size_t nr_frames, enum opd_walk_end end)
{
	size_t nr;

	box->start.pc = pc;
	nr = opd_walk(&box->start, find, box, box->frames, &box->end);
	assert_int_equal(box->end, end);
	assert_int_equal(nr, nr_frames);
}

static void rules_lead_to_the_end(void **state)
{
	struct box *box = *state;

	box->stack[1] = code(RULE_FRAME); /* RULE_PUSHED: CFA is rsp + 16 */
	box->start.registers[RBP] = STACK + 5 * 8;
	box->stack[5] = 0x1234; /* the caller's rbp */
	box->stack[6] = code(RULE_END);
	expect(box, code(RULE_PUSHED), 3, OPD_WALK_complete);
	assert_int_equal(box->frames[1].pc, code(RULE_FRAME));
	assert_int_equal(box->frames[2].pc, code(RULE_END));
	assert_int_equal(box->frames[0].position, code(RULE_PUSHED) & (BYTES - 1));
	/* of the call */
	assert_int_equal(box->frames[1].position, (code(RULE_FRAME) - 1) & (BYTES - 1));
}

static void a_realigned_frame_is_found_through_memory(void **state)
{
	struct box *box = *state;

	box->start.registers[RBP] = STACK + 8 * 8;
	box->stack[7] = STACK + 12 * 8 - 8; /* at rbp - 8; CFA is 8 more */
	box->stack[11] = code(RULE_FRAME);
	box->stack[8] = STACK + 20 * 8; /* the caller's rbp */
	box->stack[21] = code(RULE_END);
	expect(box, code(RULE_DEREF), 3, OPD_WALK_complete);
}

static void an_entry_of_the_plt_pushes_at_byte_11(void **state)
{
	struct box *box = *state;

	box->stack[0] = code(RULE_END);
	expect(box, TABLED + RULE_PLT * 0x100, 2, OPD_WALK_complete);
	box->stack[0] = 7; /* the number of the relocation */
	box->stack[1] = code(RULE_END);
	expect(box, TABLED + RULE_PLT * 0x100 + 11, 2, OPD_WALK_complete);
}

static void a_signal_frame_has_all_registers(void **state)
{
	struct box *box = *state;

	/* rip and rsp of the interrupted code, whose row needs rbx */
	box->stack[21] = code(RULE_RBX);
	box->stack[20] = STACK + 30 * 8;
	box->stack[5 + 11] = STACK + 39 * 8; /* rbx */
	box->stack[39] = code(RULE_END);
	expect(box, code(RULE_SIGNAL), 3, OPD_WALK_complete);
	/* the interrupted address is exact: it is not behind a call */
	assert_int_equal(box->frames[1].position, code(RULE_RBX) & (BYTES - 1));
}

static void a_register_of_a_caller_is_not_known(void **state)
{
	struct box *box = *state;

	box->stack[1] = code(RULE_R10);
	expect(box, code(RULE_PUSHED), 2, OPD_WALK_no_row);
	box->start.registers[R10] = STACK + 3 * 8;
	box->start.known |= 1ull << R10;
	expect(box, code(RULE_PUSHED), 2, OPD_WALK_no_row);
	box->stack[3] = code(RULE_END);
	expect(box, code(RULE_R10), 2, OPD_WALK_complete); /* of the leaf it is */
	box->start.known &= ~(1ull << R10);
	expect(box, code(RULE_R10), 1, OPD_WALK_no_row);
}

static void rbx_of_a_caller_is_followed(void **state)
{
	struct box *box = *state;

	box->stack[1] = code(RULE_RBX);
	box->stack[3] = box->stack[5] = code(RULE_END);
	box->start.registers[RBX] = STACK + 3 * 8;
	expect(box, code(RULE_PUSHED), 3, OPD_WALK_complete);
	box->stack[0] = STACK + 5 * 8;
	box->stack[3] = 0x77;
	expect(box, code(RULE_SAVED), 3, OPD_WALK_complete);
	expect(box, code(RULE_LOST), 2, OPD_WALK_no_row);
	box->start.known &= ~(1ull << RBX);
	expect(box, code(RULE_PUSHED), 2, OPD_WALK_no_row);
	expect(box, code(RULE_SAVED), 3, OPD_WALK_complete);
	box->stack[0] = STACK; /* not above the frame before */
	expect(box, code(RULE_SAVED), 2, OPD_WALK_no_row);
}

/* The code that a handler returns to begins with a row: the byte before is of another function. */
static void a_handler_returns_to_code_that_did_not_call(void **state)
{
	struct box *box = *state;

	box->stack[1] = TABLED + RULE_SIGNAL * 0x100; /* RULE_PUSHED: CFA is rsp + 16 */
	box->stack[2 + 21] = TABLED + RULE_RBX * 0x100; /* the first byte of another function */
	box->stack[2 + 20] = STACK + 30 * 8;
	box->stack[2 + 5 + 11] = STACK + 39 * 8; /* rbx */
	box->stack[39] = code(RULE_END);
	expect(box, code(RULE_PUSHED), 4, OPD_WALK_complete);
	assert_int_equal(box->frames[1].position, RULE_SIGNAL * 0x100);
	assert_int_equal(box->frames[2].position, RULE_RBX * 0x100);
	/* within the row, too: a libc begins it one byte earlier */
	box->stack[1] = TABLED + RULE_SIGNAL * 0x100 + 1;
	expect(box, code(RULE_PUSHED), 4, OPD_WALK_complete);
	assert_int_equal(box->frames[1].position, RULE_SIGNAL * 0x100 + 1);
	/* a signal that a jump to address 0 caused */
	box->stack[2 + 21] = 0;
	expect(box, code(RULE_PUSHED), 2, OPD_WALK_left_code);
}

static void frame_pointers_lead_through_code_without_rows(void **state)
{
	struct box *box = *state;

	box->start.registers[RBP] = STACK + 4 * 8;
	box->stack[4] = STACK + 10 * 8;
	box->stack[5] = JITTED + 0x20;
	box->stack[10] = 0x77;
	box->stack[11] = code(RULE_END);
	expect(box, JITTED + 4, 3, OPD_WALK_guessed);
	box->stack[4] = STACK - 8; /* below the frame: it is no frame pointer */
	expect(box, JITTED + 4, 2, OPD_WALK_guessed);
	box->start.known &= ~(1ull << RBP);
	expect(box, JITTED + 4, 1, OPD_WALK_no_row);
}

/* Such code may keep any number in the register: nothing that it leads to proves a start. */
static void a_guess_is_never_complete(void **state)
{
	struct box *box = *state;

	box->start.registers[RBP] = STACK + 4 * 8;
	expect(box, JITTED + 4, 1, OPD_WALK_no_row); /* to two words of 0 */
	box->stack[5] = 0x1234;
	expect(box, JITTED + 4, 1, OPD_WALK_no_row); /* to a number */
	box->stack[5] = PENDED + 8;
	expect(box, JITTED + 4, 2, OPD_WALK_no_table_yet);
	box->stack[5] = code(RULE_PUSHED);
	box->stack[7] = 0;
	expect(box, JITTED + 4, 2, OPD_WALK_guessed); /* to a row, and that to 0 */
	box->stack[7] = 0x1234;
	expect(box, JITTED + 4, 2, OPD_WALK_guessed);
	/* code of an image that has a table, with 0 in the register, behind a call */
	box->start.registers[RBP] = 0;
	box->stack[1] = TABLED + NR_RULES * 0x100 + 4;
	expect(box, code(RULE_PUSHED), 2, OPD_WALK_no_row);
}

/* ---- code without rows that a runtime knows ---- */

static struct {
	enum opd_runtime_how how;
	struct opd_runtime_answer answer;
	struct opd_runtime_frame seen;
	size_t nr_asked;
} runtime;

static enum opd_runtime_how ask(void *arg, const struct opd_runtime_frame *frame, struct opd_runtime_answer *ret_answer)
{
	uint64_t word;

	assert_non_null(arg);
	runtime.seen = *frame;
	runtime.nr_asked++;
	*ret_answer = runtime.answer;
	assert_true(opd_runtime_read_word(frame, STACK + 8 * (WORDS - 1), &word));
	assert_false(opd_runtime_read_word(frame, STACK + 8 * (WORDS - 1) + 1, &word));
	assert_false(opd_runtime_read_word(frame, STACK - 8, &word));
	return runtime.how;
}

static void a_runtime_knows_the_caller(void **state)
{
	struct box *box = *state;

	box->start.ask = ask;
	box->start.registers[RBP] = STACK + 9 * 8;
	runtime.nr_asked = 0;
	runtime.how = OPD_RUNTIME_CALLER;
	runtime.answer = (struct opd_runtime_answer){ .pc = code(RULE_END), .sp = STACK + 8 };
	expect(box, JITTED + 4, 2, OPD_WALK_complete);
	assert_int_equal(runtime.seen.pc, JITTED + 4);
	assert_int_equal(runtime.seen.address, JITTED + 4);
	assert_int_equal(runtime.seen.fp, STACK + 9 * 8);
	assert_true(runtime.seen.has_fp && runtime.seen.has_sp && runtime.seen.is_exact);
	/* rbp of the caller is known when the runtime says it */
	box->stack[10] = code(RULE_END);
	runtime.answer = (struct opd_runtime_answer){ .pc = code(RULE_FRAME), .sp = STACK + 8 };
	expect(box, JITTED + 4, 2, OPD_WALK_no_row);
	runtime.answer.has_fp = true;
	runtime.answer.fp = STACK + 9 * 8;
	expect(box, JITTED + 4, 3, OPD_WALK_complete);
	assert_int_equal(runtime.nr_asked, 3);
	/* of a caller */
	box->stack[1] = JITTED + 4;
	runtime.answer.sp = STACK + 3 * 8;
	expect(box, code(RULE_PUSHED), 4, OPD_WALK_complete);
	assert_int_equal(runtime.seen.address, JITTED + 3);
	assert_int_equal(runtime.seen.sp, STACK + 2 * 8);
	assert_false(runtime.seen.is_exact);
}

static void a_runtime_moves_up(void **state)
{
	struct box *box = *state;

	box->start.ask = ask;
	runtime.how = OPD_RUNTIME_CALLER;
	runtime.answer = (struct opd_runtime_answer){ .pc = JITTED + 4, .sp = STACK };
	expect(box, JITTED + 4, 1, OPD_WALK_no_row);
	runtime.answer.sp = STACK - 8;
	expect(box, JITTED + 4, 1, OPD_WALK_no_row);
	runtime.answer.sp = STACK + 1;
	expect(box, JITTED + 4, 2, OPD_WALK_no_row);
}

static void a_runtime_proves_the_frame_pointer(void **state)
{
	struct box *box = *state;

	box->start.ask = ask;
	box->start.registers[RBP] = STACK + 4 * 8;
	box->stack[5] = code(RULE_END);
	runtime.answer = (struct opd_runtime_answer){ 0 };
	runtime.how = OPD_RUNTIME_GUESS;
	expect(box, JITTED + 4, 2, OPD_WALK_guessed);
	runtime.how = OPD_RUNTIME_PASS;
	expect(box, JITTED + 4, 2, OPD_WALK_complete);
	runtime.how = OPD_RUNTIME_WAIT;
	expect(box, JITTED + 4, 1, OPD_WALK_no_table_yet);
	runtime.how = OPD_RUNTIME_END;
	expect(box, JITTED + 4, 1, OPD_WALK_complete);
	runtime.how = OPD_RUNTIME_CUT;
	expect(box, JITTED + 4, 1, OPD_WALK_cut);
	/* also where the image has a table, and no row there */
	runtime.how = OPD_RUNTIME_PASS;
	expect(box, TABLED + NR_RULES * 0x100 + 4, 2, OPD_WALK_complete);
}

static void functions_of_a_runtime_are_frames(void **state)
{
	struct box *box = *state;

	for (size_t i = 0; i < WORDS - 1; i += 2) {
		box->stack[i] = STACK + (i + 2) * 8;
		box->stack[i + 1] = JITTED + 4;
	}
	box->start.ask = ask;
	box->start.registers[RBP] = STACK;
	runtime.how = OPD_RUNTIME_PASS;
	runtime.answer = (struct opd_runtime_answer){ .nr_functions = OPD_RUNTIME_INLINED_MAX };
	expect(box, JITTED + 4, OPD_WALK_FRAMES_MAX / OPD_RUNTIME_INLINED_MAX, OPD_WALK_too_deep);
}

static void each_end_has_its_name(void **state)
{
	struct box *box = *state;

	expect(box, 0x1000, 0, OPD_WALK_left_code);
	box->stack[1] = 0x1000;
	expect(box, code(RULE_PUSHED), 1, OPD_WALK_left_code);
	box->stack[1] = PENDED + 8;
	expect(box, code(RULE_PUSHED), 2, OPD_WALK_no_table_yet);
	box->stack[1] = 0; /* a row may be wrong, and the word a register that was pushed */
	expect(box, code(RULE_PUSHED), 1, OPD_WALK_left_code);
	box->start.registers[RBP] = STACK + (WORDS - 1) * 8;
	expect(box, code(RULE_FRAME), 1, OPD_WALK_cut);
	box->start.nr_stack_bytes = 8;
	expect(box, code(RULE_PUSHED), 1, OPD_WALK_cut);
	box->start.registers[R10] = code(RULE_END);
	expect(box, code(RULE_IN_REG), 2, OPD_WALK_complete);
	expect(box, TABLED + NR_RULES * 0x100 + 4, 1, OPD_WALK_no_row);
}

/* A row that does not move up, and frame pointers in a ring. */
static void hostile_stacks_end(void **state)
{
	struct box *box = *state;

	box->stack[0] = code(RULE_SELF);
	expect(box, code(RULE_SELF), 2, OPD_WALK_no_row);
	box->start.registers[RBP] = STACK;
	box->stack[0] = STACK;
	box->stack[1] = JITTED + 8;
	expect(box, JITTED + 8, 2, OPD_WALK_guessed);
	for (size_t i = 0; i < WORDS; i += 2) {
		box->stack[i] = STACK + (i + 2) * 8;
		box->stack[i + 1] = JITTED + 8;
	}
	expect(box, JITTED + 8, 1 + WORDS / 2, OPD_WALK_guessed);
}

/* A signal frame may point to itself: nothing moves, and the number of frames ends it. */
static void a_signal_in_a_ring_is_too_deep(void **state)
{
	struct box *box = *state;

	box->stack[20] = STACK;
	box->stack[21] = code(RULE_SIGNAL);
	expect(box, code(RULE_SIGNAL), OPD_WALK_FRAMES_MAX, OPD_WALK_too_deep);
}

static void arm_finds_the_caller_of_a_leaf_in_lr(void **state)
{
	static const struct op_row_rule leaf = { OP_CFA_REG, 31, OP_VALUE_SAME, 0, OP_VALUE_SAME, 0, 0, 0, 0, 0, 0, 0, 0 };
	struct box *box = *state;
	struct op_row_rule *first = (struct op_row_rule *)(uintptr_t)&box->table.rules[RULE_PUSHED];

	*first = leaf;
	box->start.machine = EM_AARCH64;
	box->start.registers[31] = STACK;
	box->start.registers[30] = code(RULE_END) | 0x3full << 50; /* signed */
	box->start.code_end = 0xffffull << 32;
	box->start.known = UINT64_MAX >> 31;
	expect(box, code(RULE_PUSHED), 2, OPD_WALK_complete);
	assert_int_equal(box->frames[1].pc, code(RULE_END));
	box->start.registers[30] = code(RULE_PUSHED); /* a caller that did not save it */
	expect(box, code(RULE_PUSHED), 2, OPD_WALK_no_row);
}

/* Code without rows calls by a frame record that is not at the top of its caller's frame. */
static void arm_finds_sp_by_the_frame_record(void **state)
{
	static const struct op_row_rule framed = {
		OP_CFA_REG, 31, OP_VALUE_AT_CFA, 0, OP_VALUE_AT_CFA, 0, 0, OP_VALUE_UNKNOWN, 64, 0, -40, -48, 0
	};
	struct box *box = *state;
	struct op_row_rule *changed = (struct op_row_rule *)(uintptr_t)&box->table.rules[RULE_PUSHED];

	*changed = framed;
	box->start.machine = EM_AARCH64;
	box->start.registers[31] = STACK;
	box->start.registers[29] = STACK + 16;
	box->start.known = 1ull << 31 | 1ull << 29;
	/* the record of the code without rows, at 16 of its 48 bytes */
	box->stack[2] = STACK + 8 * 8;
	box->stack[3] = code(RULE_PUSHED);
	box->stack[8] = 0; /* that of its caller, at 16 of 64 bytes from 48 on */
	box->stack[9] = code(RULE_PUSHED);
	box->stack[14] = 0; /* and of that one's, 64 bytes from 112 on */
	box->stack[17] = code(RULE_END);
	expect(box, JITTED + 8, 4, OPD_WALK_guessed);
	assert_int_equal(box->frames[1].pc, code(RULE_PUSHED));
	assert_int_equal(box->frames[3].pc, code(RULE_END));
	changed->fp_how = OP_VALUE_SAME; /* a caller without a record */
	expect(box, JITTED + 8, 2, OPD_WALK_guessed);
}

/* Where addresses have 39 bits, signatures begin at bit 39. */
static void arm_strips_signatures_above_the_highest_code(void **state)
{
	static const struct op_row_rule leaf = { OP_CFA_REG, 31, OP_VALUE_SAME, 0, OP_VALUE_SAME, 0, 0, 0, 0, 0, 0, 0, 0 };
	static const uint64_t ends[] = { 1ull << 39, 1ull << 42, 1ull << 47, 1ull << 48, 1ull << 52 };
	struct box *box = *state;
	struct op_row_rule *first = (struct op_row_rule *)(uintptr_t)&box->table.rules[RULE_PUSHED];

	*first = leaf;
	box->start.machine = EM_AARCH64;
	box->start.registers[31] = STACK;
	box->start.known = UINT64_MAX >> 31;
	for (size_t i = 0; i < op_array_size(ends); i++) {
		box->start.code_end = ends[i];
		box->start.registers[30] = code(RULE_END) | (0x7full << 48 & ~(ends[i] - 1)) | ends[i];
		expect(box, code(RULE_PUSHED), 2, OPD_WALK_complete);
		assert_int_equal(box->frames[1].pc, code(RULE_END));
		/* an address without a signature, and without code */
		box->start.registers[30] = code(RULE_END) | (ends[i] >> 1);
		expect(box, code(RULE_PUSHED), 1, OPD_WALK_left_code);
	}
}

/* The row of opd-tables for what a handler returns to, and where the kernel puts the registers. */
static void arm_goes_on_from_a_signal(void **state)
{
	static const struct op_row_rule leaf = { OP_CFA_REG, 31, OP_VALUE_SAME, 0, OP_VALUE_SAME, 0, 0, 0, 0, 0, 0, 0, 0 };
	static const struct op_row_rule sigreturn = {
		OP_CFA_DEREF, 31, OP_VALUE_AT_REG, 31, OP_VALUE_AT_REG, 31, OP_ROW_IS_SIGNAL, OP_VALUE_UNKNOWN, 560, 0, 568, 544, 0
	};
	struct box *box = *state;
	struct op_row_rule *changed = (struct op_row_rule *)(uintptr_t)box->table.rules;
	uint64_t *registers = box->stack + 39;

	changed[RULE_SIGNAL] = sigreturn;
	changed[RULE_PUSHED] = leaf;
	box->start.machine = EM_AARCH64;
	box->start.registers[31] = STACK; /* the handler's frame is gone */
	box->start.known = 1ull << 31;
	registers[30] = code(RULE_END) | 0x7full << 48; /* of a leaf: signed */
	registers[31] = STACK + 560 + 64;
	registers[32] = code(RULE_PUSHED);
	expect(box, code(RULE_SIGNAL), 3, OPD_WALK_complete);
	assert_int_equal(box->frames[1].pc, code(RULE_PUSHED));
	assert_int_equal(box->frames[1].position, code(RULE_PUSHED) & (BYTES - 1));
	assert_int_equal(box->frames[2].pc, code(RULE_END));
}

static void damaged_tables_are_refused(void **state)
{
	struct box *box = *state;
	struct op_row_table table;
	size_t nr_refused = 0;

	for (size_t nr_bytes = 0; nr_bytes < box->nr_bytes; nr_bytes++)
		assert_int_equal(op_row_table_open(&table, box->bytes, nr_bytes), -EBADMSG);
	for (size_t i = 0; i < box->nr_bytes; i++) {
		char old = box->bytes[i];

		box->bytes[i] = (char)0xff;
		nr_refused += op_row_table_open(&table, box->bytes, box->nr_bytes) == -EBADMSG;
		box->bytes[i] = old;
	}
	/* all but offsets, padding and the build-id */
	assert_true(nr_refused > NR_RULES * 10);
	assert_int_equal(op_row_table_open(&table, box->bytes, box->nr_bytes), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(rules_lead_to_the_end, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_realigned_frame_is_found_through_memory, set_up, tear_down),
		cmocka_unit_test_setup_teardown(an_entry_of_the_plt_pushes_at_byte_11, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_signal_frame_has_all_registers, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_handler_returns_to_code_that_did_not_call, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_register_of_a_caller_is_not_known, set_up, tear_down),
		cmocka_unit_test_setup_teardown(rbx_of_a_caller_is_followed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(frame_pointers_lead_through_code_without_rows, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_guess_is_never_complete, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_runtime_knows_the_caller, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_runtime_moves_up, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_runtime_proves_the_frame_pointer, set_up, tear_down),
		cmocka_unit_test_setup_teardown(functions_of_a_runtime_are_frames, set_up, tear_down),
		cmocka_unit_test_setup_teardown(each_end_has_its_name, set_up, tear_down),
		cmocka_unit_test_setup_teardown(hostile_stacks_end, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_signal_in_a_ring_is_too_deep, set_up, tear_down),
		cmocka_unit_test_setup_teardown(arm_finds_the_caller_of_a_leaf_in_lr, set_up, tear_down),
		cmocka_unit_test_setup_teardown(arm_finds_sp_by_the_frame_record, set_up, tear_down),
		cmocka_unit_test_setup_teardown(arm_strips_signatures_above_the_highest_code, set_up, tear_down),
		cmocka_unit_test_setup_teardown(arm_goes_on_from_a_signal, set_up, tear_down),
		cmocka_unit_test_setup_teardown(damaged_tables_are_refused, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
