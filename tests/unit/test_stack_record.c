/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Registers, stacks and chains of samples from bytes laid out by hand, and every lie refused. */
#include "tests/unit/cmocka_all.h"
#include "tests/unit/pair.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libop/perf/stack_record.h"

#define STACK_BYTES 64u
#define ALL (OP_SAMPLE_TYPE | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER)

enum { DWARF_RBX = 3, DWARF_RBP = 6, DWARF_RSP = 7, DWARF_R15 = 15, ARM_FP = 29, ARM_LR = 30, ARM_SP = 31 };

static struct {
	struct perf_event_header header;
	uint64_t words[128];
} record;
static size_t nr_words;

static void put(uint64_t word)
{
	record.words[nr_words++] = word;
	record.header.size = (uint16_t)(sizeof(record.header) + nr_words * 8);
}

static void begin(uint32_t type)
{
	memset(&record, 0xee, sizeof(record));
	record.header = (struct perf_event_header){ .type = type };
	nr_words = 0;
	put(17);
	put(0x401000);
	put(PAIR(4, 5));
	put(1300);
}

static void put_chain(void)
{
	put(3);
	put(PERF_CONTEXT_KERNEL);
	put(0xffffffff81000010);
	put(0xffffffff81000020);
}

/* The n-th register of the mask has the value 100 + n. */
static void put_registers(uint64_t mask)
{
	put(PERF_SAMPLE_REGS_ABI_64);
	for (int i = 0; i < __builtin_popcountll(mask); i++)
		put(100 + (uint64_t)i);
}

static void put_stack(uint64_t nr_written)
{
	put(STACK_BYTES);
	for (uint64_t i = 0; i < STACK_BYTES / 8; i++)
		put(0x500 + i);
	put(nr_written);
}

static const struct perf_event_header *cut(uint16_t size)
{
	/* A copy of exactly so many bytes, so that ASan sees a read behind it. */
	static struct perf_event_header *copy;

	free(copy);
	copy = malloc(size);
	memcpy(copy, &record, size);
	copy->size = size;
	return copy;
}

static int decode(const struct op_stack_layout *layout, struct op_stack_record *ret)
{
	return op_stack_record(cut(record.header.size), OP_CPUMODE_KERNEL, layout, ret);
}

static void expect_shorter_refused(const struct op_stack_layout *layout)
{
	struct op_stack_record r;

	for (uint16_t size = sizeof(record.header); size < record.header.size; size = (uint16_t)(size + 4))
		assert_int_equal(op_stack_record(cut(size), OP_CPUMODE_USER, layout, &r), -EBADMSG);
}

static void all_parts_of_x86(void **state OP_UNUSED)
{
	const struct op_stack_layout layout = {
		.sample_type = ALL, .registers = op_stack_registers(EM_X86_64), .machine = EM_X86_64
	};
	struct op_chain_frame frame;
	struct op_stack_record r;

	assert_int_equal(layout.registers, 0xff01ff);
	begin(PERF_RECORD_SAMPLE);
	put_chain();
	put_registers(layout.registers);
	put_stack(40);
	assert_int_equal(decode(&layout, &r), 0);
	assert_true(r.has_chain && r.has_registers);
	assert_true(op_chain_next(&r.chain, &frame));
	assert_int_equal(frame.ip, 0xffffffff81000010);
	assert_int_equal(frame.mode, OP_CPUMODE_KERNEL);
	/* the kernel's order: ax bx cx dx si di bp sp ip r8 ... r15 */
	assert_int_equal(r.pc, 108);
	assert_int_equal(r.registers[0], 100);
	assert_int_equal(r.registers[DWARF_RBX], 101);
	assert_int_equal(r.registers[1], 103); /* rdx */
	assert_int_equal(r.registers[DWARF_RBP], 106);
	assert_int_equal(r.registers[DWARF_RSP], 107);
	assert_int_equal(r.registers[8], 109);
	assert_int_equal(r.registers[DWARF_R15], 116);
	assert_int_equal(r.known, 0xffff);
	assert_int_equal(r.nr_stack_bytes, 40);
	assert_int_equal(r.stack[0], 0);
	assert_int_equal(r.stack[8], 1);
	assert_int_equal(r.stack[9], 5);
	expect_shorter_refused(&layout);
}

