/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Walks over a table that nobody trusts, with stacks and registers that lead back into the table
 * and into themselves. A fault is found by the sanitizers, or is a walk that breaks its promises.
 */
#ifndef TEST_HOSTILE_WALK_H
#define TEST_HOSTILE_WALK_H

#include <elf.h>
#include <stdlib.h>

#include "pipeline/stacks/walk.h"

#define HOSTILE_CODE  0x400000ull
#define HOSTILE_STACK 0x7ffc00000000ull
#define HOSTILE_WORDS 512u
#define HOSTILE_WALKS 64u /* of a table */

static inline uint64_t hostile_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* In the code, in the copy of the stack, near its ends, or anything. */
static inline uint64_t hostile_word(const struct op_row_table *table, uint64_t *state)
{
	uint64_t number = hostile_random(state), row = table->nr_rows ? number % table->nr_rows : 0;

	switch (number >> 60) {
	case 0:
		return number;
	case 1:
		return UINT64_MAX - number % 32;
	case 2:
	case 3:
	case 4:
	case 5:
		return HOSTILE_STACK + number % (8 * HOSTILE_WORDS + 16) - 8;
	default:
		return HOSTILE_CODE + (table->nr_rows ? le32toh(table->starts[row]) : 0) + (number >> 32) % 4;
	}
}

static inline enum opd_walk_code hostile_find(void *arg, uint64_t address, struct opd_walk_frame *frame,
					      const struct op_row_table **ret_table)
{
	if (address < HOSTILE_CODE || address - HOSTILE_CODE > UINT32_MAX)
		return OPD_CODE_NONE;
	frame->cookie = 1;
	frame->position = address - HOSTILE_CODE;
	*ret_table = arg;
	return OPD_CODE_TABLE;
}

/* Ends the program when a walk breaks a promise. */
static inline void hostile_walks(struct op_row_table *table, uint64_t seed)
{
	static struct opd_walk_frame frames[OPD_WALK_FRAMES_MAX];
	uint64_t stack[HOSTILE_WORDS], state = seed | 1;

	for (unsigned int i = 0; i < HOSTILE_WALKS; i++) {
		struct opd_walk_start start = {
			.machine = le16toh(table->header->machine) == EM_AARCH64 ? EM_AARCH64 : EM_X86_64,
			.stack = (const uint8_t *)stack,
			.nr_stack_bytes = sizeof(stack) - hostile_random(&state) % 24,
		};
		enum opd_walk_end end = OPD_NR_WALK_ENDS;
		size_t nr;

		for (unsigned int word = 0; word < HOSTILE_WORDS; word++)
			stack[word] = hostile_word(table, &state);
		for (unsigned int reg = 0; reg < OP_UNWIND_REGISTERS; reg++)
			start.registers[reg] = hostile_word(table, &state);
		start.registers[start.machine == EM_X86_64 ? 7 : 31] = HOSTILE_STACK;
		start.known = hostile_random(&state) | 1u << 7 | 1ull << 31;
		start.pc = hostile_word(table, &state);
		nr = opd_walk(&start, hostile_find, table, frames, &end);
		if (nr > OPD_WALK_FRAMES_MAX || end >= OPD_NR_WALK_ENDS || (end == OPD_WALK_too_deep && nr != OPD_WALK_FRAMES_MAX))
			abort();
		for (size_t frame = 0; frame < nr; frame++)
			(void)op_row_table_function(table, frames[frame].position);
	}
}

#endif
