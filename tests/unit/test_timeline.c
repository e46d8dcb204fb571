/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The timeline: spans in memory, writer and reader of one file, libop/timeline. */
#include "tests/unit/cmocka_all.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libop/base/clock.h"
#include "libop/timeline/append.h"
#include "libop/timeline/decode.h"
#include "libop/timeline/read.h"
#include "tests/unit/disk.h"
#include "tests/unit/test_box.h"

#define TIMELINE   "timeline"
#define NS_PER_MIN (60 * (uint64_t)OP_NS_PER_S)
#define BEGIN_NS   (1700000000 / 60 * NS_PER_MIN)
#define NR_MINUTES 700u
#define NR_MUTANTS 1500
#define NR_KILLS   10
#define TIMER      "TIMER:1000000:0x0"
#define STACKS     "STACKS:10101010:0x0"

static const struct op_encode_limits no_limits;

static void add(struct op_minute *minute, uint32_t event, uint64_t app, uint64_t image, uint64_t value, uint64_t amount)
{
	struct op_minute_step steps[] = {
		{ OP_MINUTE_SAMPLES, event, 0 },
		{ OP_MINUTE_APP, 0, app },
		{ OP_MINUTE_IMAGE, 0, image },
		{ OP_MINUTE_FUNCTION, value, image },
	};

	assert_true(op_minute_add(minute, steps, op_array_size(steps), amount));
}

static void add_stack(struct op_minute *minute, uint32_t event, uint64_t salt, uint64_t amount)
{
	uint32_t comm = op_minute_text(minute, salt % 2 ? "work" : "idle");
	struct op_minute_step steps[4 + 12] = {
		{ OP_MINUTE_STACKS, event, 0 },
		{ OP_MINUTE_APP, 0, 1 + salt % 3 },
		{ OP_MINUTE_COMM, comm, 0 },
		{ OP_MINUTE_THREAD, (5ull << 32) | (salt % 4), salt % 3 },
	};
	size_t nr = 4;

	for (uint64_t i = 0; i < 2 + salt % 11; i++)
		steps[nr++] = (struct op_minute_step){
			.kind = i > 7 ? OP_MINUTE_KERNEL_PLACE : OP_MINUTE_FUNCTION,
			.value = 0x1000 + (salt * i % 37) * 64,
			.image = 7 + i % 3,
		};
	assert_true(op_minute_add(minute, steps, nr, amount));
}

/* The event WAIT: microseconds by state, with the number of records. */
static void add_waits(struct op_minute *minute)
{
	struct op_minute_step steps[] = {
		{ OP_MINUTE_STACKS, 0, 0 }, { OP_MINUTE_APP, 0, 2 },             { OP_MINUTE_END, 1, 0 },
		{ OP_MINUTE_STATE, 0, 0 },  { OP_MINUTE_FUNCTION, 0x400, 8 }, { OP_MINUTE_RUNTIME, 0, 0 },
		{ OP_MINUTE_RUNTIME, 0, 0 }, { OP_MINUTE_KERNEL_PLACE, 0x1000, 9 },
	};
	uint32_t waits;

	assert_int_equal(op_minute_event(minute, "WAIT:1:0x0", OP_UNIT_MICROSECONDS, 5, &waits), 0);
	steps[0].value = waits;
	steps[5].value = op_minute_text(minute, "python\037/a.py\037main\0371");
	steps[6].value = op_minute_text(minute, "python\037/a.py\037work\0379");
	for (uint32_t state = 1; state < 4; state++) {
		steps[3].value = state;
		assert_true(op_minute_add_waits(minute, steps, op_array_size(steps), 1000 * state, (uint16_t)state));
	}
}

