/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The build-id of a kernel or of a module, as the running kernel gives it away. */
#ifndef OP_BUILD_ID_H
#define OP_BUILD_ID_H

#include "libop/base/compiler.h"

#define OP_KERNEL_NOTES	 "kernel/notes"			  /* below /sys */
#define OP_MODULE_NOTES	 "module/%s/notes/.note.gnu.build-id" /* the same, with the name as /proc/modules has it */

#define OP_BUILD_ID_BYTES_MAX 20
#define OP_BUILD_ID_DIGITS    (2 * OP_BUILD_ID_BYTES_MAX + 1) /* in hexadecimal, with a NUL */

struct op_build_id {
	uint8_t bytes[OP_BUILD_ID_BYTES_MAX];
	uint8_t nr_bytes; /* 0: none */
};

/* Looks for the build-id among ELF notes of this machine (elf(5), Notes). False: there is none. */
bool op_build_id_in_notes(const void *notes, size_t nr_bytes, struct op_build_id *ret_id) OP_NONNULL OP_MUST_CHECK;

/* The same in a file that has nothing but notes. 0, -ENODATA when there is none, or another -errno. */
int op_build_id_of_notes_file(const char *path, struct op_build_id *ret_id) OP_NONNULL OP_MUST_CHECK;

/* Writes hexadecimal digits, "" when nr_bytes is 0. Bytes beyond OP_BUILD_ID_BYTES_MAX are left out. */
void op_build_id_format(const uint8_t *build_id, size_t nr_bytes, char digits[OP_BUILD_ID_DIGITS]) OP_NONNULL;

#endif
