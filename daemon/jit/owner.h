/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The process that JIT code is of, and the files by which it tells of that code. These are written by anybody who likes: a
 * file is opened only when it is a regular one that belongs to the process's user or to root, as the process sees it, and no
 * link, device or FIFO in its place does any harm.
 *
 * Sync thread only.
 */
#ifndef OPD_JIT_OWNER_H
#define OPD_JIT_OWNER_H

#include <sys/stat.h>

#include "libop/base/compiler.h"

struct opd_jit_owner {
	uint32_t pid;
	uint32_t ns_pid;   /* its number in its own name space */
	uid_t uid;         /* effective */
	uint64_t began_ns; /* when it began, or the program that it runs, CLOCK_REALTIME; 0: not known */
	int proc_fd;       /* /proc/PID of this very process, also when the number is another's now; -1: none */
	bool is_known;     /* the above were read */
	bool in_host_pids; /* it has no pid name space of its own */
};

/*
 * Looks the process up. One that is gone is not known, and so none of its files is opened. began_ns is when its program began, OP_CLOCK;
 * 0: before opd looked, and then only /proc is asked when the process began.
 */
void opd_jit_owner_init(struct opd_jit_owner *owner, uint32_t pid, uint64_t began_ns) OP_NONNULL;

/*
 * The same for one that has ended before anybody looked: as long as nobody has waited for it, it is in /proc still; else it is taken to be of the user of
 * the process that forked it, if that lives and has the host's numbers.
 */
void opd_jit_owner_init_ended(struct opd_jit_owner *owner, uint32_t pid, uint32_t parent_pid, uint64_t began_ns) OP_NONNULL;

/*
 * Opens a file of the process for reading, by its path there; when the process is gone, the host's file of that path.
 * A descriptor; -EPERM: a file that may not be used; -ENOENT; another -errno.
 */
int opd_jit_owner_open(struct opd_jit_owner *owner, const char *path, struct stat *ret_stat) OP_NONNULL OP_MUST_CHECK;

/* The same for the file of a mapping of the process. */
int opd_jit_owner_open_mapped(struct opd_jit_owner *owner, uint64_t start, uint64_t end, const char *path,
			      struct stat *ret_stat) OP_NONNULL OP_MUST_CHECK;

/* True for a file that was last written before the program began: an earlier process of that number left it, or the program before exec. */
bool opd_jit_owner_is_older(const struct opd_jit_owner *owner, const struct stat *st) OP_NONNULL;

/* Closes what opd_jit_owner_init opened. */
void opd_jit_owner_close(struct opd_jit_owner *owner) OP_NONNULL;

#endif
