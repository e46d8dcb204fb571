/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Samples of a perf.data file with stacks: fields in between, other byte orders and machines, and
 * records that lie. What the translator makes of them can be decoded and fits into a ring. In the
 * session every sample has one end.
 */
#include "tests/unit/cmocka_all.h"
#include "tests/unit/pair.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libop/perf/stack_record.h"
#include "libop/session/directory.h"
#include "libop/unwind/row_table.h"
#include "pipeline/capture/cpu_rings.h"
#include "tests/unit/test_box.h"
#include "tools/opimport/event_match.h"
#include "tools/opimport/import.h"

#define PID         4711u
#define IMAGE       0x400000u
#define IMAGE_BYTES 0x10000u
#define CODE        (IMAGE + 0x100)
#define STACK       0x7fff0000u
#define KERNEL_IP   0xffffffff81000100u
#define X86_MASK    0xff0fffu /* as perf asks for it */
#define X86_SP      7
#define X86_IP      8
#define X86_FP      6
#define ARM_MASK    0x1ffffffffu
#define FIXED_BITS  (PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME)
#define STACK_BITS  (FIXED_BITS | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER)
#define MAX_WORDS   8190u
#define COPY_WORDS  8u

struct tested {
	char dir[32];
	int fd;
	struct op_perf_events events;
	struct op_perf_features features;
	struct op_perf_translator translator;
	struct opi_import *import;
	uint64_t time_ns;
	size_t nr_words;
	struct {
		struct perf_event_header header;
		uint64_t body[MAX_WORDS];
	} raw;
};

static int recording_setup(void **state)
{
	struct tested *tested = calloc(1, sizeof(*tested));

	tested->fd = box_make(tested->dir) ? -1 : op_session_open(tested->dir);
	tested->translator = (struct op_perf_translator){ .events = &tested->events, .features = &tested->features };
	*state = tested;
	return tested->fd < 0;
}

static int recording_teardown(void **state)
{
	struct tested *tested = *state;
	int err;

	opi_import_close(tested->import);
	op_perf_events_free(&tested->events);
	op_perf_features_free(&tested->features);
	close(tested->fd);
	err = box_remove(tested->dir);
	free(tested);
	return err;
}

static void add_event(struct tested *tested, struct perf_event_attr attr)
{
	uint32_t event;

	attr.sample_period = 100000;
	assert_int_equal(op_perf_events_add(&tested->events, &attr, &event), 0);
}

static const struct perf_event_attr of_dwarf = {
	.type = PERF_TYPE_SOFTWARE,
	.sample_type = STACK_BITS,
	.exclude_callchain_user = 1,
	.sample_regs_user = X86_MASK,
	.sample_stack_user = 8 * COPY_WORDS,
};
static const struct perf_event_attr of_fp = { .type = PERF_TYPE_SOFTWARE, .sample_type = FIXED_BITS | PERF_SAMPLE_CALLCHAIN };

/* ---- records, as the kernel writes them ---- */

static void put(struct tested *tested, uint64_t word)
{
	assert_true(tested->nr_words < MAX_WORDS);
	tested->raw.body[tested->nr_words++] = tested->translator.swapped ? __builtin_bswap64(word) : word;
}

static void put_sample(struct tested *tested, uint64_t ip)
{
	uint64_t who = PAIR(PID, PID);

	tested->nr_words = 0;
	put(tested, ip);
	put(tested, who);
	put(tested, ++tested->time_ns);
}

static void put_chain(struct tested *tested, const uint64_t *words, size_t nr)
{
	put(tested, nr);
	for (size_t i = 0; i < nr; i++)
		put(tested, words[i]);
}

static void put_registers(struct tested *tested, uint64_t abi, uint64_t mask, uint64_t ip)
{
	put(tested, abi);
	for (; abi && mask; mask &= mask - 1) {
		int i = __builtin_ctzll(mask);

		put(tested, i == X86_IP ? ip : i == X86_SP || i == X86_FP ? STACK : (uint64_t)i);
	}
}

