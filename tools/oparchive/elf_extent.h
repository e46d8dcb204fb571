/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The end of an ELF file by its own headers, whatever is behind it. Source: elf(5). */
#ifndef OPR_ELF_EXTENT_H
#define OPR_ELF_EXTENT_H

#include "libop/base/compiler.h"

/*
 * 0 and *ret_end, the end of its last header, segment or section, at most file_bytes; -ENOEXEC: no
 * ELF file of this machine's byte order, headers outside of the file, or too many headers; another
 * -errno. No messages. Any thread.
 */
int opr_elf_end(int fd, uint64_t file_bytes, uint64_t *ret_end) OP_NONNULL OP_MUST_CHECK;

#endif
