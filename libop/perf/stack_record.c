/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/perf/stack_record.h"

#include <elf.h>
#include <errno.h>

#define WORD_BYTES sizeof(uint64_t)
#define ABI_64     2u /* PERF_SAMPLE_REGS_ABI_64 */
#define NO_DWARF   0xffu
#define IS_PC      0xfeu

/* What stands before the parts, and which parts can be read. Others would shift them. */
#define KNOWN_TYPES \
	(OP_SAMPLE_TYPE_CGROUP | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_RAW | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER)

/* The DWARF number of each register of the kernel's numbering. */
static const uint8_t x86_registers[] = {
	0, 3, 2, 1, 4, 5, 6, 7, IS_PC, /* ax bx cx dx si di bp sp ip */
	NO_DWARF, NO_DWARF, NO_DWARF, NO_DWARF, NO_DWARF, NO_DWARF, NO_DWARF, /* flags, segments */
	8, 9, 10, 11, 12, 13, 14, 15,
};

/* x0 to x29, lr and sp have the same numbers. */
#define ARM64_PC 32u

static const uint8_t *numbers(uint16_t machine, size_t *ret_nr)
{
	static const uint8_t arm64_registers[] = {
		0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20,
		21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, IS_PC,
	};

	static_assert(sizeof(arm64_registers) == ARM64_PC + 1, "enum perf_event_arm_regs");
	*ret_nr = machine == EM_X86_64 ? sizeof(x86_registers) : machine == EM_AARCH64 ? sizeof(arm64_registers) : 0;
	return machine == EM_X86_64 ? x86_registers : arm64_registers;
}

uint16_t op_stack_machine(void)
{
#if defined(__x86_64__)
	return EM_X86_64;
#elif defined(__aarch64__)
	return EM_AARCH64;
#else
	return EM_NONE;
#endif
}

uint64_t op_stack_registers(uint16_t machine)
{
	size_t nr;
	const uint8_t *dwarf = numbers(machine, &nr);
	uint64_t mask = 0;

	for (size_t i = 0; i < nr; i++)
		if (dwarf[i] != NO_DWARF)
			mask |= 1ull << i;
	return mask;
}

/* What is left of a record. */
struct rest {
	const uint8_t *at;
	size_t nr_bytes;
};

static bool take_word(struct rest *rest, uint64_t *ret_word)
{
	if (rest->nr_bytes < WORD_BYTES)
		return false;
	memcpy(ret_word, rest->at, WORD_BYTES);
	rest->at += WORD_BYTES;
	rest->nr_bytes -= WORD_BYTES;
	return true;
}

static const uint8_t *take_bytes(struct rest *rest, uint64_t nr_bytes)
{
	const uint8_t *bytes = rest->at;

	if (nr_bytes > rest->nr_bytes)
		return NULL;
	rest->at += nr_bytes;
	rest->nr_bytes -= (size_t)nr_bytes;
	return bytes;
}

static bool take_chain(struct rest *rest, enum op_cpumode mode, struct op_chain *ret_chain)
{
	uint64_t nr_words;
	const void *words;

	if (!take_word(rest, &nr_words) || nr_words > rest->nr_bytes / WORD_BYTES)
		return false;
	words = take_bytes(rest, nr_words * WORD_BYTES);
	*ret_chain = (struct op_chain){ .words = words, .nr_words = (size_t)nr_words, .mode = mode };
	return true;
}

/* 32 bits of length, the bytes, and padding to a whole number of words. */
static bool take_raw(struct rest *rest, struct op_stack_record *record)
{
	const uint8_t *bytes;
	uint32_t nr_bytes;

	if (rest->nr_bytes < sizeof(nr_bytes))
		return false;
	memcpy(&nr_bytes, rest->at, sizeof(nr_bytes));
	bytes = take_bytes(rest, (sizeof(nr_bytes) + (uint64_t)nr_bytes + WORD_BYTES - 1) / WORD_BYTES * WORD_BYTES);
	if (!bytes)
		return false;
	record->raw = bytes + sizeof(nr_bytes);
	record->nr_raw_bytes = nr_bytes;
	return true;
}

static bool take_registers(struct rest *rest, const struct op_stack_layout *layout, struct op_stack_record *record)
{
	uint64_t abi, value;
	size_t nr;
	const uint8_t *dwarf = numbers(layout->machine, &nr);
	bool has_pc = false;

	if (!take_word(rest, &abi))
		return false;
	if (!abi) /* a thread of the kernel */
		return true;
	record->is_user = true;
	for (uint64_t left = layout->registers; left; left &= left - 1) {
		unsigned int i = (unsigned int)__builtin_ctzll(left);

		if (!take_word(rest, &value))
			return false;
		if (i >= nr || dwarf[i] == NO_DWARF)
			continue;
		if (dwarf[i] == IS_PC) {
			record->pc = value;
			has_pc = true;
			continue;
		}
		record->registers[dwarf[i]] = value;
		record->known |= 1ull << dwarf[i];
	}
	record->has_registers = abi == ABI_64 && has_pc;
	return true;
}

/* The length that was asked for, so many bytes, and how many of them the kernel wrote. */
static bool take_stack(struct rest *rest, struct op_stack_record *record)
{
	uint64_t nr_asked, nr_written;
	const uint8_t *stack;

	if (!take_word(rest, &nr_asked))
		return false;
	if (!nr_asked)
		return true;
	stack = take_bytes(rest, nr_asked);
	if (!stack || !take_word(rest, &nr_written) || nr_written > nr_asked)
		return false;
	record->stack = stack;
	record->nr_stack_bytes = (size_t)nr_written;
	return true;
}

int op_stack_record(const struct perf_event_header *header, enum op_cpumode mode, const struct op_stack_layout *layout,
		    struct op_stack_record *ret_record)
{
	uint64_t type = layout->sample_type;
	struct op_stack_record record = { 0 };
	struct rest rest;

	if (header->size < OP_SAMPLE_RECORD_BYTES || type & ~(uint64_t)KNOWN_TYPES)
		return -EBADMSG;
	rest = (struct rest){ .at = (const uint8_t *)header + OP_SAMPLE_RECORD_BYTES,
			      .nr_bytes = header->size - OP_SAMPLE_RECORD_BYTES };
	record.has_chain = type & PERF_SAMPLE_CALLCHAIN;
	if ((record.has_chain && !take_chain(&rest, mode, &record.chain)) ||
	    (type & PERF_SAMPLE_RAW && !take_raw(&rest, &record)) ||
	    (type & PERF_SAMPLE_REGS_USER && !take_registers(&rest, layout, &record)) ||
	    (type & PERF_SAMPLE_STACK_USER && !take_stack(&rest, &record)))
		return -EBADMSG;
	*ret_record = record;
	return 0;
}

int op_deferred_record(const struct perf_event_header *header, struct op_deferred_record *ret_record)
{
	struct op_deferred_record record = { 0 };
	struct rest rest = { .at = (const uint8_t *)(header + 1), .nr_bytes = header->size - sizeof(*header) };

	if (op_record_id(header, &record.who) < 0)
		return -EBADMSG;
	rest.nr_bytes -= OP_RECORD_ID_BYTES;
	if (!take_word(&rest, &record.cookie) || !take_chain(&rest, OP_CPUMODE_USER, &record.chain))
		return -EBADMSG;
	*ret_record = record;
	return 0;
}