/* A frame pointer that points to itself, and a caller in the code. */
static void put_copy(struct tested *tested, uint64_t nr_asked, uint64_t nr_copied)
{
	put(tested, nr_asked);
	for (size_t i = 0; i < COPY_WORDS; i++)
		put(tested, i % 2 ? CODE + 16 : STACK);
	put(tested, nr_copied);
}

static int translate(struct tested *tested, uint16_t misc, struct op_perf_record *ret_record)
{
	tested->raw.header = (struct perf_event_header){ .type = PERF_RECORD_SAMPLE,
							 .misc = misc,
							 .size = (uint16_t)(8 + 8 * tested->nr_words) };
	return op_perf_translate(&tested->translator, &tested->raw.header, (const uint8_t *)tested->raw.body, ret_record);
}

/* Translates and decodes as the pipeline does. The result of the translation. */
static int decode(struct tested *tested, uint16_t machine, struct op_stack_record *ret_record)
{
	const struct opd_capture capture = { .callgraph = OP_CHAIN_DEPTH_MAX };
	struct op_perf_record record;
	struct op_event event;
	int err = translate(tested, PERF_RECORD_MISC_USER, &record);

	opi_event_name(&tested->events.events[0], &event);
	assert_true(event.has_stack);
	assert_int_equal(record.kind, OP_PERF_RING);
	assert_in_range(record.header->size, OP_SAMPLE_RECORD_BYTES, OP_PERF_RING_BYTES_MAX);
	assert_int_equal(op_stack_record(record.header, OP_CPUMODE_USER,
					 &(struct op_stack_layout){ .sample_type = opd_capture_sample_type(&capture, &event),
								    .registers = event.stack_registers,
								    .machine = machine },
					 ret_record),
			 0);
	return err;
}

/* ---- one record ---- */

static void a_copy_and_its_registers(void **state)
{
	struct op_stack_record stack;

	add_event(*state, of_dwarf);
	put_sample(*state, CODE);
	put_chain(*state, NULL, 0);
	put_registers(*state, PERF_SAMPLE_REGS_ABI_64, X86_MASK, CODE);
	put_copy(*state, 8 * COPY_WORDS, 24);
	assert_int_equal(decode(*state, EM_X86_64, &stack), 0);
	assert_true(stack.has_registers && stack.is_user);
	assert_int_equal(stack.pc, CODE);
	assert_int_equal(stack.registers[X86_SP], STACK);
	assert_int_equal(stack.registers[15], 23); /* r15 */
	assert_int_equal(stack.nr_stack_bytes, 24);
	assert_memory_equal(stack.stack, &(uint64_t){ STACK }, 8);
}

static void fields_in_between(void **state)
{
	struct perf_event_attr attr = of_dwarf;
	struct op_stack_record stack;

	attr.sample_type |= PERF_SAMPLE_READ | PERF_SAMPLE_RAW | PERF_SAMPLE_BRANCH_STACK;
	attr.sample_type |= PERF_SAMPLE_WEIGHT | PERF_SAMPLE_DATA_SRC;
	attr.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_ID | PERF_FORMAT_TOTAL_TIME_ENABLED;
	attr.branch_sample_type = 1u << 17 | 1u << 19; /* HW_INDEX, COUNTERS */
	add_event(*state, attr);
	put_sample(*state, CODE);
	for (size_t i = 0; i < 6; i++) /* a group of 2: its number, a time, values with their ids */
		put(*state, i ? i : 2);
	put_chain(*state, (const uint64_t[]){ PERF_CONTEXT_KERNEL, KERNEL_IP }, 2);
	put(*state, PAIR(12, 1)); /* raw data: 12 bytes */
	put(*state, 0);
	put(*state, 2); /* branches: where the newest is, two, and a counter for each */
	for (size_t i = 0; i < 1 + 2 * 3 + 2; i++)
		put(*state, i);
	put_registers(*state, PERF_SAMPLE_REGS_ABI_64, X86_MASK, CODE);
	put_copy(*state, 8 * COPY_WORDS, 8 * COPY_WORDS);
	put(*state, 1);
	put(*state, 2);
	assert_int_equal(decode(*state, EM_X86_64, &stack), 0);
	assert_int_equal(stack.chain.nr_words, 2);
	assert_int_equal(stack.pc, CODE);
	assert_int_equal(stack.nr_stack_bytes, 8 * COPY_WORDS);
}

