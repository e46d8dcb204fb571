/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pipeline/stacks/tabler.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libop/base/clock.h"
#include "libop/process/helper.h"
#include "libop/process/pass.h"
#include "libop/base/sys.h"
#include "libop/unwind/row_table.h"

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

const char *opd_tabler_program(void)
{
	return program;
}

/*
 * The nursery ignores SIGCHLD, so the end of a process has no status. The program is opened
 * while this process may still look into every directory.
 */
int opd_tabler_begin(void)
{
	signal(SIGCHLD, SIG_DFL);
	program_fd = op_sys_openat(AT_FDCWD, program, O_PATH | O_CLOEXEC, 0);
	return 0;
}

/* 0: of the caller. A sandbox may refuse it. */
static void make_idle(pid_t pid)
{
	const struct sched_param none = { 0 };

	(void)sched_setscheduler(pid, SCHED_IDLE, &none);
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

/* A descriptor, or -EPIPE: the sender has ended. */
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

static void run_program(int image_fd, int table_fd, const struct opd_tabler_question *question)
{
	char header[] = "--header";
	char *arguments[] = { (char[]){ "opd-tables" }, question->only_header ? header : NULL, NULL };
	char *environment[] = { NULL };
	/* The file for the table is memory that RLIMIT_AS does not limit. */
	const struct rlimit longest = { OP_ROW_TABLE_BYTES_MAX, OP_ROW_TABLE_BYTES_MAX };

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)setrlimit(RLIMIT_FSIZE, &longest);
	if (!question->normal_ms)
		make_idle(0);
	if (dup2(image_fd, STDIN_FILENO) >= 0 && dup2(table_fd, STDOUT_FILENO) >= 0 &&
	    dup2(program_fd, OP_HELPER_SOCKET_FD) >= 0) {
		closefrom(OP_HELPER_SOCKET_FD + 1);
		syscall(SYS_execveat, OP_HELPER_SOCKET_FD, "", arguments, environment, AT_EMPTY_PATH);
	}
	_exit(OPD_TABLER_NO_PROGRAM);
}

/* For poll: how long until the program has had its time at normal priority. */
static int ms_until(uint64_t idle_ns)
{
	uint64_t now_ns = op_now_ns();

	return idle_ns > now_ns ? (int)((idle_ns - now_ns) / OP_NS_PER_MS) + 1 : 0;
}

static void wait_for(pid_t pid, uint32_t normal_ms, struct opd_tabler_answer *answer)
{
	bool will_be_idle = normal_ms && normal_ms != OPD_TABLER_NEVER_IDLE;
	uint64_t idle_ns = op_now_ns() + normal_ms * (uint64_t)OP_NS_PER_MS;
	int pid_fd = op_sys_pidfd_open(pid);
	struct rusage usage = { 0 };
	pid_t ended;

	while (!(ended = wait4(pid, &answer->status, WNOHANG, &usage)) &&
	       await(pid_fd, pid_fd < 0 ? OLD_KERNEL_MS : will_be_idle ? ms_until(idle_ns) : -1)) {
		if (will_be_idle && !ms_until(idle_ns)) {
			make_idle(pid);
			will_be_idle = false;
		}
	}
	if (!ended) {
		kill(pid, SIGKILL);
		while (wait4(pid, &answer->status, 0, &usage) < 0 && errno == EINTR)
			continue;
	}
	if (pid_fd >= 0)
		close(pid_fd);
	answer->cpu_ns = (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * OP_NS_PER_S +
			 (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1000u;
}

/* A file that is renamed or removed meanwhile has the same contents. */
static bool has_changed(int image_fd, const struct opd_file_identity *before)
{
	struct opd_file_identity now;

	return opd_file_identify(image_fd, &now) || now.mtime_ns != before->mtime_ns || now.nr_bytes != before->nr_bytes;
}

int opd_tabler_answer(const char *bytes, size_t nr_bytes, int fd, struct op_text *answer)
{
	struct opd_tabler_question question = { 0 };
	int table_fd = receive_fd(fd), image_fd = table_fd < 0 ? -1 : receive_fd(fd);
	struct opd_tabler_answer result = { .status = -1 };

	if (nr_bytes == sizeof(question))
		memcpy(&question, bytes, sizeof(question));
	if (image_fd >= 0 && !opd_file_identify(image_fd, &result.image)) {
		pid_t pid = fork();

		if (!pid)
			run_program(image_fd, table_fd, &question);
		if (pid > 0)
			wait_for(pid, question.normal_ms, &result);
		result.has_changed = has_changed(image_fd, &result.image);
	}
	if (image_fd >= 0)
		close(image_fd);
	if (table_fd >= 0)
		close(table_fd);
	op_text_add_bytes(answer, &result, sizeof(result));
	return 0;
}
