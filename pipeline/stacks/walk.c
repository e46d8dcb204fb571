/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pipeline/stacks/walk.h"

#include <elf.h>
#include <string.h>

#define WORD_BYTES 8u

/* DWARF numbers of registers: the psABI of x86-64, section 3.6.2, and of arm64 ("DWARF for the Arm
 * 64-bit Architecture", section 4.1). */
enum { X86_RBX = 3, X86_RBP = 6, X86_RSP = 7, ARM64_FP = 29, ARM64_LR = 30, ARM64_SP = 31 };

/*
 * The registers in the signal frame of x86-64, as words from the one of r8: gregs of struct
 * sigcontext in arch/x86/include/uapi/asm/sigcontext.h, by their DWARF numbers.
 */
static const uint8_t x86_signal_registers[] = { 8, 9, 10, 11, 12, 13, 14, 15, 5, 4, 6, 3, 1, 0, 2, 7 };
#define X86_SIGNAL_RSP_WORD 15

/* On arm64 x0 to x30 lie before sp, in the order of their DWARF numbers: struct sigcontext in
 * arch/arm64/include/uapi/asm/sigcontext.h. */
#define ARM64_SIGNAL_SP_WORD 31

struct walk {
	uint64_t registers[OP_UNWIND_REGISTERS];
	uint64_t known;
	uint64_t pc;
	uint8_t sp_reg, fp_reg;
	uint16_t machine;
	uint64_t address_mask;
	bool is_exact; /* pc is where the code was, not behind a call */
	bool is_guess; /* the frame pointer led to pc, which proves nothing */
	const uint8_t *stack;
	uint64_t stack_start, nr_stack_bytes;
	opd_walk_ask ask;
	void *arg;	  /* of `find` and `ask` */
	size_t nr_extra; /* functions of runtimes beyond one for each frame */
};

static bool is_known(const struct walk *walk, uint8_t reg)
{
	return walk->known >> reg & 1;
}

static void set(struct walk *walk, uint8_t reg, uint64_t value)
{
	walk->registers[reg] = value;
	walk->known |= 1ull << reg;
}

/* The word at an address of the stack. False: the copy does not have it. */
static bool read_word(const struct walk *walk, uint64_t address, uint64_t *ret_word)
{
	uint64_t offset = address - walk->stack_start;

	if (offset >= walk->nr_stack_bytes || walk->nr_stack_bytes - offset < WORD_BYTES)
		return false;
	memcpy(ret_word, walk->stack + offset, WORD_BYTES);
	return true;
}

/* False with OPD_WALK_cut or OPD_WALK_no_row in *end. */
static bool find_cfa(const struct walk *walk, const struct op_row_rule *rule, uint64_t *ret_cfa, enum opd_walk_end *end)
{
	uint64_t base = walk->registers[rule->cfa_reg] + (uint64_t)(int64_t)rule->cfa_offset, word;

	*end = OPD_WALK_no_row;
	if (!is_known(walk, rule->cfa_reg))
		return false;
	switch ((enum op_cfa_how)rule->cfa_how) {
	case OP_CFA_REG:
		*ret_cfa = base;
		return true;
	case OP_CFA_DEREF:
		*end = OPD_WALK_cut;
		if (!read_word(walk, base, &word))
			return false;
		*ret_cfa = word + (uint64_t)(int64_t)rule->cfa_more;
		return true;
	case OP_CFA_PLT:
		*ret_cfa = base + ((int64_t)(walk->pc & 15) >= rule->cfa_more ? WORD_BYTES : 0);
		return true;
	case OP_CFA_NONE:
	case OP_NR_CFA:
		break;
	}
	return false;
}

