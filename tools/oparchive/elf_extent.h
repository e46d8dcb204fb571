/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Where an ELF file ends by what its own headers say, whatever lies behind that. Source: elf(5). */
#ifndef OPR_ELF_EXTENT_H
#define OPR_ELF_EXTENT_H

#include "libop/base/compiler.h"

/*
 * *ret_end: the end of the last of its headers, segments and sections, at most file_bytes; 0. -ENOEXEC: it is no ELF file of this machine's byte order, its headers lie outside of the
 * file, or there are too many of them; another -errno. Says nothing. Any thread.
 */
int opr_elf_end(int fd, uint64_t file_bytes, uint64_t *ret_end) OP_NONNULL OP_MUST_CHECK;

#endif
