// SPDX-License-Identifier: GPL-3.0-or-later
/* A runtime is asked about frames in code without rows: its functions become frames. */
#include "pipeline/runtimes/runtimes.h"
#include "tests/unit/stack_cpu.h"

#define LINE 41u

static char no_lookers[1]; /* stands for the lookers, and is not looked at */
static enum opd_runtime_how how;
static size_t nr_functions, nr_asked;
static bool saw_last_chance;

enum opd_runtime_how __wrap_opd_runtimes_ask(struct opd_runtimes *runtimes, const struct opd_resolver *resolver,
					     const struct opd_runtime_frame *frame, struct opd_runtime_answer *ret_answer);

/* The leaf is of the runtime: `nr_functions` at once; INNER called it. */
enum opd_runtime_how __wrap_opd_runtimes_ask(struct opd_runtimes *runtimes, const struct opd_resolver *resolver OP_UNUSED,
					     const struct opd_runtime_frame *frame, struct opd_runtime_answer *ret_answer)
{
	nr_asked++;
	saw_last_chance |= !frame->may_wait;
	assert_int_equal(frame->pid, PID);
	assert_int_equal(frame->time_ns, sampled_ns);
	ret_answer->nr_functions = nr_functions;
	for (size_t i = 0; i < nr_functions; i++) {
		ret_answer->functions[i].name = opd_runtime_names_add(opd_runtimes_names(runtimes), OP_RUNTIME_java, "A.java",
								      i ? "outer" : "inner", (uint32_t)i);
		ret_answer->functions[i].line = LINE + (uint32_t)i;
	}
	ret_answer->sp = frame->sp + 8;
	ret_answer->pc = START;
	return how;
}

static int setup(void **state)
{
	how = OPD_RUNTIME_END;
	nr_functions = 2;
	nr_asked = 0;
	saw_last_chance = false;
	if (stacks_setup(state))
		return -1;
	code = OPD_CODE_NO_TABLE;
	return opd_runtimes_new((struct opd_lookers *)no_lookers, OP_RUNTIMES_ALL, &pipeline.stacks->runtimes);
}

/* The nodes of runtime frames with their lines, the one that is read first. */
static void expect_lines(const uint32_t *lines, size_t nr)
{
	struct op_stack_tree tree;
	size_t nr_found = 0;

	assert_int_equal(op_stacks_read(pipeline.count.session_fd, "samples/current/stacks", &tree), 0);
	for (uint32_t i = 1; i < tree.nr_nodes; i++) {
		if (tree.nodes[i].kind != OP_STACK_RUNTIME_FRAME)
			continue;
		assert_true(nr_found < nr);
		assert_int_equal(tree.nodes[i].value >> 32, lines[nr_found++]);
	}
	assert_int_equal(nr_found, nr);
	op_stack_tree_free(&tree);
}

static void a_frame_becomes_its_functions(void **state OP_UNUSED)
{
	static const uint32_t lines[] = { LINE + 1, LINE };

	send_leaf();
	drain();
	expect_booked(1, 1, OP_STACK_END_complete, 1);
	assert_int_equal(nr_asked, 1);
	assert_int_equal(pipeline.stacks->walk.stack.nr_frames, 2);
	assert_true(pipeline.stacks->walk.stack.frames[0].is_inlined);
	assert_false(pipeline.stacks->walk.stack.frames[1].is_inlined);
	assert_int_equal(pipeline.stacks->walk.stack.frames[1].native_offset, LEAF - APP + 0x1000);
	expect_lines(lines, 2);
}

static void a_frame_without_functions_stays_native(void **state OP_UNUSED)
{
	nr_functions = 0;
	send_leaf();
	drain();
	expect_stack("1040", 1);
	assert_int_equal(pipeline.stacks->walk.stack.frames[0].runtime_name, 0);
}

static void a_stack_waits_for_a_runtime(void **state OP_UNUSED)
{
	how = OPD_RUNTIME_WAIT;
	send_leaf();
	drain();
	expect_booked(0, 0, OP_STACK_END_complete, 0);
	opd_stack_records_turn(&pipeline);
	expect_booked(0, 0, OP_STACK_END_complete, 0);
	assert_false(saw_last_chance);
	passed_ns += OPD_STACK_RECORDS_WAIT_NS;
	opd_stack_records_turn(&pipeline);
	assert_true(saw_last_chance);
	expect_booked(1, 1, OP_STACK_END_no_table_yet, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_frame_becomes_its_functions, setup, stacks_teardown),
		cmocka_unit_test_setup_teardown(a_frame_without_functions_stays_native, setup, stacks_teardown),
		cmocka_unit_test_setup_teardown(a_stack_waits_for_a_runtime, setup, stacks_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
