/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The functions of an image and their names, from .symtab, .dynsym, .gnu_debugdata and
 * .gopclntab, and the functions of .eh_frame that have no name. One thread.
 */
#ifndef OPT_FUNCTIONS_H
#define OPT_FUNCTIONS_H

#include "libop/base/text.h"
#include "tools/opd-tables/image.h"

struct opt_function {
	uint64_t start, end; /* positions */
	uint32_t name;       /* offset in the names, or OP_ROW_NO_NAME */
	uint32_t rank;       /* the smallest one names the function */
};

/* Zeroed at first; opt_functions_free in any case. */
struct opt_functions {
	struct opt_function *functions;
	size_t nr_functions, capacity;
	struct op_text names; /* each with a NUL */
	bool is_part;
};

/*
 * Collects, sorts and cuts them, so that they are disjoint. The ranges are those of the rows. 0 or
 * -ENOMEM.
 */
int opt_functions_read(struct opt_functions *functions, const struct opt_image *image,
		       const struct opt_rows *rows) OP_NONNULL OP_MUST_CHECK;

void opt_functions_free(struct opt_functions *functions);

#endif
