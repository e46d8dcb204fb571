/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Frames of Node in a copied stack: which are of JavaScript, which of V8's own code, and when a
 * looker is asked. The looker reads memory that is made by hand.
 */
#include "tests/unit/cmocka_all.h"

#include <errno.h>
#include <stdlib.h>

#include "libop/unwind/row_table.h"
#include "libop/unwind/runtime_words.h"
#include "pipeline/files/lookers.h"
#include "pipeline/runtimes/node.h"
#include "tests/unit/node_memory.h"
#include "tests/unit/still_clock.h"

#define IMAGE       7u
#define REGION      8u
#define STACK_START 0x7fff0000ull
#define STACK_WORDS 64u
#define FP          (STACK_START + 40 * 8)
#define CALLER_FP   (STACK_START + 56 * 8)

static struct node_memory memory;
static struct opd_node_layout layout;
static struct opd_runtime_host host;
static struct op_row_table table;
static struct op_row_word words[OP_NR_RUNTIME_WORDS];
static uint64_t stack[STACK_WORDS], context;
static bool has_table;
static int look_error;
static size_t nr_asked, nr_wanted_asked;
static void *process;
static struct opd_runtime_answer answer;
static enum opd_runtime_fault fault;

int __wrap_opd_node_ask(struct opd_lookers *lookers, const struct opd_node_process *about, const struct opd_node_layout *asked,
			const struct opd_node_wanted *wanted, size_t nr_wanted, struct op_text *ret_answer);
uint64_t __wrap_opd_look_owner(const struct opd_look_about *about);

int __wrap_opd_node_ask(struct opd_lookers *lookers OP_UNUSED, const struct opd_node_process *about,
			const struct opd_node_layout *asked, const struct opd_node_wanted *wanted, size_t nr_wanted,
			struct op_text *ret_answer)
{
	assert_int_equal(about->pid, 11);
	assert_memory_equal(asked, &layout, sizeof(layout));
	nr_asked++;
	nr_wanted_asked = nr_wanted;
	if (!look_error)
		opd_node_read(asked, wanted, nr_wanted, node_read, &memory, ret_answer);
	return look_error;
}

uint64_t __wrap_opd_look_owner(const struct opd_look_about *about OP_UNUSED)
{
	return 1;
}

static void set_words(void)
{
	static const size_t offsets[] = {
#define X(name, symbol) offsetof(struct opd_node_layout, name),
		OP_NODE_WORDS(X)
#undef X
	};

	for (size_t i = 0; i < op_array_size(offsets); i++) {
		int32_t value;

		memcpy(&value, (const char *)&layout + offsets[i], sizeof(value));
		words[i] = (struct op_row_word){ .word = OP_WORD_node_major + (uint32_t)i, .value = (uint32_t)value };
	}
	table = (struct op_row_table){ .words = words, .nr_words = op_array_size(offsets) };
}

static int setup(void **state OP_UNUSED)
{
	memset(&memory, 0, sizeof(memory));
	memset(stack, 0, sizeof(stack));
	memory.nr_words = 16384;
	node_layout(&layout, 11);
	set_words();
	has_table = true;
	look_error = 0;
	nr_asked = 0;
	context = node_object(&memory, 205, 4);
	host = (struct opd_runtime_host){ .names = opd_runtime_names_new() };
	process = opd_runtime_node.begin(
		&host, &(const struct opd_runtime_process){ .pid = 11, .image_address = 0x400000, .image_cookie = IMAGE });
	return host.names && process ? 0 : -1;
}

static int teardown(void **state OP_UNUSED)
{
	opd_runtime_node.end(process);
	opd_runtime_names_free(host.names);
	return 0;
}

static bool find_table(void *arg OP_UNUSED, uint64_t cookie, uint64_t address, const struct op_row_table **ret_table)
{
	assert_int_equal(cookie, IMAGE);
	assert_int_equal(address, 0x400000);
	*ret_table = &table;
	return has_table;
}

