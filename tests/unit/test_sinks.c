/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A sink of this test adds up the samples and the stacks that it is given. Its sums are those of
 * the sample files, of the file of stacks and of the ledger, whatever is filtered, widened or lost.
 */
#include "tests/unit/cmocka_all.h"

#include <errno.h>
#include <sys/stat.h>

#include "libop/odb/read.h"
#include "pipeline/count/image_filter.h"
#include "tests/unit/stack_cpu.h"

#define SUMS_MAX  64
#define NODES_MAX 256

/* What one address has in one sample file. */
struct sum {
	struct opd_file_key key;
	uint64_t offset, amount, first_ns;
};

static struct opd_event both[2]; /* TIMER, STACKS */
static struct sum sums[SUMS_MAX];
static size_t nr_sums;
static uint64_t nr_not_stored, nr_no_samples;
static uint64_t of_node[NODES_MAX], nr_stacks, nr_without_room;
static uint64_t turn_ns, horizon_ns;
static char order[8]; /* in which the sinks were closed */
static size_t nr_closed;

/* ---- the sink ---- */

static void add_sample(const struct opd_keyed_sample *sample)
{
	size_t i = 0;

	while (i < nr_sums && (sums[i].offset != sample->offset || !opd_same_file_key(&sums[i].key, &sample->key)))
		i++;
	assert_true(i < SUMS_MAX);
	if (i == nr_sums)
		sums[nr_sums++] = (struct sum){ .key = sample->key, .offset = sample->offset, .first_ns = sample->time_ns };
	sums[i].amount += sample->amount;
}

static void sum_samples(void *host, struct opd_keyed_sample *samples, size_t nr)
{
	assert_ptr_equal(host, sums);
	assert_in_range(nr, 1, OPD_WAITING_MAX);
	for (size_t i = 0; i < nr; i++) {
		if (samples[i].is_stored)
			add_sample(&samples[i]);
		else if (opd_is_of_calls(&samples[i].key))
			nr_no_samples++;
		else
			nr_not_stored += samples[i].amount;
	}
}

static void sum_stack(void *host OP_UNUSED, struct opd_stack *stack)
{
	assert_int_equal(stack->error, 0);
	assert_in_range(stack->node, 1, NODES_MAX - 1);
	of_node[stack->node] += stack->weight;
	nr_stacks++;
	nr_without_room += !stack->has_room;
	assert_int_equal(stack->event, 1);
	assert_int_equal(stack->sample->pid, PID);
	assert_null(stack->cgroup);
}

static void note_turn(void *host OP_UNUSED, uint64_t now, uint64_t horizon)
{
	assert_int_equal(pipeline.count.nr_waiting, 0);
	turn_ns = now;
	horizon_ns = horizon;
}

/* The files are still there: the sinks in front are closed later. */
static void note_first(void *host OP_UNUSED)
{
	assert_true(pipeline.count.open.nr);
	order[nr_closed++] = '1';
}

static void note_second(void *host OP_UNUSED)
{
	order[nr_closed++] = '2';
}

static int sinks_setup(void **state)
{
	const struct opd_sink sink = {
		.name = "sums", .sample = sum_samples, .stack = sum_stack, .end_turn = note_turn, .host = sums
	};

	if (stacks_setup(state))
		return -1;
	add_flat_event(both);
	pipeline.capture.callgraph = 0;
	opd_sinks_add(&pipeline.count.sinks, &sink);
	nr_sums = 0;
	nr_not_stored = nr_no_samples = nr_stacks = nr_without_room = nr_closed = 0;
	turn_ns = horizon_ns = 0;
	memset(of_node, 0, sizeof(of_node));
	memset(order, 0, sizeof(order));
	return 0;
}

/* ---- what is on the disk ---- */

static uint64_t nr_on_disk;

