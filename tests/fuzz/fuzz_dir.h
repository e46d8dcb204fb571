/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What targets of files share: a directory in memory that is there until the process ends, and an end where something does not hold. */
#ifndef OPD_FUZZ_DIR_H
#define OPD_FUZZ_DIR_H

#include "libop/compiler.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t nr_bytes);

/* Aborts, which is a finding, unless it holds. */
void fuzz_check(bool holds);

/* The directory's descriptor, the same with each call. */
int fuzz_dir_open(void);

/* Makes a file below it, and directories that lead to it. False when no file can have this name. */
bool fuzz_dir_write(const char *path, const void *bytes, size_t nr_bytes) OP_NONNULL;

#endif
