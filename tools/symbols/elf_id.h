/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The build-id of an object file, read without libbfd: it says under which name its symbols are kept. Source: elf(5), PT_NOTE and NT_GNU_BUILD_ID. */
#ifndef OPR_ELF_ID_H
#define OPR_ELF_ID_H

#include <sys/stat.h>

#include "libop/session/dcookie.h"

/*
 * 0 with hexadecimal digits; -ENODATA: it has none, or is no 64-bit ELF file of this machine's byte order; another -errno. *ret_st is what the file is, with 0 and -ENODATA.
 */
int opr_elf_build_id(const char *path, char digits[2 * OP_BUILD_ID_BYTES_MAX + 1], struct stat *ret_st) OP_NONNULL OP_MUST_CHECK;

#endif
