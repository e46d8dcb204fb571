/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Kernel rings that overflow again and again: what LOST records report, what PERF_FORMAT_LOST
 * counts, and what the ring has all the same. See "Loss" in doc/ring.md.
 */
#include <pthread.h>
#include <stdlib.h>
#include <sys/ioctl.h>

#include "tests/unit/kernel_events.h"

#define RING_BYTES 4096u /* 85 samples of 48 bytes */
#define EPISODES   300
#define CLOCK_NS   50000

enum kind {
	FAULTS,
	SWITCHES,
	CLOCK,
	NR_KINDS,
};

static const struct {
	uint64_t config, period;
} kinds[NR_KINDS] = {
	[FAULTS] = { PERF_COUNT_SW_PAGE_FAULTS, 1 },
	[SWITCHES] = { PERF_COUNT_SW_CONTEXT_SWITCHES, 1 },
	[CLOCK] = { PERF_COUNT_SW_CPU_CLOCK, CLOCK_NS },
};

struct event {
	int fd; /* -1: not opened */
	uint64_t id;
	uint64_t samples;
	uint64_t told;    /* reported by LOST records with its identifier */
	uint64_t last_ns; /* time of its last sample */
};

struct box {
	struct op_ring_pair pair;
	struct event events[NR_KINDS];
	struct faults faults;
	unsigned int seed;
	uint64_t told;       /* reported by all LOST records */
	uint64_t told_since; /* reported since the last numbered fault */
	uint64_t next;       /* the next expected number of a fault */
	uint64_t missing;    /* numbers that are missing and not reported as lost at their place */
	/* not 0: the seed of a reader that sometimes stops in the middle of a ring */
	unsigned int stalls;
	/* rings are left unread over a swap: records are in order in a ring and not beyond it */
	bool by_turns;
};

/* ---- events ---- */

static void open_event(struct box *box, enum kind kind, int cpu)
{
	struct event *event = &box->events[kind];

	event->fd = open_thread_event(kinds[kind].config, kinds[kind].period, cpu);
	assert_true(event->fd >= 0);
	assert_int_equal(op_sys_ioctl(event->fd, PERF_EVENT_IOC_ID, &event->id), 0);
	assert_int_equal(op_ring_pair_attach(&box->pair, event->fd), 0);
}

/* The calling thread owns the events. */
static void open_box(struct box *box, unsigned int of_kinds)
{
	int cpu = pin_to_a_cpu();

	*box = (struct box){ .seed = 4711 };
	faults_open(&box->faults);
	assert_int_equal(op_ring_pair_open(cpu, RING_BYTES, RING_BYTES / 2, &box->pair), 0);
	for (enum kind kind = 0; kind < NR_KINDS; kind++) {
		box->events[kind].fd = -1;
		if (of_kinds & 1u << kind)
			open_event(box, kind, cpu);
	}
}

static void close_box(struct box *box)
{
	for (enum kind kind = 0; kind < NR_KINDS; kind++)
		if (box->events[kind].fd >= 0)
			close(box->events[kind].fd);
	op_ring_pair_close(&box->pair);
	faults_close(&box->faults);
}

static void enable_one(const struct event *event, bool on)
{
	assert_int_equal(op_sys_ioctl(event->fd, on ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, NULL), 0);
}

static void enable(const struct box *box, bool on)
{
	for (enum kind kind = 0; kind < NR_KINDS; kind++)
		if (box->events[kind].fd >= 0)
			enable_one(&box->events[kind], on);
}

static void take_faults(struct box *box, uint64_t nr)
{
	enable(box, true);
	faults_take(&box->faults, nr);
	enable(box, false);
	faults_forget(&box->faults);
}

static void take_switches(const struct box *box, unsigned int nr)
{
	enable(box, true);
	for (unsigned int i = 0; i < nr; i++)
		switch_context();
	enable(box, false);
}

