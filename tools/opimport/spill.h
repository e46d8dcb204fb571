/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A growing array of bytes. Beyond a limit it is in a mapped file without a name, whose
 * pages the kernel writes out when it needs the memory. One thread.
 */
#ifndef OPI_SPILL_H
#define OPI_SPILL_H

#include "libop/base/compiler.h"

struct opi_spill {
	int dir_fd;          /* the directory of the file; the caller's */
	size_t memory_bytes; /* the limit */
	uint8_t *bytes;
	size_t length, room;
	bool is_file;
	int fd; /* when it is a file */
};

/* Makes an empty array, without memory or file. */
void opi_spill_init(struct opi_spill *spill, int dir_fd, size_t memory_bytes) OP_NONNULL;

int opi_spill_grow(struct opi_spill *spill, size_t nr_bytes) OP_NONNULL OP_MUST_CHECK;

/*
 * Makes room for nr_bytes behind `length`, which the caller increases. Pointers into `bytes` become
 * invalid. 0, -ENOMEM, -ENOSPC or another -errno.
 */
OP_NONNULL OP_MUST_CHECK static inline int opi_spill_reserve(struct opi_spill *spill, size_t nr_bytes)
{
	return op_likely(spill->room - spill->length >= nr_bytes) ? 0 : opi_spill_grow(spill, nr_bytes);
}

/* A zeroed array is allowed. */
void opi_spill_free(struct opi_spill *spill) OP_NONNULL;

#endif
