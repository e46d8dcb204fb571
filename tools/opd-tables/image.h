/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The ELF file of an image: what a row table is made of. libelf reads it. The file is hostile, so
 * this runs in a process without rights (main.c). One thread.
 */
#ifndef OPT_IMAGE_H
#define OPT_IMAGE_H

#include <libelf.h>

#include "libop/base/build_id.h"
#include "tools/elf/go_table.h"
#include "tools/opd-tables/rows.h"

struct opt_image {
	Elf *elf;
	const char *bytes;
	size_t nr_bytes;
	uint16_t machine;
	uint64_t entry;  /* address where it begins to run */
	bool is_program; /* ET_EXEC, or it names a dynamic linker */
	struct op_build_id build_id;
	struct opr_go_table go;
	bool has_go;
	struct opt_segment *segments; /* of code */
	size_t nr_segments;
};

/*
 * Maps and opens the file at `fd`, which stays the caller's. Frees with opt_image_close in any
 * case. 0; -ENOEXEC: no ELF file of x86-64 or arm64, or a relocatable one; another -errno.
 */
int opt_image_open(struct opt_image *image, int fd) OP_NONNULL OP_MUST_CHECK;

/*
 * Adds the rows of .eh_frame, of .debug_frame, and of what nothing describes: the code that signal
 * handlers return to, and the entry. 0 or -ENOMEM.
 */
int opt_image_read_rows(const struct opt_image *image, struct opt_rows *rows, bool *ret_is_whole) OP_NONNULL OP_MUST_CHECK;

void opt_image_close(struct opt_image *image) OP_NONNULL;

#endif
