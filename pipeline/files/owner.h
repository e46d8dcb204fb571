/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The process that JIT code belongs to, and its files that describe the code. Anybody can write
 * such files. Therefore a file is opened only when it is a regular file of the process's user or of
 * root, in the process's view of the file system. A link, a device or a FIFO in its place is
 * refused.
 *
 * Sync thread only.
 */
#ifndef OPD_JIT_OWNER_H
#define OPD_JIT_OWNER_H

#include <sys/stat.h>

#include "libop/base/compiler.h"

struct opd_jit_owner {
	uint32_t pid;
	uint32_t ns_pid;   /* its number in its own pid namespace */
	uid_t uid;         /* effective user */
	uint64_t began_ns; /* when its program began, CLOCK_REALTIME; 0: unknown */
	/* /proc/PID of this process, even when its number is used again; -1: none */
	int proc_fd;
	bool is_known;     /* ns_pid and uid were read */
	bool in_host_pids; /* it has the host's pid namespace */
};

/*
 * The user of a process by the attributes of /proc/PID, which need nothing of its memory or files.
 * A process that cannot be dumped counts as root's. False: it is gone.
 */
bool opd_jit_owner_uid(uint32_t pid, uid_t *ret_uid) OP_NONNULL OP_MUST_CHECK;

/* Opens the directory in /proc. Reads nothing of the process yet. */
void opd_jit_owner_begin(struct opd_jit_owner *owner, uint32_t pid, uint64_t began_ns) OP_NONNULL;

/* The rest of the two functions below, after opd_jit_owner_begin. */
void opd_jit_owner_learn(struct opd_jit_owner *owner) OP_NONNULL;
void opd_jit_owner_learn_ended(struct opd_jit_owner *owner, uint32_t parent_pid, uint64_t began_ns) OP_NONNULL;

/*
 * Reads who the process is. is_known is false for a process that is gone, and then none of its
 * files is opened. began_ns is when its program began, OP_CLOCK; 0: before opd looked, and only
 * /proc tells.
 */
void opd_jit_owner_init(struct opd_jit_owner *owner, uint32_t pid, uint64_t began_ns) OP_NONNULL;

/*
 * The same for a process that has ended. Until its parent has waited for it, /proc still has it.
 * After that it is assumed to have the user of its parent, if the parent lives and has the host's
 * pid namespace.
 */
void opd_jit_owner_init_ended(struct opd_jit_owner *owner, uint32_t pid, uint32_t parent_pid, uint64_t began_ns) OP_NONNULL;

/*
 * Opens a file of the process for reading, in the process's view of the file system. When the
 * process is gone, opens the host's file of that path. A descriptor; -EPERM: the file may not be
 * used; -ENOENT; another -errno.
 */
int opd_jit_owner_open(struct opd_jit_owner *owner, const char *path, struct stat *ret_stat) OP_NONNULL OP_MUST_CHECK;

/* The same for a file that the process has mapped. */
int opd_jit_owner_open_mapped(struct opd_jit_owner *owner, uint64_t start, uint64_t end, const char *path,
			      struct stat *ret_stat) OP_NONNULL OP_MUST_CHECK;

/*
 * True when the file was last written before the program began: it was left by an earlier process
 * of that number, or by the program before exec.
 */
bool opd_jit_owner_is_older(const struct opd_jit_owner *owner, const struct stat *st) OP_NONNULL;

/* Closes proc_fd. */
void opd_jit_owner_close(struct opd_jit_owner *owner) OP_NONNULL;

#endif
