/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/code/names.h"

#include <errno.h>

#include "libop/base/grow.h"
#include "tools/elf/bfd_file.h"

int opr_code_names_add(struct opr_code_names *names, unsigned int section, uint64_t vma, const char *name, unsigned int rank)
{
	if (!op_grow(&names->names, &names->capacity, names->nr_names + 1))
		return -ENOMEM;
	names->names[names->nr_names++] = (struct opr_code_name){ section, vma, name, rank };
	return 0;
}

static unsigned int section_number(const struct opr_code_names *names, const asection *section)
{
	return names->by_section && section ? section->index : 0;
}

/* Code before data, global before local, and last the names of files and sections. */
static unsigned int rank_of(const asymbol *symbol)
{
	return (unsigned int)!!(symbol->flags & BSF_FILE) << 5 | (unsigned int)!!(symbol->flags & BSF_SECTION_SYM) << 4 |
	       (unsigned int)!!(symbol->flags & BSF_DEBUGGING) << 3 | (unsigned int)!(symbol->flags & BSF_FUNCTION) << 2 |
	       (unsigned int)!(symbol->flags & BSF_OBJECT) << 1 | (unsigned int)!(symbol->flags & BSF_GLOBAL);
}

static int add_symbol(struct opr_code_names *names, const asymbol *symbol)
{
	const char *name = opr_bfd_symbol_name(symbol);

	if (!name || !*name || bfd_is_und_section(symbol->section) || bfd_is_com_section(symbol->section))
		return 0;
	if (bfd_is_abs_section(symbol->section) || !(bfd_section_flags(symbol->section) & SEC_ALLOC))
		return 0;
	return opr_code_names_add(names, section_number(names, symbol->section), bfd_asymbol_value(symbol), name, rank_of(symbol));
}

int opr_code_names_read(struct opr_code_names *names, bfd *abfd)
{
	long nr_symbols = 0, nr_dynamic, nr_synthetic;
	bool is_damaged = false;
	int err = 0;

	names->symbols = opr_bfd_read_table(abfd, &nr_symbols, &is_damaged);
	names->dynamic = opr_bfd_read_dynamic(abfd, &nr_dynamic);
	nr_synthetic = bfd_get_synthetic_symtab(abfd, nr_symbols, names->symbols, nr_dynamic, names->dynamic, &names->synthetic);
	names->by_section = !(bfd_get_file_flags(abfd) & (EXEC_P | DYNAMIC));
	for (long i = 0; i < nr_symbols && !err; i++)
		err = add_symbol(names, names->symbols[i]);
	for (long i = 0; i < nr_dynamic && !nr_symbols && !err; i++)
		err = add_symbol(names, names->dynamic[i]);
	for (long i = 0; i < nr_synthetic && !err; i++)
		err = add_symbol(names, &names->synthetic[i]);
	opr_code_names_sort(names);
	return err;
}

static int compare_names(const void *left, const void *right)
{
	const struct opr_code_name *a = left, *b = right;

	if (a->section != b->section)
		return a->section < b->section ? -1 : 1;
	if (a->vma != b->vma)
		return a->vma < b->vma ? -1 : 1;
	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	return strcmp(a->name, b->name);
}

void opr_code_names_sort(struct opr_code_names *names)
{
	size_t nr_kept = 0;

	if (names->nr_names)
		qsort(names->names, names->nr_names, sizeof(*names->names), compare_names);
	for (size_t i = 0; i < names->nr_names; i++)
		if (!nr_kept || names->names[nr_kept - 1].vma != names->names[i].vma ||
		    names->names[nr_kept - 1].section != names->names[i].section)
			names->names[nr_kept++] = names->names[i];
	names->nr_names = nr_kept;
}

const struct opr_code_name *opr_code_names_find(const struct opr_code_names *names, const asection *section, uint64_t vma)
{
	unsigned int number = section_number(names, section);
	size_t nr = op_nr_leading(names->names, names->nr_names, name,
				  name->section < number || (name->section == number && name->vma <= vma));

	return nr && names->names[nr - 1].section == number ? &names->names[nr - 1] : NULL;
}

const struct opr_code_name *opr_code_names_next(const struct opr_code_names *names, const struct opr_code_name *name)
{
	bool is_last = name + 1 == names->names + names->nr_names;

	return is_last || name[1].section != name->section ? NULL : name + 1;
}

void opr_code_names_free(struct opr_code_names *names)
{
	free(names->names);
	free(names->symbols);
	free(names->dynamic);
	free(names->synthetic);
	*names = (struct opr_code_names){ 0 };
}