/* The i-th minute: known sums, and functions that come and go. */
static void fill(struct op_minute *minute, uint32_t i)
{
	uint32_t timer, stacks;

	op_minute_clear(minute);
	assert_int_equal(op_minute_event(minute, TIMER, OP_UNIT_SAMPLES, 0, &timer), 0);
	assert_int_equal(op_minute_event(minute, STACKS, OP_UNIT_SAMPLES, 3, &stacks), 0);
	for (uint32_t k = 0; k < 40; k++)
		add(minute, timer, 1 + k % 3, 7 + k % 5, 0x400 + 16ull * (k * (i + 1) % 97), 1 + k % 4);
	for (uint32_t k = 0; k < 30; k++)
		add_stack(minute, stacks, k * (i + 1) % 53, 1);
	if (i % 2)
		add_waits(minute);
	assert_int_equal(op_minute_add_row(minute, timer, "before", 100 * (int64_t)i), 0);
	assert_int_equal(op_minute_add_row(minute, timer, "stored", 100), 0);
	assert_int_equal(op_minute_add_row(minute, stacks, "stored", 30), 0);
	assert_int_equal(op_minute_add_row(minute, stacks, "lost_kernel", -2), 0);
	assert_int_equal(op_minute_add_context(minute, OP_CONTEXT_CPU_BUSY, 0, 250), 0);
	assert_int_equal(op_minute_add_context(minute, OP_CONTEXT_CPU_BUSY, 1, i % 1001), 0);
	assert_int_equal(op_minute_add_context(minute, OP_CONTEXT_PSI, 2, 17), 0);
	assert_int_equal(op_minute_add_context(minute, OP_CONTEXT_MEMORY, 1, 1u << 20), 0);
	minute->begin = (struct op_timeline_clocks){ BEGIN_NS + i * NS_PER_MIN, (i + 9) * NS_PER_MIN, (i + 5) * NS_PER_MIN };
	minute->end = (struct op_timeline_clocks){ BEGIN_NS + (i + 1) * NS_PER_MIN, (i + 10) * NS_PER_MIN, (i + 6) * NS_PER_MIN };
	minute->gap = i ? OP_GAP_NONE : OP_GAP_FIRST;
}

static struct op_timeline_writer *open_writer(const struct box *box)
{
	struct op_timeline_writer *writer;

	assert_int_equal(op_timeline_append_open(box->fd, TIMELINE, &writer, NULL), 0);
	return writer;
}

static void write_minutes(const struct box *box, uint32_t first, uint32_t nr)
{
	struct op_timeline_writer *writer = open_writer(box);
	struct op_minute minute;

	assert_int_equal(op_minute_init(&minute, 0), 0);
	for (uint32_t i = first; i < first + nr; i++) {
		fill(&minute, i);
		assert_int_equal(op_timeline_append(writer, &minute, &no_limits), 0);
	}
	op_minute_free(&minute);
	op_timeline_append_close(writer);
}

static struct op_timeline *open_reader(const struct box *box, uint64_t since_ns, uint64_t until_ns)
{
	struct op_timeline *timeline;

	assert_int_equal(op_timeline_open(box->fd, TIMELINE, &timeline), 0);
	assert_int_equal(op_timeline_select(timeline, since_ns, until_ns), 0);
	return timeline;
}

static uint64_t total(const struct op_minute *minute, uint32_t kind, uint32_t event)
{
	uint64_t sum = 0;

	assert_int_equal(op_minute_total(minute, kind, event, &sum), 0);
	return sum;
}

/* The number of blocks that can be read; each of them is the minute that it says it is. */
static uint32_t check_minutes(const struct box *box, uint64_t since_ns, uint64_t until_ns, uint32_t first)
{
	struct op_timeline *timeline = open_reader(box, since_ns, until_ns);
	struct op_minute minute;
	uint32_t nr = 0;
	int err;

	assert_int_equal(op_minute_init(&minute, 0), 0);
	while (!(err = op_timeline_next(timeline, &minute))) {
		assert_int_equal(minute.begin.wall_ns, BEGIN_NS + (first + nr) * NS_PER_MIN);
		assert_int_equal(minute.nr_events, 2 + (first + nr) % 2);
		assert_int_equal(total(&minute, OP_MINUTE_STACKS, 2), (first + nr) % 2 * 6000);
		assert_int_equal(total(&minute, OP_MINUTE_SAMPLES, 0), 100);
		assert_int_equal(total(&minute, OP_MINUTE_STACKS, 1), 30);
		assert_int_equal(total(&minute, OP_MINUTE_STACKS, 0), 0);
		nr++;
	}
	assert_int_equal(err, -ENODATA);
	op_minute_free(&minute);
	op_timeline_close(timeline);
	return nr;
}

/* ---- a span as bytes ---- */

