/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Build-ids in ELF notes (elf(5), "Notes"). Any thread. */
#ifndef OP_BUILD_ID_H
#define OP_BUILD_ID_H

#include "libop/base/compiler.h"

/* Below /sys: the notes of the running kernel, and of a module by its name in /proc/modules. */
#define OP_KERNEL_NOTES "kernel/notes"
#define OP_MODULE_NOTES "module/%s/notes/.note.gnu.build-id"

#define OP_BUILD_ID_BYTES_MAX 20
#define OP_BUILD_ID_DIGITS    (2 * OP_BUILD_ID_BYTES_MAX + 1) /* in hexadecimal, with a NUL */

struct op_build_id {
	uint8_t bytes[OP_BUILD_ID_BYTES_MAX];
	uint8_t nr_bytes; /* 0: none */
};

/*
 * Finds the build-id in a note segment, in either byte order: images of other machines are read,
 * too. Checks all lengths. False: there is none.
 */
bool op_build_id_in_notes(const void *notes, size_t nr_bytes, struct op_build_id *ret_id) OP_NONNULL OP_MUST_CHECK;

/* The same for a file of notes, as /sys has them. 0; -ENODATA: there is none; another -errno. */
int op_build_id_of_notes_file(const char *path, struct op_build_id *ret_id) OP_NONNULL OP_MUST_CHECK;

/*
 * Writes hexadecimal digits, "" when nr_bytes is 0. Bytes beyond OP_BUILD_ID_BYTES_MAX are left
 * out.
 */
void op_build_id_format(const uint8_t *build_id, size_t nr_bytes, char digits[OP_BUILD_ID_DIGITS]) OP_NONNULL;

#endif