/* The caller's value of a register. False as find_cfa. `own`: the register itself. */
static bool find_value(const struct walk *walk, uint8_t how, uint8_t reg, int32_t offset, uint64_t cfa, uint8_t own,
		       uint64_t *ret_value, enum opd_walk_end *end)
{
	*end = OPD_WALK_no_row;
	switch ((enum op_value_how)how) {
	case OP_VALUE_SAME:
		*ret_value = walk->registers[own];
		return is_known(walk, own);
	case OP_VALUE_IN_REG:
		*ret_value = walk->registers[reg];
		return is_known(walk, reg);
	case OP_VALUE_IS_CFA:
		*ret_value = cfa + (uint64_t)(int64_t)offset;
		return true;
	case OP_VALUE_AT_CFA:
		*end = OPD_WALK_cut;
		return read_word(walk, cfa + (uint64_t)(int64_t)offset, ret_value);
	case OP_VALUE_AT_REG:
		if (!is_known(walk, reg))
			return false;
		*end = OPD_WALK_cut;
		return read_word(walk, walk->registers[reg] + (uint64_t)(int64_t)offset, ret_value);
	case OP_VALUE_UNDEFINED:
	case OP_VALUE_UNKNOWN:
	case OP_NR_VALUES:
		break;
	}
	return false;
}

/* A signal frame has all registers, and the interrupted code may use any of them. */
static void take_signal_registers(struct walk *walk, const struct op_row_rule *rule)
{
	bool is_arm = walk->machine == EM_AARCH64;
	size_t sp_word = is_arm ? ARM64_SIGNAL_SP_WORD : X86_SIGNAL_RSP_WORD;
	size_t nr = is_arm ? ARM64_SIGNAL_SP_WORD : op_array_size(x86_signal_registers);
	uint64_t at = walk->registers[rule->cfa_reg] + (uint64_t)(int64_t)rule->cfa_offset - sp_word * WORD_BYTES, value;

	if (rule->cfa_how != OP_CFA_DEREF)
		return;
	for (size_t i = 0; i < nr; i++)
		if (read_word(walk, at + i * WORD_BYTES, &value))
			set(walk, is_arm ? (uint8_t)i : x86_signal_registers[i], value);
}

/*
 * A step by the frame pointer of arm64 does not tell where the stack pointer was: frame records lie
 * anywhere in their frames. The row of a function that made one tells it, by the frame pointer.
 */
static void find_sp(struct walk *walk, const struct op_row_rule *rule)
{
	uint64_t least = walk->registers[walk->sp_reg];
	uint64_t sp = walk->registers[walk->fp_reg] - (uint64_t)(int64_t)rule->fp_offset - (uint64_t)(int64_t)rule->cfa_offset;

	if (is_known(walk, walk->sp_reg) || !is_known(walk, walk->fp_reg) || rule->cfa_how != OP_CFA_REG ||
	    rule->cfa_reg != walk->sp_reg || rule->fp_how != OP_VALUE_AT_CFA || rule->ra_how != OP_VALUE_AT_CFA ||
	    rule->ra_offset != rule->fp_offset + (int32_t)WORD_BYTES || sp < least)
		return;
	set(walk, walk->sp_reg, sp);
}

/* The next frame by a row. False: the walk ends. */
static bool step_by_row(struct walk *walk, const struct op_row_rule *rule, enum opd_walk_end *end)
{
	uint64_t sp, cfa, ra, fp, bx = walk->registers[X86_RBX];
	uint8_t ra_reg = walk->machine == EM_X86_64 ? X86_RSP : ARM64_LR;
	bool is_signal = rule->flags & OP_ROW_IS_SIGNAL, has_fp, has_bx = false;
	enum opd_walk_end fp_end;

	if (rule->ra_how == OP_VALUE_UNDEFINED) {
		*end = OPD_WALK_complete;
		return false;
	}
	/* On arm64 the return address of a leaf is in lr. A caller's lr is not known. */
	if (rule->ra_how == OP_VALUE_SAME && (walk->machine == EM_X86_64 || !walk->is_exact)) {
		*end = OPD_WALK_no_row;
		return false;
	}
	find_sp(walk, rule);
	sp = walk->registers[walk->sp_reg];
	if (!find_cfa(walk, rule, &cfa, end) ||
	    !find_value(walk, rule->ra_how, rule->ra_reg, rule->ra_offset, cfa, ra_reg, &ra, end))
		return false;
	has_fp = find_value(walk, rule->fp_how, rule->fp_reg, rule->fp_offset, cfa, walk->fp_reg, &fp, &fp_end);
	if (walk->machine == EM_X86_64 && !is_signal)
		has_bx = rule->bx_how == OP_VALUE_AT_CFA ? read_word(walk, cfa + (uint64_t)(int64_t)rule->bx_offset, &bx)
							 : rule->bx_how == OP_VALUE_SAME && is_known(walk, X86_RBX);
	/* Only a leaf on arm64 has no frame of its own. A signal may have come on another stack. */
	if (!is_signal && (cfa < sp || (cfa == sp && !walk->is_exact))) {
		*end = OPD_WALK_no_row;
		return false;
	}
	walk->known = 0;
	if (is_signal)
		take_signal_registers(walk, rule);
	if (has_fp)
		set(walk, walk->fp_reg, fp);
	if (has_bx)
		set(walk, X86_RBX, bx);
	set(walk, walk->sp_reg, cfa);
	walk->pc = ra;
	walk->is_exact = is_signal;
	walk->is_guess = false;
	return true;
}

