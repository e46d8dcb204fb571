/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Stack samples from a ring in memory to the store: their frames, their ends and their place in the
 * ledger, and how they wait for tables and for deferred chains. The tables are made up here.
 */
#include "tests/unit/cmocka_all.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>

#include "libop/base/text.h"
#include "libop/odb/read.h"
#include "libop/stacks/read.h"
#include "pipeline/count/image_filter.h"
#include "pipeline/drive/stacks.h"
#include "pipeline/resolve/sideband.h"
#include "tests/unit/pipeline_cpu.h"
#include "tests/unit/sideband_records.h"

#define PID      4000000u /* above any pid_max, so /proc does not have it */
#define EVENT_ID 17
#define APP      0x400000u
#define LIB      0x7f0000000000u
#define KERNEL   0xffffffff81000000u
#define RSP      7
#define STACK    0x7ffd00000000u

/* Code of the application: a leaf, a function that pushes a word, and the start of the program. */
#define LEAF  (APP + 0x40)
#define INNER (APP + 0x140)
#define START (APP + 0x240)

static struct opd_pipeline pipeline;
static struct opd_cpu cpu;
static struct opd_event event;
static struct op_event kind;
static char dir[BOX_PATH_BYTES];

/* ---- tables of this test ---- */

static const struct op_row_rule rules[] = {
	{ 0 },
	{ OP_CFA_REG, RSP, OP_VALUE_AT_CFA, 0, OP_VALUE_SAME, 0, 0, 0, 8, 0, -8, 0, 0 },
	{ OP_CFA_REG, RSP, OP_VALUE_AT_CFA, 0, OP_VALUE_SAME, 0, 0, 0, 16, 0, -8, 0, 0 },
	{ OP_CFA_REG, RSP, OP_VALUE_UNDEFINED, 0, OP_VALUE_SAME, 0, 0, 0, 8, 0, 0, 0, 0 },
};
static const uint32_t starts[] = { 0x1000, 0x1100, 0x1200 };
static const uint16_t rules_of[] = { 1, 2, 3 };
static const struct op_row_function functions[] = { { 0x1020, 0x60, OP_ROW_NO_NAME } };
static const struct op_row_table table = {
	.starts = starts, .rules_of = rules_of, .rules = rules, .functions = functions, .nr_rows = 3, .nr_functions = 1,
	.slices = { [OP_ROW_SLICES] = 3 }, /* all rows are in the last one */
};
static char no_tables[1]; /* stands for the tables, and is not looked at */
static enum opd_walk_code code;
static struct opd_table_source asked;
static uint64_t passed_ns;
static uint64_t sampled_ns; /* the time stamp of the next samples */

enum opd_walk_code __wrap_opd_tables_find(struct opd_tables *tables, uint64_t cookie, const struct opd_table_source *source,
					  const struct op_row_table **ret_table);
bool __wrap_opd_tables_turn(struct opd_tables *tables);
bool __wrap_opd_tables_is_busy(const struct opd_tables *tables);
int __real_clock_gettime(clockid_t clock, struct timespec *time);
int __wrap_clock_gettime(clockid_t clock, struct timespec *time);

enum opd_walk_code __wrap_opd_tables_find(struct opd_tables *tables OP_UNUSED, uint64_t cookie OP_UNUSED,
					  const struct opd_table_source *source, const struct op_row_table **ret_table)
{
	if (source->pid)
		asked = *source;
	if (code == OPD_CODE_TABLE)
		*ret_table = &table;
	return code;
}

bool __wrap_opd_tables_turn(struct opd_tables *tables OP_UNUSED)
{
	return code != OPD_CODE_PENDING;
}

bool __wrap_opd_tables_is_busy(const struct opd_tables *tables OP_UNUSED)
{
	return false;
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *time)
{
	int err = __real_clock_gettime(clock, time);

	time->tv_sec += (time_t)(passed_ns / OP_NS_PER_S);
	return err;
}

/* ---- samples ---- */