static int compare_lines(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void print_path(FILE *stream, const struct op_minute *minute, uint32_t at)
{
	for (; at; at = minute->nodes[at].parent) {
		const struct op_minute_node *node = &minute->nodes[at];
		const char *name = "";

		if (node->kind == OP_MINUTE_COMM || node->kind == OP_MINUTE_CGROUP)
			name = minute->texts[node->value];
		else if (node->kind == OP_MINUTE_SAMPLES || node->kind == OP_MINUTE_STACKS)
			name = minute->texts[minute->events[node->value].text];
		fprintf(stream, "%u:%s%llx@%llx<", node->kind, name, *name ? 0 : (unsigned long long)node->value,
			(unsigned long long)node->image);
	}
}

/* The nodes with a weight, a line each, sorted. */
static char *text_of(const struct op_minute *minute)
{
	char **lines = calloc(minute->nr_nodes, sizeof(*lines)), *text;
	size_t nr = 0, size;
	FILE *stream;

	for (uint32_t i = 1; i < minute->nr_nodes; i++) {
		if (!minute->nodes[i].self && !minute->nodes[i].rest)
			continue;
		stream = open_memstream(&lines[nr++], &size);
		print_path(stream, minute, i);
		fprintf(stream, " %llu+%llu", (unsigned long long)minute->nodes[i].self, (unsigned long long)minute->nodes[i].rest);
		fclose(stream);
	}
	qsort(lines, nr, sizeof(*lines), compare_lines);
	stream = open_memstream(&text, &size);
	for (size_t i = 0; i < nr; i++) {
		fprintf(stream, "%s\n", lines[i]);
		free(lines[i]);
	}
	fclose(stream);
	free(lines);
	return text;
}

static void assert_same(const struct op_minute *a, const struct op_minute *b)
{
	char *text_a = text_of(a), *text_b = text_of(b);

	assert_string_equal(text_a, text_b);
	free(text_a);
	free(text_b);
	assert_int_equal(a->nr_rows, b->nr_rows);
	for (uint32_t i = 0; i < a->nr_rows; i++) {
		assert_int_equal(a->rows[i].amount, b->rows[i].amount);
		assert_string_equal(a->texts[a->rows[i].text], b->texts[b->rows[i].text]);
	}
	assert_int_equal(a->nr_context, b->nr_context);
	assert_memory_equal(a->context, b->context, a->nr_context * sizeof(*a->context));
}

static void encode_and_decode(const struct op_minute *minute, const struct op_encode_limits *limits, struct op_minute *ret_read)
{
	struct op_bytes bytes = { 0 };

	assert_int_equal(op_minute_encode(minute, limits, &bytes), 0);
	assert_int_equal(op_minute_init(ret_read, 0), 0);
	assert_int_equal(op_minute_decode(ret_read, bytes.data, bytes.length), 0);
	ret_read->begin = minute->begin;
	ret_read->end = minute->end;
	op_bytes_free(&bytes);
}

static void test_round_trip(void **state OP_UNUSED)
{
	struct op_minute minute, read;

	assert_int_equal(op_minute_init(&minute, 0), 0);
	for (uint32_t i = 0; i < 20; i++) {
		fill(&minute, i);
		encode_and_decode(&minute, &no_limits, &read);
		assert_same(&minute, &read);
		op_minute_free(&read);
	}
	op_minute_clear(&minute);
	encode_and_decode(&minute, &no_limits, &read);
	assert_int_equal(read.nr_nodes, 1);
	op_minute_free(&read);
	op_minute_free(&minute);
}

/* Two places in one bucket are one, functions are not. */
static void test_buckets(void **state OP_UNUSED)
{
	struct op_minute_step steps[] = { { OP_MINUTE_SAMPLES, 0, 0 }, { OP_MINUTE_IMAGE, 0, 7 }, { OP_MINUTE_PLACE, 0x1003, 7 } };
	struct op_minute minute;
	uint32_t event, nr_nodes;

	assert_int_equal(op_minute_init(&minute, 0), 0);
	assert_int_equal(op_minute_event(&minute, TIMER, OP_UNIT_MICROSECONDS, 0, &event), 0);
	assert_true(op_minute_add(&minute, steps, 3, 1));
	nr_nodes = minute.nr_nodes;
	steps[2].value = 0x103f;
	assert_true(op_minute_add(&minute, steps, 3, 2));
	assert_int_equal(minute.nr_nodes, nr_nodes);
	assert_int_equal(minute.nodes[nr_nodes - 1].value, 0x1003);
	assert_int_equal(minute.nodes[nr_nodes - 1].self, 3);
	steps[2].value = 0x1040;
	assert_true(op_minute_add(&minute, steps, 3, 2));
	steps[2].kind = OP_MINUTE_FUNCTION;
	assert_true(op_minute_add(&minute, steps, 3, 2));
	steps[2].value = 0x1041;
	assert_true(op_minute_add(&minute, steps, 3, 2));
	assert_int_equal(minute.nr_nodes, nr_nodes + 3);
	op_minute_free(&minute);
}

/* Of all nodes those with the largest shares are kept; no weight is lost, also by application. */
static void test_small_entries(void **state OP_UNUSED)
{
	static const struct op_encode_limits limits = { .max_samples = 60, .max_stacks = 50 };
	uint64_t by_app[8] = { 0 }, read_by_app[8] = { 0 }, nr[2] = { 0 };
	struct op_minute minute, read;
	uint32_t event, rare;

	assert_int_equal(op_minute_init(&minute, 0), 0);
	fill(&minute, 3);
	assert_int_equal(op_minute_event(&minute, TIMER, OP_UNIT_SAMPLES, 0, &event), 0);
	assert_int_equal(op_minute_event(&minute, "page-faults:1:0x0", OP_UNIT_SAMPLES, 0, &rare), 0);
	for (uint64_t i = 0; i < 2000; i++)
		add(&minute, event, 1 + i % 7, 7 + i % 5, 0x10000 + 16 * i, 1 + 100 * !(i % 100));
	for (uint64_t i = 0; i < 500; i++)
		add_stack(&minute, 1, 1000 + i * 7, 1);
	add(&minute, rare, 5, 7, 0x40, 1);
	encode_and_decode(&minute, &limits, &read);
	for (uint32_t i = 1; i < read.nr_nodes; i++) {
		uint32_t at = i;

		while (read.nodes[at].parent)
			at = read.nodes[at].parent;
		nr[read.nodes[at].kind == OP_MINUTE_STACKS]++;
	}
	assert_in_range(nr[0], 50, 60);
	assert_in_range(nr[1], 40, 50);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(total(&read, OP_MINUTE_SAMPLES, i), total(&minute, OP_MINUTE_SAMPLES, i));
		assert_int_equal(total(&read, OP_MINUTE_STACKS, i), total(&minute, OP_MINUTE_STACKS, i));
	}
	for (uint32_t pass = 0; pass < 2; pass++) {
		const struct op_minute *of = pass ? &read : &minute;

		for (uint32_t i = 1; i < of->nr_nodes; i++) {
			uint64_t app = 0;

			for (uint32_t at = i; at; at = of->nodes[at].parent)
				app = of->nodes[at].kind == OP_MINUTE_APP ? of->nodes[at].image : app;
			(pass ? read_by_app : by_app)[app] += of->nodes[i].self + of->nodes[i].rest;
		}
	}
	assert_memory_equal(by_app, read_by_app, sizeof(by_app));
	op_minute_free(&read);
	op_minute_free(&minute);
}

