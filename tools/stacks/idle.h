/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Waits that wait for work alone (opreport --idle). A thread waits for work when it is blocked in
 * one of these, by the functions of its stack:
 *
 *   - epoll_wait, poll, select and their relatives, accept, a wait for a signal, io_getevents
 *   - a condition variable, as the idle thread of a pool
 *   - a read from a terminal
 *   - a sleep that the first function of the program or thread calls: the loop of a daemon
 *
 * Nothing else: no lock, no pipe, no socket that is read, no child that is awaited, and no sleep
 * inside of the work; and no state but blocked.
 */
#ifndef OPR_IDLE_H
#define OPR_IDLE_H

#include "tools/stacks/call_tree.h"

/* The line that stands for them in a report. */
#define OPR_CALL_IDLE "(waits for work: --idle=show has their stacks)"

/*
 * What a stack that ends at this node waits for: the name of a function. NULL: it is no such wait.
 */
const char *opr_idle_wait(const struct opr_call_node *node) OP_NONNULL;

/* The same where the state is known, and the tree has no states: the thread is blocked. */
const char *opr_idle_blocked(const struct opr_call_node *node) OP_NONNULL;

/* The image is the C library or a part of it: functions there wait for others. */
bool opr_is_c_library(const char *image) OP_NONNULL;

#endif