static int stacks_setup(void **state OP_UNUSED)
{
	kind = (struct op_event){ .name = "STACKS", .count = 10101010, .role = OP_EVENT_STACKS, .stack_bytes = 64, .rate_hz = 99 };
	event = (struct opd_event){ .id = EVENT_ID };
	code = OPD_CODE_TABLE;
	passed_ns = 0;
	sampled_ns = 20;
	asked = (struct opd_table_source){ 0 };
	if (pipeline_cpu_begin(&pipeline, &cpu, &event, &kind, dir))
		return -1;
	pipeline.capture.max_stack = 127;
	pipeline.count.nr_events = 1;
	pipeline_kernel_text(&pipeline, KERNEL);
	pipeline.resolver.processes.keeps_names = true;
	if (opd_stacks_new((struct opd_tables *)no_tables, &pipeline.stacks) < 0)
		return -1;
	pipeline.stacks->machine = EM_X86_64;
	pipeline.stacks->registers = op_stack_registers(EM_X86_64);
	sideband_exec(&cpu.sideband, PID, 10);
	sideband_mmap(&cpu.sideband, PID, APP, 0x2000, 0x1000, "/no/app", 11);
	return 0;
}

static int stacks_teardown(void **state OP_UNUSED)
{
	opd_stacks_free(pipeline.stacks);
	return pipeline_cpu_end(&pipeline, &cpu, dir);
}

static void drain(void)
{
	struct opd_sideband_loss loss;

	assert_int_equal(opd_sideband_drain(&pipeline.capture, &pipeline.resolver, UINT64_MAX, &loss), 0);
	opd_drain_ring(&pipeline, &cpu, &cpu.pair.rings[0]);
}

struct made {
	uint64_t words[60];
	size_t nr;
};

static void put(struct made *made, uint64_t word)
{
	assert_true(made->nr < op_array_size(made->words));
	made->words[made->nr++] = word;
}

static void put_sample(struct made *made, uint64_t ip)
{
	made->nr = 0;
	put(made, EVENT_ID);
	put(made, ip);
	put(made, PAIR(PID, PID));
	put(made, sampled_ns);
}

/* Registers, and the stack of a leaf that INNER called and START called before that. */
static void put_registers(struct made *made, uint64_t pc)
{
	uint64_t mask = op_stack_registers(EM_X86_64);

	put(made, PERF_SAMPLE_REGS_ABI_64);
	for (; mask; mask &= mask - 1) {
		int i = __builtin_ctzll(mask);

		put(made, i == 8 ? pc : i == 7 ? STACK : 0);
	}
}

static void put_stack(struct made *made, uint64_t pc)
{
	put_registers(made, pc);
	put(made, 64);
	put(made, INNER);
	put(made, 0);
	put(made, START);
	for (int i = 0; i < 5; i++)
		put(made, 0);
	put(made, 24);
}

static void send(const struct made *made, uint16_t misc)
{
	struct op_ring *ring = &opd_cpu_pair_of(&cpu, &kind)->rings[0];

	assert_true(memory_ring_record(ring, PERF_RECORD_SAMPLE, misc, made->words, made->nr));
}

static void send_leaf(void)
{
	struct made made;

	put_sample(&made, LEAF);
	put(&made, 0); /* no kernel frames */
	put_stack(&made, LEAF);
	send(&made, PERF_RECORD_MISC_USER);
}

static void expect_booked(uint64_t received, uint64_t stored, enum op_stack_end end, uint64_t nr)
{
	assert_int_equal(event.received, received);
	assert_int_equal(event.stored, stored);
	assert_int_equal(event.ends[end], nr);
}

