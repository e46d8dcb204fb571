/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Work on hostile files, in a child process with limits of time and memory: libbfd and libopcodes
 * are not made for bad input, and cannot work in threads. The result is the text that the work
 * writes.
 */
#ifndef OPR_CHILD_H
#define OPR_CHILD_H

#include <sys/types.h>

#include "libop/process/stop.h"

#define OPR_CHILD_CPU_SECONDS  60
#define OPR_CHILD_WALL_SECONDS 600
#define OPR_CHILD_MEMORY_BYTES (4ull << 30) /* beyond the memory of its parent */
#define OPR_CHILD_OUTPUT_BYTES (1ull << 30)

struct opr_child {
	pid_t pid;
	int fd;
};

struct opr_child_result {
	const char *bytes; /* the text, perhaps only its beginning, and a NUL */
	size_t nr_bytes;
	int err; /* of the work; -ENOMEM, -ETIME: over a limit; -EFAULT: crashed; -EINTR: stopped */
};

/* From now on, a set `stop` kills children; their result is -EINTR. NULL: it does not. */
void opr_child_stop_with(const struct op_stop *stop);

/* Runs in the child: writes to `out`. 0 or -errno. */
typedef int opr_child_fn(FILE *out, void *arg);

/* Starts the work. 0, and the caller calls opr_child_wait; or -errno, without a message. */
int opr_child_start(struct opr_child *child, opr_child_fn *work, void *arg) OP_NONNULL_ARGS(1, 2) OP_MUST_CHECK;

/* Waits for its end. 0 and a result for opr_child_result_free, or -errno. */
int opr_child_wait(struct opr_child *child, struct opr_child_result *ret_result) OP_NONNULL OP_MUST_CHECK;

/*
 * The same for work that looks at file systems of strangers, which may keep it waiting for ever: no
 * signal ends that. The work counts its steps in *beats, in memory that both share. When it sleeps
 * for patience_ms without a step, or *budget_ms are used up, its result is -ETIME, with what it
 * wrote so far. It is killed, or left behind when it cannot be. The time is taken from *budget_ms.
 */
int opr_child_wait_awake(struct opr_child *child, const uint64_t *beats, uint64_t patience_ms, uint64_t *budget_ms,
			 struct opr_child_result *ret_result) OP_NONNULL OP_MUST_CHECK;

/* In such a child: closes all descriptors but these two (-1: none), which it must not keep open. */
void opr_child_let_go(int fd, int other_fd);

/* Also of a zeroed result. `err` stays. */
void opr_child_result_free(struct opr_child_result *result) OP_NONNULL;

/* In the child: the limits of time start again. */
void opr_child_begin_step(void);

/* The error of a child in words. */
const char *opr_child_reason(int err);

#endif