static uint64_t *stack_at(uint64_t address)
{
	return &stack[(address - STACK_START) / 8];
}

/* A frame of the interpreter, or with bytecode 0 of compiled code. */
static void set_frame(uint64_t fp, uint64_t function, uint64_t bytecode, int32_t offset)
{
	*stack_at(fp) = fp == FP ? CALLER_FP : 0;
	*stack_at(fp - 8) = context;
	*stack_at(fp - 16) = function;
	*stack_at(fp - 32) = bytecode;
	*stack_at(fp - 40) = node_smi(offset);
}

static enum opd_runtime_how ask(uint64_t address, uint64_t cookie, bool is_exact, bool may_wait)
{
	const struct opd_runtime_frame frame = {
		.pid = 11,
		.cookie = cookie,
		.is_region = cookie == REGION,
		.address = address,
		.pc = address,
		.is_exact = is_exact,
		.may_wait = may_wait,
		.sp = STACK_START,
		.fp = FP,
		.has_sp = true,
		.has_fp = true,
		.stack = (const uint8_t *)stack,
		.stack_start = STACK_START,
		.nr_stack_bytes = sizeof(stack),
		.find_table = find_table,
	};

	answer.nr_functions = 0;
	fault = OPD_RUNTIME_NO_FAULT;
	return opd_runtime_node.ask(process, &frame, &answer, &fault);
}

static void expect_function(const char *text, uint32_t line)
{
	assert_int_equal(answer.nr_functions, 1);
	assert_string_equal(opd_runtime_names_get(host.names, answer.functions[0].name), text);
	assert_int_equal(answer.functions[0].line, line);
}

#define TEXT_F                                                                                                                     \
	"node\x1f/srv/app.js\x1f"                                                                                                  \
	"f\x1f"                                                                                                                    \
	"3"
#define TEXT_BAD                                                                                                                   \
	"node\x1f\x1f[node: not readable]\x1f"                                                                                     \
	"0"

static struct node_function make(const char *name)
{
	uint64_t script = node_script(&memory, &layout, "/srv/app.js", "// first\nlet x;\nfunction f() {}\n");

	return node_function(&memory, &layout, node_scope(&memory, &layout, node_string(&memory, name), 0, 26), script);
}

static void a_frame_has_its_function(void **state OP_UNUSED)
{
	struct node_function made = make("f");

	set_frame(FP, made.function, made.bytecode, 53);
	assert_int_equal(ask(0x1000, IMAGE, false, true), OPD_RUNTIME_PASS);
	expect_function(TEXT_F, 3);
	assert_int_equal(fault, OPD_RUNTIME_NO_FAULT);
	/* it is kept, also when the collector moves the function */
	*stack_at(FP - 16) = context;
	assert_int_equal(ask(0x1000, IMAGE, false, true), OPD_RUNTIME_PASS);
	expect_function(TEXT_F, 3);
	assert_int_equal(nr_asked, 1);
}

static void the_interpreter_says_the_line(void **state OP_UNUSED)
{
	struct node_function made = make("f");
	uint64_t positions = node_object(&memory, 190, 8);

	/* offset 0 is in line 3, 5 in line 2 */
	memcpy(node_at(&memory, positions, 16), (const uint8_t[]){ 0, 0x6c, 10, 0x37 }, 4);
	*node_at(&memory, positions, 8) = node_smi(4);
	*node_at(&memory, made.bytecode, 32) = positions;
	set_frame(FP, made.function, made.bytecode, layout.bytecode_data - 1 + 4);
	assert_int_equal(ask(0x1000, IMAGE, false, true), OPD_RUNTIME_PASS);
	expect_function(TEXT_F, 3);
	set_frame(FP, made.function, made.bytecode, layout.bytecode_data - 1 + 6);
	assert_int_equal(ask(0x1000, IMAGE, false, true), OPD_RUNTIME_PASS);
	expect_function(TEXT_F, 2);
}