static uint64_t counted_lost(const struct box *box)
{
	uint64_t sum = 0, taken, lost;

	for (enum kind kind = 0; kind < NR_KINDS; kind++) {
		if (box->events[kind].fd < 0)
			continue;
		read_event(box->events[kind].fd, &taken, &lost);
		sum += lost;
	}
	return sum;
}

/* ---- records ---- */

static struct event *event_by_id(struct box *box, uint64_t id)
{
	for (enum kind kind = 0; kind < NR_KINDS; kind++)
		if (box->events[kind].fd >= 0 && box->events[kind].id == id)
			return &box->events[kind];
	return NULL;
}

static void see_fault(struct box *box, uint64_t number)
{
	uint64_t gap = number - box->next;

	assert_true(number >= box->next);
	if (gap > box->told_since)
		box->missing += gap - box->told_since;
	box->told_since = 0;
	box->next = number + 1;
}

/*
 * The identifier may belong to another profiler's event of the same kind (doc/ring.md). Then the
 * address identifies the sample.
 */
static void see_sample(struct box *box, const struct perf_event_header *header)
{
	struct op_sample sample;
	struct event *event;
	uint64_t address, number;

	assert_int_equal(op_record_sample(header, &sample), 0);
	memcpy(&address, (const uint8_t *)header + 40, sizeof(address));
	event = event_by_id(box, sample.id);
	if (event) {
		assert_true(sample.time_ns >= event->last_ns || box->by_turns);
		event->last_ns = sample.time_ns;
	} else {
		event = &box->events[address ? FAULTS : SWITCHES];
	}
	event->samples++;
	if (faults_number(&box->faults, address, &number) && !box->by_turns)
		see_fault(box, number);
}

static void see_lost(struct box *box, const struct perf_event_header *header)
{
	struct op_lost_record lost;
	struct event *event;

	assert_int_equal(op_record_lost(header, &lost), 0);
	event = event_by_id(box, lost.id);
	if (!event) {
		fail_msg("a LOST record with identifier %llu", (unsigned long long)lost.id);
		return;
	}
	event->told += lost.lost;
	box->told += lost.lost;
	box->told_since += lost.lost;
}

static void stall(unsigned int *seed)
{
	if (*seed && rand_r(seed) % 200 == 0)
		nanosleep(&(struct timespec){ .tv_nsec = rand_r(seed) % 500000 }, NULL);
}

/* Reads the whole ring. Returns the sum of its LOST records. */
static uint64_t read_ring(struct box *box, struct op_ring *ring)
{
	const struct perf_event_header *header;
	uint64_t told = box->told;

	op_ring_begin(ring);
	while ((header = op_ring_next(ring))) {
		stall(&box->stalls);
		if (header->type == PERF_RECORD_SAMPLE)
			see_sample(box, header);
		else if (header->type == PERF_RECORD_LOST)
			see_lost(box, header);
	}
	op_ring_end(ring);
	assert_int_equal(ring->damaged, 0);
	return box->told - told;
}

static uint64_t read_write_ring(struct box *box)
{
	return read_ring(box, op_ring_pair_write_ring(&box->pair));
}

/*
 * All page faults are numbered, but for a few of the test itself. Missing numbers without an
 * explanation were not sampled at all.
 */
static void check_faults(const struct box *box)
{
	uint64_t taken, lost, not_sampled;

	read_event(box->events[FAULTS].fd, &taken, &lost);
	not_sampled = taken - box->events[FAULTS].samples - lost;
	assert_true(taken >= box->faults.next);
	assert_true(box->missing <= not_sampled);
	assert_true(not_sampled <= taken / 1000);
	printf("page faults: %llu counted, %llu sampled, %llu lost\n", (unsigned long long)taken,
	       (unsigned long long)box->events[FAULTS].samples, (unsigned long long)lost);
}

/* ---- tests ---- */