static void all_parts_of_arm64(void **state OP_UNUSED)
{
	const struct op_stack_layout layout = {
		.sample_type = ALL, .registers = op_stack_registers(EM_AARCH64), .machine = EM_AARCH64
	};
	struct op_stack_record r;

	assert_int_equal(layout.registers, 0x1ffffffff);
	begin(PERF_RECORD_SAMPLE);
	put_chain();
	put_registers(layout.registers);
	put_stack(STACK_BYTES);
	assert_int_equal(decode(&layout, &r), 0);
	assert_int_equal(r.registers[0], 100);
	assert_int_equal(r.registers[ARM_FP], 129);
	assert_int_equal(r.registers[ARM_LR], 130);
	assert_int_equal(r.registers[ARM_SP], 131);
	assert_int_equal(r.pc, 132);
	assert_int_equal(r.known, 0xffffffff);
	expect_shorter_refused(&layout);
}

/* perf record asks for other registers than opd, and may have raw bytes and a cgroup. */
static void parts_of_others(void **state OP_UNUSED)
{
	const struct op_stack_layout layout = {
		.sample_type = ALL | PERF_SAMPLE_RAW | PERF_SAMPLE_CGROUP, .registers = 0xff0fff, .machine = EM_X86_64
	};
	struct op_stack_record r;

	begin(PERF_RECORD_SAMPLE);
	put_chain();
	put(PAIR(12, 7)); /* 12 bytes of raw data behind their length */
	put(7);
	put_registers(layout.registers);
	put_stack(8);
	put(4711);
	assert_int_equal(decode(&layout, &r), 0);
	assert_int_equal(r.pc, 108);
	assert_int_equal(r.registers[8], 112); /* behind flags, cs and ss */
	assert_int_equal(r.nr_stack_bytes, 8);
	record.words[4] = 1ull << 61;
	assert_int_equal(decode(&layout, &r), -EBADMSG);
	record.words[4] = 3;
	record.words[8] = 0xffffffff;
	assert_int_equal(decode(&layout, &r), -EBADMSG);
}

static void what_is_not_there(void **state OP_UNUSED)
{
	struct op_stack_layout layout = { .sample_type = ALL, .registers = 0xff01ff, .machine = EM_X86_64 };
	struct op_stack_record r;

	/* a thread of the kernel */
	begin(PERF_RECORD_SAMPLE);
	put_chain();
	put(PERF_SAMPLE_REGS_ABI_NONE);
	put(0);
	assert_int_equal(decode(&layout, &r), 0);
	assert_true(r.has_chain);
	assert_false(r.has_registers);
	assert_int_equal(r.nr_stack_bytes, 0);
	/* a 32-bit program: its stack has other words */
	begin(PERF_RECORD_SAMPLE);
	put_chain();
	put_registers(layout.registers);
	record.words[8] = PERF_SAMPLE_REGS_ABI_32;
	put_stack(8);
	assert_int_equal(decode(&layout, &r), 0);
	assert_false(r.has_registers);
	/* no register tells where the program was */
	layout.registers = 0xff;
	begin(PERF_RECORD_SAMPLE);
	put_chain();
	put_registers(layout.registers);
	put_stack(8);
	assert_int_equal(decode(&layout, &r), 0);
	assert_false(r.has_registers);
	/* only words of OP_SAMPLE_TYPE */
	layout.sample_type = OP_SAMPLE_TYPE;
	begin(PERF_RECORD_SAMPLE);
	assert_int_equal(decode(&layout, &r), 0);
	assert_false(r.has_chain || r.has_registers || r.stack);
	/* a part that opd does not read would shift the others */
	layout.sample_type = ALL | PERF_SAMPLE_ADDR;
	assert_int_equal(decode(&layout, &r), -EBADMSG);
}

