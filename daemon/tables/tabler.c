/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "daemon/tables/tabler.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libop/process/helper.h"
#include "libop/process/pass.h"
#include "libop/base/sys.h"

#define PROGRAM       OPD_PKGLIBEXECDIR "/opd-tables"
/* between looks at a process, where there are no descriptors of processes */
#define OLD_KERNEL_MS 10

static const char *program = PROGRAM;
static int program_fd = -1;

void opd_tabler_find_program(void)
{
	const char *other = getenv(OPD_TABLES_ENV);

	if (other && *other)
		program = other;
}

/*
 * The nursery ignores SIGCHLD, and then nobody learns how a process ended. The program is opened
 * while this process may still look into every directory.
 */
int opd_tabler_begin_awaited(void)
{
	signal(SIGCHLD, SIG_DFL);
	program_fd = op_sys_openat(AT_FDCWD, program, O_PATH | O_CLOEXEC, 0);
	return 0;
}

int opd_tabler_begin(void)
{
	const struct sched_param none = { 0 };

	/* A sandbox may refuse it. */
	(void)sched_setscheduler(0, SCHED_IDLE, &none);
	return opd_tabler_begin_awaited();
}

/* Waits until one of both descriptors has something. False: opd does not want the table now. */
static bool await(int fd, int timeout_ms)
{
	struct pollfd fds[] = {
		{ .fd = fd, .events = POLLIN },
		{ .fd = OP_HELPER_SOCKET_FD, .events = POLLRDHUP },
	};

	while (poll(fds, op_array_size(fds), timeout_ms) < 0 && errno == EINTR)
		continue;
	return !fds[1].revents;
}

/* A descriptor, or -EPIPE: nobody sends one. */
static int receive_fd(int socket_fd)
{
	char byte;
	int fd = -1;

	if (await(socket_fd, -1) && op_pass_receive(socket_fd, &byte, sizeof(byte), &fd) == sizeof(byte) && fd >= 0)
		return fd;
	if (fd >= 0)
		close(fd);
	return -EPIPE;
}

static void run_program(int image_fd, int table_fd, bool only_header)
{
	char header[] = "--header";
	char *arguments[] = { (char[]){ "opd-tables" }, only_header ? header : NULL, NULL };
	char *environment[] = { NULL };

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (dup2(image_fd, STDIN_FILENO) >= 0 && dup2(table_fd, STDOUT_FILENO) >= 0 &&
	    dup2(program_fd, OP_HELPER_SOCKET_FD) >= 0) {
		closefrom(OP_HELPER_SOCKET_FD + 1);
		syscall(SYS_execveat, OP_HELPER_SOCKET_FD, "", arguments, environment, AT_EMPTY_PATH);
	}
	_exit(OPD_TABLER_NO_PROGRAM);
}

static void wait_for(pid_t pid, struct opd_tabler_answer *answer)
{
	int pid_fd = op_sys_pidfd_open(pid);
	struct rusage usage = { 0 };
	pid_t ended;

	while (!(ended = wait4(pid, &answer->status, WNOHANG, &usage)) && await(pid_fd, pid_fd < 0 ? OLD_KERNEL_MS : -1))
		continue;
	if (!ended) {
		kill(pid, SIGKILL);
		while (wait4(pid, &answer->status, 0, &usage) < 0 && errno == EINTR)
			continue;
	}
	if (pid_fd >= 0)
		close(pid_fd);
	answer->cpu_ms = (uint32_t)((usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000 +
				    (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1000);
}

int opd_tabler_answer(const char *question, size_t nr_bytes, int fd, struct op_text *answer)
{
	int table_fd = receive_fd(fd), image_fd = table_fd < 0 ? -1 : receive_fd(fd);
	struct opd_tabler_answer result = { .status = -1 };
	struct stat st;

	if (image_fd >= 0) {
		pid_t pid = fork();

		if (!pid)
			run_program(image_fd, table_fd, nr_bytes && *question == OPD_TABLER_HEADER);
		if (pid > 0)
			wait_for(pid, &result);
		if (!op_sys_fstat(image_fd, &st))
			result.stamp = opd_file_stamp(&st);
		close(image_fd);
	}
	if (table_fd >= 0)
		close(table_fd);
	op_text_add_bytes(answer, &result, sizeof(result));
	return 0;
}
