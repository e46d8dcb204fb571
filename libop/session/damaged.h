/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Keeps damaged files of the session directory in damaged/, for somebody to examine. */
#ifndef OP_DAMAGED_H
#define OP_DAMAGED_H

#include "libop/base/compiler.h"

#define OP_DAMAGED_NAME_BYTES 64

/*
 * Moves `path` below session_fd to the new name that is returned in `aside`. 0 or -errno. One
 * thread at a time.
 */
int op_damaged_put_aside(int session_fd, const char *path, char aside[OP_DAMAGED_NAME_BYTES]) OP_NONNULL OP_MUST_CHECK;

#endif
