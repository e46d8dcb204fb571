/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A seal at the end of a file: 16 bytes that say whether all before them is what was written, so that what a power cut has left of
 * a file that was not on the disk yet is known: it may be shorter, or have zeros where there was something. No defence against
 * a hand. doc/format.md describes it.
 */
#ifndef OP_SEAL_H
#define OP_SEAL_H

#include "libop/base/compiler.h"

/* Appends the seal to a file that is open to be read and written; reads all of it. 0 or -errno. */
int op_seal_append(int fd) OP_MUST_CHECK;

/* Reads all of a file. 0: it is as it was sealed; -EBADMSG: it is not, or never was; another -errno. */
int op_seal_check(int fd) OP_MUST_CHECK;

/* Whether the end of a file is a seal, be it the right one or not. */
bool op_seal_is_there(int fd) OP_MUST_CHECK;

#endif
