/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Shared by targets that need files: a directory in memory that lives as long as the process, and a
 * function that ends the process when a check fails.
 */
#ifndef OPD_FUZZ_DIR_H
#define OPD_FUZZ_DIR_H

#include "libop/base/compiler.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t nr_bytes);

/* Aborts, which is a finding, unless it holds. */
void fuzz_check(bool holds);

/* The directory's descriptor, the same with each call. */
int fuzz_dir_open(void);

/*
 * Makes a file below the directory, and the directories that lead to it. False when no file can
 * have this name.
 */
bool fuzz_dir_write(const char *path, const void *bytes, size_t nr_bytes) OP_NONNULL;

#define FUZZ_PATH_BYTES 64

/* The path of a file below the directory; "": the directory itself. */
void fuzz_dir_path(char ret_path[FUZZ_PATH_BYTES], const char *name) OP_NONNULL;

struct fuzz_part {
	const uint8_t *bytes;
	size_t nr_bytes;
};

/*
 * Splits an input: the length of the first part in 2 bytes, the first part, the rest. False when it
 * has no length.
 */
bool fuzz_split(const uint8_t *bytes, size_t nr_bytes, struct fuzz_part ret_parts[2]) OP_NONNULL;

#endif