/* A span that is full adds to the rest of what it has. */
static void test_no_room(void **state OP_UNUSED)
{
	struct op_minute minute;
	struct op_minute_step steps[] = { { OP_MINUTE_SAMPLES, 0, 0 }, { OP_MINUTE_APP, 0, 0 }, { OP_MINUTE_IMAGE, 0, 7 } };
	uint32_t event, nr_full = 0;

	assert_int_equal(op_minute_init(&minute, 20), 0);
	assert_int_equal(op_minute_event(&minute, TIMER, OP_UNIT_SAMPLES, 0, &event), 0);
	for (uint64_t i = 0; i < 100; i++) {
		steps[1].image = 1 + i;
		nr_full += !op_minute_add(&minute, steps, 3, 1);
	}
	assert_int_equal(minute.nr_nodes, 20);
	assert_int_equal(nr_full, 100 - 17 / 2);
	assert_int_equal(total(&minute, OP_MINUTE_SAMPLES, event), 100);
	op_minute_free(&minute);
}

/* An hour of minutes: all weights, the first "before", the sums of the context. */
static void test_merge(void **state OP_UNUSED)
{
	struct op_minute minute, hour, read;

	assert_int_equal(op_minute_init(&minute, 0), 0);
	assert_int_equal(op_minute_init(&hour, 0), 0);
	for (uint32_t i = 7; i < 67; i++) {
		fill(&minute, i);
		minute.context[1].value = i;
		encode_and_decode(&minute, &no_limits, &read);
		assert_int_equal(op_minute_merge(&hour, &read), 0);
		op_minute_free(&read);
	}
	assert_int_equal(hour.begin.wall_ns, BEGIN_NS + 7 * NS_PER_MIN);
	assert_int_equal(hour.end.wall_ns, BEGIN_NS + 67 * NS_PER_MIN);
	assert_int_equal(total(&hour, OP_MINUTE_SAMPLES, 0), 6000);
	assert_int_equal(total(&hour, OP_MINUTE_STACKS, 1), 1800);
	assert_int_equal(hour.nr_rows, 4);
	assert_int_equal(hour.rows[0].amount, 700);
	assert_int_equal(hour.rows[1].amount, 6000);
	assert_int_equal(hour.rows[3].amount, -120);
	assert_int_equal(hour.context[0].value, 60 * 250);
	assert_int_equal(hour.context[1].value, 60 * (7 + 66) / 2);
	assert_int_equal(hour.context[2].value, 60 * 17);
	/* the same nodes as one span that had all at once */
	op_minute_clear(&minute);
	for (uint32_t i = 7; i < 67; i++) {
		struct op_minute one;

		assert_int_equal(op_minute_init(&one, 0), 0);
		fill(&one, i);
		assert_int_equal(op_minute_merge(&minute, &one), 0);
		op_minute_free(&one);
	}
	encode_and_decode(&hour, &no_limits, &read);
	minute.nr_context = hour.nr_context = read.nr_context = 0;
	assert_same(&minute, &hour);
	assert_same(&minute, &read);
	op_minute_free(&read);
	op_minute_free(&hour);
	op_minute_free(&minute);
}

