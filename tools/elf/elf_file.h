/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The sections of an ELF file. Source: elf(5). Nothing in the file is trusted; every read is within
 * it. One thread. No messages.
 */
#ifndef OPR_ELF_FILE_H
#define OPR_ELF_FILE_H

#include "libop/base/compiler.h"

struct opr_elf_section {
	const char *name; /* "" when the table of names does not have it */
	uint32_t type, link;
	uint64_t flags, vma, position, nr_bytes;
};

struct opr_elf {
	int fd;
	uint64_t file_bytes;
	bool is_64, is_big;     /* 64 bits, big-endian */
	uint16_t type, machine; /* ET_DYN, ...; EM_X86_64, ... */
	struct opr_elf_section *sections;
	size_t nr_sections;
	char *names;
};

#define OPR_ELF_TABLE_BYTES_MAX (512u << 20) /* of a section that is read */

/*
 * Reads the headers. The descriptor belongs to `elf` from now on, also after an error, and
 * opr_elf_close closes it. 0; -ENOEXEC: no ELF file, or its headers are not in it; another -errno.
 */
int opr_elf_open(struct opr_elf *elf, int fd) OP_NONNULL OP_MUST_CHECK;
void opr_elf_close(struct opr_elf *elf) OP_NONNULL;

/* The first section of a type; `name` NULL: of any name. NULL: none. */
const struct opr_elf_section *opr_elf_find(const struct opr_elf *elf, uint32_t type, const char *name) OP_NONNULL_ARGS(1);

/*
 * The contents of a section with a NUL behind them, freed by the caller. 0; -EBADMSG: not within
 * the file, too large, or compressed; another -errno.
 */
int opr_elf_read(const struct opr_elf *elf, const struct opr_elf_section *section, uint8_t **ret_bytes) OP_NONNULL OP_MUST_CHECK;

/* The number at `bytes` in the byte order of the file: 1, 2, 4 or 8 bytes. */
uint64_t opr_elf_number(const struct opr_elf *elf, const uint8_t *bytes, size_t nr_bytes) OP_NONNULL;

#endif
