/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The functions of a Go program, from the table of its runtime: stripped programs have it, too. */
#include <elf.h>
#include <errno.h>

#include "libop/base/grow.h"
#include "tools/elf/go_file.h"
#include "tools/symbols/symbol_sources.h"

/* Names may share their bytes, and a hostile file has many that do. Copies fill memory. */
#define NAME_SHARES_MAX 16

/*
 * libbfd has no sections when their table of names is missing. Then the segments of code stand for
 * them. 0 or -ENOMEM.
 */
static int add_segments(struct opr_symbols *symbols, const struct opr_go_file *go)
{
	size_t capacity = 0;
	Elf64_Phdr segment;
	Elf64_Ehdr header;

	if (symbols->nr_sections)
		return 0;
	free(symbols->sections);
	symbols->sections = NULL;
	memcpy(&header, go->bytes, sizeof(header)); /* there is a table, so this is an ELF file */
	for (size_t i = 0; i < header.e_phnum; i++) {
		uint64_t at = header.e_phoff + i * sizeof(segment);

		if (at > go->nr_bytes || sizeof(segment) > go->nr_bytes - at)
			break;
		memcpy(&segment, go->bytes + at, sizeof(segment));
		if (segment.p_type != PT_LOAD || !(segment.p_flags & PF_X) || segment.p_offset > go->nr_bytes)
			continue;
		if (!op_grow(&symbols->sections, &capacity, symbols->nr_sections + 1))
			return -ENOMEM;
		symbols->sections[symbols->nr_sections++] = (struct opr_section){
			.start = segment.p_offset,
			.end = segment.p_offset + op_min_u64(segment.p_filesz, go->nr_bytes - segment.p_offset),
			.vma = segment.p_vaddr,
		};
	}
	return 0;
}

static int add_function(struct opr_symbols *symbols, const struct opr_go_function *function, uint32_t *section)
{
	struct opr_symbol symbol = {
		.vma = function->start,
		.name = function->name,
		.rank = OPR_RANK_SIZED | opr_symbol_rank(function->name, false, false),
		.size = function->end - function->start,
		.is_sized = true,
	};

	if (!opr_symbols_section(symbols, function->start, section))
		return 0;
	symbol.section = *section;
	symbol.start = symbol.vma - symbols->sections[*section].vma + symbols->sections[*section].start;
	return opr_symbols_add(symbols, &symbol);
}

int opr_symbols_add_go(struct opr_symbols *symbols, const struct opr_elf *elf)
{
	struct opr_go_function function;
	uint64_t nr_name_bytes = 0;
	struct opr_go_file go;
	uint32_t section = 0;
	int err = 0;

	opr_go_file_open(&go, elf->fd);
	if (go.bytes)
		err = add_segments(symbols, &go);
	for (uint64_t i = 0; go.bytes && i < go.table.nr_functions && !err; i++) {
		if (!opr_go_function(&go.table, i, &function))
			continue;
		nr_name_bytes += strlen(function.name);
		if (nr_name_bytes > NAME_SHARES_MAX * go.table.nr_bytes) {
			symbols->is_damaged = true;
			break;
		}
		err = add_function(symbols, &function, &section);
	}
	opr_go_file_close(&go);
	return err;
}