/* ---- files ---- */

static uint64_t nr_reads;

int __real_op_file_read_at(int fd, void *bytes, size_t nr_bytes, off_t offset, size_t *ret_nr_read);
int __wrap_op_file_read_at(int fd, void *bytes, size_t nr_bytes, off_t offset, size_t *ret_nr_read);
int __wrap_op_file_read_at(int fd, void *bytes, size_t nr_bytes, off_t offset, size_t *ret_nr_read)
{
	nr_reads++;
	return __real_op_file_read_at(fd, bytes, nr_bytes, offset, ret_nr_read);
}

static void check_ends(const struct box *box)
{
	struct op_timeline *timeline = open_reader(box, 0, 0);
	struct op_block first, last;

	nr_reads = 0;
	assert_int_equal(op_timeline_ends(timeline, &first, &last), 0);
	assert_true(nr_reads < 10);
	assert_int_equal(first.tail.begin.wall_ns, BEGIN_NS);
	assert_int_equal(last.tail.end.wall_ns, BEGIN_NS + NR_MINUTES * NS_PER_MIN);
	op_timeline_close(timeline);
}

/* Any window has its minutes; the index leads to them with few reads. */
static void test_windows(void **state)
{
	static const uint32_t windows[][2] = { { 0, 1 }, { 0, 10 }, { 1, 2 }, { 63, 66 }, { 400, 410 }, { 690, 700 }, { 0, 700 } };
	const struct box *box = *state;

	write_minutes(box, 0, NR_MINUTES / 2);
	write_minutes(box, NR_MINUTES / 2, NR_MINUTES - NR_MINUTES / 2);
	assert_int_equal(check_minutes(box, 0, UINT64_MAX, 0), NR_MINUTES);
	for (size_t i = 0; i < op_array_size(windows); i++) {
		uint32_t first = windows[i][0], end = windows[i][1], nr;

		nr_reads = 0;
		nr = check_minutes(box, BEGIN_NS + first * NS_PER_MIN, BEGIN_NS + end * NS_PER_MIN, first);
		assert_int_equal(nr, end - first);
		assert_true(nr_reads < 150 + 8 * (end - first));
	}
	check_ends(box);
	/* a part of a minute is the whole minute */
	assert_int_equal(check_minutes(box, BEGIN_NS + 5 * NS_PER_MIN - 1, BEGIN_NS + 6 * NS_PER_MIN + 1, 4), 3);
	assert_int_equal(check_minutes(box, BEGIN_NS + NS_PER_MIN / 2, BEGIN_NS + NS_PER_MIN / 2 + 1, 0), 1);
	assert_int_equal(check_minutes(box, 0, BEGIN_NS, 0), 0);
	assert_int_equal(check_minutes(box, BEGIN_NS + NR_MINUTES * NS_PER_MIN, UINT64_MAX, 0), 0);
}