/* Only the stack is missing; the sample counts as ever. */
static void expect_missing(struct tested *tested)
{
	struct op_stack_record stack;

	assert_int_equal(decode(tested, EM_X86_64, &stack), -EBADMSG);
	assert_true(stack.is_user && !stack.has_registers);
	assert_int_equal(stack.chain.nr_words, 0);
	assert_int_equal(stack.nr_stack_bytes, 0);
}

static void begin_lie(struct tested *tested, bool has_chain)
{
	put_sample(tested, CODE);
	if (has_chain)
		put_chain(tested, NULL, 0);
}

static void lengths_that_lie(void **state)
{
	add_event(*state, of_dwarf);
	begin_lie(*state, false);
	put(*state, UINT64_MAX);
	expect_missing(*state);
	begin_lie(*state, false);
	put(*state, 1000);
	put_registers(*state, PERF_SAMPLE_REGS_ABI_64, X86_MASK, CODE);
	expect_missing(*state);
	for (uint64_t nr_asked = 72; nr_asked; nr_asked = nr_asked == 72 ? UINT64_MAX - 7 : nr_asked == UINT64_MAX - 7 ? 9 : 0) {
		begin_lie(*state, true);
		put_registers(*state, PERF_SAMPLE_REGS_ABI_64, X86_MASK, CODE);
		put_copy(*state, nr_asked, 64);
		expect_missing(*state);
	}
	begin_lie(*state, true);
	put_registers(*state, PERF_SAMPLE_REGS_ABI_64, X86_MASK, CODE);
	put_copy(*state, 8 * COPY_WORDS, 8 * COPY_WORDS + 1);
	expect_missing(*state);
	begin_lie(*state, true);
	put_registers(*state, PERF_SAMPLE_REGS_ABI_64, 0xff, CODE); /* fewer than the event has */
	expect_missing(*state);
	begin_lie(*state, true); /* nothing more */
	expect_missing(*state);
}

static void branches_that_lie(void **state)
{
	struct perf_event_attr attr = of_dwarf;

	attr.sample_type |= PERF_SAMPLE_BRANCH_STACK;
	add_event(*state, attr);
	for (size_t i = 0; i < 2; i++) {
		begin_lie(*state, true);
		put(*state, i ? UINT64_MAX / 3 + 1 : 4000); /* times 3 words: 2, which follow */
		put(*state, 1);
		put(*state, 2);
		put_registers(*state, PERF_SAMPLE_REGS_ABI_64, X86_MASK, CODE);
		put_copy(*state, 8 * COPY_WORDS, 8 * COPY_WORDS);
		expect_missing(*state);
	}
}

/* All bits of the mask, and the longest record: the copy gets what room is left. */
static void the_longest_record(void **state)
{
	struct perf_event_attr attr = of_dwarf;
	struct tested *tested = *state;
	struct op_stack_record stack;
	size_t nr_left;

	attr.sample_regs_user = UINT64_MAX;
	add_event(tested, attr);
	begin_lie(tested, true);
	put_registers(tested, PERF_SAMPLE_REGS_ABI_64, UINT64_MAX, CODE);
	nr_left = MAX_WORDS - tested->nr_words - 2;
	put(tested, 8 * nr_left);
	for (size_t i = 0; i < nr_left; i++)
		put(tested, i);
	put(tested, 8 * nr_left);
	assert_int_equal(decode(tested, EM_X86_64, &stack), 0);
	assert_int_equal(stack.pc, CODE);
	assert_in_range(stack.nr_stack_bytes, 8 * nr_left - 64, 8 * nr_left);
	assert_memory_equal(stack.stack + stack.nr_stack_bytes - 8, &(uint64_t){ stack.nr_stack_bytes / 8 - 1 }, 8);
}

