/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/opd-events/serve.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "libop/base/sys.h"
#include "libop/process/pass.h"

/* Descriptors that come with a request are not taken: the kernel closes them. */
static bool receive(int socket_fd, struct op_event_request *request)
{
	struct {
		struct op_event_request request;
		char too_much;
	} message;
	ssize_t nr;

	do
		nr = recv(socket_fd, &message, sizeof(message), 0);
	while (nr < 0 && errno == EINTR);
	if (nr != sizeof(*request))
		return false;
	*request = message.request;
	return true;
}

static int open_event(const struct ope_samplers *samplers, struct op_event_request *request)
{
	if (!ope_rule_allows(samplers, request))
		return -EPERM;
	return op_sys_perf_event_open(&request->attr, -1, request->cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

void ope_serve(int socket_fd, const struct ope_samplers *samplers)
{
	struct op_event_request request;

	while (receive(socket_fd, &request)) {
		int fd = open_event(samplers, &request);
		struct op_event_answer answer = { .err = fd < 0 ? fd : 0 };
		struct iovec part = { &answer, sizeof(answer) };
		ssize_t nr = op_pass_send(socket_fd, &part, 1, fd, 0);

		if (fd >= 0)
			close(fd);
		if (nr != sizeof(answer))
			return;
	}
}