/*
 * The next frame by the frame pointer: the word there is the caller's, and the return address is
 * behind it, on both machines. The ABIs mark the end by a frame pointer of 0. But code that uses
 * the register for something else has such words, too. So 0 is no proof of a start.
 */
static bool step_by_frame_pointer(struct walk *walk, enum opd_walk_end *end)
{
	uint64_t fp = walk->registers[walk->fp_reg], caller, ra;

	*end = OPD_WALK_no_row;
	if (!is_known(walk, walk->fp_reg))
		return false;
	if (fp < walk->registers[walk->sp_reg])
		return false;
	if (!read_word(walk, fp, &caller) || !read_word(walk, fp + WORD_BYTES, &ra)) {
		/* a register that is no frame pointer points anywhere */
		*end = fp - walk->stack_start < walk->nr_stack_bytes ? OPD_WALK_cut : OPD_WALK_no_row;
		return false;
	}
	walk->known = 0;
	set(walk, walk->fp_reg, caller);
	set(walk, walk->sp_reg, fp + 2 * WORD_BYTES);
	if (walk->machine == EM_AARCH64) /* no less than that, see find_sp */
		walk->known &= ~(1ull << walk->sp_reg);
	walk->pc = ra;
	walk->is_exact = false;
	return true;
}

/* Fills a frame, and finds its rule; NULL: there is none. False: the walk ends. */
static bool add_frame(struct walk *walk, opd_walk_find find, void *arg, struct opd_walk_frame *frame,
		      const struct op_row_rule **ret_rule, enum opd_walk_code *ret_code)
{
	/* The address behind a call may be in the next function. */
	uint64_t address = walk->is_exact ? walk->pc : walk->pc - 1;
	const struct op_row_table *table = NULL;

	*frame = (struct opd_walk_frame){ .pc = walk->pc };
	*ret_code = find(arg, address, frame, &table);
	*ret_rule = !table	     ? NULL
		    : walk->is_exact ? op_row_table_find(table, frame->position)
				     : op_row_table_caller(table, &frame->position);
	return *ret_code != OPD_CODE_NONE;
}

static enum opd_runtime_how ask_runtime(const struct walk *walk, struct opd_runtime_answer *ret_answer)
{
	const struct opd_runtime_frame frame = {
		.address = walk->is_exact ? walk->pc : walk->pc - 1,
		.pc = walk->pc,
		.is_exact = walk->is_exact,
		.sp = walk->registers[walk->sp_reg],
		.fp = walk->registers[walk->fp_reg],
		.has_sp = is_known(walk, walk->sp_reg),
		.has_fp = is_known(walk, walk->fp_reg),
		.registers = walk->registers,
		.known = walk->known,
		.stack = walk->stack,
		.stack_start = walk->stack_start,
		.nr_stack_bytes = walk->nr_stack_bytes,
	};

	return walk->ask(walk->arg, &frame, ret_answer);
}