static void own_code_of_v8_is_passed(void **state OP_UNUSED)
{
	set_frame(FP, 0, 0, 0);
	*stack_at(FP - 8) = 2 * 17;
	assert_int_equal(ask(0x1000, IMAGE, false, true), OPD_RUNTIME_PASS);
	assert_int_equal(answer.nr_functions, 0);
	/* no type of a frame */
	*stack_at(FP - 8) = 2 * 1000;
	assert_int_equal(ask(0x1000, IMAGE, false, true), OPD_RUNTIME_GUESS);
	*stack_at(FP - 8) = 0;
	assert_int_equal(ask(0x1000, IMAGE, false, true), OPD_RUNTIME_GUESS);
	assert_int_equal(nr_asked, 0);
}

/* The leaf has set its frame pointer only. Its caller is a frame of V8's. */
static void a_leaf_that_makes_its_frame_is_passed(void **state OP_UNUSED)
{
	set_frame(CALLER_FP, context, 0, 0);
	*stack_at(FP) = CALLER_FP;
	assert_int_equal(ask(0x1000, IMAGE, true, true), OPD_RUNTIME_PASS);
	assert_int_equal(ask(0x1000, IMAGE, false, true), OPD_RUNTIME_GUESS);
	*stack_at(CALLER_FP - 8) = 12345678;
	assert_int_equal(ask(0x1000, IMAGE, true, true), OPD_RUNTIME_GUESS);
	*stack_at(FP) = FP - 16;
	assert_int_equal(ask(0x1000, IMAGE, true, true), OPD_RUNTIME_GUESS);
}

/* Code of regular expressions: it is V8's, and of no function. */
static void code_of_no_function_is_passed(void **state OP_UNUSED)
{
	uint64_t code = node_object(&memory, layout.type_code, 10), stream;

	*node_at(&memory, code, 56) = 512;
	memory.nr_words += (8 - (memory.nr_words + 3 + 2) % 8) % 8;
	stream = node_object(&memory, 252, 100);
	*node_at(&memory, stream, 8) = code;
	*stack_at(FP - 8) = 12345678;
	assert_int_equal(ask(stream + 15 + 40, REGION, true, true), OPD_RUNTIME_PASS);
	assert_int_equal(answer.nr_functions, 0);
	assert_int_equal(ask(stream + 15 + 80, REGION, true, true), OPD_RUNTIME_PASS);
	assert_int_equal(nr_asked, 1);
	assert_int_equal(ask(stream + 15 + 512, REGION, true, true), OPD_RUNTIME_GUESS);
}

static void code_of_others_is_guessed(void **state OP_UNUSED)
{
	struct node_function made = make("f");

	set_frame(FP, made.function, made.bytecode, 53);
	assert_int_equal(ask(0x1000, IMAGE + 100, false, true), OPD_RUNTIME_GUESS);
	assert_int_equal(nr_asked, 0);
}

static void it_waits_for_the_table(void **state OP_UNUSED)
{
	struct node_function made = make("f");

	has_table = false;
	set_frame(FP, made.function, made.bytecode, 53);
	assert_int_equal(ask(0x1000, IMAGE, false, true), OPD_RUNTIME_WAIT);
	assert_int_equal(ask(0x1000, IMAGE, false, false), OPD_RUNTIME_GUESS);
	has_table = true;
	assert_int_equal(ask(0x1000, IMAGE, false, true), OPD_RUNTIME_PASS);
	expect_function(TEXT_F, 3);
}

static void a_missing_word_refuses(void **state OP_UNUSED)
{
	struct node_function made = make("f");

	table.nr_words--;
	set_frame(FP, made.function, made.bytecode, 53);
	assert_int_equal(ask(0x1000, IMAGE, false, true), OPD_RUNTIME_GUESS);
	table.nr_words++;
	assert_int_equal(ask(0x1000, IMAGE, false, true), OPD_RUNTIME_GUESS);
	assert_int_equal(nr_asked, 0);
	/* each sample is counted, and the process once */
	assert_int_equal(fault, OPD_RUNTIME_FAULT);
	assert_int_equal(host.nr_refused[OP_RUNTIME_node], 1);
}

