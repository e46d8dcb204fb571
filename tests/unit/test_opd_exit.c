/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A daemon that ends early because a CPU cannot sample: its exit code, and whether the next daemon
 * checks the session. Needs perf events.
 */
#include "tests/unit/kernel_events.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "daemon/opd.h"
#include "libop/session/layout.h"
#include "tests/unit/sample_writer.h"
#include "tests/unit/disk.h"
#include "tests/unit/test_box.h"

static struct {
	bool enable; /* the second event and all that follow */
	int disk;    /* once this has happened */
	unsigned int nr_enabled;
} fault;

int __real_op_sys_ioctl(int fd, unsigned long request, void *arg);
int __wrap_op_sys_ioctl(int fd, unsigned long request, void *arg);
int __real_op_sys_syncfs(int fd);
int __wrap_op_sys_syncfs(int fd);

int __wrap_op_sys_ioctl(int fd, unsigned long request, void *arg)
{
	if (request == PERF_EVENT_IOC_ENABLE && fault.enable && __atomic_fetch_add(&fault.nr_enabled, 1, __ATOMIC_RELAXED))
		return -ENODEV;
	return __real_op_sys_ioctl(fd, request, arg);
}

static int disk_error(void)
{
	return __atomic_load_n(&fault.nr_enabled, __ATOMIC_RELAXED) ? fault.disk : 0;
}

static int fail_fsync(const struct disk_call *call)
{
	return call->kind == DISK_fsync ? disk_error() : 0;
}

int __wrap_op_sys_syncfs(int fd)
{
	return disk_error() ? disk_error() : __real_op_sys_syncfs(fd);
}

static char dir[BOX_PATH_BYTES];
static int dir_fd;

static int daemon_setup(void **state OP_UNUSED)
{
	char text[200];

	disk_watch = fail_fsync;
	dir_fd = box_make_open(dir);
	snprintf(text, sizeof(text),
		 "SessionDir=%s/session\nControlSocket=%s/control\nSessionInterval=0\nProfileOnStart=yes\nTableDir=\n", dir, dir);
	sample_write_bytes(dir_fd, "opd.conf", text, strlen(text));
	return dir_fd < 0 ? -1 : 0;
}

static int daemon_teardown(void **state OP_UNUSED)
{
	close(dir_fd);
	return box_remove(dir);
}

static int exit_code(bool enable, int disk)
{
	pid_t child = fork();
	int status;

	assert_true(child >= 0);
	if (!child) {
		char program[] = "opd", option[64], *argv[] = { program, option, NULL };

		snprintf(option, sizeof(option), "--config=%s/opd.conf", dir);
		fault.enable = enable;
		fault.disk = disk;
		_exit(opd_main(2, argv));
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void check_lock(bool there)
{
	assert_int_equal(!faccessat(dir_fd, "session/" OP_SESSION_LOCK, F_OK, AT_SYMLINK_NOFOLLOW), there);
}

static void test_cannot_sample(void **state OP_UNUSED)
{
	assert_int_equal(exit_code(true, 0), 1);
	check_lock(false);
}

/* Samples taken until then may be missing on the disk, so the next daemon checks. */
static void test_cannot_sample_and_not_write(void **state OP_UNUSED)
{
	assert_int_equal(exit_code(true, -EIO), OPD_EXIT_UNWRITTEN);
	check_lock(true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_cannot_sample, daemon_setup, daemon_teardown),
		cmocka_unit_test_setup_teardown(test_cannot_sample_and_not_write, daemon_setup, daemon_teardown),
	};

	if (!kernel_events_allowed())
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