/* The wall clock goes back an hour after minute 100: what was written is found once. */
static void test_clock_set_back(void **state)
{
	const struct box *box = *state;
	struct op_timeline_writer *writer = open_writer(box);
	struct op_timeline *timeline;
	struct op_minute minute;
	uint32_t nr = 0;

	assert_int_equal(op_minute_init(&minute, 0), 0);
	for (uint32_t i = 0; i < 200; i++) {
		fill(&minute, i);
		minute.begin.wall_ns -= i < 100 ? 0 : 60 * NS_PER_MIN;
		minute.end.wall_ns -= i < 100 ? 0 : 60 * NS_PER_MIN;
		assert_int_equal(op_timeline_append(writer, &minute, &no_limits), 0);
	}
	op_timeline_append_close(writer);
	timeline = open_reader(box, BEGIN_NS + 50 * NS_PER_MIN, BEGIN_NS + 60 * NS_PER_MIN);
	for (; !op_timeline_next(timeline, &minute); nr++)
		assert_int_equal(minute.begin.mono_ns, ((nr < 10 ? 50 : 100) + nr + 5) * NS_PER_MIN);
	assert_int_equal(nr, 20);
	op_timeline_close(timeline);
	timeline = open_reader(box, BEGIN_NS + 10 * NS_PER_MIN, BEGIN_NS + 20 * NS_PER_MIN);
	assert_int_equal(op_timeline_nr_selected(timeline), 10);
	op_timeline_close(timeline);
	op_minute_free(&minute);
}

static uint64_t file_bytes(const struct box *box)
{
	struct stat st;

	assert_int_equal(fstatat(box->fd, TIMELINE, &st, 0), 0);
	return (uint64_t)st.st_size;
}

static void cut_file(const struct box *box, uint64_t nr_bytes)
{
	int fd = openat(box->fd, TIMELINE, O_RDWR);

	assert_int_equal(ftruncate(fd, (off_t)nr_bytes), 0);
	close(fd);
}

static void put_bytes(const struct box *box, uint64_t offset, const void *bytes, size_t nr_bytes)
{
	int fd = openat(box->fd, TIMELINE, O_RDWR);

	assert_int_equal(pwrite(fd, bytes, nr_bytes, (off_t)offset), nr_bytes);
	close(fd);
}

/* Cut anywhere in its last block the file has the blocks before, and the writer goes on. */
static void test_torn(void **state)
{
	const struct box *box = *state;
	uint64_t before, whole;

	write_minutes(box, 0, 11);
	before = file_bytes(box);
	write_minutes(box, 11, 1);
	whole = file_bytes(box);
	for (uint64_t at = whole - 1; at >= before; at -= at - before < 8 || whole - at < 120 ? 1 : 97) {
		struct op_timeline_writer *writer;
		uint64_t nr_cut;

		cut_file(box, at);
		assert_int_equal(check_minutes(box, 0, UINT64_MAX, 0), 11);
		assert_int_equal(op_timeline_append_open(box->fd, TIMELINE, &writer, &nr_cut), 0);
		assert_int_equal(nr_cut, at - before);
		assert_int_equal(op_timeline_append_nr_blocks(writer), 11);
		op_timeline_append_close(writer);
		assert_int_equal(file_bytes(box), before);
		write_minutes(box, 11, 1);
		assert_int_equal(check_minutes(box, 0, UINT64_MAX, 0), 12);
		if (at - before < 97 && at - before >= 8)
			at = before + 9;
	}
	for (uint64_t at = 0; at < sizeof(struct op_timeline_header); at++) {
		cut_file(box, at);
		assert_int_equal(check_minutes(box, 0, UINT64_MAX, 0), 0);
		write_minutes(box, 0, 3);
		assert_int_equal(check_minutes(box, 0, UINT64_MAX, 0), 3);
	}
}

