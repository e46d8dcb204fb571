/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A second source of stacks in the rings of a CPU, as a program in the kernel that sees waits would
 * be: its records have the addresses of a stack and its weight in microseconds, and wait for the
 * end of the turn. It is added without a change of another source.
 */
#include "tests/unit/cmocka_all.h"

#include "pipeline/drive/sources.h"
#include "pipeline/drive/stack_booking.h"
#include "tests/unit/stack_cpu.h"

#define WAIT_ID    19
#define OTHER_ID   20
#define WAITS_MAX  8
#define FRAMES_MAX 4
#define SOURCE_FD  1000 /* no descriptor: nobody uses it here */

struct wait {
	struct opd_stack_sample taken;
	uint64_t record[16]; /* as it came: the ring has others by then */
	uint64_t addresses[FRAMES_MAX];
	uint64_t nr_addresses;
};

static struct op_event kinds[4]; /* TIMER, STACKS, WAIT, and one that no source has */
static struct opd_event accounts[4];
static struct wait waits[WAITS_MAX];
static size_t nr_waits;
static uint64_t weight_of[4], nr_of[4]; /* what a sink was given, by event */

/* ---- the source ---- */

static bool is_wait(const struct op_event *of)
{
	return of->type == PERF_TYPE_SOFTWARE && of->config == PERF_COUNT_SW_BPF_OUTPUT;
}

static void take_wait(void *host, const struct opd_record *record)
{
	const uint64_t *words = (const uint64_t *)(record->header + 1) + 4;
	struct wait *wait = &waits[nr_waits];

	assert_ptr_equal(host, waits);
	assert_true(nr_waits < WAITS_MAX);
	assert_ptr_equal(record->cpu, &cpu);
	assert_ptr_equal(record->account, &accounts[2]);
	*wait = (struct wait){ .taken = { .header = (const void *)wait->record,
					  .sample = *record->sample,
					  .account = record->account,
					  .event = record->event,
					  .weight = words[0] },
			       .nr_addresses = words[1] };
	assert_in_range(wait->nr_addresses, 1, FRAMES_MAX);
	assert_in_range(record->header->size, 1, sizeof(wait->record));
	memcpy(wait->record, record->header, record->header->size);
	memcpy(wait->addresses, words + 2, wait->nr_addresses * sizeof(*words));
	nr_waits++;
}

static void book_wait(const struct wait *wait)
{
	static struct opd_stack stack;
	struct op_sample at = wait->taken.sample;

	stack = (struct opd_stack){ .sample = &wait->taken.sample, .nr_frames = wait->nr_addresses };
	for (size_t i = 0; i < stack.nr_frames; i++) {
		at.ip = wait->addresses[i];
		assert_int_equal(opd_resolve_caller(&pipeline.resolver, &at, &stack.frames[i]), 0);
	}
	opd_stack_book(&pipeline, &wait->taken, &stack.frames[0], &stack);
}

static void book_waits(void *host OP_UNUSED)
{
	for (size_t i = 0; i < nr_waits; i++)
		book_wait(&waits[i]);
	nr_waits = 0;
}

static void finish_waits(void *host, uint64_t wait_ns)
{
	assert_int_equal(wait_ns, 7);
	book_waits(host);
}

static void forget_waits(void *host OP_UNUSED, bool is_reset)
{
	nr_waits = is_reset ? 0 : nr_waits;
}

static uint64_t oldest_wait_ns(void *host OP_UNUSED)
{
	return nr_waits ? waits[0].taken.sample.time_ns : UINT64_MAX;
}

static int fd_of_waits(void *host OP_UNUSED)
{
	return SOURCE_FD;
}

static void sum_stack(void *host OP_UNUSED, struct opd_stack *stack)
{
	assert_in_range(stack->event, 1, 2);
	weight_of[stack->event] += stack->weight;
	nr_of[stack->event]++;
}

static int sources_setup(void **state)
{
	static const struct opd_record_source source = {
		.name = "waits", .is_of = is_wait, .take = take_wait, .turn = book_waits, .finish = finish_waits,
		.begin_session = forget_waits, .oldest_ns = oldest_wait_ns, .fd = fd_of_waits, .host = waits,
	};
	static const uint64_t ids[] = { FLAT_ID, EVENT_ID, WAIT_ID, OTHER_ID };

	if (stacks_setup(state))
		return -1;
	kinds[0] = (struct op_event){ .name = "TIMER", .count = 1000000, .type = PERF_TYPE_SOFTWARE };
	kinds[1] = kind;
	kinds[2] = (struct op_event){
		.name = OP_WAITS_NAME, .count = 1, .role = OP_EVENT_WAITS, .type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_BPF_OUTPUT
	};
	kinds[3] = (struct op_event){ .name = "OTHER", .role = OP_EVENT_DERIVED };
	for (size_t i = 0; i < op_array_size(ids); i++)
		accounts[i] = (struct opd_event){ .id = ids[i] };
	pipeline.capture.events = pipeline.count.events = kinds;
	pipeline.capture.nr_events = pipeline.capture.nr_opened = pipeline.count.nr_events = op_array_size(kinds);
	cpu.events = accounts;
	opd_record_source_add(&pipeline.sources, &source);
	opd_sinks_add(&pipeline.count.sinks, &(struct opd_sink){ .name = "sums", .stack = sum_stack });
	nr_waits = 0;
	memset(weight_of, 0, sizeof(weight_of));
	memset(nr_of, 0, sizeof(nr_of));
	return 0;
}

