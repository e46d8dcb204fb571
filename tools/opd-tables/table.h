/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Makes the row table of an image (opd-table(5)). */
#ifndef OPT_TABLE_H
#define OPT_TABLE_H

#include "libop/base/compiler.h"

/*
 * Reads the ELF file at image_fd and writes its table to table_fd, both the caller's. only_header:
 * one without rows and functions. 0; -ENOEXEC: no ELF file that opd walks through; -ENODATA: the
 * file has neither rows nor functions; -EFBIG: the table would be too large; another -errno.
 */
int opt_table_make(int image_fd, int table_fd, bool only_header) OP_MUST_CHECK;

#endif