/* The one stack of the store as text: the values of its frames, root first, and its end. */
static void expect_stack(const char *expected, uint64_t count)
{
	struct op_stack_tree tree;
	struct op_text text = { 0 };
	uint32_t path[64], nr = 0, leaf = 0;

	assert_int_equal(op_stacks_read(pipeline.count.session_fd, "samples/current/stacks", &tree), 0);
	for (uint32_t i = 1; i < tree.nr_nodes; i++)
		if (tree.nodes[i].count) {
			assert_int_equal(leaf, 0);
			leaf = i;
		}
	assert_int_not_equal(leaf, 0);
	assert_int_equal(tree.nodes[leaf].count, count);
	for (uint32_t i = leaf; i; i = tree.nodes[i].parent)
		path[nr++] = i;
	while (nr--) {
		const struct op_stack_node *node = &tree.nodes[path[nr]];

		if (node->kind != OP_STACK_FRAME && node->kind != OP_STACK_KERNEL_FRAME && node->kind != OP_STACK_END)
			continue;
		op_text_printf(&text, "%s%s%llx", text.length ? " " : "",
			       node->kind == OP_STACK_FRAME ? "" : node->kind == OP_STACK_END ? "end:" : "k:",
			       (unsigned long long)node->value);
	}
	op_stack_tree_free(&tree);
	assert_string_equal(text.data, expected);
	op_text_free(&text);
}

static void a_whole_stack(void **state OP_UNUSED)
{
	send_leaf();
	send_leaf();
	drain();
	expect_booked(2, 2, OP_STACK_END_complete, 2);
	/* callers where they go on, the leaf where the sample was */
	expect_stack("1240 1140 1040", 2);
}

static void kernel_frames_above_those_of_the_program(void **state OP_UNUSED)
{
	struct made made;

	put_sample(&made, KERNEL + 0x100);
	put(&made, 3);
	put(&made, PERF_CONTEXT_KERNEL);
	put(&made, KERNEL + 0x100);
	put(&made, KERNEL + 0x200);
	put_stack(&made, LEAF);
	send(&made, PERF_RECORD_MISC_KERNEL);
	drain();
	expect_booked(1, 1, OP_STACK_END_complete, 1);
	/* LEAF was interrupted: its instruction goes on behind the first byte */
	expect_stack("1240 1140 1041 k:200 k:100", 1);
}

static void send_in_kernel(uint64_t caller, uint64_t nr_copied)
{
	struct made made;

	put_sample(&made, KERNEL + 0x100);
	put(&made, 3);
	put(&made, PERF_CONTEXT_KERNEL);
	put(&made, KERNEL + 0x100);
	put(&made, caller);
	put_stack(&made, LEAF);
	made.words[made.nr - 1] = nr_copied;
	send(&made, PERF_RECORD_MISC_KERNEL);
}

/* A return address behind the last byte of such a function is in the function. */
static void set_memory_ends(void)
{
	static const struct opd_memory_end ends[] = { { KERNEL + 0x200, KERNEL + 0x300, true },
						      { KERNEL + 0x300, KERNEL + 0x400, false } };

	memcpy(pipeline.resolver.kernel.memory_ends, ends, sizeof(ends));
	pipeline.resolver.kernel.nr_memory_ends = op_array_size(ends);
}

/* What was copied is of the new program, and the registers are of the old one. */
static void execve_has_no_user_part(void **state OP_UNUSED)
{
	set_memory_ends();
	send_in_kernel(KERNEL + 0x300, 24);
	send_in_kernel(KERNEL + 0x300, 0);
	drain();
	expect_booked(2, 2, OP_STACK_END_complete, 2);
	expect_stack("k:300 k:100", 2);
}

static void a_process_that_ends_has_a_user_part_while_it_has_memory(void **state OP_UNUSED)
{
	set_memory_ends();
	send_in_kernel(KERNEL + 0x400, 24);
	drain();
	expect_booked(1, 1, OP_STACK_END_complete, 1);
	expect_stack("1240 1140 1041 k:400 k:100", 1);
}

static void a_process_whose_memory_is_gone_is_complete(void **state OP_UNUSED)
{
	set_memory_ends();
	send_in_kernel(KERNEL + 0x301, 0);
	drain();
	expect_booked(1, 1, OP_STACK_END_complete, 1);
	expect_stack("k:301 k:100", 1);
}

