/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The process that starts helpers. It is forked while the program has one thread and little memory,
 * and it closes all descriptors. So a helper that hangs keeps nothing of the program: no lock, no
 * socket, no memory. It keeps the rights that the program gives up later.
 *
 * A nursery may be killed, stopped or frozen. So it has a spare: a second nursery, which it forks
 * and which takes its place. The spare then forks the next one. When both are gone at once, the
 * program may start a nursery anew, with the rights that it still has.
 *
 * All these processes are the first that the kernel ends when memory is short (oom_score_adj 1000).
 *
 * One thread at a time uses a nursery and its helpers.
 */
#ifndef OP_NURSERY_H
#define OP_NURSERY_H

#include "libop/base/compiler.h"
#include "libop/process/helper.h"

#define OP_NURSERY_NAME "opd-nursery" /* of the processes */
#define OP_NURSERY_KINDS_MAX 4u

struct op_nursery;

/*
 * Starts the process. Call it before there are threads; signals that end programs do not end it.
 * `kinds` must stay. 0 or -errno.
 */
int op_nursery_start(const struct op_helper_kind *kinds, size_t nr_kinds, struct op_nursery **ret_nursery) OP_NONNULL OP_MUST_CHECK;

/*
 * What to call when all nurseries are gone. It starts a process that calls op_nursery_serve with
 * the socket `fd` as OP_HELPER_SOCKET_FD, and returns its pid or -errno.
 */
void op_nursery_set_last_resort(struct op_nursery *nursery, pid_t (*start)(int fd)) OP_NONNULL;

/* Is a nursery from now on. Does not return. */
_Noreturn void op_nursery_serve(const struct op_helper_kind *kinds, size_t nr_kinds) OP_NONNULL;

/*
 * Replaces a nursery or a spare that has ended, or that does not answer although it could run. At
 * most one process a second is started for that. Does not wait. op_helper_start does it, too.
 */
void op_nursery_watch(struct op_nursery *nursery) OP_NONNULL;

/* Nurseries and spares that have ended or were given up. */
uint64_t op_nursery_nr_ended(const struct op_nursery *nursery) OP_NONNULL;

/* Ends the nursery and its spare; helpers live on. NULL is allowed. */
void op_nursery_stop(struct op_nursery *nursery);

/*
 * Starts a helper of kinds[kind], and waits up to wait_ns, or ten times that time for a nursery
 * that runs or waits for a CPU. 0; -EAGAIN: it will come, so ask again, which does not wait;
 * -EPIPE: there is no nursery now; another -errno.
 */
int op_helper_start(struct op_nursery *nursery, size_t kind, uint64_t wait_ns, struct op_helper **ret_helper)
	OP_NONNULL OP_MUST_CHECK;

#endif