static void lost_records_add_up_to_what_the_event_counts(void **state)
{
	struct box box;
	uint64_t overflows = 0;

	(void)state;
	open_box(&box, 1u << FAULTS);
	for (int i = 0; i < EPISODES; i++) {
		take_faults(&box, (uint64_t)rand_r(&box.seed) % 300);
		overflows += read_write_ring(&box) > 0;
		assert_true(box.told <= counted_lost(&box));
	}
	take_faults(&box, 1);
	read_write_ring(&box);
	assert_true(overflows > EPISODES / 3);
	assert_int_equal(box.told, counted_lost(&box));
	check_faults(&box);
	close_box(&box);
}

static void the_last_loss_is_told_with_the_next_record(void **state)
{
	struct box box;
	uint64_t lost;

	(void)state;
	open_box(&box, 1u << FAULTS);
	take_faults(&box, 100);
	lost = counted_lost(&box);
	assert_true(lost >= 100 - RING_BYTES / 48 && lost < 50);
	assert_int_equal(read_write_ring(&box), 0);
	assert_int_equal(read_write_ring(&box), 0); /* room alone does not make the kernel tell */
	take_faults(&box, 1);
	assert_int_equal(read_write_ring(&box), lost);
	assert_int_equal(counted_lost(&box), lost);
	close_box(&box);
}

static void events_of_one_ring_agree_in_their_sum(void **state)
{
	struct box box;

	(void)state;
	open_box(&box, 1u << FAULTS | 1u << SWITCHES | 1u << CLOCK);
	for (int i = 0; i < EPISODES; i++) {
		take_faults(&box, (uint64_t)rand_r(&box.seed) % 200);
		take_switches(&box, (unsigned int)rand_r(&box.seed) % 30);
		if (i % 3)
			read_write_ring(&box);
		assert_true(box.told <= counted_lost(&box));
	}
	read_write_ring(&box);
	take_faults(&box, 1);
	read_write_ring(&box);
	assert_true(box.told > EPISODES);
	assert_int_equal(box.told, counted_lost(&box));
	for (enum kind kind = 0; kind < NR_KINDS; kind++) {
		uint64_t taken, lost;

		read_event(box.events[kind].fd, &taken, &lost);
		assert_true(box.events[kind].samples > 0 && lost > 0);
		printf("event %d: %llu lost, LOST records with its identifier tell %llu\n", kind, (unsigned long long)lost,
		       (unsigned long long)box.events[kind].told);
	}
	check_faults(&box);
	close_box(&box);
}

/*
 * With several events a LOST record names the event that found room, not the one that found none.
 */
static void a_lost_record_names_the_event_that_found_room(void **state)
{
	struct box box;
	uint64_t taken, lost;

	(void)state;
	open_box(&box, 1u << FAULTS | 1u << SWITCHES);
	enable_one(&box.events[FAULTS], true);
	faults_take(&box.faults, 200);
	enable_one(&box.events[FAULTS], false);
	read_write_ring(&box);
	assert_int_equal(box.told, 0);
	enable_one(&box.events[SWITCHES], true);
	switch_context();
	enable_one(&box.events[SWITCHES], false);
	read_write_ring(&box);
	read_event(box.events[SWITCHES].fd, &taken, &lost);
	assert_int_equal(lost, 0);
	assert_true(box.events[SWITCHES].told >= 200 - RING_BYTES / 48);
	read_event(box.events[FAULTS].fd, &taken, &lost);
	assert_int_equal(box.events[FAULTS].told, 0);
	assert_int_equal(lost, box.events[SWITCHES].told);
	close_box(&box);
}

/*
 * Writes to the write ring. *pending: its records that are lost and not reported yet; *in_ring: the
 * losses that LOST records in the ring report.
 */
static void overflow(struct box *box, uint64_t *pending, uint64_t *in_ring)
{
	uint64_t before = counted_lost(box);

	if (!op_ring_pending(op_ring_pair_write_ring(&box->pair))) {
		*in_ring = *pending;
		*pending = 0;
	}
	take_faults(box, 1 + (uint64_t)rand_r(&box->seed) % 200);
	*pending += counted_lost(box) - before;
}

