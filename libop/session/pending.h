/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Finishes the replacements of files that a stop interrupted, in all sessions. Whoever changes
 * sample files of a session directory must do this first: the links in tmp/ name a file by its
 * inode, and mean nothing once another one stands at its path. Any thread, with the lock of the
 * directory.
 */
#ifndef OP_SESSION_PENDING_H
#define OP_SESSION_PENDING_H

#include "libop/base/compiler.h"

/*
 * op_odb_recover for all sessions below session_fd. *ret_nr_put_back: old files that took their
 * place again. 0 or -errno.
 */
int op_session_recover_pending(int session_fd, uint64_t *ret_nr_put_back) OP_NONNULL OP_MUST_CHECK;

#endif