static void a_copy_that_failed_elsewhere_is_cut(void **state OP_UNUSED)
{
	set_memory_ends();
	send_in_kernel(KERNEL + 0x401, 0);
	drain();
	expect_booked(1, 1, OP_STACK_END_cut, 1);
	expect_stack("end:1 1041 k:401 k:100", 1);
}

static void threads_of_the_kernel_are_complete(void **state OP_UNUSED)
{
	struct made made;

	put_sample(&made, KERNEL + 0x100);
	put(&made, 3);
	put(&made, PERF_CONTEXT_KERNEL);
	put(&made, KERNEL + 0x100);
	put(&made, KERNEL + 0x200);
	put(&made, PERF_SAMPLE_REGS_ABI_NONE);
	put(&made, 0);
	send(&made, PERF_RECORD_MISC_KERNEL);
	drain();
	expect_booked(1, 1, OP_STACK_END_complete, 1);
	expect_stack("k:200 k:100", 1);
}

/* An idle CPU has no application, by which the filter could want it. */
static void an_idle_cpu_is_filtered(void **state OP_UNUSED)
{
	struct opd_image_filter *filter = opd_image_filter_new("/no/app");
	struct made made;

	assert_non_null(filter);
	pipeline.count.filter = filter;
	put_sample(&made, KERNEL + 0x100);
	made.words[2] = PAIR(0, 0);
	put(&made, 2);
	put(&made, PERF_CONTEXT_KERNEL);
	put(&made, KERNEL + 0x100);
	put(&made, PERF_SAMPLE_REGS_ABI_NONE);
	put(&made, 0);
	send(&made, PERF_RECORD_MISC_KERNEL);
	send_leaf();
	drain();
	assert_int_equal(event.filtered, 1);
	expect_booked(2, 1, OP_STACK_END_complete, 1);
	pipeline.count.filter = NULL;
	opd_image_filter_free(filter);
}

/* The filter is asked before the walk: nothing waits for the table of an unwanted image. */
static void a_filtered_stack_is_not_walked(void **state OP_UNUSED)
{
	struct opd_image_filter *filter = opd_image_filter_new("/no/such/image");

	assert_non_null(filter);
	pipeline.count.filter = filter;
	send_leaf();
	send_leaf();
	drain();
	assert_int_equal(event.received, 2);
	assert_int_equal(event.filtered, 2);
	assert_int_equal(event.stored, 0);
	assert_int_equal(pipeline.stacks->counts.nr_walks, 0);
	pipeline.count.filter = NULL;
	opd_image_filter_free(filter);
}

static void an_end_is_kept_apart(void **state OP_UNUSED)
{
	struct made made;

	put_sample(&made, LEAF);
	put(&made, 0);
	put_stack(&made, LEAF);
	made.words[made.nr - 1] = 16; /* the kernel could copy two words only */
	send(&made, PERF_RECORD_MISC_USER);
	drain();
	expect_booked(1, 1, OP_STACK_END_cut, 1);
	expect_stack("end:1 1140 1040", 1);
	assert_int_equal(pipeline.stacks->stops[0].nr, 1);
	assert_int_equal(pipeline.stacks->stops[0].end, OP_STACK_END_cut);
}

static void the_stack_pointer_leads_nowhere(void **state OP_UNUSED)
{
	struct made made;

	put_sample(&made, LEAF);
	put(&made, 0);
	put_stack(&made, LEAF);
	made.words[made.nr - 1] = 0; /* no byte was copied */
	send(&made, PERF_RECORD_MISC_USER);
	drain();
	expect_booked(1, 1, OP_STACK_END_cut, 1);
	expect_stack("end:1 1040", 1);
}

static void an_address_without_code(void **state OP_UNUSED)
{
	struct made made;

	put_sample(&made, 0x1234);
	put(&made, 0);
	put_stack(&made, 0x1234);
	send(&made, PERF_RECORD_MISC_USER);
	drain();
	expect_booked(1, 1, OP_STACK_END_left_code, 1);
	expect_stack("end:3 0", 1);
	assert_int_equal(event.unattributed, 1);
}

