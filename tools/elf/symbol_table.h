/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The functions in a symbol table of an ELF file, with their sizes. Source: elf(5). */
#ifndef OPR_ELF_SYMBOL_TABLE_H
#define OPR_ELF_SYMBOL_TABLE_H

#include "tools/elf/elf_file.h"

struct opr_elf_symbol {
	const char *name; /* not empty */
	uint64_t vma;
	uint64_t nr_bytes; /* 0: not known */
	bool is_local, is_weak, is_function;
};

struct opr_elf_symbols {
	uint8_t *entries;
	char *names;
	size_t nr_symbols, nr_name_bytes;
};

/*
 * Reads the table of a type, SHT_DYNSYM or SHT_SYMTAB. 0, also when there is none; -EBADMSG: it is
 * not within the file; another -errno. To be freed with opr_elf_symbols_free in any case.
 */
int opr_elf_symbols_read(struct opr_elf_symbols *table, const struct opr_elf *elf, uint32_t type) OP_NONNULL OP_MUST_CHECK;

/* The symbol of an index below nr_symbols. False: it is undefined, unnamed, or no address. */
bool opr_elf_symbol_at(const struct opr_elf_symbols *table, const struct opr_elf *elf, size_t index,
		       struct opr_elf_symbol *ret_symbol) OP_NONNULL;

void opr_elf_symbols_free(struct opr_elf_symbols *table);

#endif
