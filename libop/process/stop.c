/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/process/stop.h"

#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>

#include "libop/base/sys.h"

int op_stop_open(struct op_stop *stop)
{
	int fd = op_sys_eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

	if (fd < 0)
		return fd;
	*stop = (struct op_stop){ .fd = fd };
	return 0;
}

void op_stop_set(struct op_stop *stop)
{
	static const uint64_t one = 1;
	int saved = errno;

	stop->is_set = 1;
	/* -EAGAIN when it is readable already, which is fine. */
	while (op_sys_write(stop->fd, &one, sizeof(one)) == -EINTR)
		continue;
	errno = saved;
}

/* A descriptor that poll(2) cannot wait for, such as a regular file, is always ready. */
int op_stop_wait(const struct op_stop *stop, int fd)
{
	struct pollfd fds[] = { { .fd = fd, .events = POLLIN }, { .fd = stop ? stop->fd : -1, .events = POLLIN } };

	while (stop && !stop->is_set && !fds[0].revents)
		if (poll(fds, op_array_size(fds), -1) < 0 && errno != EINTR)
			return 0;
	return op_stop_is_set(stop) ? -EINTR : 0;
}
