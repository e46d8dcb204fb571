/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Memory of the running kernel by address, from an ELF core file such as /proc/kcore. Source:
 * elf(5); fs/proc/kcore.c of Linux.
 */
#ifndef OPR_CODE_CORE_H
#define OPR_CODE_CORE_H

#include "libop/base/compiler.h"

struct opr_core_segment {
	uint64_t vma, bytes, position;
};

struct opr_core {
	int fd; /* -1: closed */
	uint16_t machine;
	struct opr_core_segment *segments;
	size_t nr_segments;
};

/*
 * Opens a 64-bit core file of this kind of machine. 0; -ENOEXEC: another kind of file; another
 * -errno. Prints nothing. To be closed in any case.
 */
int opr_core_open(struct opr_core *core, const char *path) OP_NONNULL OP_MUST_CHECK;

/*
 * Reads memory, up to the end of the segment. 0 with *ret_bytes, freed by the caller; -EFAULT: no
 * segment has `vma`; another -errno.
 */
int opr_core_read(const struct opr_core *core, uint64_t vma, uint64_t nr_bytes, uint8_t **ret_bytes,
		  size_t *ret_nr_bytes) OP_NONNULL OP_MUST_CHECK;

/*
 * Writes a core file with the memory from `start` to `end`, exclusive, or to the end of the
 * segment. 0; -EFBIG: more than OPR_CORE_SAVE_MAX; an error of opr_core_read.
 */
#define OPR_CORE_SAVE_MAX (128u << 20)
int opr_core_save(const struct opr_core *core, uint64_t start, uint64_t end, int fd) OP_NONNULL OP_MUST_CHECK;

void opr_core_close(struct opr_core *core) OP_NONNULL;

#endif
