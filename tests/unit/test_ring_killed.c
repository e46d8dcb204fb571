/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A writer process that dies at every step: it is traced and killed after its first, second, third ... instruction, from before
 * a reservation to behind the commit. After each death the reader sees whole records only, in order, and the next writer goes
 * on; what was dropped is told once.
 */
#include <errno.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libop/ring_memory_pair.h"
#include "tests/unit/cmocka_all.h"

#define BYTES 4096u
#define NR_STEPS_MAX 70000 /* in all for a test: sanitizers make of each instruction many, which are then tried at intervals */

struct numbered {
	struct perf_event_header header;
	uint64_t number;
	uint64_t again[6];
};

static int put(struct op_mring_pair_writer *writer, uint64_t number, bool in_page)
{
	struct perf_event_header *place;
	struct numbered *record;
	int err = in_page ? op_mring_pair_reserve_in_page(writer, sizeof(*record), &place) :
			    op_mring_pair_reserve(writer, sizeof(*record), &place);

	if (err < 0)
		return err;
	record = (void *)place;
	record->header.type = PERF_RECORD_SAMPLE;
	record->number = number;
	for (size_t i = 0; i < op_array_size(record->again); i++)
		record->again[i] = number;
	op_mring_pair_commit(writer);
	return 0;
}

/* What the child does between being traced and its end. */
struct work {
	unsigned int flags;
	bool full;    /* the ring is full before, and is read then: the child's record has a LOST record in front */
	bool in_page;
	bool swapped; /* the reader has swapped before */
	bool too_much; /* the child's record finds no room */
};

struct result {
	uint64_t records;
	uint64_t lost;
	uint64_t newest;
};

static void read_ring(struct op_mring_pair_reader *reader, bool backward, struct result *result)
{
	struct op_ring *ring = op_mring_pair_read_ring(reader);
	const struct perf_event_header *header;
	uint64_t before = 0;

	assert_non_null(ring);
	op_ring_begin(ring);
	while ((header = op_ring_next(ring))) {
		const struct numbered *record = (const void *)header;
		uint64_t nr;

		if (header->type == PERF_RECORD_LOST) {
			memcpy(&nr, (const uint8_t *)header + 16, 8);
			result->lost += nr;
			continue;
		}
		assert_int_equal(header->type, PERF_RECORD_SAMPLE);
		assert_int_equal(header->size, sizeof(*record));
		for (size_t i = 0; i < op_array_size(record->again); i++)
			assert_int_equal(record->again[i], record->number);
		if (before)
			assert_true(backward ? record->number < before : record->number > before);
		before = record->number;
		result->newest = op_max_u64(result->newest, record->number);
		result->records++;
	}
	op_ring_end(ring);
	assert_int_equal(ring->damaged, 0);
}

static void read_both(struct op_mring_pair_reader *reader, bool backward, struct result *result)
{
	for (int i = 0; i < 2; i++) {
		read_ring(reader, backward, result);
		assert_int_equal(op_mring_pair_swap(reader), 0);
	}
	read_ring(reader, backward, result);
}

/* The child: opens, waits for its tracer, writes one record, and says so. */
static void write_and_stop(struct op_mring_pair *pair, const struct work *work)
{
	struct op_mring_pair_writer writer;
	int err;

	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0 || op_mring_pair_writer_open(pair, &writer) < 0)
		_exit(77);
	raise(SIGSTOP);
	err = put(&writer, 1000, work->in_page);
	raise(SIGUSR1);
	_exit(err);
}

/* Runs the child for that many instructions and kills it. Returns how many it made until it was through, or nr_steps. */
static long kill_after(struct op_mring_pair *pair, const struct work *work, long nr_steps)
{
	int status;
	long made;
	pid_t pid = fork();

	if (!pid)
		write_and_stop(pair, work);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status))
		return -1;
	for (made = 0; made < nr_steps; made++) {
		if (ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL) < 0)
			break;
		assert_int_equal(waitpid(pid, &status, 0), pid);
		if (!WIFSTOPPED(status) || WSTOPSIG(status) == SIGUSR1)
			break;
	}
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	return made;
}

