/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * reach PID: which ways there are to write into that process, or to take what it has open; one on a
 * line, and none is the exit code 0.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* Nothing is at the address 0: who may write is told EFAULT. */
static int by_vm_writev(pid_t pid)
{
	char byte = 0;
	struct iovec local = { &byte, 1 }, remote = { NULL, 1 };

	return process_vm_writev(pid, &local, 1, &remote, 1, 0) < 0 && errno != EFAULT;
}

static int by_vm_readv(pid_t pid)
{
	char byte = 0;
	struct iovec local = { &byte, 1 }, remote = { NULL, 1 };

	return process_vm_readv(pid, &local, 1, &remote, 1, 0) < 0 && errno != EFAULT;
}

static int by_mem(pid_t pid)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd >= 0)
		close(fd);
	return fd < 0;
}

static int by_ptrace(pid_t pid)
{
	return ptrace(PTRACE_SEIZE, pid, NULL, NULL) < 0;
}

static int by_getfd(pid_t pid)
{
	int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);

	return pidfd < 0 || syscall(SYS_pidfd_getfd, pidfd, 0, 0) < 0;
}

/* ptrace comes last: it holds on until this program's end. */
static const struct {
	const char *name;
	int (*fails)(pid_t pid);
} ways[] = {
	{ "process_vm_writev", by_vm_writev },
	{ "process_vm_readv", by_vm_readv },
	{ "/proc/PID/mem", by_mem },
	{ "pidfd_getfd", by_getfd },
	{ "ptrace", by_ptrace },
};

int main(int argc, char **argv)
{
	pid_t pid = argc == 2 ? (pid_t)strtol(argv[1], NULL, 10) : 0;
	int nr = 0;

	if (pid <= 0) {
		fputs("usage: reach PID\n", stderr);
		return 64;
	}
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		if (ways[i].fails(pid))
			continue;
		puts(ways[i].name);
		nr++;
	}
	return nr;
}
