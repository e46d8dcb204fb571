/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A message has one descriptor or none. Of one with more, none stays open. */
#include "tests/unit/cmocka_all.h"

#include <dirent.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "libop/process/pass.h"

#define MOST 3u

static int ends[2];
static char byte_sent[] = "x";

static int setup_ends(void **state OP_UNUSED)
{
	return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends);
}

static int close_ends(void **state OP_UNUSED)
{
	return close(ends[0]) || close(ends[1]);
}

/* As a stranger sends it: a byte, and standard input so many times. */
static void send_many(size_t nr_fds)
{
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(MOST * sizeof(int))];
	} control = { 0 };
	struct iovec part = { byte_sent, 1 };
	struct msghdr message = {
		.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = CMSG_SPACE(nr_fds * sizeof(int))
	};

	control.head.cmsg_level = SOL_SOCKET;
	control.head.cmsg_type = SCM_RIGHTS;
	control.head.cmsg_len = CMSG_LEN(nr_fds * sizeof(int));
	assert_int_equal(sendmsg(ends[0], &message, 0), 1);
}

static unsigned int nr_open(void)
{
	DIR *all = opendir("/proc/self/fd");
	unsigned int nr = 0;

	assert_non_null(all);
	while (readdir(all))
		nr++;
	closedir(all);
	return nr;
}

static int receive(int fd)
{
	char byte = 0;

	assert_int_equal(op_pass_receive(ends[1], &byte, sizeof(byte), &fd), 1);
	assert_int_equal(byte, 'x');
	return fd;
}

static void one_is_taken(void **state OP_UNUSED)
{
	unsigned int nr_before = nr_open();
	struct iovec part = { byte_sent, 1 };
	int fd;

	assert_int_equal(op_pass_send(ends[0], &part, 1, STDIN_FILENO, 0), 1);
	fd = receive(-1);
	assert_true(fd >= 0);
	assert_int_equal(nr_open(), nr_before + 1);
	send_many(1);
	fd = receive(fd);
	assert_int_equal(nr_open(), nr_before + 1);
	close(fd);
}

static void none_of_several_is_left(void **state OP_UNUSED)
{
	unsigned int nr_before = nr_open();

	for (size_t nr_fds = 2; nr_fds <= MOST; nr_fds++) {
		send_many(nr_fds);
		assert_int_equal(receive(-1), -1);
		assert_int_equal(nr_open(), nr_before);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(one_is_taken, setup_ends, close_ends),
		cmocka_unit_test_setup_teardown(none_of_several_is_left, setup_ends, close_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
