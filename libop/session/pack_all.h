/* SPDX-License-Identifier: GPL-3.0-or-later */
/* All sample files of a closed session: into its pack (pack.h), and out of it. Any thread. */
#ifndef OP_SESSION_PACK_ALL_H
#define OP_SESSION_PACK_ALL_H

#include "libop/base/compiler.h"

/* Packs all sample files of a closed session, if they are many. 0 or -errno; no sample is lost. */
int op_session_pack(int dir_fd) OP_MUST_CHECK;

/*
 * Makes all sample files anew and removes the pack, for the genuine tools; locks the directory of
 * the session meanwhile (flock). 0; -ENOENT: there is no pack; -EBUSY: the session is not on the
 * disk yet, or another call unpacks it; another -errno.
 */
int op_session_unpack(int top_fd, const char *directory) OP_NONNULL OP_MUST_CHECK;

#endif
