/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The collector of minutes: its spans add up to the sample files, the file of stacks and the
 * ledger; when they end, with clocks of this test that step and stop; and a disk that is slow.
 */
#include "tests/unit/cmocka_all.h"

#include "libop/base/sys.h"
#include "pipeline/timeline/collect.h"
#include "tests/unit/stack_cpu.h"

#define INTERVAL_NS (60 * (uint64_t)OP_NS_PER_S)
#define SPANS_MAX   16

static struct opd_event both[2]; /* TIMER, STACKS */
static struct opd_timeline timeline;
static struct op_minute spans[SPANS_MAX];
static size_t nr_spans;
static bool is_busy, is_sampling;
static uint64_t wall_ns, boot_ns; /* at passed_ns 0, beside the monotonic clock */
static uint64_t growth;
static bool no_rows, no_spans; /* there is no memory for them */

int __real_op_minute_add_row(struct op_minute *minute, uint32_t event_of, const char *name, int64_t amount);
int __wrap_op_minute_add_row(struct op_minute *minute, uint32_t event_of, const char *name, int64_t amount);
int __real_op_minute_init(struct op_minute *minute, uint32_t max_nodes);
int __wrap_op_minute_init(struct op_minute *minute, uint32_t max_nodes);

int __wrap_op_minute_add_row(struct op_minute *minute, uint32_t event_of, const char *name, int64_t amount)
{
	return no_rows ? -ENOMEM : __real_op_minute_add_row(minute, event_of, name, amount);
}

int __wrap_op_minute_init(struct op_minute *minute, uint32_t max_nodes)
{
	*minute = (struct op_minute){ 0 };
	return no_spans ? -ENOMEM : __real_op_minute_init(minute, max_nodes);
}

uint64_t __wrap_op_sys_wall_ns(void);
uint64_t __wrap_op_sys_boot_ns(void);
const struct op_row_table *__wrap_opd_tables_peek(struct opd_tables *tables, uint64_t cookie);

uint64_t __wrap_op_sys_wall_ns(void)
{
	return wall_ns + op_now_ns();
}

uint64_t __wrap_op_sys_boot_ns(void)
{
	return boot_ns + op_now_ns();
}

const struct op_row_table *__wrap_opd_tables_peek(struct opd_tables *tables OP_UNUSED, uint64_t cookie OP_UNUSED)
{
	return code == OPD_CODE_TABLE ? &table : NULL;
}

/* ---- the program ---- */

static bool say_busy(void *host OP_UNUSED)
{
	return is_busy;
}

static void take(void *host OP_UNUSED, struct op_minute *minute, int dir_fd)
{
	assert_in_range(nr_spans, 0, SPANS_MAX - 1);
	spans[nr_spans++] = *minute;
	assert_int_equal(close(dir_fd), 0);
}

static uint64_t take_growth(void *host OP_UNUSED)
{
	uint64_t taken = growth;

	growth = 0;
	return taken;
}

static int sink_setup(void **state)
{
	if (stacks_setup(state))
		return -1;
	add_flat_event(both);
	pipeline.capture.callgraph = 0;
	if (opd_ledger_open(&pipeline.ledger, pipeline.count.session_fd, &pipeline.capture, false))
		return -1;
	opd_ledger_begin(&pipeline.ledger);
	is_busy = no_rows = no_spans = false;
	is_sampling = true;
	nr_spans = 0;
	wall_ns = 1700000000ull * OP_NS_PER_S - op_now_ns();
	boot_ns = 5 * INTERVAL_NS;
	timeline = (struct opd_timeline){
		.count = &pipeline.count,
		.ledger = &pipeline.ledger,
		.tables = (struct opd_tables *)no_tables,
		.is_sampling = &is_sampling,
		.host = { .is_busy = say_busy, .take = take, .take_growth = take_growth },
		.interval_ns = INTERVAL_NS,
	};
	return opd_timeline_open(&timeline);
}

static int sink_teardown(void **state)
{
	opd_timeline_end_session(&timeline);
	opd_timeline_close(&timeline);
	pipeline.count.sinks.nr--;
	for (size_t i = 0; i < nr_spans; i++)
		op_minute_free(&spans[i]);
	opd_ledger_close(&pipeline.ledger);
	return stacks_teardown(state);
}

static void end_turn(void)
{
	uint64_t now_ns = op_now_ns();

	opd_count_end_turn(&pipeline.count, now_ns, now_ns);
}

static void pass(uint64_t ns)
{
	assert_int_equal(ns % OP_NS_PER_S, 0);
	passed_ns += ns;
	end_turn();
}