static void what_cannot_be_decoded_is_lost(void **state OP_UNUSED)
{
	struct made made;

	put_sample(&made, LEAF);
	put(&made, 1000);
	put_stack(&made, LEAF);
	send(&made, PERF_RECORD_MISC_USER);
	drain();
	expect_booked(1, 0, OP_STACK_END_complete, 0);
	assert_int_equal(event.lost[OP_LOSS_undecodable], 1);
}

static void send_leaf_of(uint64_t cgroup_id)
{
	struct made made;

	put_sample(&made, LEAF);
	put(&made, 0);
	put_stack(&made, LEAF);
	put(&made, cgroup_id);
	send(&made, PERF_RECORD_MISC_USER);
}

static uint64_t stacks_of_cgroup(const char *path)
{
	struct op_stack_tree tree;
	uint64_t count = 0;

	assert_int_equal(op_stacks_read(pipeline.count.session_fd, "samples/current/stacks", &tree), 0);
	for (uint32_t i = 1; i < tree.nr_nodes; i++)
		for (uint32_t above = i; tree.nodes[i].count && above; above = tree.nodes[above].parent) {
			uint64_t value = tree.nodes[above].value;
			char *text = tree.nodes[above].kind == OP_STACK_CGROUP && value ? op_stack_text(&tree, value) : NULL;

			if (tree.nodes[above].kind == OP_STACK_CGROUP && text && !strcmp(text, path))
				count += tree.nodes[i].count;
			free(text);
		}
	op_stack_tree_free(&tree);
	return count;
}

/* Samples of other events have no cgroup, and nothing else is counted by cgroup. */
static void cgroups_are_kept_apart(void **state OP_UNUSED)
{
	kind.with_cgroup = true;
	assert_int_equal(opd_cgroups_add(&pipeline.resolver.cgroups, 7, "/a.slice"), 0);
	assert_int_equal(opd_cgroups_add(&pipeline.resolver.cgroups, 8, "/a.slice/b"), 0);
	for (uint64_t id = 7; id < 10; id++)
		for (uint64_t i = 7; i <= id; i++)
			send_leaf_of(id);
	drain();
	expect_booked(6, 6, OP_STACK_END_complete, 6);
	assert_int_equal(stacks_of_cgroup("/a.slice"), 1);
	assert_int_equal(stacks_of_cgroup("/a.slice/b"), 2);
	assert_int_equal(stacks_of_cgroup("/(unknown cgroup)"), 3);
	assert_int_equal(pipeline.resolver.cgroups.nr_slots, 0);
}

/* A task that ends has no copy of its stack, and a 0 in the place of its cgroup. */
static void a_task_that_ends_stays_in_its_cgroup(void **state OP_UNUSED)
{
	struct made made;

	kind.with_cgroup = true;
	assert_int_equal(opd_cgroups_add(&pipeline.resolver.cgroups, 7, "/a.slice"), 0);
	send_leaf_of(7);
	put_sample(&made, LEAF);
	put(&made, 0);
	put_registers(&made, LEAF);
	put(&made, 0);
	put(&made, 0);
	send(&made, PERF_RECORD_MISC_KERNEL);
	drain();
	assert_int_equal(stacks_of_cgroup("/a.slice"), 2);
	assert_int_equal(stacks_of_cgroup("/(unknown cgroup)"), 0);
}

/* ---- waiting ---- */

