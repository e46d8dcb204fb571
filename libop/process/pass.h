/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Bytes and descriptors over a socket of AF_UNIX (unix(7), SCM_RIGHTS). Any thread. */
#ifndef OP_PASS_H
#define OP_PASS_H

#include <sys/types.h>
#include <sys/uio.h>

#include "libop/base/compiler.h"

/* Sends the parts, and `fd` with them unless it is -1. Bytes that were sent, or -errno. */
ssize_t op_pass_send(int socket_fd, struct iovec *parts, size_t nr_parts, int fd, int flags) OP_MUST_CHECK;

/*
 * Receives up to nr_bytes. A descriptor that came along takes the place of *ret_fd, which is closed
 * unless it is -1; else *ret_fd is unchanged. Of several descriptors none is taken. Bytes, 0 at the
 * end, or -errno.
 */
ssize_t op_pass_receive(int socket_fd, void *bytes, size_t nr_bytes, int *ret_fd) OP_MUST_CHECK;

#endif
