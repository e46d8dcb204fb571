/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The kernel pair in overwrite mode. The test plays the kernel: an event is a memfd. The test
 * writes records, downwards and at any moment, to the ring that the sampling event was directed to
 * last.
 */
#include "tests/unit/cmocka_all.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "libop/ring/kernel_pair.h"
#include "libop/base/sys.h"

#define PAGE        4096u
#define EVENT       1000 /* the descriptor of the sampling event: no file */
#define MAX_FDS     8
#define MAX_OUTPUTS 8

struct kernel {
	int fds[MAX_FDS]; /* of the events, as they were opened */
	bool backward[MAX_FDS];
	bool writable; /* some mapping was writable */
	size_t nr_fds;
	int outputs[MAX_OUTPUTS][2]; /* event and anchor of each SET_OUTPUT */
	size_t nr_outputs;
	int fail_after; /* calls; -1: never */
	int refuse_fd;  /* SET_OUTPUT of this descriptor fails */
	int ring_fd;    /* the anchor that the sampling event writes to */
	bool late;      /* a handler in the old ring commits when the settler waits for it */
	int late_fd;
	uint64_t number;   /* of the last record */
	/*
	 * time of the first SET_OUTPUT since the test set this to 0; the clock advances before the
	 * call returns
	 */
	uint64_t first_ns;
};

static struct kernel k;
static struct op_ring_pair pair;

int __wrap_op_sys_perf_event_open(struct perf_event_attr *attr, pid_t pid, int cpu, int group_fd, unsigned long flags);
int __wrap_op_sys_ioctl(int fd, unsigned long request, void *arg);
int __wrap_op_sys_mmap(void *addr, size_t nr_bytes, int prot, int flags, int fd, off_t offset, void **ret_map);
int __real_op_sys_mmap(void *addr, size_t nr_bytes, int prot, int flags, int fd, off_t offset, void **ret_map);

static bool fails(void)
{
	return k.fail_after >= 0 && k.fail_after-- == 0;
}

static size_t size_of(uint64_t number)
{
	return 16 + number * 7 % 23 * 8;
}

/* Writes a record whose words all are its number, below the records before it. */
static void write_record(int fd)
{
	uint64_t record[64], number = ++k.number;
	size_t nr = size_of(number) / 8;
	struct perf_event_header header = { .type = PERF_RECORD_SAMPLE, .size = (uint16_t)(nr * 8) };
	struct perf_event_mmap_page *control = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	uint64_t head = control->data_head - nr * 8;

	for (size_t i = 0; i < nr; i++)
		record[i] = number;
	memcpy(record, &header, sizeof(header));
	for (size_t i = 0; i < nr; i++)
		memcpy((uint8_t *)control + PAGE + ((head + 8 * i) & (PAGE - 1)), &record[i], 8);
	control->data_head = head;
	munmap(control, 2 * PAGE);
}

int __wrap_op_sys_perf_event_open(struct perf_event_attr *attr, pid_t pid, int cpu, int group_fd, unsigned long flags)
{
	int fd;

	assert_true(attr->disabled && pid == -1 && cpu == 3 && group_fd == -1 && flags == PERF_FLAG_FD_CLOEXEC);
	assert_true(attr->use_clockid && attr->clockid == OP_CLOCK && k.nr_fds < MAX_FDS);
	if (fails())
		return -EMFILE;
	fd = memfd_create("event", MFD_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, 2 * PAGE), 0);
	k.backward[k.nr_fds] = attr->write_backward;
	k.fds[k.nr_fds++] = fd;
	return fd;
}

int __wrap_op_sys_mmap(void *addr, size_t nr_bytes, int prot, int flags, int fd, off_t offset, void **ret_map)
{
	if (fails())
		return -EPERM;
	k.writable |= prot & PROT_WRITE;
	return __real_op_sys_mmap(addr, nr_bytes, prot, flags, fd, offset, ret_map);
}

static void await_later(uint64_t time_ns)
{
	while (op_now_ns() <= time_ns)
		;
}

int __wrap_op_sys_ioctl(int fd, unsigned long request, void *arg)
{
	assert_int_equal(request, PERF_EVENT_IOC_SET_OUTPUT);
	if (!k.first_ns)
		k.first_ns = op_now_ns();
	await_later(k.first_ns);
	if (fails() || fd == k.refuse_fd)
		return -EINVAL;
	assert_true(k.nr_outputs < MAX_OUTPUTS);
	k.outputs[k.nr_outputs][0] = fd;
	k.outputs[k.nr_outputs++][1] = (int)(intptr_t)arg;
	if (fd == EVENT) {
		k.late_fd = k.ring_fd;
		k.ring_fd = (int)(intptr_t)arg;
	} else if (k.late) {
		k.late = false;
		write_record(k.late_fd);
	}
	return 0;
}