static void send_flat_at(uint64_t ip, uint16_t misc)
{
	const uint64_t words[] = { FLAT_ID, ip, PAIR(PID, PID), sampled_ns };

	assert_true(memory_ring_record(&cpu.pair.rings[0], PERF_RECORD_SAMPLE, misc, words, 4));
}

/* nr samples and a stack. */
static void send_some(uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i++)
		send_flat_at(i % 3 ? LEAF + i % 7 : KERNEL + i, i % 3 ? PERF_RECORD_MISC_USER : PERF_RECORD_MISC_KERNEL);
	send_leaf();
	drain();
	opd_count_flush(&pipeline.count);
}

static uint64_t total(const struct op_minute *minute, uint32_t kind_of, uint32_t event_of)
{
	uint64_t sum = 0;

	assert_int_equal(op_minute_total(minute, kind_of, event_of, &sum), 0);
	return sum;
}

static int64_t row(const struct op_minute *minute, uint32_t event_of, const char *name)
{
	for (uint32_t i = 0; i < minute->nr_rows; i++)
		if (minute->rows[i].event == event_of && !strcmp(minute->texts[minute->rows[i].text], name))
			return minute->rows[i].amount;
	return 0;
}

/* The spans so far have all that is stored; each goes on where the one before ended. */
static void check_sums(void)
{
	uint64_t sums[2] = { 0 }, received[2] = { 0 };

	for (size_t i = 0; i < nr_spans; i++) {
		for (uint32_t e = 0; e < 2; e++) {
			uint64_t weight = total(&spans[i], e ? OP_MINUTE_STACKS : OP_MINUTE_SAMPLES, e);

			assert_int_equal(row(&spans[i], e, "before"), sums[e]);
			assert_int_equal(row(&spans[i], e, "stored"), weight);
			sums[e] += weight;
			received[e] += (uint64_t)row(&spans[i], e, "received");
		}
		if (i && spans[i].gap == OP_GAP_NONE)
			assert_true(spans[i].begin.mono_ns >= spans[i - 1].end.mono_ns);
	}
	for (size_t e = 0; e < 2; e++) {
		assert_int_equal(sums[e], both[e].stored);
		assert_int_equal(received[e], both[e].received);
	}
}

/* ---- tests ---- */

static void spans_add_up(void **state OP_UNUSED)
{
	for (uint32_t i = 0; i < 5; i++) {
		send_some(10 + i);
		pass(INTERVAL_NS);
	}
	send_some(7);
	opd_timeline_end_session(&timeline);
	assert_int_equal(nr_spans, 6);
	check_sums();
	assert_int_equal(spans[0].gap, OP_GAP_FIRST);
	for (size_t i = 0; i < 5; i++) {
		assert_int_equal(spans[i].end.wall_ns % INTERVAL_NS, 0);
		assert_memory_equal(&spans[i].end, &spans[i + 1].begin, sizeof(spans[i].end));
		assert_int_equal(spans[i + 1].gap, OP_GAP_NONE);
		assert_int_equal(spans[i].flags, 0);
		assert_int_equal(row(&spans[i], 1, "end_complete"), 1);
	}
}

/* The function of a row table, a place of the kernel; a stack from the outside, with its name. */
static void code_has_its_function(void **state OP_UNUSED)
{
	const struct op_minute *span = &spans[0];
	uint32_t nr_functions = 0, nr_kernel = 0, nr_places = 0;

	send_some(30);
	opd_timeline_end_session(&timeline);
	for (uint32_t i = 1; i < span->nr_nodes; i++) {
		const struct op_minute_node *node = &span->nodes[i];

		nr_kernel += node->kind == OP_MINUTE_KERNEL_PLACE;
		nr_places += node->kind == OP_MINUTE_PLACE;
		if (node->kind != OP_MINUTE_FUNCTION)
			continue;
		assert_int_equal(node->value, 0x1020);
		nr_functions++;
		if (span->nodes[node->parent].kind == OP_MINUTE_IMAGE)
			assert_int_equal(node->self, 20);
		else
			assert_int_equal(node->self, 1);
	}
	assert_int_equal(nr_functions, 2);
	assert_int_equal(nr_kernel, 1); /* all in one bucket */
	assert_int_equal(nr_places, 2); /* the callers have no function in the table */
}