static void the_longest_chain(void **state)
{
	struct op_stack_record stack;

	add_event(*state, of_fp);
	put_sample(*state, CODE);
	put(*state, 8000);
	for (size_t i = 0; i < 8000; i++)
		put(*state, i ? CODE : PERF_CONTEXT_USER);
	assert_int_equal(decode(*state, EM_X86_64, &stack), 0);
	assert_int_equal(stack.chain.nr_words, OP_PERF_STACK_CHAIN_WORDS - 1);
	assert_false(stack.is_user); /* the chain has all that there is */
}

static void another_byte_order(void **state)
{
	struct tested *tested = *state;
	struct op_stack_record stack;

	add_event(tested, of_dwarf);
	tested->translator.swapped = true;
	put_sample(tested, CODE);
	put_chain(tested, (const uint64_t[]){ PERF_CONTEXT_KERNEL, KERNEL_IP }, 2);
	put_registers(tested, PERF_SAMPLE_REGS_ABI_64, X86_MASK, CODE);
	put_copy(tested, 8 * COPY_WORDS, 8 * COPY_WORDS);
	assert_int_equal(decode(tested, EM_X86_64, &stack), 0);
	assert_true(stack.is_user && !stack.has_registers);
	assert_int_equal(stack.chain.nr_words, 2);
	assert_int_equal(stack.chain.words[1], KERNEL_IP);
	assert_int_equal(stack.nr_stack_bytes, 0);
}

static void a_program_of_32_bits(void **state)
{
	struct op_stack_record stack;

	add_event(*state, of_dwarf);
	begin_lie(*state, true);
	put_registers(*state, PERF_SAMPLE_REGS_ABI_32, X86_MASK, CODE);
	put_copy(*state, 8 * COPY_WORDS, 8 * COPY_WORDS);
	assert_int_equal(decode(*state, EM_X86_64, &stack), 0);
	assert_true(stack.is_user && !stack.has_registers);
}

static void registers_of_arm64(void **state)
{
	struct perf_event_attr attr = of_dwarf;
	struct op_stack_record stack;

	attr.sample_regs_user = ARM_MASK;
	add_event(*state, attr);
	begin_lie(*state, true);
	put_registers(*state, PERF_SAMPLE_REGS_ABI_64, ARM_MASK, CODE);
	put_copy(*state, 8 * COPY_WORDS, 8 * COPY_WORDS);
	assert_int_equal(decode(*state, EM_AARCH64, &stack), 0);
	assert_int_equal(stack.pc, 32);
	assert_int_equal(stack.registers[30], 30);
}

/* perf record --call-graph lbr: the user part is in the branches. */
static void a_chain_without_user_code(void **state)
{
	struct perf_event_attr attr = of_fp;
	struct op_stack_record stack;

	attr.exclude_callchain_user = 1;
	add_event(*state, attr);
	begin_lie(*state, true);
	assert_int_equal(decode(*state, EM_X86_64, &stack), 0);
	assert_true(stack.is_user && !stack.has_registers);
}

static void registers_of_ibs_have_no_stack(void **state)
{
	static const struct {
		uint32_t type;
		bool has_raw, has_stack;
	} rows[] = {
		{ PERF_TYPE_HARDWARE, true, false }, { PERF_TYPE_RAW, true, false },	   { PERF_TYPE_MAX + 5, true, false },
		{ PERF_TYPE_HARDWARE, false, true }, { PERF_TYPE_MAX + 5, false, true }, { PERF_TYPE_TRACEPOINT, true, true },
	};

	for (size_t i = 0; i < op_array_size(rows); i++) {
		struct perf_event_attr attr = of_dwarf;

		attr.type = rows[i].type;
		attr.sample_type |= rows[i].has_raw ? PERF_SAMPLE_RAW : 0;
		assert_int_equal(op_perf_has_stack(&(struct op_perf_event){ .attr = attr }), rows[i].has_stack);
	}
	(void)state;
}