static void samples_wait_for_their_tables(void **state OP_UNUSED)
{
	code = OPD_CODE_PENDING;
	send_leaf();
	send_leaf();
	drain();
	expect_booked(0, 0, OP_STACK_END_complete, 0);
	assert_int_equal(asked.pid, PID);
	assert_int_equal(asked.start, APP);
	assert_int_equal(asked.end, APP + 0x2000);
	assert_int_equal(opd_stack_queue_oldest_ns(&pipeline.stacks->queue), 20);
	opd_stacks_turn(&pipeline);
	expect_booked(0, 0, OP_STACK_END_complete, 0);
	code = OPD_CODE_TABLE;
	opd_stacks_turn(&pipeline);
	expect_booked(2, 2, OP_STACK_END_complete, 2);
	expect_stack("1240 1140 1040", 2);
	assert_int_equal(opd_stack_queue_oldest_ns(&pipeline.stacks->queue), UINT64_MAX);
}

static void they_do_not_wait_for_ever(void **state OP_UNUSED)
{
	code = OPD_CODE_PENDING;
	send_leaf();
	drain();
	passed_ns = 9 * (uint64_t)OP_NS_PER_S;
	opd_stacks_turn(&pipeline);
	expect_booked(0, 0, OP_STACK_END_no_table_yet, 0);
	passed_ns = 11 * (uint64_t)OP_NS_PER_S;
	opd_stacks_turn(&pipeline);
	expect_booked(1, 1, OP_STACK_END_no_table_yet, 1);
	expect_stack("end:4 1040", 1);
}

static void the_end_of_a_session_waits_for_nothing(void **state OP_UNUSED)
{
	code = OPD_CODE_PENDING;
	send_leaf();
	drain();
	opd_stacks_finish(&pipeline, 0);
	expect_booked(1, 1, OP_STACK_END_no_table_yet, 1);
}

static void a_reset_forgets_them(void **state OP_UNUSED)
{
	code = OPD_CODE_PENDING;
	send_leaf();
	drain();
	opd_stacks_reset(pipeline.stacks);
	code = OPD_CODE_TABLE;
	opd_stacks_turn(&pipeline);
	expect_booked(0, 0, OP_STACK_END_complete, 0);
}

/* More samples than the queue has bytes: the last ones are walked with what there is. */
static void waiting_has_a_limit(void **state OP_UNUSED)
{
	const uint64_t nr_samples = OPD_STACK_QUEUE_BYTES / 256;

	code = OPD_CODE_PENDING;
	for (uint64_t i = 0; i < nr_samples; i++) {
		send_leaf();
		drain();
	}
	assert_true(event.received > 0);
	assert_int_equal(event.ends[OP_STACK_END_no_table_yet], event.received);
	assert_int_equal(pipeline.stacks->counts.nr_queue_full, event.received);
	code = OPD_CODE_TABLE;
	opd_stacks_turn(&pipeline);
	assert_int_equal(event.received, nr_samples);
	assert_int_equal(event.ends[OP_STACK_END_complete] + event.ends[OP_STACK_END_no_table_yet], nr_samples);
	assert_int_equal(event.stored, nr_samples);
}

/* The queue goes round: entries of many lengths, some done early, are found in their order. */
static void the_queue_goes_round(void **state OP_UNUSED)
{
	static uint64_t record[1 << 12];
	struct perf_event_header *header = (void *)record;
	struct opd_stack_queue queue = { 0 };
	struct opd_stack_waiting *waiting;
	struct opd_stack_sample taken = { .header = header };
	uint64_t first = 0, next = 0;

	for (int round = 0; round < 20000; round++) {
		header->size = (uint16_t)(16 + round * 520 % 30000 / 8 * 8);
		taken.sample.time_ns = next;
		if (opd_stack_queue_add(&queue, &taken, &waiting) == 0)
			next++;
		else
			assert_true(next - first > 200);
		if (round % 3 == 0 && next - first > 600) {
			waiting = opd_stack_queue_first(&queue);
			assert_int_equal(waiting->taken.sample.time_ns, first);
			assert_int_equal(opd_stack_queue_oldest_ns(&queue), first);
			waiting = opd_stack_queue_next(&queue, waiting);
			assert_int_equal(waiting->taken.sample.time_ns, first + 1);
			opd_stack_queue_done(&queue, waiting);
			opd_stack_queue_done(&queue, opd_stack_queue_first(&queue));
			opd_stack_queue_trim(&queue);
			first += 2;
		}
	}
	assert_true(first > 1000);
	for (waiting = opd_stack_queue_first(&queue); waiting; waiting = opd_stack_queue_next(&queue, waiting)) {
		assert_int_equal(waiting->taken.sample.time_ns, first++);
		opd_stack_queue_done(&queue, waiting);
	}
	assert_int_equal(first, next);
	opd_stack_queue_trim(&queue);
	assert_null(opd_stack_queue_first(&queue));
	assert_int_equal(queue.tail, 0);
	opd_stack_queue_free(&queue);
}

