/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The disk below libop's calls. A test makes calls fail, watches them or holds them up. */
#ifndef DISK_H
#define DISK_H

#include <stddef.h>
#include <sys/types.h>

#include "libop/base/compiler.h"

struct disk_call {
	enum { DISK_fallocate, DISK_fsync, DISK_ftruncate, DISK_mkdirat, DISK_renameat, DISK_write_all } kind;
	int fd;
	const char *path, *new_path; /* NULL where the call has none */
};

/* What a call returns instead of being done: a negative errno. 0: it is done. */
static OP_UNUSED struct {
	int fallocate, fsync, ftruncate, mkdirat, renameat, write_all;
} disk_fails;

#define DISK_IS_DONE 1

/*
 * Every call asks this first, if it is there. 0: the call goes on; a negative errno: it fails;
 * DISK_IS_DONE: it succeeds, and nothing is done.
 */
static OP_UNUSED int (*disk_watch)(const struct disk_call *call);

#define DISK_CALL(name, fd, path, new_path, parameters, arguments)                                                                 \
	int __real_op_sys_##name parameters;                                                                                       \
	int __wrap_op_sys_##name parameters;                                                                                       \
	int __wrap_op_sys_##name parameters                                                                                        \
	{                                                                                                                          \
		int answer = disk_watch ? disk_watch(&(struct disk_call){ DISK_##name, fd, path, new_path }) : 0;                  \
                                                                                                                                   \
		if (!answer)                                                                                                       \
			answer = disk_fails.name;                                                                                  \
		return answer == DISK_IS_DONE ? 0 : answer ? answer : __real_op_sys_##name arguments;                              \
	}

DISK_CALL(fallocate, fd, NULL, NULL, (int fd, int mode, off_t offset, off_t nr_bytes), (fd, mode, offset, nr_bytes))
DISK_CALL(fsync, fd, NULL, NULL, (int fd), (fd))
DISK_CALL(ftruncate, fd, NULL, NULL, (int fd, off_t nr_bytes), (fd, nr_bytes))
DISK_CALL(mkdirat, fd, path, NULL, (int fd, const char *path, mode_t mode), (fd, path, mode))
DISK_CALL(renameat, fd, path, new_path, (int fd, const char *path, int new_fd, const char *new_path), (fd, path, new_fd, new_path))
DISK_CALL(write_all, fd, NULL, NULL, (int fd, const void *buffer, size_t nr_bytes), (fd, buffer, nr_bytes))

#endif
