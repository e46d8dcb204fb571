/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What stands for an address in a disassembly: all symbols of an object file, of data too, and those of its procedure linkage table. */
#ifndef OPR_CODE_NAMES_H
#define OPR_CODE_NAMES_H

#include <bfd.h>

#include "libop/base/compiler.h"

struct opr_code_name {
	unsigned int section; /* its index in a relocatable object, whose sections lie over each other; 0 in others */
	uint64_t vma;
	const char *name;
	unsigned int rank; /* of names of one address the one with the least is taken */
};

struct opr_code_names {
	struct opr_code_name *names; /* sorted, one for each address */
	bool by_section;             /* of a relocatable object */
	size_t nr_names, capacity;
	asymbol **symbols, **dynamic, *synthetic; /* that own the names */
};

/* Reads them; an object without symbols has none. 0 or -ENOMEM. */
int opr_code_names_read(struct opr_code_names *names, bfd *abfd) OP_NONNULL OP_MUST_CHECK;

/* Adds a name, which must stay as long as the list; opr_code_names_sort after the last. 0 or -ENOMEM. */
int opr_code_names_add(struct opr_code_names *names, unsigned int section, uint64_t vma, const char *name,
		       unsigned int rank) OP_NONNULL OP_MUST_CHECK;
void opr_code_names_sort(struct opr_code_names *names) OP_NONNULL;

/* The last name at or below an address of a section (NULL: of memory), NULL when there is none. */
const struct opr_code_name *opr_code_names_find(const struct opr_code_names *names, const asection *section, uint64_t vma) OP_NONNULL_ARGS(1);

/* The one behind it in the same section; NULL: it is the last. */
const struct opr_code_name *opr_code_names_next(const struct opr_code_names *names, const struct opr_code_name *name) OP_NONNULL;

void opr_code_names_free(struct opr_code_names *names);

#endif