static int pair_setup(void **state)
{
	(void)state;
	k = (struct kernel){ .fail_after = -1, .refuse_fd = -1 };
	assert_int_equal(op_ring_pair_open_overwrite(3, PAGE, PAGE / 4, &pair), 0);
	assert_int_equal(op_ring_pair_attach(&pair, EVENT), 0);
	k.nr_outputs = 0;
	return 0;
}

static void check_all_closed(void)
{
	for (size_t i = 0; i < k.nr_fds; i++)
		assert_true(fcntl(k.fds[i], F_GETFD) < 0 && errno == EBADF);
}

static int pair_teardown(void **state)
{
	(void)state;
	op_ring_pair_close(&pair);
	check_all_closed();
	return 0;
}

/* Reads the records newest, newest - 1, ... Returns their number; *ret_overwritten is in bytes. */
static uint64_t walk(struct op_ring *ring, uint64_t newest, uint64_t *ret_overwritten)
{
	const struct perf_event_header *record;
	uint64_t nr = 0;

	op_ring_begin(ring);
	for (; (record = op_ring_next(ring)); nr++) {
		assert_int_equal(record->size, size_of(newest - nr));
		for (size_t i = 1; i < record->size / 8u; i++)
			assert_memory_equal((const uint8_t *)record + 8 * i, &(uint64_t){ newest - nr }, 8);
	}
	*ret_overwritten = op_ring_overwritten(ring);
	op_ring_end(ring);
	assert_int_equal(ring->damaged, 0);
	return nr;
}

static uint64_t take_snapshot(uint64_t *ret_overwritten)
{
	struct op_ring *ring;

	k.nr_outputs = 0;
	assert_int_equal(op_ring_pair_snapshot(&pair, &ring), 0);
	assert_ptr_equal(ring, op_ring_pair_read_ring(&pair));
	return walk(ring, k.number, ret_overwritten);
}

static void opens_what_is_written_backwards(void **state)
{
	struct op_ring_pair plain;

	(void)state;
	assert_int_equal(k.nr_fds, 3);
	assert_true(k.backward[0] && k.backward[1] && k.backward[2] && !k.writable);
	assert_int_equal(op_ring_pair_open(3, PAGE, PAGE / 4, &plain), 0);
	assert_int_equal(k.nr_fds, 5);
	assert_true(!k.backward[3] && !k.backward[4] && k.writable);
	assert_int_equal(op_ring_pair_settle(&plain), -EINVAL);
	op_ring_pair_close(&plain);
}

static void joins_snapshots(void **state)
{
	uint64_t overwritten;

	(void)state;
	for (uint64_t turn = 0; turn < 1000; turn++) {
		uint64_t nr = turn * 5 % 36; /* records; each has 192 bytes at most */

		for (uint64_t i = 0; i < nr; i++)
			write_record(k.ring_fd);
		assert_int_equal(take_snapshot(&overwritten), nr);
		assert_int_equal(overwritten, 0);
	}
}

static void tells_what_was_overwritten(void **state)
{
	uint64_t overwritten;

	(void)state;
	for (uint64_t turn = 0; turn < 300; turn++) {
		uint64_t nr, bytes = 0;

		for (uint64_t i = 0; i < turn; i++)
			write_record(k.ring_fd);
		nr = take_snapshot(&overwritten);
		for (uint64_t i = nr; i < turn; i++)
			bytes += size_of(k.number - i);
		assert_int_equal(overwritten, bytes);
		assert_true(nr == turn || nr >= PAGE / size_of(3) - 1);
	}
}

/* The settler is not a sampling event, and it is directed last. */
static void settles_behind_the_swap(void **state)
{
	uint64_t overwritten;
	int settler = k.fds[2];

	(void)state;
	for (int turn = 0; turn < 4; turn++) {
		int anchor = pair.anchor_fds[!pair.write];

		take_snapshot(&overwritten);
		assert_int_equal(k.nr_outputs, 2);
		assert_true(k.outputs[0][0] == EVENT && k.outputs[0][1] == anchor);
		assert_true(k.outputs[1][0] == settler && k.outputs[1][1] == anchor);
	}
	assert_int_equal(pair.settles, 4);
	assert_int_equal(pair.moved, 0);
}

static void waits_for_a_late_commit(void **state)
{
	uint64_t overwritten;

	(void)state;
	write_record(k.ring_fd);
	k.late = true;
	assert_int_equal(take_snapshot(&overwritten), 2);
	assert_int_equal(pair.moved, 1);
	assert_int_equal(take_snapshot(&overwritten), 0);
	assert_int_equal(take_snapshot(&overwritten), 0);
	assert_int_equal(overwritten, 0);
}

