/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/elf/symbol_table.h"

#include <elf.h>
#include <errno.h>

static size_t entry_bytes(const struct opr_elf *elf)
{
	return elf->is_64 ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym);
}

int opr_elf_symbols_read(struct opr_elf_symbols *table, const struct opr_elf *elf, uint32_t type)
{
	const struct opr_elf_section *section = opr_elf_find(elf, type, NULL), *names;
	uint8_t *strings = NULL;
	int err;

	*table = (struct opr_elf_symbols){ 0 };
	if (!section)
		return 0;
	if (section->link >= elf->nr_sections)
		return -EBADMSG;
	names = &elf->sections[section->link];
	err = opr_elf_read(elf, section, &table->entries);
	if (!err)
		err = opr_elf_read(elf, names, &strings);
	if (err)
		return err;
	table->names = (char *)strings;
	table->nr_name_bytes = names->nr_bytes;
	table->nr_symbols = section->nr_bytes / entry_bytes(elf);
	return 0;
}

/* The layouts of 32 and 64 bits have the fields in another order. */
static Elf64_Sym read_entry(const struct opr_elf *elf, const uint8_t *entry)
{
#define FIELD(type, field) opr_elf_number(elf, entry + offsetof(type, field), sizeof(((type *)0)->field))
	if (elf->is_64)
		return (Elf64_Sym){ .st_name = (Elf64_Word)FIELD(Elf64_Sym, st_name),
				    .st_info = entry[offsetof(Elf64_Sym, st_info)],
				    .st_shndx = (Elf64_Section)FIELD(Elf64_Sym, st_shndx),
				    .st_value = FIELD(Elf64_Sym, st_value),
				    .st_size = FIELD(Elf64_Sym, st_size) };
	return (Elf64_Sym){ .st_name = (Elf64_Word)FIELD(Elf32_Sym, st_name),
			    .st_info = entry[offsetof(Elf32_Sym, st_info)],
			    .st_shndx = (Elf64_Section)FIELD(Elf32_Sym, st_shndx),
			    .st_value = FIELD(Elf32_Sym, st_value),
			    .st_size = FIELD(Elf32_Sym, st_size) };
#undef FIELD
}

bool opr_elf_symbol_at(const struct opr_elf_symbols *table, const struct opr_elf *elf, size_t index,
		       struct opr_elf_symbol *ret_symbol)
{
	Elf64_Sym entry = read_entry(elf, table->entries + index * entry_bytes(elf));
	unsigned int type = ELF64_ST_TYPE(entry.st_info), bind = ELF64_ST_BIND(entry.st_info);

	if (entry.st_shndx == SHN_UNDEF || entry.st_shndx == SHN_ABS || entry.st_shndx == SHN_COMMON || type == STT_SECTION ||
	    type == STT_FILE || type == STT_TLS)
		return false;
	if (entry.st_name >= table->nr_name_bytes || !table->names[entry.st_name])
		return false;
	*ret_symbol = (struct opr_elf_symbol){ .name = table->names + entry.st_name,
					       .vma = entry.st_value,
					       .nr_bytes = entry.st_size,
					       .is_local = bind == STB_LOCAL,
					       .is_weak = bind == STB_WEAK,
					       .is_function = type == STT_FUNC || type == STT_GNU_IFUNC };
	/* The lowest bit says that the function is in Thumb code. */
	if (elf->machine == EM_ARM && ret_symbol->is_function)
		ret_symbol->vma &= ~1ull;
	return true;
}

void opr_elf_symbols_free(struct opr_elf_symbols *table)
{
	free(table->entries);
	free(table->names);
	*table = (struct opr_elf_symbols){ 0 };
}
