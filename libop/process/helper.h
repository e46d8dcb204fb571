/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Helper processes: a helper is asked over a socket and answers within a deadline, or later, or
 * never. Helpers make the system calls that may hang for as long as a stranger likes, and that
 * nothing can end, not even SIGKILL.
 *
 * A nursery starts them (nursery.h). One thread at a time uses a helper.
 */
#ifndef OP_HELPER_H
#define OP_HELPER_H

#include <sys/types.h>
#include <sys/uio.h>

#include "libop/base/compiler.h"
#include "libop/base/text.h"

#define OP_HELPER_NAME_BYTES  16 /* with the NUL */
/* of a helper and of a nursery: the only descriptor above the first three */
#define OP_HELPER_SOCKET_FD   3
/* times that a process which is not blocked gets the time to answer again */
#define OP_HELPER_PATIENCE    10u

/* What helpers of one kind do. The functions run in the helper. */
struct op_helper_kind {
	const char *name; /* of the process, see OP_HELPER_NAME_BYTES */
	/* gives up rights; 0 or -errno, which ends the helper; NULL: nothing to do */
	int (*begin)(void);
	/*
	 * Adds the answer to a question. `fd` came with the question, -1: none; the frame closes
	 * it. The result goes to op_helper_ask. Returning -ENOMEM is allowed anywhere.
	 */
	int (*answer)(const char *question, size_t nr_bytes, int fd, struct op_text *answer);
};

struct op_helper;

/* For the nursery: a helper that runs, with its socket. NULL: no memory. */
struct op_helper *op_helper_new(int fd, pid_t pid) OP_MUST_CHECK;

/* In the helper: answers questions until the program closes its end. */
void op_helper_serve(const struct op_helper_kind *kind) OP_NONNULL;

/* The letter in /proc/PID/stat: R runs or waits for a CPU, T is stopped; ?: it is gone. */
char op_process_state(pid_t pid);

/*
 * Asks and waits for the answer. A helper that runs, or waits for a CPU, has up to ten times
 * wait_ns. Sends `fd` as well, unless it is -1. 0, and *ret_result and *ret_answer are those of the
 * answer function; -ETIMEDOUT: there is no answer yet; -EBUSY: it still works on an earlier
 * question; -EPIPE: it has ended; another -errno. The caller frees ret_answer in any case.
 */
int op_helper_ask(struct op_helper *helper, const struct iovec *parts, size_t nr_parts, int fd, uint64_t wait_ns,
		  int *ret_result, struct op_text *ret_answer) OP_NONNULL OP_MUST_CHECK;

/*
 * The same without waiting: sends a question, 0 or -errno as above; later takes its answer: 0;
 * -EAGAIN: there is none yet; -EPIPE: the helper has ended. op_helper_fd is readable when one of
 * the other two may come.
 */
int op_helper_send(struct op_helper *helper, const struct iovec *parts, size_t nr_parts, int fd) OP_NONNULL OP_MUST_CHECK;
int op_helper_take(struct op_helper *helper, int *ret_result, struct op_text *ret_answer) OP_NONNULL OP_MUST_CHECK;
int op_helper_fd(const struct op_helper *helper) OP_NONNULL;

/* Tells the helper that its answer is not awaited any more. It sees the end of its socket. */
void op_helper_end(struct op_helper *helper) OP_NONNULL;

/*
 * True when the helper can be asked. Takes the answer to a question that was given up, and drops
 * it. -EPIPE is a helper that has ended: it can be asked, and tells so.
 */
bool op_helper_is_idle(struct op_helper *helper) OP_NONNULL;

/* False: it has work, and runs or waits for a CPU. True: it waits in the kernel, or is gone. */
bool op_helper_is_blocked(const struct op_helper *helper) OP_NONNULL;

/* A signal has stopped it: it waits for no file system. */
bool op_helper_is_stopped(const struct op_helper *helper) OP_NONNULL OP_MUST_CHECK;

/* It has ended, and all its answers were taken. */
bool op_helper_has_ended(const struct op_helper *helper) OP_NONNULL OP_MUST_CHECK;

/*
 * How long the last answer took when the helper had to sleep for it. 0: it did not, or it took less
 * than OP_HELPER_QUICK_NS.
 */
#define OP_HELPER_QUICK_NS 100000u
uint64_t op_helper_slept_ns(const struct op_helper *helper) OP_NONNULL;

pid_t op_helper_pid(const struct op_helper *helper) OP_NONNULL;

/*
 * Ends the helper, and waits until it has ended, or until until_ns (OP_CLOCK). One that still works
 * on a question ends when it comes back from the kernel; its answer is dropped. NULL is allowed.
 */
void op_helper_stop(struct op_helper *helper, uint64_t until_ns);

/* The same without waiting. */
void op_helper_leave(struct op_helper *helper) OP_NONNULL;

#endif