/*
 * Without settling, a handler may write while the reader reads. The reader notices that, and reads
 * the record in the next snapshot of that ring.
 */
static void sees_that_a_ring_does_not_stand_still(void **state)
{
	struct op_ring *ring;
	uint64_t overwritten;

	(void)state;
	write_record(k.ring_fd);
	assert_int_equal(op_ring_pair_swap(&pair), 0);
	ring = op_ring_pair_read_ring(&pair);
	op_ring_begin(ring);
	assert_non_null(op_ring_next(ring));
	write_record(k.late_fd);
	assert_null(op_ring_next(ring));
	op_ring_end(ring);
	assert_int_equal(ring->late, 1);
	assert_int_equal(take_snapshot(&overwritten), 0);
	assert_int_equal(take_snapshot(&overwritten), 1);
	assert_int_equal(ring->late, 1);
}

/* A failed snapshot returns no ring and loses no record. */
static void keeps_what_a_failed_snapshot_has(void **state)
{
	const int refused[] = { EVENT, k.fds[2] };
	uint64_t overwritten;

	(void)state;
	for (size_t i = 0; i < op_array_size(refused); i++) {
		struct op_ring *ring = NULL;
		uint64_t nr = 0;

		write_record(k.ring_fd);
		k.refuse_fd = refused[i];
		assert_int_equal(op_ring_pair_snapshot(&pair, &ring), -EINVAL);
		assert_null(ring);
		k.refuse_fd = -1;
		for (int turn = 0; turn < 3; turn++)
			nr += take_snapshot(&overwritten);
		assert_int_equal(nr, 1);
	}
}

/*
 * Swaps. The swap begins after *ret_before_ns and not later than *ret_first_ns, the time of its
 * first SET_OUTPUT.
 */
static void swap_timed(uint64_t *ret_before_ns, uint64_t *ret_first_ns)
{
	uint64_t before_ns = op_now_ns();

	await_later(before_ns);
	k.first_ns = 0;
	k.nr_outputs = 0;
	assert_int_equal(op_ring_pair_swap(&pair), 0);
	await_later(op_now_ns());
	*ret_before_ns = before_ns;
	*ret_first_ns = k.first_ns;
}

/*
 * since_ns of a ring is the begin of the swap that made it the write ring. It stays the same while
 * the ring is read. A sample that is older than since_ns is late in this ring.
 */
static void knows_since_when_a_ring_is_written(void **state)
{
	(void)state;
	assert_int_equal(op_ring_pair_attach(&pair, EVENT), 0);
	assert_true(pair.since_ns[0] == 0 && pair.since_ns[1] == 0);
	for (unsigned int turn = 1; turn <= 6; turn++) {
		unsigned int written = turn % 2, other = !written;
		uint64_t other_ns = pair.since_ns[other], before_ns, first_ns;

		swap_timed(&before_ns, &first_ns);
		assert_ptr_equal(op_ring_pair_write_ring(&pair), &pair.rings[written]);
		assert_true(pair.since_ns[written] > before_ns && pair.since_ns[written] <= first_ns);
		assert_int_equal(pair.since_ns[other], other_ns);
		assert_true(op_ring_pair_is_late(&pair, &pair.rings[written], before_ns));
		assert_false(op_ring_pair_is_late(&pair, &pair.rings[written], pair.since_ns[written]));
		assert_false(op_ring_pair_is_late(&pair, &pair.rings[other], before_ns));
		assert_int_equal(op_ring_pair_is_late(&pair, &pair.rings[other], other_ns - 1), turn > 1);
	}
}

static void leaves_nothing_open_when_it_fails(void **state)
{
	struct op_ring_pair other;

	(void)state;
	for (int calls = 0; calls < 6; calls++) {
		k = (struct kernel){ .fail_after = calls, .refuse_fd = -1 };
		assert_true(op_ring_pair_open_overwrite(3, PAGE, 0, &other) < 0);
		check_all_closed();
	}
	k = (struct kernel){ .fail_after = 6, .refuse_fd = -1 };
	assert_int_equal(op_ring_pair_open_overwrite(3, PAGE, 0, &other), 0);
	op_ring_pair_close(&other);
	check_all_closed();
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, pair_setup, pair_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(opens_what_is_written_backwards),
		TEST(joins_snapshots),
		TEST(tells_what_was_overwritten),
		TEST(settles_behind_the_swap),
		TEST(waits_for_a_late_commit),
		TEST(sees_that_a_ring_does_not_stand_still),
		TEST(keeps_what_a_failed_snapshot_has),
		TEST(knows_since_when_a_ring_is_written),
		cmocka_unit_test(leaves_nothing_open_when_it_fails),
	};

	return cmocka_run_group_tests_name("ring_pair", tests, NULL, NULL);
}
