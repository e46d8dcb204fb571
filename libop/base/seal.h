/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A checksum in the last 16 bytes of a file. It detects what a power cut does to a file that was
 * not yet on the disk: the file is short, or has zeros in place of data. It does not protect from
 * a program that changes the file on purpose. doc/format.md describes it.
 */
#ifndef OP_SEAL_H
#define OP_SEAL_H

#include "libop/base/compiler.h"

/* The checksum of some bytes, for formats that store it elsewhere. */
uint64_t op_seal_sum(const void *bytes, size_t nr_bytes) OP_NONNULL OP_MUST_CHECK;

/* Reads the whole file, open for reading and writing, and appends the seal. 0 or -errno. */
int op_seal_append(int fd) OP_MUST_CHECK;

/*
 * Reads the whole file. 0: unchanged since it was sealed; -EBADMSG: changed, or never sealed;
 * another -errno.
 */
int op_seal_check(int fd) OP_MUST_CHECK;

/* True when the file ends with a seal, whether it is right or not. */
bool op_seal_is_there(int fd) OP_MUST_CHECK;

#endif