/* Damage takes the block that has it, whatever it hits; the writer goes on behind the others. */
static void test_damage_in_the_middle(void **state)
{
	const struct box *box = *state;
	struct op_timeline *timeline;
	struct op_minute minute;
	struct op_block block;
	uint64_t offset, spots[4];
	char old;
	int fd;

	write_minutes(box, 0, 40);
	timeline = open_reader(box, 0, UINT64_MAX);
	assert_int_equal(op_timeline_block(timeline, 20, &block), 0);
	op_timeline_close(timeline);
	spots[0] = block.offset;
	spots[1] = block.offset + 100;
	spots[2] = block.end - 1;
	spots[3] = block.end - 100;
	assert_int_equal(op_minute_init(&minute, 0), 0);
	fd = openat(box->fd, TIMELINE, O_RDONLY);
	for (size_t i = 0; i < op_array_size(spots); i++) {
		uint32_t nr = 0;

		assert_int_equal(pread(fd, &old, 1, (off_t)spots[i]), 1);
		put_bytes(box, spots[i], (char[]){ (char)(old ^ 0x55) }, 1);
		timeline = open_reader(box, 0, UINT64_MAX);
		while (!op_timeline_next(timeline, &minute))
			nr++;
		assert_int_equal(nr, 39 + i);
		assert_int_equal(op_timeline_nr_damaged(timeline, &offset), 1);
		assert_int_equal(offset, block.offset);
		op_timeline_close(timeline);
		write_minutes(box, 40 + (uint32_t)i, 1);
		put_bytes(box, spots[i], &old, 1);
	}
	close(fd);
	op_minute_free(&minute);
	assert_int_equal(check_minutes(box, 0, UINT64_MAX, 0), 44);
}

/* Whatever bytes are changed: the reader comes to an end, and leaves out at most what they hit. */
static void test_mutants(void **state)
{
	const struct box *box = *state;
	struct op_minute minute;
	uint8_t *sound;
	uint64_t nr_bytes;
	int fd;

	write_minutes(box, 0, 30);
	nr_bytes = file_bytes(box);
	sound = malloc(nr_bytes);
	fd = openat(box->fd, TIMELINE, O_RDONLY);
	assert_int_equal(pread(fd, sound, nr_bytes, 0), nr_bytes);
	close(fd);
	srand(1);
	assert_int_equal(op_minute_init(&minute, 0), 0);
	for (int i = 0; i < NR_MUTANTS; i++) {
		uint64_t at = 16 + (uint64_t)rand() % (nr_bytes - 24), value = (uint64_t)rand() << (rand() % 40);
		struct op_timeline *timeline = NULL;
		uint32_t nr = 0;

		put_bytes(box, at, &value, 1 + (size_t)rand() % 8);
		timeline = open_reader(box, 0, UINT64_MAX);
		while (!op_timeline_next(timeline, &minute))
			nr++;
		assert_in_range(nr, 28, 30);
		op_timeline_close(timeline);
		put_bytes(box, at, sound + at, 8);
	}
	op_minute_free(&minute);
	free(sound);
	assert_int_equal(check_minutes(box, 0, UINT64_MAX, 0), 30);
}

static void test_other_files(void **state)
{
	const struct box *box = *state;
	struct op_timeline_writer *writer;
	struct op_timeline *timeline;

	assert_int_equal(op_timeline_open(box->fd, TIMELINE, &timeline), -ENOENT);
	assert_int_equal(mkfifoat(box->fd, TIMELINE, 0600), 0);
	assert_int_equal(op_timeline_open(box->fd, TIMELINE, &timeline), -EBADMSG);
	assert_int_equal(op_timeline_append_open(box->fd, TIMELINE, &writer, NULL), -EBADMSG);
	assert_int_equal(unlinkat(box->fd, TIMELINE, 0), 0);
	assert_int_equal(symlinkat("/dev/zero", box->fd, TIMELINE), 0);
	assert_int_equal(op_timeline_open(box->fd, TIMELINE, &timeline), -ELOOP);
	assert_int_equal(op_timeline_append_open(box->fd, TIMELINE, &writer, NULL), -ELOOP);
	assert_int_equal(unlinkat(box->fd, TIMELINE, 0), 0);
	close(openat(box->fd, TIMELINE, O_CREAT | O_WRONLY, 0600));
	put_bytes(box, 0, "opdtime2 of the future", 22);
	assert_int_equal(op_timeline_open(box->fd, TIMELINE, &timeline), -EBADMSG);
	assert_int_equal(op_timeline_append_open(box->fd, TIMELINE, &writer, NULL), -EBADMSG);
	assert_int_equal(file_bytes(box), 22);
}