static void stacks_that_lie(void **state OP_UNUSED)
{
	const struct op_stack_layout layout = { .sample_type = ALL, .registers = 0xff01ff, .machine = EM_X86_64 };
	static const uint64_t lies[] = { STACK_BYTES + 8, UINT64_MAX, UINT64_MAX - 7, 1ull << 63 };
	struct op_stack_record r;
	size_t at;

	begin(PERF_RECORD_SAMPLE);
	put_chain();
	put_registers(layout.registers);
	at = nr_words;
	put_stack(STACK_BYTES);
	for (size_t i = 0; i < op_array_size(lies); i++) {
		record.words[at] = lies[i];
		assert_int_equal(decode(&layout, &r), -EBADMSG);
	}
	record.words[at] = STACK_BYTES;
	assert_int_equal(decode(&layout, &r), 0);
	for (size_t i = 0; i < op_array_size(lies); i++) {
		record.words[nr_words - 1] = lies[i];
		assert_int_equal(decode(&layout, &r), -EBADMSG);
	}
}

static void put_who(void)
{
	put(PAIR(4, 5));
	put(1400);
	put(17);
}

static void deferred(void **state OP_UNUSED)
{
	struct op_deferred_record r;
	struct op_chain_frame frame;

	begin(OP_RECORD_CALLCHAIN_DEFERRED);
	nr_words = 0;
	put(0xc00c1e);
	put(3);
	put(PERF_CONTEXT_USER);
	put(0x401000);
	put(0x402000);
	put_who();
	assert_int_equal(op_deferred_record(cut(record.header.size), &r), 0);
	assert_int_equal(r.cookie, 0xc00c1e);
	assert_int_equal(r.who.tid, 5);
	assert_int_equal(r.who.time_ns, 1400);
	assert_true(op_chain_next(&r.chain, &frame));
	assert_int_equal(frame.ip, 0x401000);
	assert_true(op_chain_next(&r.chain, &frame));
	assert_false(op_chain_next(&r.chain, &frame));
	for (uint16_t size = sizeof(record.header); size < record.header.size; size = (uint16_t)(size + 8))
		assert_int_equal(op_deferred_record(cut(size), &r), -EBADMSG);
	record.words[1] = 4; /* the trailer is no frame */
	assert_int_equal(op_deferred_record(cut(record.header.size), &r), -EBADMSG);
}

/* The word behind the marker is a cookie, not an address. */
static void marker_of_deferred(void **state OP_UNUSED)
{
	const struct op_stack_layout layout = { .sample_type = OP_SAMPLE_TYPE | PERF_SAMPLE_CALLCHAIN };
	struct op_chain_frame frame;
	struct op_stack_record r;

	begin(PERF_RECORD_SAMPLE);
	put(4);
	put(PERF_CONTEXT_KERNEL);
	put(0xffffffff81000010);
	put(OP_CONTEXT_USER_DEFERRED);
	put(0xc00c1e);
	assert_int_equal(decode(&layout, &r), 0);
	assert_true(op_chain_next(&r.chain, &frame));
	assert_false(op_chain_next(&r.chain, &frame));
	assert_int_equal(r.chain.deferred, 0xc00c1e);
	record.words[4] = 3; /* the cookie is missing */
	assert_int_equal(decode(&layout, &r), 0);
	assert_true(op_chain_next(&r.chain, &frame));
	assert_false(op_chain_next(&r.chain, &frame));
	assert_int_equal(r.chain.deferred, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_parts_of_x86),
		cmocka_unit_test(all_parts_of_arm64),
		cmocka_unit_test(parts_of_others),
		cmocka_unit_test(what_is_not_there),
		cmocka_unit_test(stacks_that_lie),
		cmocka_unit_test(deferred),
		cmocka_unit_test(marker_of_deferred),
	};

	return cmocka_run_group_tests_name("stack_record", tests, NULL, NULL);
}
