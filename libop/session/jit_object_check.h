/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Objects with the symbols of JIT code, *.jo beside sample files (doc/format.md). Only a dump
 * brings a new one to the disk: after a power cut, its name may have no contents. Any thread.
 */
#ifndef OP_JIT_OBJECT_H
#define OP_JIT_OBJECT_H

#include "libop/base/compiler.h"

/*
 * Checks that an object is whole: by its seal, or, when another writer made it without a seal, as a
 * 64-bit ELF file with all sections. 0; -EBADMSG: it is not whole, or no regular file; another
 * -errno from opening and reading.
 */
int op_jit_object_check(int dir_fd, const char *path) OP_NONNULL OP_MUST_CHECK;

#endif
