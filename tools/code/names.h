/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Names of addresses in a disassembly: of code, of data and of the linkage table. */
#ifndef OPR_CODE_NAMES_H
#define OPR_CODE_NAMES_H

#include <bfd.h>

#include "libop/base/compiler.h"

struct opr_code_name {
	unsigned int section; /* index, in a relocatable object, whose sections overlap; else 0 */
	uint64_t vma;
	const char *name;
	unsigned int rank; /* of the names of one address, the one with the smallest rank is kept */
};

struct opr_code_names {
	struct opr_code_name *names; /* sorted, one for each address */
	bool by_section;             /* the object is relocatable */
	size_t nr_names, capacity;
	asymbol **symbols, **dynamic, *synthetic; /* own the names */
};

/* Reads the names of an object, also one without symbols. 0 or -ENOMEM. */
int opr_code_names_read(struct opr_code_names *names, bfd *abfd) OP_NONNULL OP_MUST_CHECK;

/* Adds a name, which is not copied. Call opr_code_names_sort after the last one. 0 or -ENOMEM. */
int opr_code_names_add(struct opr_code_names *names, unsigned int section, uint64_t vma, const char *name,
		       unsigned int rank) OP_NONNULL OP_MUST_CHECK;
void opr_code_names_sort(struct opr_code_names *names) OP_NONNULL;

/* The last name at or below an address. `section` is NULL for a core file. NULL: none. */
const struct opr_code_name *opr_code_names_find(const struct opr_code_names *names, const asection *section,
						uint64_t vma) OP_NONNULL_ARGS(1);

/* The next name of the same section; NULL: there is none. */
const struct opr_code_name *opr_code_names_next(const struct opr_code_names *names, const struct opr_code_name *name) OP_NONNULL;

void opr_code_names_free(struct opr_code_names *names);

#endif
