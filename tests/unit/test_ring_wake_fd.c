/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The descriptor that wakes the reader comes from another process, and stays one that is shared
 * with it: nothing waits there, or writes elsewhere.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include "tests/unit/memory_ring.h"

#define PAGE 4096u

static int attach_and_close(const struct mring_box *box, int wake_fd)
{
	struct op_mring ring;
	int err;

	assert_true(wake_fd >= 0);
	err = op_mring_attach(box->ring.fd, wake_fd, &ring);
	if (!err)
		op_mring_destroy(&ring);
	close(wake_fd);
	return err;
}

static void attaches_with_an_eventfd_only(void **state)
{
	struct mring_box box;
	int pipe_fds[2];

	(void)state;
	mring_box_open(&box, PAGE, 0, 0);
	assert_int_equal(pipe2(pipe_fds, O_NONBLOCK), 0);
	assert_int_equal(attach_and_close(&box, pipe_fds[0]), -EINVAL);
	assert_int_equal(attach_and_close(&box, pipe_fds[1]), -EINVAL);
	assert_int_equal(attach_and_close(&box, memfd_create("anon_inode:[eventfd]", 0)), -EINVAL);
	assert_int_equal(attach_and_close(&box, open("/dev/null", O_RDWR | O_NONBLOCK)), -EINVAL);
	/* a name as long */
	assert_int_equal(attach_and_close(&box, timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK)), -EINVAL);
	assert_int_equal(attach_and_close(&box, eventfd(0, 0)), -EINVAL); /* it waits */
	assert_int_equal(attach_and_close(&box, eventfd(0, EFD_NONBLOCK)), 0);
	mring_box_close(&box);
}

static void attaches_a_pair_with_an_eventfd_only(void **state)
{
	struct mring_pair_box box;
	struct op_mring_pair other;
	int pipe_fds[2], fds[2];

	(void)state;
	mring_pair_box_open(&box, PAGE, 0);
	fds[0] = box.pair.rings[0].fd;
	fds[1] = box.pair.rings[1].fd;
	assert_int_equal(pipe2(pipe_fds, O_NONBLOCK), 0);
	assert_int_equal(op_mring_pair_attach(fds, pipe_fds[1], &other), -EINVAL);
	assert_int_equal(op_mring_pair_attach(fds, box.pair.rings[0].wake_fd, &other), 0);
	op_mring_pair_destroy(&other);
	close(pipe_fds[0]);
	close(pipe_fds[1]);
	mring_pair_box_close(&box);
}

/* The reader's process fills it, and makes it one that waits. */
static void waking_never_waits(void **state)
{
	struct mring_box box;
	struct perf_event_header *record;
	uint64_t most = UINT64_MAX - 1;

	(void)state;
	mring_box_open(&box, PAGE, 0, 0);
	op_mring_wake_every(&box.ring, 1, true);
	assert_int_equal(write(box.ring.wake_fd, &most, sizeof(most)), sizeof(most));
	assert_int_equal(fcntl(box.ring.wake_fd, F_SETFL, fcntl(box.ring.wake_fd, F_GETFL) & ~O_NONBLOCK), 0);
	alarm(10);
	while (!op_mring_reserve(&box.writer, 64, &record)) {
		record->type = PERF_RECORD_SAMPLE;
		op_mring_commit(&box.writer);
	}
	alarm(0);
	mring_box_close(&box);
}

static bool has_no_such_call;

/* The C library calls it so where a program must ask for an off_t of 64 bits. */
#ifdef _FILE_OFFSET_BITS
#define __real_preadv2 __real_preadv64v2
#define __wrap_preadv2 __wrap_preadv64v2
#endif

ssize_t __real_preadv2(int fd, const struct iovec *pieces, int nr_pieces, off_t offset, int flags);
ssize_t __wrap_preadv2(int fd, const struct iovec *pieces, int nr_pieces, off_t offset, int flags);

ssize_t __wrap_preadv2(int fd, const struct iovec *pieces, int nr_pieces, off_t offset, int flags)
{
	if (!has_no_such_call)
		return __real_preadv2(fd, pieces, nr_pieces, offset, flags);
	errno = EOPNOTSUPP;
	return -1;
}

static bool is_readable(const struct mring_box *box)
{
	struct pollfd pollfd = { .fd = box->ring.wake_fd, .events = POLLIN };

	return poll(&pollfd, 1, 0);
}

/*
 * The writer's process empties it, and makes it one that waits. On a kernel that can read without
 * waiting, and on one that cannot.
 */
static void clear_beside_one_that_waits(bool old)
{
	struct mring_box box;
	uint64_t one = 1;
	int flags;

	has_no_such_call = old;
	mring_box_open(&box, PAGE, 0, 0);
	flags = fcntl(box.ring.wake_fd, F_GETFL);
	alarm(10);
	op_mring_wake_clear(&box.ring);
	assert_int_equal(write(box.ring.wake_fd, &one, sizeof(one)), sizeof(one));
	op_mring_wake_clear(&box.ring);
	assert_false(is_readable(&box));
	assert_int_equal(fcntl(box.ring.wake_fd, F_SETFL, flags & ~O_NONBLOCK), 0);
	op_mring_wake_clear(&box.ring);
	assert_int_equal(write(box.ring.wake_fd, &one, sizeof(one)), sizeof(one));
	op_mring_wake_clear(&box.ring);
	assert_int_equal(is_readable(&box), old); /* as long as it waits, nobody reads it */
	assert_int_equal(fcntl(box.ring.wake_fd, F_SETFL, flags), 0);
	op_mring_wake_clear(&box.ring);
	assert_false(is_readable(&box));
	alarm(0);
	mring_box_close(&box);
	has_no_such_call = false;
}

static void clearing_never_waits(void **state OP_UNUSED)
{
	clear_beside_one_that_waits(false);
}

static void clearing_never_waits_on_an_old_kernel(void **state OP_UNUSED)
{
	clear_beside_one_that_waits(true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(attaches_with_an_eventfd_only),
		cmocka_unit_test(attaches_a_pair_with_an_eventfd_only),
		cmocka_unit_test(waking_never_waits),
		cmocka_unit_test(clearing_never_waits),
		cmocka_unit_test(clearing_never_waits_on_an_old_kernel),
	};

	return cmocka_run_group_tests_name("ring_wake_fd", tests, NULL, NULL);
}