/* A sample of the next minute that comes before the last of this one. */
static void samples_belong_to_their_time(void **state OP_UNUSED)
{
	end_turn();
	send_some(3);
	sampled_ns = timeline.end_mono_ns;
	send_some(5);
	sampled_ns = timeline.end_mono_ns - 1;
	send_some(4);
	assert_int_equal(nr_spans, 0);
	pass(INTERVAL_NS);
	assert_int_equal(nr_spans, 1);
	assert_int_equal(total(&spans[0], OP_MINUTE_SAMPLES, 0), 7);
	opd_timeline_end_session(&timeline);
	assert_int_equal(total(&spans[1], OP_MINUTE_SAMPLES, 0), 5);
	check_sums();
}

static void a_slow_disk_makes_a_span_longer(void **state OP_UNUSED)
{
	end_turn();
	send_some(3);
	is_busy = true;
	pass(INTERVAL_NS);
	sampled_ns = op_now_ns();
	send_some(4);
	pass(INTERVAL_NS);
	assert_int_equal(nr_spans, 0);
	is_busy = false;
	pass(INTERVAL_NS);
	assert_int_equal(nr_spans, 1);
	assert_int_equal(spans[0].flags, OP_TIMELINE_IS_LATE);
	assert_int_equal(timeline.nr_late, 2);
	assert_in_range(spans[0].end.mono_ns - spans[0].begin.mono_ns, 2 * INTERVAL_NS, 3 * INTERVAL_NS);
	opd_timeline_end_session(&timeline);
	check_sums();
}

/* Samples like those before find their place, also where a span was emptied between. */
static void places_are_of_their_span(void **state OP_UNUSED)
{
	end_turn();
	for (uint32_t i = 0; i < 3; i++) {
		if (i < 2)
			send_some(20);
		sampled_ns = timeline.end_mono_ns; /* these are of the next span */
		send_some(20);
		is_busy = i == 1;
		pass(INTERVAL_NS);
	}
	send_some(20);
	opd_timeline_end_session(&timeline);
	assert_int_equal(nr_spans, 3);
	check_sums();
	for (size_t i = 0; i < nr_spans; i++)
		assert_int_equal(spans[i].nr_nodes, spans[0].nr_nodes);
}

/* Clocks that step, a host that sleeps: no minute is lost or double, and the gap has its reason. */
static void clocks_that_step(void **state OP_UNUSED)
{
	static const struct {
		int64_t wall_s, boot_s;
		uint32_t gap;
	} steps[] = {
		{ 3600, 0, OP_GAP_NONE },
		{ -7200, 0, OP_GAP_NONE },
		{ 9, 9, OP_GAP_SUSPENDED },
		{ 86400, 86400, OP_GAP_SUSPENDED },
	};

	for (size_t i = 0; i < op_array_size(steps); i++) {
		end_turn();
		send_some(10);
		end_turn();
		assert_int_equal(nr_spans, i);
		wall_ns += (uint64_t)(steps[i].wall_s * OP_NS_PER_S);
		boot_ns += (uint64_t)(steps[i].boot_s * OP_NS_PER_S);
		end_turn();
		assert_int_equal(nr_spans, i + 1);
		assert_in_range(spans[i].end.wall_ns - spans[i].begin.wall_ns, 0, INTERVAL_NS);
	}
	opd_timeline_end_session(&timeline);
	assert_int_equal(nr_spans, op_array_size(steps) + 1);
	for (size_t i = 0; i < op_array_size(steps); i++)
		assert_int_equal(spans[i + 1].gap, steps[i].gap);
	check_sums();
}

static void no_span_without_sampling(void **state OP_UNUSED)
{
	end_turn();
	send_some(3);
	is_sampling = false;
	end_turn();
	assert_int_equal(nr_spans, 1);
	pass(10 * INTERVAL_NS);
	assert_int_equal(nr_spans, 1);
	is_sampling = true;
	end_turn();
	send_some(3);
	timeline.interval_ns = 0;
	end_turn();
	assert_int_equal(nr_spans, 2);
	assert_int_equal(spans[1].gap, OP_GAP_PAUSED);
	send_some(5);
	end_turn();
	timeline.interval_ns = INTERVAL_NS;
	end_turn();
	opd_timeline_end_session(&timeline);
	assert_int_equal(nr_spans, 3);
	assert_int_equal(spans[2].gap, OP_GAP_DISABLED);
	/* what was stored meanwhile is in no span, and that can be seen */
	assert_int_equal(row(&spans[2], 0, "before"), both[0].stored);
	assert_int_equal(row(&spans[1], 0, "before") + row(&spans[1], 0, "stored"), both[0].stored - 5);
}

/*
 * A minute that is lost for lack of memory takes what it has. The next one begins where it ended:
 * it has its own samples and losses, and nothing of the lost one.
 */
