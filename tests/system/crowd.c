// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * A process that tries to make a profiler grow, for test_limits.py:
 *
 *   crowd names DIR N    N files of different names below DIR, one after the other: each is made,
 *                        mapped, executed and removed; prints N
 *   crowd maps DIR N     maps and unmaps code N times: a half of them at one address, from two
 *                        files in turn, the other half at ever new
 *                        addresses; then runs the code of crowd-map-0 for half a second, and prints
 *                        N
 *   crowd cgroups DIR N  N cgroups below DIR, one after the other: each is made, has a process that
 *                        began in it, and is removed; prints N
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <signal.h>
#include <unistd.h>

#include "libop/base/compiler.h"
#include "tests/die.h"

#define CODE_BYTES 256u /* the function below has less */
#define STEPS      40000u
#define AREA_BYTES ((size_t)1 << (sizeof(size_t) < 8 ? 30 : 40))
#define RUN_NS     500000000

typedef uint64_t code_fn(uint64_t steps, uint64_t x);

/* Without calls and data, so that its bytes run anywhere. */
__attribute__((noinline, aligned(64), no_sanitize("address", "undefined", "thread"))) static uint64_t code(uint64_t steps,
													   uint64_t x)
{
	for (; steps; steps--) {
		x = x * 6364136223846793005u + 1442695040888963407u;
		__asm__ volatile("" : "+r"(x));
	}
	return x;
}

static int make_file(const char *path, size_t page_bytes)
{
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
	code_fn *function = code;
	const void *bytes;

	memcpy(&bytes, &function, sizeof(bytes));
	if (fd < 0 || ftruncate(fd, (off_t)page_bytes) < 0 || write(fd, bytes, CODE_BYTES) != CODE_BYTES)
		die(path, -errno);
	return fd;
}

static void *map(void *where, int fd, size_t page_bytes)
{
	void *page = mmap(where, page_bytes, PROT_READ | PROT_EXEC, MAP_PRIVATE | (where ? MAP_FIXED : 0), fd, 0);

	if (page == MAP_FAILED)
		die("mmap", -errno);
	return page;
}

static void run_names(const char *dir, unsigned long nr, size_t page_bytes)
{
	uint64_t x = 1;

	for (unsigned long i = 0; i < nr; i++) {
		code_fn *function;
		char path[4096];
		void *page;
		int fd;

		snprintf(path, sizeof(path), "%s/crowd-%lu", dir, i);
		fd = make_file(path, page_bytes);
		page = map(NULL, fd, page_bytes);
		memcpy(&function, &page, sizeof(function));
		x = function(STEPS, x);
		munmap(page, page_bytes);
		close(fd);
		unlink(path);
	}
	printf("%lu\n", nr);
}

static int64_t cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

/* By now nobody follows what is mapped here. */
static void run_last(char *where, int fd, size_t page_bytes)
{
	void *page = map(where, fd, page_bytes);
	int64_t until_ns = cpu_ns() + RUN_NS;
	code_fn *function;
	uint64_t x = 1;

	memcpy(&function, &page, sizeof(function));
	while (cpu_ns() < until_ns)
		x = function(STEPS, x);
}

static void run_maps(const char *dir, unsigned long nr, size_t page_bytes)
{
	char *area = mmap(NULL, AREA_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	char path[4096];
	int fds[2];

	if (area == MAP_FAILED)
		die("mmap of the area", -errno);
	for (int i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s/crowd-map-%d", dir, i);
		fds[i] = make_file(path, page_bytes);
	}
	for (unsigned long i = 0; i < nr; i++) {
		char *where = i % 2 ? area + 2 * i * page_bytes : area;

		map(where, fds[i / 2 % 2], page_bytes);
		if (mmap(where, page_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) ==
		    MAP_FAILED)
			die("unmapping", -errno);
	}
	run_last(area, fds[0], page_bytes);
	printf("%lu\n", nr);
}

static pid_t fork_into(int cgroup_fd)
{
	struct clone_args args = { .flags = CLONE_INTO_CGROUP, .exit_signal = SIGCHLD, .cgroup = (uint64_t)cgroup_fd };

	return (pid_t)syscall(SYS_clone3, &args, sizeof(args));
}

/* What a child writes is a page fault of its own. */
static void run_cgroups(const char *dir, unsigned long nr, size_t page_bytes OP_UNUSED)
{
	static volatile unsigned long written;
	char path[4096];

	for (unsigned long i = 0; i < nr; i++) {
		pid_t pid;
		int fd;

		snprintf(path, sizeof(path), "%s/crowd-%lu", dir, i);
		if (mkdir(path, 0755) < 0)
			die(path, -errno);
		fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		pid = fd < 0 ? -1 : fork_into(fd);
		if (!pid) {
			written = i;
			_exit(written > nr);
		}
		if (pid < 0 || waitpid(pid, NULL, 0) != pid)
			die("clone3", -errno);
		close(fd);
		if (rmdir(path) < 0)
			die(path, -errno);
	}
	printf("%lu\n", nr);
}

static const struct {
	const char *name;
	void (*run)(const char *dir, unsigned long nr, size_t page_bytes);
} kinds[] = { { "names", run_names }, { "maps", run_maps }, { "cgroups", run_cgroups } };

int main(int argc, char **argv)
{
	size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);

	for (size_t i = 0; argc == 4 && i < op_array_size(kinds); i++) {
		if (strcmp(argv[1], kinds[i].name))
			continue;
		kinds[i].run(argv[2], strtoul(argv[3], NULL, 10), page_bytes);
		return 0;
	}
	fprintf(stderr, "usage: crowd names|maps|cgroups DIR N\n");
	return 2;
}
