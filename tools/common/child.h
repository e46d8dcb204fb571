/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Work on files of anybody, in a process of its own with limits of time and memory: libbfd and libopcodes were not made for bad input, and cannot work in threads. What
 * the work writes is what comes back.
 */
#ifndef OPR_CHILD_H
#define OPR_CHILD_H

#include <sys/types.h>

#include "libop/base/stop.h"

#define OPR_CHILD_CPU_SECONDS  60
#define OPR_CHILD_WALL_SECONDS 600
#define OPR_CHILD_MEMORY_BYTES (4ull << 30) /* more than its parent has */
#define OPR_CHILD_OUTPUT_BYTES (1ull << 30)

struct opr_child {
	pid_t pid;
	int fd;
};

struct opr_child_result {
	const char *bytes; /* what was written, as far as it came, and a NUL */
	size_t nr_bytes;
	int err; /* of the work; -ENOMEM, -ETIME: beyond a limit; -EFAULT: it crashed; -EINTR: it was stopped */
};

/* From then on a child is killed, and its result -EINTR, when `stop`, the caller's, says so; NULL: no more. The children stop as programs do of themselves. */
void opr_child_stop_with(const struct op_stop *stop);

/* Runs in the child: writes to `out`. 0 or -errno. */
typedef int opr_child_fn(FILE *out, void *arg);

/* Starts the work. 0, and opr_child_wait is to be called, or -errno. Says nothing. */
int opr_child_start(struct opr_child *child, opr_child_fn *work, void *arg) OP_NONNULL_ARGS(1, 2) OP_MUST_CHECK;

/* Waits for its end. 0 and a result that opr_child_result_free frees, or -errno: it cannot be read. */
int opr_child_wait(struct opr_child *child, struct opr_child_result *ret_result) OP_NONNULL OP_MUST_CHECK;

/* Also of one that is all 0. What the error was stays. */
void opr_child_result_free(struct opr_child_result *result) OP_NONNULL;

/* For the child: what follows has the whole time again. */
void opr_child_begin_step(void);

/* Why a child ended, in words. */
const char *opr_child_reason(int err);

#endif