/* One death: state before, child, state after. Returns what kill_after does. */
static long die_once(const struct work *work, long nr_steps)
{
	bool backward = work->flags & OP_MRING_OVERWRITE;
	struct op_mring_pair_writer writer;
	struct op_mring_pair_reader reader;
	struct result before = { 0 }, after = { 0 };
	struct op_mring_pair pair;
	uint64_t written = 0;
	long made;

	assert_int_equal(op_mring_pair_create(BYTES, work->flags, &pair), 0);
	op_mring_pair_reader_open(&pair, &reader);
	assert_int_equal(op_mring_pair_writer_open(&pair, &writer), 0);
	while (written < (work->full ? 70 : 3) && put(&writer, written + 1, work->in_page) != -ENOSPC)
		written++;
	if (work->swapped) {
		assert_int_equal(op_mring_pair_swap(&reader), 0);
		read_ring(&reader, backward, &before);
	} else if (work->full && !work->too_much && !backward) {
		read_both(&reader, backward, &before);
	}
	op_mring_pair_writer_close(&writer);
	made = kill_after(&pair, work, nr_steps);
	op_mring_pair_writer_died(&pair);
	if (made >= 0) {
		assert_int_equal(op_mring_pair_writer_open(&pair, &writer), 0);
		read_both(&reader, backward, &after);
		assert_int_equal(put(&writer, 2000, work->in_page), 0);
		read_both(&reader, backward, &after);
		assert_int_equal(after.newest, 2000);
		assert_int_equal(before.lost + after.lost, op_mring_pair_dropped(&pair));
		if (!backward)
			assert_in_range(before.records + after.records, written + 1, written + 2);
	}
	op_mring_pair_reader_close(&reader);
	op_mring_pair_destroy(&pair);
	return made;
}

static void die_everywhere(const struct work *work)
{
	long nr_steps = die_once(work, 1000000), stride;

	if (nr_steps < 0)
		skip(); /* may not trace its child */
	assert_true(nr_steps > 10);
	stride = nr_steps * nr_steps / 2 / NR_STEPS_MAX + 1;
	for (long steps = 0; steps <= nr_steps; steps += stride)
		die_once(work, steps);
}

static void dies_in_a_ring_with_room(void **state)
{
	(void)state;
	die_everywhere(&(struct work){ .full = false });
}

static void dies_after_a_swap(void **state)
{
	(void)state;
	die_everywhere(&(struct work){ .swapped = true });
}

static void dies_after_a_swap_with_a_fence(void **state)
{
	(void)state;
	die_everywhere(&(struct work){ .swapped = true, .flags = OP_MRING_FENCE });
}

static void dies_while_it_tells_a_loss(void **state)
{
	(void)state;
	die_everywhere(&(struct work){ .full = true });
}

static void dies_while_it_tells_a_loss_after_a_swap(void **state)
{
	(void)state;
	die_everywhere(&(struct work){ .full = true, .swapped = true });
}

static void dies_in_a_page(void **state)
{
	(void)state;
	die_everywhere(&(struct work){ .full = true, .in_page = true });
}

static void dies_while_it_drops(void **state)
{
	(void)state;
	die_everywhere(&(struct work){ .full = true, .too_much = true });
}

static void dies_while_it_overwrites(void **state)
{
	(void)state;
	die_everywhere(&(struct work){ .full = true, .flags = OP_MRING_OVERWRITE });
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(dies_in_a_ring_with_room),
		cmocka_unit_test(dies_after_a_swap),
		cmocka_unit_test(dies_after_a_swap_with_a_fence),
		cmocka_unit_test(dies_while_it_tells_a_loss),
		cmocka_unit_test(dies_while_it_tells_a_loss_after_a_swap),
		cmocka_unit_test(dies_in_a_page),
		cmocka_unit_test(dies_while_it_drops),
		cmocka_unit_test(dies_while_it_overwrites),
	};

	return cmocka_run_group_tests_name("ring_killed", tests, NULL, NULL);
}
