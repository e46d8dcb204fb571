/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Files of the session directory that are not what they should be (a power cut, a foreign hand): kept in damaged/ for whoever wants to look. */
#ifndef OP_DAMAGED_H
#define OP_DAMAGED_H

#include "libop/base/compiler.h"

#define OP_DAMAGED_NAME_BYTES 64

/* Moves `path`, below the directory session_fd, out of the way; where to stands in `aside`. Nothing is replaced. 0 or -errno. One thread at a time. */
int op_damaged_put_aside(int session_fd, const char *path, char aside[OP_DAMAGED_NAME_BYTES]) OP_NONNULL OP_MUST_CHECK;

#endif
