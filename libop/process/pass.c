/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/process/pass.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

ssize_t op_pass_send(int socket_fd, struct iovec *parts, size_t nr_parts, int fd, int flags)
{
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct msghdr message = { .msg_iov = parts, .msg_iovlen = nr_parts };
	ssize_t nr;

	if (fd >= 0) {
		message.msg_control = &control;
		message.msg_controllen = sizeof(control);
		control.head.cmsg_level = SOL_SOCKET;
		control.head.cmsg_type = SCM_RIGHTS;
		control.head.cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(&control.head), &fd, sizeof(fd));
	}
	do
		nr = sendmsg(socket_fd, &message, flags | MSG_NOSIGNAL);
	while (nr < 0 && errno == EINTR);
	return nr < 0 ? -errno : nr;
}

ssize_t op_pass_receive(int socket_fd, void *bytes, size_t nr_bytes, int *ret_fd)
{
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct iovec part = { bytes, nr_bytes };
	/* Without the padding, in which the kernel would put a second descriptor. */
	struct msghdr message = {
		.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = CMSG_LEN(sizeof(int))
	};
	const struct cmsghdr *head;
	int fd = -1;
	ssize_t nr;

	do
		nr = recvmsg(socket_fd, &message, MSG_CMSG_CLOEXEC);
	while (nr < 0 && errno == EINTR);
	if (nr < 0)
		return -errno;
	head = CMSG_FIRSTHDR(&message);
	if (head && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS && head->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(&fd, CMSG_DATA(head), sizeof(fd));
	if (fd >= 0 && (message.msg_flags & MSG_CTRUNC)) {
		close(fd);
	} else if (fd >= 0) {
		if (*ret_fd >= 0)
			close(*ret_fd);
		*ret_fd = fd;
	}
	return nr;
}