static void send_wait(uint64_t id, uint64_t us)
{
	const uint64_t words[] = { id, LEAF, PAIR(PID, PID), sampled_ns, us, 3, LEAF, INNER, START };

	assert_true(memory_ring_record(&cpu.pair.rings[0], PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, words, 9));
}

/* The sum of the counts below the node of an event. */
static uint64_t on_disk(const char *name)
{
	struct op_stack_tree tree;
	uint64_t sum = 0;

	assert_int_equal(op_stacks_read(pipeline.count.session_fd, "samples/current/stacks", &tree), 0);
	for (uint32_t i = 1; i < tree.nr_nodes; i++) {
		uint32_t top = i;
		char *text;

		while (tree.nodes[top].kind != OP_STACK_EVENT && top)
			top = tree.nodes[top].parent;
		text = top ? op_stack_text(&tree, tree.nodes[top].value) : NULL;
		if (text && !strncmp(text, name, strlen(name)) && text[strlen(name)] == ':')
			sum += tree.nodes[i].count;
		free(text);
	}
	op_stack_tree_free(&tree);
	return sum;
}

/* ---- tests ---- */

static void each_sample_goes_to_the_source_of_its_event(void **state OP_UNUSED)
{
	for (uint64_t i = 0; i < 4; i++) {
		send_leaf();
		send_wait(WAIT_ID, 1ull << 33);
		send_flat(2);
	}
	drain();
	assert_int_equal(nr_waits, 4);
	assert_int_equal(accounts[2].received, 0);
	opd_sources_turn(&pipeline);
	assert_int_equal(accounts[0].stored, 8);
	assert_int_equal(accounts[1].stored, 4);
	assert_int_equal(accounts[2].stored, 4ull << 33);
	assert_int_equal(accounts[1].ends[OP_STACK_END_complete], 4);
	assert_int_equal(accounts[2].ends[OP_STACK_END_complete], 4ull << 33);
	assert_int_equal(nr_of[2], 4);
	assert_int_equal(weight_of[1], 4);
	assert_int_equal(weight_of[2], 4ull << 33);
	assert_int_equal(on_disk("STACKS"), 4);
	assert_int_equal(on_disk("WAIT"), 4ull << 33);
}

/* The mappings of what waits in a source are kept, and the source may hand it over at any turn. */
static void what_waits_holds_the_horizon(void **state OP_UNUSED)
{
	assert_int_equal(opd_sources_oldest_ns(&pipeline), UINT64_MAX);
	send_wait(WAIT_ID, 5);
	sampled_ns = 30;
	code = OPD_CODE_PENDING;
	send_leaf();
	drain();
	assert_int_equal(opd_sources_oldest_ns(&pipeline), 20);
	opd_sources_turn(&pipeline);
	assert_int_equal(opd_sources_oldest_ns(&pipeline), 30);
	opd_sources_finish(&pipeline, 7);
	assert_int_equal(opd_sources_oldest_ns(&pipeline), UINT64_MAX);
	assert_int_equal(accounts[1].ends[OP_STACK_END_no_table_yet], 1);
}

static void the_end_of_a_session_hands_it_over(void **state OP_UNUSED)
{
	send_wait(WAIT_ID, 5);
	drain();
	opd_sources_finish(&pipeline, 7);
	assert_int_equal(accounts[2].stored, 5);
	assert_int_equal(on_disk("WAIT"), 5);
}

static void a_reset_forgets_it(void **state OP_UNUSED)
{
	code = OPD_CODE_PENDING;
	send_wait(WAIT_ID, 5);
	send_leaf();
	drain();
	opd_sources_begin_session(&pipeline, false);
	assert_int_equal(opd_sources_oldest_ns(&pipeline), 20);
	opd_sources_begin_session(&pipeline, true);
	assert_int_equal(opd_sources_oldest_ns(&pipeline), UINT64_MAX);
	code = OPD_CODE_TABLE;
	opd_sources_turn(&pipeline);
	assert_int_equal(nr_of[1] + nr_of[2], 0);
}

/* No source is there for it. A role of its own does not make it a sample of a plain event. */
static void a_sample_without_a_source_is_lost(void **state OP_UNUSED)
{
	send_wait(OTHER_ID, 5);
	drain();
	assert_int_equal(accounts[3].received, 1);
	assert_int_equal(accounts[3].lost[OP_LOSS_undecodable], 1);
}

static void the_loop_waits_for_its_descriptor(void **state OP_UNUSED)
{
	size_t last = opd_sources_nr(&pipeline) - 1;

	assert_int_equal(opd_source_fd(&pipeline, last), SOURCE_FD);
	send_wait(WAIT_ID, 5);
	drain();
	opd_source_turn(&pipeline, last);
	assert_int_equal(accounts[2].stored, 5);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, sources_setup, stacks_teardown)
	const struct CMUnitTest tests[] = {
		TEST(each_sample_goes_to_the_source_of_its_event),
		TEST(what_waits_holds_the_horizon),
		TEST(the_end_of_a_session_hands_it_over),
		TEST(a_reset_forgets_it),
		TEST(a_sample_without_a_source_is_lost),
		TEST(the_loop_waits_for_its_descriptor),
	};
#undef TEST

	return cmocka_run_group_tests_name("sources", tests, NULL, NULL);
}