/* ---- a session ---- */

static void begin(struct tested *tested, const struct perf_event_attr *attr, const char *arch)
{
	const struct opi_import_config config = {
		.features = &tested->features, .session_fd = tested->fd, .separate_lib = true, .max_open = 8, .max_images = 8
	};

	add_event(tested, *attr);
	tested->features.arch = arch ? strdup(arch) : NULL;
	assert_int_equal(opi_import_open(&config, &tested->import), 0);
	tested->nr_words = 0;
	put(tested, PAIR(PID, PID));
	put(tested, IMAGE);
	put(tested, IMAGE_BYTES);
	put(tested, 0);
	put(tested, 0);
	snprintf((char *)&tested->raw.body[4], 16, "/no/such");
	put(tested, 0);
	tested->raw.header = (struct perf_event_header){ .type = PERF_RECORD_MMAP,
							 .misc = PERF_RECORD_MISC_USER,
							 .size = (uint16_t)(8 + 8 * tested->nr_words) };
}

static void take(struct tested *tested)
{
	struct op_perf_record record;

	(void)!op_perf_translate(&tested->translator, &tested->raw.header, (const uint8_t *)tested->raw.body, &record);
	assert_int_equal(opi_import_take(tested->import, &tested->events, &record), 0);
}

static void take_sample(struct tested *tested, uint16_t misc)
{
	tested->raw.header = (struct perf_event_header){ .type = PERF_RECORD_SAMPLE,
							 .misc = misc,
							 .size = (uint16_t)(8 + 8 * tested->nr_words) };
	take(tested);
}

/* All samples are stored, and each has one end. */
static void expect_ends(struct tested *tested, uint64_t nr, const uint64_t ends[OP_NR_STACK_ENDS])
{
	struct op_ledger_event event;

	assert_int_equal(opi_import_finish(tested->import, &tested->events), 0);
	opi_import_ledger(tested->import, 0, &event);
	assert_int_equal(event.received, nr);
	assert_int_equal(event.stored, nr);
	for (size_t i = 0; i < OP_NR_STACK_ENDS; i++)
		assert_int_equal(event.ends[i], ends[i]);
}

static void chain_sample(struct tested *tested, uint16_t misc, uint64_t ip, const uint64_t *words, size_t nr)
{
	put_sample(tested, ip);
	put_chain(tested, words, nr);
	take_sample(tested, misc);
}

static void ends_of_chains(void **state)
{
	struct tested *tested = *state;
	uint64_t deep[OP_PERF_STACK_CHAIN_WORDS + 1] = { PERF_CONTEXT_USER };
	const uint16_t user = PERF_RECORD_MISC_USER, kernel = PERF_RECORD_MISC_KERNEL;

	for (size_t i = 1; i < op_array_size(deep); i++)
		deep[i] = CODE;
	begin(tested, &of_fp, "x86_64");
	take(tested);
	/* no file says that the last frame has no caller */
	chain_sample(tested, user, CODE, (const uint64_t[]){ PERF_CONTEXT_USER, CODE, CODE + 9 }, 3);
	chain_sample(tested, user, CODE, NULL, 0);
	chain_sample(tested, user, CODE, (const uint64_t[]){ PERF_CONTEXT_USER, CODE, 1 }, 3);
	chain_sample(tested, kernel, KERNEL_IP, (const uint64_t[]){ PERF_CONTEXT_KERNEL, KERNEL_IP, KERNEL_IP + 9 }, 3);
	chain_sample(tested, kernel, KERNEL_IP,
		     (const uint64_t[]){ PERF_CONTEXT_KERNEL, KERNEL_IP, PERF_CONTEXT_USER, CODE }, 4);
	chain_sample(tested, user, CODE, deep, 128);
	chain_sample(tested, user, CODE, deep, 127);
	chain_sample(tested, user, CODE, deep, op_array_size(deep));
	/* damaged: the chain is longer than the record */
	put_sample(tested, KERNEL_IP);
	put(tested, 5);
	take_sample(tested, kernel);
	expect_ends(tested, 9,
		    (const uint64_t[OP_NR_STACK_ENDS]){ [OP_STACK_END_no_row] = 5,
							[OP_STACK_END_left_code] = 1,
							[OP_STACK_END_complete] = 1,
							[OP_STACK_END_too_deep] = 2 });
}

