/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Bytes in a row, of which more may come than memory should be taken for: beyond a limit they are in a mapped file without a name, whose
 * pages the kernel writes out when it needs the memory. One thread.
 */
#ifndef OPI_SPILL_H
#define OPI_SPILL_H

#include "libop/base/compiler.h"

struct opi_spill {
	int dir_fd;          /* where the file is made; the caller's */
	size_t memory_bytes; /* beyond these it is a file */
	uint8_t *bytes;
	size_t length, room;
	bool is_file;
	int fd; /* when it is a file */
};

/* There is none yet of either. */
void opi_spill_init(struct opi_spill *spill, int dir_fd, size_t memory_bytes) OP_NONNULL;

int opi_spill_grow(struct opi_spill *spill, size_t nr_bytes) OP_NONNULL OP_MUST_CHECK;

/* Room for nr_bytes behind `length`, which the caller moves on; pointers into it are no good any more. 0; -ENOMEM; -ENOSPC; -errno. */
OP_NONNULL OP_MUST_CHECK static inline int opi_spill_reserve(struct opi_spill *spill, size_t nr_bytes)
{
	return op_likely(spill->room - spill->length >= nr_bytes) ? 0 : opi_spill_grow(spill, nr_bytes);
}

/* Allowed on zeroed ones. */
void opi_spill_free(struct opi_spill *spill) OP_NONNULL;

#endif