/* A disk that refuses leaves the file as it was; when it has room, the next minute is written. */
static void test_full_disk(void **state)
{
	const struct box *box = *state;
	struct op_timeline_writer *writer;
	struct op_minute minute;

	write_minutes(box, 0, 3);
	writer = open_writer(box);
	assert_int_equal(op_minute_init(&minute, 0), 0);
	fill(&minute, 3);
	disk_fails.fsync = -EIO;
	assert_int_equal(op_timeline_append(writer, &minute, &no_limits), -EIO);
	disk_fails.ftruncate = -EIO; /* the block stays, and is overwritten */
	assert_int_equal(op_timeline_append(writer, &minute, &no_limits), -EIO);
	disk_fails.fsync = disk_fails.ftruncate = 0;
	assert_int_equal(op_timeline_append(writer, &minute, &no_limits), 0);
	op_minute_free(&minute);
	op_timeline_append_close(writer);
	assert_int_equal(check_minutes(box, 0, UINT64_MAX, 0), 4);
}

/* A writer that is killed leaves all minutes that it has said to be on the disk. */
static void test_kill(void **state)
{
	const struct box *box = *state;

	for (unsigned int i = 0; i < NR_KILLS; i++) {
		int said[2], status;
		uint32_t nr = 0;
		pid_t pid;

		(void)!unlinkat(box->fd, TIMELINE, 0);
		assert_int_equal(pipe(said), 0);
		pid = fork();
		if (!pid) {
			for (uint32_t k = 0;; k++) {
				write_minutes(box, k, 1);
				(void)!write(said[1], "", 1);
			}
		}
		close(said[1]);
		for (char c; nr <= 3 * i && read(said[0], &c, 1) == 1;)
			nr++;
		usleep(rand() % 1000);
		kill(pid, SIGKILL);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		for (char c; read(said[0], &c, 1) == 1;)
			nr++;
		close(said[0]);
		assert_in_range(check_minutes(box, 0, UINT64_MAX, 0), nr, nr + 1);
		nr = check_minutes(box, 0, UINT64_MAX, 0);
		write_minutes(box, nr, 1);
		assert_int_equal(check_minutes(box, 0, UINT64_MAX, 0), nr + 1);
	}
}

/* What packs too well for the rule against bombs is stored as it is. */
static void test_ratio(void **state)
{
	const struct box *box = *state;
	struct op_timeline_writer *writer = open_writer(box);
	struct op_timeline *timeline;
	struct op_minute minute, read;
	struct op_block block;
	uint32_t event;

	assert_int_equal(op_minute_init(&minute, 0), 0);
	assert_int_equal(op_minute_init(&read, 0), 0);
	assert_int_equal(op_minute_event(&minute, TIMER, OP_UNIT_SAMPLES, 0, &event), 0);
	for (uint64_t i = 0; i < 100000; i++)
		add(&minute, event, 1, 1, 16 * i, 1);
	assert_int_equal(op_timeline_append(writer, &minute, &no_limits), 0);
	op_timeline_append_close(writer);
	timeline = open_reader(box, 0, UINT64_MAX);
	assert_int_equal(op_timeline_block(timeline, 0, &block), 0);
	assert_int_equal(block.tail.packed_bytes, block.tail.raw_bytes);
	assert_int_equal(op_timeline_next(timeline, &read), 0);
	assert_int_equal(total(&read, OP_MINUTE_SAMPLES, event), 100000);
	op_timeline_close(timeline);
	op_minute_free(&read);
	op_minute_free(&minute);
}

/* test_timeline DIRECTORY FIRST NUMBER writes minutes for test_timeline_files.py. */
static int write_to(const char *directory, uint32_t first, uint32_t nr)
{
	struct box box = { .fd = open(directory, O_RDONLY | O_DIRECTORY) };

	if (box.fd < 0)
		return 1;
	write_minutes(&box, first, nr);
	close(box.fd);
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_buckets),
		cmocka_unit_test(test_small_entries),
		cmocka_unit_test(test_no_room),
		cmocka_unit_test(test_merge),
		box_test(test_windows),
		box_test(test_clock_set_back),
		box_test(test_torn),
		box_test(test_damage_in_the_middle),
		box_test(test_mutants),
		box_test(test_other_files),
		box_test(test_full_disk),
		box_test(test_kill),
		box_test(test_ratio),
	};

	if (argc == 4)
		return write_to(argv[1], (uint32_t)strtoul(argv[2], NULL, 10), (uint32_t)strtoul(argv[3], NULL, 10));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