static void compare_file(struct op_hlink *link, void *arg OP_UNUSED)
{
	const struct opd_file *file = op_container_of(link, struct opd_file, link);
	struct op_odb_samples samples;

	if (!file->path || opd_is_of_calls(&file->key))
		return;
	assert_int_equal(op_odb_read(pipeline.count.session_fd, file->path, &samples, NULL), 0);
	for (uint32_t i = 0; i < samples.nr_nodes; i++) {
		uint64_t amount = 0;

		for (size_t s = 0; s < nr_sums; s++)
			if (sums[s].offset == samples.nodes[i].key && opd_same_file_key(&sums[s].key, &file->key))
				amount = sums[s].amount;
		assert_int_equal(amount, samples.nodes[i].value);
		nr_on_disk += amount;
	}
	op_odb_samples_free(&samples);
}

/* Each sum is in a file, and each count of a file is a sum. */
static void compare_samples(uint64_t nr_stored)
{
	uint64_t nr_summed = 0;

	opd_count_flush(&pipeline.count);
	nr_on_disk = 0;
	op_htable_visit(&pipeline.count.files, compare_file, NULL);
	for (size_t i = 0; i < nr_sums; i++)
		nr_summed += sums[i].amount;
	assert_int_equal(nr_on_disk, nr_stored);
	assert_int_equal(nr_summed, nr_stored);
	assert_int_equal(both[0].stored, nr_stored);
}

static void compare_stacks(uint64_t nr_stored)
{
	struct op_stack_tree tree;

	assert_int_equal(op_stacks_read(pipeline.count.session_fd, "samples/current/stacks", &tree), 0);
	assert_in_range(tree.nr_nodes, 1, NODES_MAX);
	for (uint32_t i = 0; i < tree.nr_nodes; i++)
		assert_int_equal(of_node[i], tree.nodes[i].count);
	op_stack_tree_free(&tree);
	assert_int_equal(nr_stacks, nr_stored);
	assert_int_equal(both[1].stored, nr_stored);
}

static void send_flat_at(uint64_t ip, uint16_t misc)
{
	const uint64_t words[] = { FLAT_ID, ip, PAIR(PID, PID), sampled_ns };

	assert_true(memory_ring_record(&cpu.pair.rings[0], PERF_RECORD_SAMPLE, misc, words, 4));
}

/* ---- tests ---- */

/* More samples than one batch has, some of them repeated; code, the kernel, and no code at all. */
static void samples_equal_the_sample_files(void **state OP_UNUSED)
{
	for (uint64_t i = 0; i < 3 * OPD_WAITING_MAX; i++) {
		sampled_ns = 20 + i;
		send_flat_at(LEAF + i % 7, PERF_RECORD_MISC_USER);
		send_flat_at(LEAF + i % 7, PERF_RECORD_MISC_USER);
		send_flat_at(KERNEL + i % 3, PERF_RECORD_MISC_KERNEL);
		send_flat_at(LIB, PERF_RECORD_MISC_USER);
		if (i % 16 == 10)
			drain();
	}
	send_flat(9);
	drain();
	compare_samples((uint64_t)12 * OPD_WAITING_MAX + 9);
	assert_int_equal(nr_not_stored, 0);
	assert_int_equal(sums[0].first_ns, 20);
}

static void stacks_equal_the_file_of_stacks(void **state OP_UNUSED)
{
	struct made made;

	for (int i = 0; i < 5; i++)
		send_leaf();
	put_sample(&made, INNER);
	put(&made, 0);
	put_stack(&made, INNER);
	send(&made, PERF_RECORD_MISC_USER);
	drain();
	code = OPD_CODE_PENDING;
	send_leaf();
	drain();
	assert_int_equal(nr_stacks, 6);
	opd_stack_records_finish(&pipeline, 0);
	compare_stacks(7);
	assert_int_equal(nr_without_room, 0);
}

/* The stacks are samples of an event of their own, and its calls are no samples. */
static void calls_are_not_stored_samples(void **state OP_UNUSED)
{
	pipeline.capture.callgraph = 8;
	send_flat(4);
	send_leaf();
	drain();
	compare_samples(4);
	compare_stacks(1);
	assert_int_equal(nr_no_samples, 2);
	assert_int_equal(nr_not_stored, 0);
}