/* ---- chains ---- */

static void send_deferred_chain(uint64_t cookie)
{
	const uint64_t words[] = { cookie, 4, PERF_CONTEXT_USER, LEAF, INNER, START, PAIR(PID, PID), 25, EVENT_ID };

	assert_true(memory_ring_record(&cpu.pair.rings[0], OP_RECORD_CALLCHAIN_DEFERRED, 0, words, op_array_size(words)));
}

static void send_to_be_continued(uint64_t cookie)
{
	struct made made;

	put_sample(&made, KERNEL + 0x100);
	put(&made, 4);
	put(&made, PERF_CONTEXT_KERNEL);
	put(&made, KERNEL + 0x100);
	put(&made, OP_CONTEXT_USER_DEFERRED);
	put(&made, cookie);
	put(&made, PERF_SAMPLE_REGS_ABI_NONE);
	put(&made, 0);
	send(&made, PERF_RECORD_MISC_KERNEL);
}

static void a_deferred_chain_joins_its_samples(void **state OP_UNUSED)
{
	send_to_be_continued(5);
	send_to_be_continued(5);
	drain();
	expect_booked(0, 0, OP_STACK_END_complete, 0);
	send_deferred_chain(4);
	drain();
	expect_booked(0, 0, OP_STACK_END_complete, 0);
	send_deferred_chain(5);
	drain();
	expect_booked(2, 2, OP_STACK_END_complete, 2);
	expect_stack("1240 1140 1041 k:100", 2);
}

static void a_deferred_chain_may_not_come(void **state OP_UNUSED)
{
	send_to_be_continued(5);
	drain();
	opd_stacks_finish(&pipeline, 0);
	expect_booked(1, 1, OP_STACK_END_cut, 1);
	expect_stack("end:1 k:100", 1);
}

/* ---- calls ---- */

#define FLAT_ID 18

static void send_flat(int nr)
{
	const uint64_t words[] = { FLAT_ID, LEAF, PAIR(PID, PID), sampled_ns };

	for (int i = 0; i < nr; i++)
		assert_true(memory_ring_record(&cpu.pair.rings[0], PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, words, 4));
}

/* What the file of calls within the application has at this call. */
static uint64_t calls_at(uint64_t key)
{
	static const char path[] =
		"samples/current/{root}/no/app/{dep}/{root}/no/app/{cg}/{root}/no/app/TIMER.1000000.0.all.all.all";
	struct op_odb_samples samples;
	uint64_t count = 0;

	assert_int_equal(op_odb_read(pipeline.count.session_fd, path, &samples, NULL), 0);
	for (uint32_t i = 0; i < samples.nr_nodes; i++)
		if (samples.nodes[i].key == key)
			count = samples.nodes[i].value;
	op_odb_samples_free(&samples);
	return count;
}

static void add_flat_event(struct opd_event both[2])
{
	static struct op_event kinds[] = { { .name = "TIMER", .count = 1000000, .type = PERF_TYPE_SOFTWARE, .user = true }, {} };

	both[0] = (struct opd_event){ .id = FLAT_ID };
	both[1] = (struct opd_event){ .id = EVENT_ID };
	kinds[1] = kind;
	kinds[1].user = true;
	op_event_take_calls_of_stacks(kinds, 2);
	pipeline.capture.events = pipeline.count.events = kinds;
	pipeline.capture.nr_events = pipeline.capture.nr_opened = pipeline.count.nr_events = 2;
	pipeline.capture.callgraph = 8;
	cpu.events = both;
}

