/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pipeline/files/stack_copy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "libop/base/sys.h"
#include "pipeline/files/lookers.h"

int opd_stack_copy_ask(struct opd_lookers *lookers, const struct opd_stack_copy_wanted *wanted, struct op_text *ret_copy)
{
	const struct opd_look_about about = { .pid = wanted->pid };
	const struct iovec part = { .iov_base = (void *)(uintptr_t)wanted, .iov_len = sizeof(*wanted) };
	uint32_t serial = 0;

	return opd_look(lookers, &about, OPD_LOOK_STACK, &part, 1, -1, &serial, ret_copy);
}

/* The copy ends where the mapping ends. */
int opd_stack_copy_answer(const char *question, size_t nr_bytes, struct op_text *answer)
{
	struct opd_stack_copy_wanted wanted;
	ssize_t nr;
	char path[64], *copy;
	int fd;

	if (nr_bytes != sizeof(wanted))
		return -EINVAL;
	memcpy(&wanted, question, sizeof(wanted));
	if (wanted.nr_bytes > OPD_STACK_COPY_MAX || wanted.from > INT64_MAX - OPD_STACK_COPY_MAX)
		return -EINVAL;
	snprintf(path, sizeof(path), "/proc/%u/task/%u/mem", wanted.pid, wanted.tid);
	fd = op_sys_openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
	if (fd < 0)
		return fd;
	copy = malloc(wanted.nr_bytes);
	nr = copy ? op_sys_pread(fd, copy, wanted.nr_bytes, (off_t)wanted.from) : -ENOMEM;
	close(fd);
	if (nr > 0)
		op_text_add_bytes(answer, copy, (size_t)nr);
	if (copy)
		explicit_bzero(copy, wanted.nr_bytes);
	free(copy);
	return nr < 0 ? (int)nr : 0;
}
