/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The system calls of a looker: it looks, and nothing else works, also not for root. */
#include "tests/unit/cmocka_all.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/call_filter.h"
#include "pipeline/files/pass_file.h"

#define SOCKET 3
#define OTHER  4 /* another end of a socket, which is not for it */

static bool is_refused(long result)
{
	return result < 0 && errno == ENOSYS;
}

/* A test in a child with the filter: 0, or the line that failed. */
#define EXPECT(condition)                       \
	do {                                    \
		if (!(condition))               \
			return __LINE__ & 0xff; \
	} while (0)

static int looks(void)
{
	char bytes[64];
	struct stat st;
	struct statx stx;
	struct statfs fs;
	struct iovec part = { bytes, 1 };
	const struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
	DIR *dir = opendir("/proc");
	FILE *maps = fopen("/proc/self/maps", "re");
	char *line = NULL;
	size_t capacity = 0;
	int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC), path_fd = open("/", O_PATH | O_CLOEXEC);

	EXPECT(dir && readdir(dir));
	EXPECT(!closedir(dir));
	EXPECT(maps && getline(&line, &capacity, maps) > 0);
	EXPECT(!fclose(maps));
	EXPECT(fd >= 0 && path_fd >= 0);
	EXPECT(pread(fd, bytes, sizeof(bytes), 0) > 0 && read(fd, bytes, sizeof(bytes)) > 0);
	EXPECT(!fstat(fd, &st) && !stat("/", &st));
	EXPECT(!statx(path_fd, "", AT_EMPTY_PATH, STATX_INO, &stx));
	EXPECT(readlink("/proc/self/exe", bytes, sizeof(bytes)) > 0);
	EXPECT(fcntl(fd, F_DUPFD_CLOEXEC, 0) >= 0);
	EXPECT(getpgid(getpid()) >= 0);
	EXPECT(write(SOCKET, "x", 1) == 1);
	EXPECT(!fstatfs(path_fd, &fs));
	EXPECT(fcntl(OTHER, F_DUPFD_CLOEXEC, OPD_PASS_FD) == OPD_PASS_FD);
	EXPECT(sendmsg(OPD_PASS_FD, &message, 0) == 1);
	EXPECT(calloc(1, 8u << 20));
	return 0;
}

static int does_nothing_else(void)
{
	char byte = 0;
	struct iovec part = { &byte, 1 };
	const struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
	char *args[] = { (char[]){ "true" }, NULL };
	int ends[2];

	EXPECT(is_refused(open("/dev/null", O_WRONLY | O_CLOEXEC)));
	EXPECT(is_refused(open("/dev/null", O_RDWR | O_CLOEXEC)));
	EXPECT(is_refused(open("/tmp/opd-call-filter", O_RDONLY | O_CREAT | O_CLOEXEC, 0600)));
	EXPECT(is_refused(write(STDOUT_FILENO, &byte, 0)));
	EXPECT(is_refused(sendmsg(OTHER, &message, 0)));
	EXPECT(is_refused(write(OPD_PASS_FD, &byte, 1)));
	EXPECT(is_refused(unlink("/tmp/opd-call-filter")));
	EXPECT(is_refused(fork()));
	EXPECT(is_refused(execv("/bin/true", args)));
	EXPECT(is_refused(socket(AF_UNIX, SOCK_STREAM, 0)));
	EXPECT(is_refused(socketpair(AF_UNIX, SOCK_STREAM, 0, ends)));
	EXPECT(is_refused(kill(getppid(), 0)));
	EXPECT(is_refused(ptrace(PTRACE_ATTACH, getppid(), NULL, NULL)));
	EXPECT(is_refused(process_vm_readv(getppid(), &part, 1, &part, 1, 0)));
	EXPECT(is_refused(process_vm_writev(getppid(), &part, 1, &part, 1, 0)));
	EXPECT(is_refused(chmod("/", 0755)));
	EXPECT(is_refused(prctl(PR_SET_DUMPABLE, 1)));
	EXPECT(mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED);
	EXPECT(mprotect(__builtin_frame_address(0), 1, PROT_READ | PROT_EXEC) < 0);
	return 0;
}

/* What is in the filter's way of a child: 0, or the line. */
static int run(int (*body)(void))
{
	int status = -1, ends[2], sockets[2];
	pid_t pid;

	assert_int_equal(pipe(ends), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
	pid = fork();
	if (!pid) {
		if (dup2(ends[1], SOCKET) != SOCKET || dup2(sockets[1], OTHER) != OTHER ||
		    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || opd_call_filter_apply(SOCKET))
			_exit(255);
		_exit(body());
	}
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	close(ends[0]);
	close(ends[1]);
	close(sockets[0]);
	close(sockets[1]);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void a_looker_looks(void **state OP_UNUSED)
{
	assert_int_equal(run(looks), 0);
}

static void it_does_nothing_else(void **state OP_UNUSED)
{
	assert_int_equal(run(does_nothing_else), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(a_looker_looks), cmocka_unit_test(it_does_nothing_else) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
