/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * op-check-perfevents: tells scripts by its exit code whether the kernel has counters for this CPU,
 * as the program of that name in oprofile: 0, else the errno of perf_event_open(2).
 */
#include <errno.h>
#include <unistd.h>

#include "libop/base/sys.h"

static void print_usage(void)
{
	fputs("Usage: op-check-perfevents [OPTION]\n"
	      "  -h, --help       show this\n"
	      "  -v, --verbose    print what perf_event_open(2) answers\n",
	      stderr);
}

/* Whoever may not count the kernel may still count programs. */
static int try_cycles(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_HARDWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_HW_CPU_CYCLES,
		.sample_type = PERF_SAMPLE_IP,
	};
	int fd = op_sys_perf_event_open(&attr, getpid(), -1, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd == -EACCES || fd == -EPERM) {
		attr.exclude_kernel = attr.exclude_hv = 1;
		fd = op_sys_perf_event_open(&attr, getpid(), -1, -1, PERF_FLAG_FD_CLOEXEC);
	}
	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}

int main(int argc, char **argv)
{
	const char *word = argc > 1 ? argv[1] : NULL;
	bool is_verbose = word && (!strcmp(word, "-v") || !strcmp(word, "--verbose"));
	int err;

	if (word && !is_verbose) {
		print_usage();
		return !strcmp(word, "-h") || !strcmp(word, "--help") ? 0 : UINT8_MAX;
	}
	err = try_cycles();
	if (is_verbose)
		fprintf(stderr, "perf_event_open syscall returned %s\n", strerror(-err));
	return -err;
}
