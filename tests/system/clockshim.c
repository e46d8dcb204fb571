// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Clocks that tests can set. Loaded before the C library (LD_PRELOAD) into a real daemon;
 * CLOCKSHIM_CONTROL=FILE has two numbers, looked at with every call: seconds that CLOCK_REALTIME,
 * and that CLOCK_BOOTTIME are ahead of what the kernel says. A suspend is both of them. The time of
 * perf's events stays as it is.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static long long seconds_ahead(clockid_t clock)
{
	const char *path = getenv("CLOCKSHIM_CONTROL");
	long long wall = 0, boot = 0;
	int saved = errno, fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	char text[64] = "";

	if (fd >= 0) {
		if (read(fd, text, sizeof(text) - 1) > 0 && sscanf(text, "%lld %lld", &wall, &boot) != 2)
			wall = boot = 0;
		close(fd);
	}
	errno = saved;
	return clock == CLOCK_BOOTTIME ? boot : wall;
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
	int (*real)(clockid_t, struct timespec *) = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
	int result = real(clock, now);

	if (!result && (clock == CLOCK_REALTIME || clock == CLOCK_BOOTTIME))
		now->tv_sec += seconds_ahead(clock);
	return result;
}