/* A frame whose function was moved away has no name, until another one has the same bytecode. */
static void a_moved_function_waits_for_another(void **state OP_UNUSED)
{
	struct node_function made = make("f");

	set_frame(FP, context, made.bytecode, 53);
	assert_int_equal(ask(0x1000, IMAGE, false, true), OPD_RUNTIME_WAIT);
	assert_int_equal(ask(0x1000, IMAGE, false, false), OPD_RUNTIME_PASS);
	expect_function(TEXT_BAD, 0);
	assert_int_equal(fault, OPD_RUNTIME_MOVED);
	assert_int_equal(nr_asked, 1); /* not at once again */
	set_frame(FP, made.function, made.bytecode, 53);
	assert_int_equal(ask(0x1000, IMAGE, false, true), OPD_RUNTIME_PASS);
	expect_function(TEXT_F, 3);
}

static void what_is_used_is_checked(void **state OP_UNUSED)
{
	struct node_function made = make("f"), other = make("g");

	set_frame(FP, made.function, made.bytecode, 53);
	assert_int_equal(ask(0x1000, IMAGE, false, true), OPD_RUNTIME_PASS);
	passed_ns += 2 * (uint64_t)OP_NS_PER_S;
	assert_int_equal(ask(0x1000, IMAGE, false, true), OPD_RUNTIME_PASS);
	assert_int_equal(nr_asked, 2);
	expect_function(TEXT_F, 3);
	/* another function has got the bytecode's place */
	*node_at(&memory, made.shared, 8) = context;
	*node_at(&memory, other.shared, 8) = made.bytecode;
	*stack_at(FP - 16) = other.function;
	passed_ns += 2 * (uint64_t)OP_NS_PER_S;
	assert_int_equal(ask(0x1000, IMAGE, false, true), OPD_RUNTIME_PASS);
	expect_function("node\x1f/srv/app.js\x1f"
			"g\x1f"
			"3",
			3);
}

/* Nobody says whether a function is still the same: after ten seconds it has no name. */
static void an_old_answer_is_none(void **state OP_UNUSED)
{
	struct node_function made = make("f");

	set_frame(FP, made.function, made.bytecode, 53);
	assert_int_equal(ask(0x1000, IMAGE, false, true), OPD_RUNTIME_PASS);
	look_error = -EBUSY;
	passed_ns += 5 * (uint64_t)OP_NS_PER_S;
	assert_int_equal(ask(0x1000, IMAGE, false, false), OPD_RUNTIME_PASS);
	expect_function(TEXT_F, 3);
	passed_ns += 6 * (uint64_t)OP_NS_PER_S;
	assert_int_equal(ask(0x1000, IMAGE, false, true), OPD_RUNTIME_WAIT);
	assert_true(host.is_out);
	assert_int_equal(ask(0x1000, IMAGE, false, false), OPD_RUNTIME_PASS);
	expect_function(TEXT_BAD, 0);
	assert_int_equal(fault, OPD_RUNTIME_NAMELESS);
}

/* Without budget the stacks of this owner wait; those of others are asked about all the same. */
static void a_budget_stops_its_owner_only(void **state OP_UNUSED)
{
	struct node_function made = make("f");

	set_frame(FP, made.function, made.bytecode, 53);
	assert_true(opd_runtime_may_spend(&host, 1, OP_RUNTIME_node, op_now_ns()));
	opd_runtime_spend(&host, 1, OP_RUNTIME_node, OP_NS_PER_S, 0);
	assert_int_equal(ask(0x1000, IMAGE, false, true), OPD_RUNTIME_WAIT);
	assert_int_equal(nr_asked, 0);
	assert_true(host.is_spent);
	assert_false(host.is_out);
	assert_true(opd_runtime_may_spend(&host, 2, OP_RUNTIME_node, op_now_ns()));
	passed_ns += 60 * (uint64_t)OP_NS_PER_S;
	assert_int_equal(ask(0x1000, IMAGE, false, true), OPD_RUNTIME_PASS);
	expect_function(TEXT_F, 3);
}