static void what_is_filtered_is_not_stored(void **state OP_UNUSED)
{
	struct opd_image_filter *filter = opd_image_filter_new("/no/such/image");

	assert_non_null(filter);
	send_flat(3);
	send_leaf();
	drain();
	compare_samples(3);
	opd_count_close_files(&pipeline.count);
	pipeline.count.filter = filter;
	send_flat(5);
	send_leaf();
	drain();
	assert_int_equal(both[0].filtered, 5);
	assert_int_equal(both[1].filtered, 1);
	assert_int_equal(nr_not_stored, 5);
	assert_int_equal(nr_stacks, 1);
	pipeline.count.filter = NULL;
	opd_image_filter_free(filter);
}

/* There is room for one file: samples go to the file of a wider key, and the sink sees that key. */
static void a_wider_key_is_the_one_of_the_file(void **state OP_UNUSED)
{
	op_dcookie_limit(pipeline.resolver.table, SIZE_MAX, SIZE_MAX, pipeline.resolver.pseudo[OPD_PSEUDO_TOO_MANY_IMAGES]);
	pipeline.count.limit.max = 1;
	send_flat_at(LEAF, PERF_RECORD_MISC_USER);
	send_flat_at(KERNEL, PERF_RECORD_MISC_KERNEL);
	send_flat_at(KERNEL + 1, PERF_RECORD_MISC_KERNEL);
	drain();
	compare_samples(3);
	assert_true(opd_is_too_many(&pipeline.count, &sums[1].key));
	assert_int_equal(sums[1].offset, 0);
	assert_int_equal(sums[1].amount, 2);
	assert_int_equal(nr_sums, 2);
}

/* What cannot be stored is lost, and later sinks do not add it up. */
static void what_is_lost_is_not_stored(void **state OP_UNUSED)
{
	int session_fd = pipeline.count.session_fd;

	assert_int_equal(mkdirat(session_fd, "samples", 0755), 0);
	assert_int_equal(close(openat(session_fd, "samples/current", O_CREAT | O_WRONLY | O_CLOEXEC, 0600)), 0);
	send_flat(6);
	send_leaf();
	drain();
	opd_count_flush(&pipeline.count);
	assert_int_equal(both[0].received, 6);
	assert_int_equal(both[0].stored, 0);
	assert_int_equal(both[1].received, 1);
	assert_int_equal(both[1].stored, 0);
	assert_int_equal(nr_not_stored, 6);
	assert_int_equal(nr_sums, 0);
	assert_int_equal(nr_stacks, 0);
}

/* The end of a turn comes behind all samples of the turn. */
static void a_turn_ends_with_its_samples(void **state OP_UNUSED)
{
	const struct op_location here = { op_dcookie_get(pipeline.count.table, &(struct op_image_id){ .name.name = "/x" }), 1 };
	struct opd_resolved resolved = { .location = here };

	opd_count_sample(&pipeline.count, &(struct opd_counted){ .resolved = &resolved, .account = &both[0], .amount = 2 });
	assert_int_equal(nr_sums, 0);
	opd_count_end_turn(&pipeline.count, 1000, 900);
	assert_int_equal(nr_sums, 1);
	assert_int_equal(sums[0].amount, 2);
	assert_int_equal(turn_ns, 1000);
	assert_int_equal(horizon_ns, 900);
}

static void the_last_sink_is_closed_first(void **state OP_UNUSED)
{
	opd_sinks_add(&pipeline.count.sinks, &(struct opd_sink){ .name = "first", .close = note_first });
	opd_sinks_add(&pipeline.count.sinks, &(struct opd_sink){ .name = "second", .close = note_second });
	send_flat(2);
	drain();
	opd_count_close_files(&pipeline.count);
	assert_string_equal(order, "21");
	assert_int_equal(pipeline.count.open.nr, 0);
	pipeline.count.sinks.nr -= 2;
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, sinks_setup, stacks_teardown)
	const struct CMUnitTest tests[] = {
		TEST(samples_equal_the_sample_files),
		TEST(stacks_equal_the_file_of_stacks),
		TEST(calls_are_not_stored_samples),
		TEST(what_is_filtered_is_not_stored),
		TEST(a_wider_key_is_the_one_of_the_file),
		TEST(what_is_lost_is_not_stored),
		TEST(a_turn_ends_with_its_samples),
		TEST(the_last_sink_is_closed_first),
	};
#undef TEST

	return cmocka_run_group_tests_name("sinks", tests, NULL, NULL);
}
