/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Memory by address from an ELF core file: of the running kernel, /proc/kcore. Source: elf(5); fs/proc/kcore.c of Linux. */
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

/* Opens a 64-bit core file of a machine of this kind. 0; -ENOEXEC: it is none; another -errno. Says nothing. To be closed in any case. */
int opr_core_open(struct opr_core *core, const char *path) OP_NONNULL OP_MUST_CHECK;

/* Reads memory; what follows the end of a segment is left out. 0 with *ret_bytes, freed by the caller; -EFAULT: nothing is at `vma`; another -errno. */
int opr_core_read(const struct opr_core *core, uint64_t vma, uint64_t nr_bytes, uint8_t **ret_bytes,
		  size_t *ret_nr_bytes) OP_NONNULL OP_MUST_CHECK;

/* Writes a core file that has the memory from `start` up to `end`, as far as one segment goes. 0; -EFBIG: more than OPR_CORE_SAVE_MAX; as opr_core_read. */
#define OPR_CORE_SAVE_MAX (128u << 20)
int opr_core_save(const struct opr_core *core, uint64_t start, uint64_t end, int fd) OP_NONNULL OP_MUST_CHECK;

void opr_core_close(struct opr_core *core) OP_NONNULL;

#endif
