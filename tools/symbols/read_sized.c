/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Symbols with a size: .dynsym, and the .symtab that is packed in .gnu_debugdata. */
#include <elf.h>
#include <errno.h>
#include <unistd.h>

#include "tools/elf/module_file.h"
#include "tools/elf/symbol_table.h"
#include "tools/symbols/symbol_sources.h"

/* Names may share their ends. In a hostile file all have the same bytes, and copies fill memory. */
#define NAME_SHARES_MAX 16

/*
 * Data has no code; a label without a size, such as _end, says nothing of what is behind it. A
 * function without a size reaches to the end of its range in .eh_frame, else to the next function.
 */
static int add_symbol(struct opr_symbols *symbols, const struct opr_elf_symbol *found, const struct opr_ranges *ranges,
		      uint32_t *section)
{
	struct opr_symbol symbol = {
		.vma = found->vma,
		.name = found->name,
		.rank = OPR_RANK_SIZED | opr_symbol_rank(found->name, found->is_local, found->is_weak),
		.size = found->nr_bytes ? found->nr_bytes : opr_frame_end(ranges, found->vma) - found->vma,
		.is_sized = true,
		.is_local = found->is_local,
	};

	if ((!found->is_function && !found->nr_bytes) || !opr_symbols_section(symbols, found->vma, section))
		return 0;
	symbol.section = *section;
	symbol.start = found->vma - symbols->sections[*section].vma + symbols->sections[*section].start;
	return opr_symbols_add(symbols, &symbol);
}

static int add_table(struct opr_symbols *symbols, const struct opr_elf *elf, uint32_t type, const struct opr_ranges *ranges)
{
	struct opr_elf_symbols table;
	struct opr_elf_symbol found;
	uint32_t section = 0;
	uint64_t nr_name_bytes = 0;
	int err = opr_elf_symbols_read(&table, elf, type);

	for (size_t i = 0; i < table.nr_symbols && !err; i++) {
		if (!opr_elf_symbol_at(&table, elf, i, &found))
			continue;
		nr_name_bytes += strlen(found.name);
		err = nr_name_bytes > NAME_SHARES_MAX * table.nr_name_bytes ? -EBADMSG
									    : add_symbol(symbols, &found, ranges, &section);
	}
	opr_elf_symbols_free(&table);
	return err;
}

/* Symbols of a damaged table are missing, and the rest is read. */
static int note_damage(struct opr_symbols *symbols, int err)
{
	bool is_damaged = err == -EBADMSG || err == -EFBIG || err == -ENOEXEC;

	symbols->is_damaged |= is_damaged;
	return is_damaged ? 0 : err;
}

int opr_symbols_add_exported(struct opr_symbols *symbols, const struct opr_elf *elf, const struct opr_ranges *ranges)
{
	return note_damage(symbols, add_table(symbols, elf, SHT_DYNSYM, ranges));
}

/* The packed bytes are a stripped copy of the file with the functions that are not in .dynsym. */
int opr_symbols_add_debugdata(struct opr_symbols *symbols, const struct opr_elf *elf, const struct opr_ranges *ranges)
{
	const struct opr_elf_section *section = opr_elf_find(elf, SHT_PROGBITS, OPR_DEBUGDATA);
	struct opr_elf packed;
	int fd, err;

	if (!section)
		return 0;
	if (section->position > INT64_MAX || lseek(elf->fd, (off_t)section->position, SEEK_SET) < 0)
		return note_damage(symbols, -EBADMSG);
	fd = opr_xz_unpack(elf->fd);
	if (fd < 0)
		return note_damage(symbols, -EBADMSG); /* also when it needs too much memory */
	err = opr_elf_open(&packed, fd);
	if (!err)
		err = add_table(symbols, &packed, SHT_SYMTAB, ranges);
	opr_elf_close(&packed);
	return note_damage(symbols, err);
}
