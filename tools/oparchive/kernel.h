/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Files of the running kernel beside its list of symbols: its build-id and its code. */
#ifndef OPR_ARCHIVE_KERNEL_H
#define OPR_ARCHIVE_KERNEL_H

#include "tools/oparchive/store.h"

/*
 * Copies the kernel's notes, which have its build-id, and makes a core file of its code from
 * /proc/kcore. `kallsyms` is the list of symbols in the same /proc. Leaves out what is missing or
 * may not be read. 0 or -errno.
 */
int opr_archive_add_kernel(struct opr_archive_writer *writer, const char *kallsyms) OP_NONNULL OP_MUST_CHECK;

/*
 * Whether two lists of symbols are the same: modules and BPF programs come and go, and each boot
 * changes the addresses. 0 with *ret_same, or -ENOMEM.
 */
int opr_archive_compare_kernels(const char *left, const char *right, bool *ret_same) OP_NONNULL OP_MUST_CHECK;

#endif