/* Without a table the walk follows frame pointers; these go round. */
static void copies_that_go_round(void **state)
{
	struct tested *tested = *state;
	static const uint64_t abis[] = { PERF_SAMPLE_REGS_ABI_64, PERF_SAMPLE_REGS_ABI_32, PERF_SAMPLE_REGS_ABI_NONE, 77 };

	begin(tested, &of_dwarf, "x86_64");
	take(tested);
	for (size_t i = 0; i < op_array_size(abis); i++) {
		put_sample(tested, CODE);
		put_chain(tested, NULL, 0);
		put_registers(tested, abis[i], X86_MASK, CODE);
		put_copy(tested, 8 * COPY_WORDS, 8 * COPY_WORDS);
		take_sample(tested, PERF_RECORD_MISC_USER);
	}
	expect_ends(tested, 4, (const uint64_t[OP_NR_STACK_ENDS]){ [OP_STACK_END_no_row] = 3, [OP_STACK_END_guessed] = 1 });
}

/* A machine that the walk does not know; a kernel thread is complete on any. */
static void another_machine(void **state)
{
	struct tested *tested = *state;

	begin(tested, &of_dwarf, "s390x");
	take(tested);
	for (uint64_t abi = PERF_SAMPLE_REGS_ABI_NONE; abi <= PERF_SAMPLE_REGS_ABI_64; abi += PERF_SAMPLE_REGS_ABI_64) {
		put_sample(tested, KERNEL_IP);
		put_chain(tested, (const uint64_t[]){ PERF_CONTEXT_KERNEL, KERNEL_IP }, 2);
		put_registers(tested, abi, X86_MASK, CODE);
		put_copy(tested, 8 * COPY_WORDS, 8 * COPY_WORDS);
		take_sample(tested, PERF_RECORD_MISC_KERNEL);
	}
	expect_ends(tested, 2, (const uint64_t[OP_NR_STACK_ENDS]){ [OP_STACK_END_no_row] = 1, [OP_STACK_END_complete] = 1 });
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_copy_and_its_registers, recording_setup, recording_teardown),
		cmocka_unit_test_setup_teardown(fields_in_between, recording_setup, recording_teardown),
		cmocka_unit_test_setup_teardown(lengths_that_lie, recording_setup, recording_teardown),
		cmocka_unit_test_setup_teardown(branches_that_lie, recording_setup, recording_teardown),
		cmocka_unit_test_setup_teardown(the_longest_record, recording_setup, recording_teardown),
		cmocka_unit_test_setup_teardown(the_longest_chain, recording_setup, recording_teardown),
		cmocka_unit_test_setup_teardown(another_byte_order, recording_setup, recording_teardown),
		cmocka_unit_test_setup_teardown(a_program_of_32_bits, recording_setup, recording_teardown),
		cmocka_unit_test_setup_teardown(registers_of_arm64, recording_setup, recording_teardown),
		cmocka_unit_test_setup_teardown(a_chain_without_user_code, recording_setup, recording_teardown),
		cmocka_unit_test(registers_of_ibs_have_no_stack),
		cmocka_unit_test_setup_teardown(ends_of_chains, recording_setup, recording_teardown),
		cmocka_unit_test_setup_teardown(copies_that_go_round, recording_setup, recording_teardown),
		cmocka_unit_test_setup_teardown(another_machine, recording_setup, recording_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
