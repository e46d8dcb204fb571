/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Stack samples from a ring in memory to the store: their frames, their ends and their place in the
 * ledger, and how they wait for tables and for deferred chains. The tables are made up here.
 */
#include "tests/unit/cmocka_all.h"

#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "libop/odb/read.h"
#include "pipeline/count/image_filter.h"
#include "tests/unit/stack_cpu.h"

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
	opd_stack_records_turn(&pipeline);
	expect_booked(0, 0, OP_STACK_END_complete, 0);
	code = OPD_CODE_TABLE;
	opd_stack_records_turn(&pipeline);
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
	opd_stack_records_turn(&pipeline);
	expect_booked(0, 0, OP_STACK_END_no_table_yet, 0);
	passed_ns = 11 * (uint64_t)OP_NS_PER_S;
	opd_stack_records_turn(&pipeline);
	expect_booked(1, 1, OP_STACK_END_no_table_yet, 1);
	expect_stack("end:4 1040", 1);
}

static void the_end_of_a_session_waits_for_nothing(void **state OP_UNUSED)
{
	code = OPD_CODE_PENDING;
	send_leaf();
	drain();
	opd_stack_records_finish(&pipeline, 0);
	expect_booked(1, 1, OP_STACK_END_no_table_yet, 1);
}

static void a_reset_forgets_them(void **state OP_UNUSED)
{
	code = OPD_CODE_PENDING;
	send_leaf();
	drain();
	opd_stacks_reset(pipeline.stacks);
	code = OPD_CODE_TABLE;
	opd_stack_records_turn(&pipeline);
	expect_booked(0, 0, OP_STACK_END_complete, 0);
}

/* A stack in another unit, as a source of waits has them: one weighs more than 2^32, one waited. */
static void a_stack_has_the_weight_of_its_source(void **state OP_UNUSED)
{
	struct {
		struct perf_event_header header;
		uint64_t words[60];
	} record;
	struct made made;
	struct opd_stack_sample taken = {
		.header = &record.header,
		.sample = { .ip = LEAF, .pid = PID, .tid = PID, .time_ns = sampled_ns, .mode = OP_CPUMODE_USER },
		.account = &event,
		.weight = (1ull << 40) + 3,
	};

	drain(); /* of the side band */
	put_sample(&made, LEAF);
	put(&made, 0);
	put_stack(&made, LEAF);
	memcpy(record.words, made.words, made.nr * sizeof(*made.words));
	record.header = (struct perf_event_header){ .type = PERF_RECORD_SAMPLE,
						    .size = (uint16_t)(sizeof(record.header) + made.nr * sizeof(*made.words)) };
	opd_stack_records_take(&pipeline, &taken);
	code = OPD_CODE_PENDING;
	taken.weight = 5;
	opd_stack_records_take(&pipeline, &taken);
	code = OPD_CODE_TABLE;
	opd_stack_records_turn(&pipeline);
	expect_booked((1ull << 40) + 8, (1ull << 40) + 8, OP_STACK_END_complete, (1ull << 40) + 8);
	expect_stack("1240 1140 1040", (1ull << 40) + 8);
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
	opd_stack_records_turn(&pipeline);
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

/* Waits have a quarter of it at most, and samples the rest, whoever comes first. */
static void waits_leave_room_for_samples(void **state OP_UNUSED)
{
	static uint64_t record[1 << 10];
	struct perf_event_header *header = (void *)record;
	struct opd_stack_queue queue = { 0 };
	struct opd_stack_waiting *waiting;
	struct opd_stack_sample wait = { .header = header, .state = OP_WAIT_blocked };
	struct opd_stack_sample sample = { .header = header };
	size_t nr_waits = 0, nr_samples = 0;

	header->size = sizeof(record);
	while (!opd_stack_queue_add(&queue, &wait, &waiting))
		nr_waits++;
	assert_int_equal(nr_waits, OPD_STACK_QUEUE_WAIT_BYTES / sizeof(record));
	while (!opd_stack_queue_add(&queue, &sample, &waiting))
		nr_samples++;
	assert_true(nr_waits + nr_samples >= OPD_STACK_QUEUE_BYTES / sizeof(record) - 1);
	/* one that is done has left its place to the next one */
	opd_stack_queue_done(&queue, opd_stack_queue_first(&queue));
	opd_stack_queue_trim(&queue);
	opd_stack_queue_done(&queue, opd_stack_queue_first(&queue));
	opd_stack_queue_trim(&queue);
	assert_int_equal(opd_stack_queue_add(&queue, &wait, &waiting), 0);
	opd_stack_queue_free(&queue);
}

static size_t resident_pages(const struct opd_stack_queue *queue)
{
	static unsigned char pages[OPD_STACK_QUEUE_BYTES / 4096];
	size_t nr = OPD_STACK_QUEUE_BYTES / (size_t)sysconf(_SC_PAGESIZE), nr_resident = 0;

	assert_int_equal(mincore(queue->records, OPD_STACK_QUEUE_BYTES, pages), 0);
	for (size_t i = 0; i < nr; i++)
		nr_resident += pages[i] & 1;
	return nr_resident;
}

/* One sample waits for long; what comes and goes behind it takes no memory. */
static void the_queue_gives_memory_back(void **state OP_UNUSED)
{
	static uint64_t record[1160];
	struct perf_event_header *header = (void *)record;
	struct opd_stack_sample taken = { .header = header };
	struct opd_stack_waiting *first, *waiting;
	struct opd_stack_queue queue = { 0 };

	header->size = sizeof(record);
	record[1] = 7;
	assert_int_equal(opd_stack_queue_add(&queue, &taken, &first), 0);
	for (size_t i = 0; i + 2 < OPD_STACK_QUEUE_BYTES / sizeof(record); i++) {
		assert_int_equal(opd_stack_queue_add(&queue, &taken, &waiting), 0);
		opd_stack_queue_done(&queue, waiting);
		opd_stack_queue_trim(&queue);
	}
	assert_true(resident_pages(&queue) <= 8);
	assert_memory_equal(first->taken.header, record, sizeof(record));
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
	opd_stack_records_finish(&pipeline, 0);
	expect_booked(1, 1, OP_STACK_END_cut, 1);
	expect_stack("end:1 k:100", 1);
}

/* ---- calls ---- */

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
	opd_stack_records_turn(&pipeline);
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
		TEST(a_stack_has_the_weight_of_its_source),
		TEST(waiting_has_a_limit),
		TEST(the_queue_goes_round),
		TEST(waits_leave_room_for_samples),
		TEST(the_queue_gives_memory_back),
		TEST(a_deferred_chain_joins_its_samples),
		TEST(a_deferred_chain_may_not_come),
		TEST(rings_are_read_in_the_order_of_time),
		TEST(its_calls_count_the_samples_that_it_stands_for),
	};
#undef TEST

	return cmocka_run_group_tests_name("stack_samples", tests, NULL, NULL);
}
