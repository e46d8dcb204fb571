/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Entries of the procedure linkage table, as the disassembler of libbfd names them: NAME@plt. */
#include <errno.h>
#include <inttypes.h>

#include "libop/base/text.h"
#include "tools/elf/bfd_file.h"
#include "tools/symbols/symbol_sources.h"

#define SECTION     ".plt"
#define ENTRY_BYTES 16 /* where the section does not say */
#define ENTRY_MAX   64
#define CHOSEN	    "*ABS*+0x"

static bool is_plt(const asection *section)
{
	return section && !strncmp(bfd_section_name(section), SECTION, strlen(SECTION));
}

static bool has_plt(const bfd *image)
{
	for (const asection *section = image->sections; section; section = section->next)
		if (is_plt(section))
			return true;
	return false;
}

/* "malloc@GLIBC_2.2.5@plt" is "malloc@plt". */
static const char *name_entry(struct op_text *text, const char *name)
{
	size_t length = strcspn(name, "@");

	op_text_truncate(text, 0);
	op_text_add_bytes(text, name, length);
	op_text_add(text, name[length] ? OPR_PLT_SUFFIX : "");
	return op_text_get(text);
}

static int add_entry(struct opr_symbols *symbols, const asymbol *entry, struct op_text *text)
{
	unsigned int bytes =
		entry->section->entsize && entry->section->entsize <= ENTRY_MAX ? entry->section->entsize : ENTRY_BYTES;
	struct opr_symbol symbol = { .vma = bfd_asymbol_value(entry), .rank = OPR_RANK_PLT, .size = bytes, .is_sized = true };

	if (!is_plt(entry->section) || !entry->name || !opr_symbols_section(symbols, symbol.vma, &symbol.section))
		return 0;
	symbol.start = symbol.vma - symbols->sections[symbol.section].vma + symbols->sections[symbol.section].start;
	symbol.name = name_entry(text, entry->name);
	return text->failed ? -ENOMEM : opr_symbols_add(symbols, &symbol);
}

/*
 * libbfd names an entry whose function is chosen when the program is loaded (R_*_IRELATIVE) by the
 * address of the function that chooses: "*ABS*+0x9f550@plt".
 */
static bool is_chosen(const struct opr_symbol *symbol, uint64_t *ret_vma)
{
	char *end;

	if (strncmp(symbol->name, CHOSEN, strlen(CHOSEN)) != 0)
		return false;
	*ret_vma = strtoull(symbol->name + strlen(CHOSEN), &end, 16);
	return !strcmp(end, OPR_PLT_SUFFIX);
}

/* "strchr" for "strchr@@GLIBC_2.2.5" at an address; where no symbol begins, the address. */
static void name_function(const struct opr_symbols *symbols, uint64_t vma, struct op_text *text)
{
	const struct opr_symbol *function = NULL;
	uint32_t section = 0;

	if (opr_symbols_section(symbols, vma, &section))
		function = opr_symbols_find(symbols, vma - symbols->sections[section].vma + symbols->sections[section].start);
	op_text_truncate(text, 0);
	if (function && function->vma == vma && !function->is_unnamed)
		op_text_add_bytes(text, function->name, strcspn(function->name, "@"));
	else
		op_text_printf(text, "[0x%" PRIx64 "]", vma);
	op_text_add(text, OPR_PLT_SUFFIX);
}

int opr_symbols_name_chosen(struct opr_symbols *symbols)
{
	struct op_text text = { 0 };
	uint64_t vma;
	int err = 0;

	for (size_t i = 0; i < symbols->nr_symbols && !err; i++) {
		struct opr_symbol *symbol = &symbols->symbols[i];

		if (!is_chosen(symbol, &vma))
			continue;
		name_function(symbols, vma, &text);
		symbol->name = text.failed ? NULL : opr_symbols_keep_string(symbols, op_text_get(&text));
		symbol->has_aliases = false;
		err = symbol->name ? 0 : -ENOMEM;
	}
	op_text_free(&text);
	return err;
}

int opr_symbols_add_plt(struct opr_symbols *symbols, bfd *image, asymbol **table, long nr_symbols)
{
	struct op_text text = { 0 };
	asymbol *entries = NULL, **dynamic;
	long nr_dynamic = 0, nr_entries;
	int err = 0;

	if (!has_plt(image))
		return 0;
	dynamic = opr_bfd_read_dynamic(image, &nr_dynamic);
	nr_entries = bfd_get_synthetic_symtab(image, nr_symbols, table, nr_dynamic, dynamic, &entries);
	for (long i = 0; i < nr_entries && !err; i++)
		err = add_entry(symbols, &entries[i], &text);
	op_text_free(&text);
	free(entries);
	free(dynamic);
	return err;
}
