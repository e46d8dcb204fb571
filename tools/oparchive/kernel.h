/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What an archive has of the running kernel beside its list of symbols, which alone does not say which kernel it is of, nor what its code is. */
#ifndef OPR_ARCHIVE_KERNEL_H
#define OPR_ARCHIVE_KERNEL_H

#include "tools/oparchive/writer.h"

/*
 * Copies the kernel's notes, with its build-id, from the machine whose list of symbols is at `kallsyms`, and makes a core file of its text from
 * /proc/kcore there. What that machine does not have, or the caller may not read, is left out. 0 or -errno, which was said.
 */
int opr_archive_add_kernel(struct opr_archive_writer *writer, const char *kallsyms) OP_NONNULL OP_MUST_CHECK;

/*
 * Whether two lists of symbols are the same to a report: symbols of modules and BPF programs come and go, and the addresses are others after each boot. 0 with *ret_same, or -ENOMEM, which was
 * said.
 */
int opr_archive_compare_kernels(const char *left, const char *right, bool *ret_same) OP_NONNULL OP_MUST_CHECK;

#endif