static void no_memory_for_a_minute(void **state OP_UNUSED)
{
	uint64_t of_lost;

	end_turn();
	send_some(10);
	pass(INTERVAL_NS);
	assert_int_equal(nr_spans, 1);
	send_some(20);
	both[0].lost[OP_LOSS_no_memory] += 3;
	both[0].received += 3;
	sampled_ns = timeline.end_mono_ns; /* these are of the next minute */
	send_some(5);
	no_rows = true;
	pass(INTERVAL_NS);
	no_rows = false;
	assert_int_equal(nr_spans, 1);
	assert_int_equal(timeline.nr_no_memory, 1);
	send_some(4);
	opd_timeline_end_session(&timeline);
	assert_int_equal(nr_spans, 2);
	assert_int_equal(spans[1].gap, OP_GAP_UNWRITTEN);
	assert_int_equal(total(&spans[1], OP_MINUTE_SAMPLES, 0), 9);
	assert_int_equal(row(&spans[1], 0, "stored"), 9);
	assert_int_equal(row(&spans[1], 0, "received"), 9);
	assert_int_equal(row(&spans[1], 0, "lost_no_memory"), 0);
	of_lost = (uint64_t)(row(&spans[1], 0, "before") - row(&spans[0], 0, "before") - row(&spans[0], 0, "stored"));
	assert_int_equal(of_lost, 20);
	assert_int_equal(row(&spans[1], 0, "before") + 9, both[0].stored);
	both[0].lost[OP_LOSS_no_memory] -= 3;
	both[0].received -= 3;
}

/* No memory where a minute begins: it is one that is lost, however often it is tried. */
static void no_memory_to_begin(void **state OP_UNUSED)
{
	end_turn();
	send_some(10);
	is_sampling = false;
	end_turn();
	is_sampling = no_spans = true;
	for (uint32_t i = 0; i < 3; i++) {
		send_some(7);
		end_turn();
	}
	assert_int_equal(timeline.nr_no_memory, 1);
	no_spans = false;
	send_some(5);
	no_spans = true; /* for the span behind the next one */
	pass(INTERVAL_NS);
	assert_int_equal(nr_spans, 2);
	assert_int_equal(timeline.nr_no_memory, 2);
	no_spans = false;
	send_some(6);
	opd_timeline_end_session(&timeline);
	assert_int_equal(nr_spans, 3);
	assert_int_equal(spans[1].gap, OP_GAP_PAUSED);
	assert_int_equal(spans[2].gap, OP_GAP_UNWRITTEN);
	assert_int_equal(row(&spans[0], 0, "stored"), 10);
	assert_int_equal(row(&spans[1], 0, "stored"), 5);
	assert_int_equal(row(&spans[2], 0, "stored"), 6);
	assert_int_equal(row(&spans[1], 0, "before"), 10 + 21);
	assert_int_equal(row(&spans[2], 0, "before"), 10 + 21 + 5);
}

static void a_reset_drops_what_was_collected(void **state OP_UNUSED)
{
	send_some(3);
	opd_timeline_reset(&timeline);
	opd_count_close_files(&pipeline.count);
	assert_int_equal(nr_spans, 0);
}

/* A span that is full keeps all weights, and files count for the quota of the session. */
static void bounded(void **state OP_UNUSED)
{
	uint64_t before = pipeline.count.limit.space.taken_bytes;

	timeline.max_nodes = 10;
	for (uint64_t i = 0; i < 20; i++) {
		send_flat_at(KERNEL + 0x40 * i, PERF_RECORD_MISC_KERNEL);
		drain();
	}
	send_some(10);
	growth = 12345;
	end_turn();
	assert_in_range(pipeline.count.limit.space.taken_bytes - before, 12345, 12345 + (1 << 20));
	opd_timeline_end_session(&timeline);
	assert_int_equal(spans[0].nr_nodes, 10);
	check_sums();
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, sink_setup, sink_teardown)
	const struct CMUnitTest tests[] = {
		TEST(spans_add_up),
		TEST(code_has_its_function),
		TEST(samples_belong_to_their_time),
		TEST(a_slow_disk_makes_a_span_longer),
		TEST(places_are_of_their_span),
		TEST(clocks_that_step),
		TEST(no_span_without_sampling),
		TEST(no_memory_for_a_minute),
		TEST(no_memory_to_begin),
		TEST(a_reset_drops_what_was_collected),
		TEST(bounded),
	};
#undef TEST

	return cmocka_run_group_tests_name("timeline_sink", tests, NULL, NULL);
}