/*
 * A swap moves no loss to the other ring: a ring reports its own losses when it is written again.
 */
static void each_ring_tells_its_own_losses(void **state)
{
	struct box box;
	uint64_t pending[2] = { 0 }, in_ring[2] = { 0 };
	unsigned int read;

	(void)state;
	open_box(&box, 1u << FAULTS);
	box.by_turns = true;
	for (int i = 0; i < 60 || !pending[0] || !pending[1]; i++) {
		overflow(&box, &pending[box.pair.write], &in_ring[box.pair.write]);
		assert_int_equal(op_ring_pair_swap(&box.pair), 0);
		read = !box.pair.write;
		if (i % 5 == 4)
			continue; /* the ring stays full, and is written again as it is */
		assert_int_equal(read_ring(&box, op_ring_pair_read_ring(&box.pair)), in_ring[read]);
		in_ring[read] = 0;
		assert_int_equal(box.told + in_ring[!read] + pending[0] + pending[1], counted_lost(&box));
	}
	for (int i = 0; i < 4; i++) {
		assert_int_equal(op_ring_pair_swap(&box.pair), 0);
		read_ring(&box, op_ring_pair_read_ring(&box.pair));
		take_faults(&box, 1);
	}
	read_write_ring(&box);
	assert_int_equal(box.told, counted_lost(&box));
	close_box(&box);
}

/* ---- reader and writer at the same time ---- */

struct race {
	struct box box;
	pthread_barrier_t barrier;
	bool ended;
};

static void *write_on(void *arg)
{
	struct race *race = arg;

	open_box(&race->box, 1u << FAULTS | 1u << CLOCK);
	take_faults(&race->box, 200); /* an overflow at least, however fast the reader is */
	pthread_barrier_wait(&race->barrier);
	for (int i = 0; i < EPISODES; i++)
		take_faults(&race->box, 100);
	__atomic_store_n(&race->ended, true, __ATOMIC_RELEASE);
	pthread_barrier_wait(&race->barrier); /* everything was read */
	take_faults(&race->box, 1);
	pthread_barrier_wait(&race->barrier);
	pthread_barrier_wait(&race->barrier); /* the events live as long as their thread */
	return NULL;
}

/*
 * The reader stalls at random while the thread on the other CPU writes: only bytes that it gave
 * back are overwritten.
 */
static void nothing_unread_is_overwritten(void **state)
{
	struct race race = { .ended = false };
	struct box *box = &race.box;
	pthread_t thread;

	(void)state;
	pthread_barrier_init(&race.barrier, NULL, 2);
	assert_int_equal(pthread_create(&thread, NULL, write_on, &race), 0);
	pthread_barrier_wait(&race.barrier);
	box->stalls = 815;
	while (!__atomic_load_n(&race.ended, __ATOMIC_ACQUIRE))
		read_write_ring(box);
	box->stalls = 0;
	read_write_ring(box);
	pthread_barrier_wait(&race.barrier);
	pthread_barrier_wait(&race.barrier);
	read_write_ring(box);
	assert_true(box->told > 0);
	assert_int_equal(box->told, counted_lost(box));
	check_faults(box);
	pthread_barrier_wait(&race.barrier);
	pthread_join(thread, NULL);
	close_box(box);
	pthread_barrier_destroy(&race.barrier);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lost_records_add_up_to_what_the_event_counts),
		cmocka_unit_test(the_last_loss_is_told_with_the_next_record),
		cmocka_unit_test(events_of_one_ring_agree_in_their_sum),
		cmocka_unit_test(a_lost_record_names_the_event_that_found_room),
		cmocka_unit_test(each_ring_tells_its_own_losses),
		cmocka_unit_test(nothing_unread_is_overwritten),
	};

	if (!kernel_events_allowed())
		return 77;
	return cmocka_run_group_tests_name("ring_loss", tests, NULL, NULL);
}