/* Compiled code; a leaf in V8's own code without a frame belongs to the code that called it. */
static void compiled_code_is_named_by_its_place(void **state OP_UNUSED)
{
	struct node_function made = make("f");
	uint64_t code = node_object(&memory, layout.type_code, 10), deopt = node_object(&memory, layout.type_array, 12), stream;
	uint64_t start;

	*node_at(&memory, deopt, 16 + 6 * 8) = made.shared;
	*node_at(&memory, code, 16) = deopt;
	*node_at(&memory, code, 56) = 512;
	memory.nr_words += (8 - (memory.nr_words + 3 + 2) % 8) % 8;
	stream = node_object(&memory, 252, 100);
	*node_at(&memory, stream, 8) = code;
	start = stream + 15;
	set_frame(FP, context, 0, 0);
	*stack_at(STACK_START + 8) = start + 77;
	assert_int_equal(ask(0x1000, IMAGE, true, true), OPD_RUNTIME_PASS);
	expect_function(TEXT_F, 3);
	nr_asked = 0;
	for (uint64_t at = 0; at < 512; at += 100) {
		assert_int_equal(ask(start + at, REGION, false, true), OPD_RUNTIME_PASS);
		expect_function(TEXT_F, 3);
	}
	assert_int_equal(nr_asked, 0);
	/* behind it is nothing that is known */
	assert_int_equal(ask(start + 512, REGION, false, false), OPD_RUNTIME_PASS);
	expect_function(TEXT_BAD, 0);
}

static void a_process_that_is_gone_has_no_names(void **state OP_UNUSED)
{
	struct node_function made = make("f");

	look_error = -ENOENT;
	set_frame(FP, made.function, made.bytecode, 53);
	assert_int_equal(ask(0x1000, IMAGE, false, true), OPD_RUNTIME_PASS);
	expect_function(TEXT_BAD, 0);
	assert_int_equal(fault, OPD_RUNTIME_FAULT);
}

/* One question asks for all functions that were used. */
static void one_question_checks_all(void **state OP_UNUSED)
{
	struct node_function made[20];

	for (size_t i = 0; i < op_array_size(made); i++)
		made[i] = make("f");
	for (size_t i = 0; i < op_array_size(made); i++) {
		set_frame(FP, made[i].function, made[i].bytecode, 53);
		assert_int_equal(ask(0x1000, IMAGE, false, true), OPD_RUNTIME_PASS);
	}
	passed_ns += 2 * (uint64_t)OP_NS_PER_S;
	nr_asked = 0;
	for (size_t i = 0; i < op_array_size(made); i++) {
		set_frame(FP, made[i].function, made[i].bytecode, 53);
		assert_int_equal(ask(0x1000, IMAGE, false, true), OPD_RUNTIME_PASS);
		expect_function(TEXT_F, 3);
	}
	assert_int_equal(nr_asked, 1);
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_frame_has_its_function),
		TEST(the_interpreter_says_the_line),
		TEST(own_code_of_v8_is_passed),
		TEST(a_leaf_that_makes_its_frame_is_passed),
		TEST(code_of_no_function_is_passed),
		TEST(code_of_others_is_guessed),
		TEST(it_waits_for_the_table),
		TEST(a_missing_word_refuses),
		TEST(a_budget_stops_its_owner_only),
		TEST(a_moved_function_waits_for_another),
		TEST(what_is_used_is_checked),
		TEST(an_old_answer_is_none),
		TEST(compiled_code_is_named_by_its_place),
		TEST(a_process_that_is_gone_has_no_names),
		TEST(one_question_checks_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