/* Each caller is above: the walk ends. */
static bool step_to_caller(struct walk *walk, const struct opd_runtime_answer *answer, enum opd_walk_end *end)
{
	*end = OPD_WALK_no_row;
	if (answer->sp <= walk->registers[walk->sp_reg])
		return false;
	walk->known = 0;
	set(walk, walk->sp_reg, answer->sp);
	if (answer->has_fp)
		set(walk, walk->fp_reg, answer->fp);
	walk->pc = answer->pc;
	walk->is_exact = false;
	walk->is_guess = false;
	return true;
}

/* The next frame of code without a row. */
static bool step_without_row(struct walk *walk, enum opd_walk_end *end)
{
	struct opd_runtime_answer answer = { 0 };
	enum opd_runtime_how how = walk->ask ? ask_runtime(walk, &answer) : OPD_RUNTIME_GUESS;

	walk->nr_extra += answer.nr_functions ? answer.nr_functions - 1 : 0;
	switch (how) {
	case OPD_RUNTIME_WAIT:
		*end = OPD_WALK_no_table_yet;
		return false;
	case OPD_RUNTIME_END:
		*end = OPD_WALK_complete;
		return false;
	case OPD_RUNTIME_CUT:
		*end = OPD_WALK_cut;
		return false;
	case OPD_RUNTIME_CALLER:
		return step_to_caller(walk, &answer, end);
	case OPD_RUNTIME_PASS:
	case OPD_RUNTIME_GUESS:
		break;
	}
	if (!step_by_frame_pointer(walk, end))
		return false;
	walk->is_guess = how == OPD_RUNTIME_GUESS;
	return true;
}

static bool step(struct walk *walk, enum opd_walk_code code, const struct op_row_rule *rule, enum opd_walk_end *end)
{
	if (code == OPD_CODE_PENDING) {
		*end = OPD_WALK_no_table_yet;
		return false;
	}
	return rule ? step_by_row(walk, rule, end) : step_without_row(walk, end);
}

/*
 * arm64 signs return addresses in bits that no address of user space has. How many bits an address
 * has depends on the kernel: 36 to 52. So the mask has the bits that code of this process has.
 */
static uint64_t address_mask_of(const struct opd_walk_start *start)
{
	uint64_t highest = start->pc | (start->code_end ? start->code_end - 1 : 0);

	return start->machine == EM_AARCH64 && highest ? UINT64_MAX >> __builtin_clzll(highest) : UINT64_MAX;
}

size_t opd_walk(const struct opd_walk_start *start, opd_walk_find find, void *arg,
		struct opd_walk_frame frames[OPD_WALK_FRAMES_MAX], enum opd_walk_end *ret_end)
{
	bool is_arm = start->machine == EM_AARCH64;
	struct walk walk = {
		.known = start->known,
		.pc = start->pc,
		.sp_reg = is_arm ? ARM64_SP : X86_RSP,
		.fp_reg = is_arm ? ARM64_FP : X86_RBP,
		.machine = start->machine,
		.address_mask = address_mask_of(start),
		.is_exact = true,
		.stack = start->stack,
		.nr_stack_bytes = start->nr_stack_bytes,
		.ask = start->ask,
		.arg = arg,
	};
	const struct op_row_rule *rule;
	enum opd_walk_code code;
	bool is_guessed = false;
	size_t nr = 0;

	memcpy(walk.registers, start->registers, sizeof(walk.registers));
	walk.stack_start = walk.registers[walk.sp_reg];
	for (;;) {
		*ret_end = walk.is_guess ? OPD_WALK_no_row : OPD_WALK_left_code;
		if (!add_frame(&walk, find, arg, &frames[nr], &rule, &code))
			break;
		nr++;
		is_guessed |= walk.is_guess;
		if (!step(&walk, code, rule, ret_end))
			break;
		walk.pc &= walk.address_mask;
		*ret_end = OPD_WALK_too_deep;
		if (nr + walk.nr_extra >= OPD_WALK_FRAMES_MAX)
			break;
	}
	/* a walk whose table is not made yet begins again later */
	if (is_guessed && *ret_end != OPD_WALK_no_table_yet)
		*ret_end = OPD_WALK_guessed;
	return nr;
}