/* Stacks have a ring of their own. What counts is the order of time, not that of the rings. */
static void rings_are_read_in_the_order_of_time(void **state OP_UNUSED)
{
	static struct opd_event both[2];
	struct opd_sideband_loss loss;

	memory_ring_init(&cpu.stack_pair.rings[0]);
	add_flat_event(both);
	send_flat(4);
	sampled_ns = 21;
	send_leaf();
	sampled_ns = 22;
	send_flat(3);
	assert_int_equal(opd_sideband_drain(&pipeline.capture, &pipeline.resolver, UINT64_MAX, &loss), 0);
	opd_drain_in_order(&pipeline, &cpu, &cpu.pair.rings[0], &cpu.stack_pair.rings[0]);
	opd_count_flush(&pipeline.count);
	assert_int_equal(calls_at((uint64_t)0x1140 << 32 | 0x1040), 4);
	assert_int_equal(cpu.pair.counts.records, 7);
	assert_int_equal(cpu.stack_pair.counts.records, 1);
	memory_ring_free(&cpu.stack_pair.rings[0]);
}

/* A stack stands for the samples since the one before, also when it waits for a table. */
static void its_calls_count_the_samples_that_it_stands_for(void **state OP_UNUSED)
{
	static struct opd_event both[2];

	add_flat_event(both);
	send_flat(10);
	send_leaf();
	send_leaf(); /* nothing between them */
	code = OPD_CODE_PENDING;
	send_flat(3);
	drain();
	send_leaf();
	send_flat(5); /* no stack after them */
	drain();
	code = OPD_CODE_TABLE;
	opd_stacks_turn(&pipeline);
	opd_count_flush(&pipeline.count);
	assert_int_equal(calls_at((uint64_t)0x1140 << 32 | 0x1040), 13);
	assert_int_equal(calls_at((uint64_t)0x1240 << 32 | 0x1140), 13);
	assert_int_equal(both[0].received, 18);
	assert_int_equal(both[0].stored, 18);
	assert_int_equal(both[1].stored, 3);
	pipeline.capture.callgraph = 1;
	send_leaf();
	drain();
	assert_int_equal(calls_at((uint64_t)0x1140 << 32 | 0x1040), 18);
	assert_int_equal(calls_at((uint64_t)0x1240 << 32 | 0x1140), 13);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, stacks_setup, stacks_teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_whole_stack),
		TEST(kernel_frames_above_those_of_the_program),
		TEST(execve_has_no_user_part),
		TEST(a_process_that_ends_has_a_user_part_while_it_has_memory),
		TEST(a_process_whose_memory_is_gone_is_complete),
		TEST(a_copy_that_failed_elsewhere_is_cut),
		TEST(threads_of_the_kernel_are_complete),
		TEST(an_idle_cpu_is_filtered),
		TEST(a_filtered_stack_is_not_walked),
		TEST(an_end_is_kept_apart),
		TEST(the_stack_pointer_leads_nowhere),
		TEST(an_address_without_code),
		TEST(what_cannot_be_decoded_is_lost),
		TEST(cgroups_are_kept_apart),
		TEST(a_task_that_ends_stays_in_its_cgroup),
		TEST(samples_wait_for_their_tables),
		TEST(they_do_not_wait_for_ever),
		TEST(the_end_of_a_session_waits_for_nothing),
		TEST(a_reset_forgets_them),
		TEST(waiting_has_a_limit),
		TEST(the_queue_goes_round),
		TEST(a_deferred_chain_joins_its_samples),
		TEST(a_deferred_chain_may_not_come),
		TEST(rings_are_read_in_the_order_of_time),
		TEST(its_calls_count_the_samples_that_it_stands_for),
	};
#undef TEST

	return cmocka_run_group_tests_name("stack_samples", tests, NULL, NULL);
}
