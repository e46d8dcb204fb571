/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What op_odb_replace left pending in a session directory, in whatever session the files are now. Whoever changes sample files there does this first: the links in tmp/ name
 * a file by its inode, and are worth nothing once another one stands in its place. Any thread, with the lock of the session directory.
 */
#ifndef OP_SESSION_PENDING_H
#define OP_SESSION_PENDING_H

#include "libop/base/compiler.h"

/* op_odb_recover for all sessions below session_fd. *ret_nr_put_back: files that were kept and stand in their old place again. 0 or -errno. */
int op_session_settle_pending(int session_fd, uint64_t *ret_nr_put_back) OP_NONNULL OP_MUST_CHECK;

#endif
