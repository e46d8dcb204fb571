/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Objects of symbols of JIT code, *.jo beside sample files (doc/format.md). One that is new is on the disk with the first dump after it only, as a sample file is: a power
 * cut before that may leave its name with nothing behind it. Any thread.
 */
#ifndef OP_JIT_OBJECT_H
#define OP_JIT_OBJECT_H

#include "libop/base/compiler.h"

/*
 * Looks whether all of it is there. 0: its seal says so, or it has none, as those of other writers have, and is an ELF file of 64 bits up to its end; -EBADMSG: it is not, or is no regular file; another
 * -errno from opening and reading.
 */
int op_jit_object_check(int dir_fd, const char *path) OP_NONNULL OP_MUST_CHECK;

#endif
