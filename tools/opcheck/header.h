/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Compares the header of a sample file with its name and with the session's table of images. */
#ifndef OPK_HEADER_H
#define OPK_HEADER_H

#include "libop/base/compiler.h"
#include "libop/odb/format.h"
#include "libop/session/dcookie.h"

struct opk_header {
	struct op_odb_header wanted; /* unknown fields are as they were found */
	unsigned int known;          /* a bit for each field that name or table determine */
	unsigned int wrong;          /* of these: those that were found otherwise */
	bool identifies;             /* a wrong field says image or event: it may be another file */
	const char *fault;           /* the first wrong field, a constant text; NULL: none */
	uint64_t offset;             /* of that field in the file */
};

/* The row of an image; NULL: there is none, or no table. */
const struct op_dcookie_row *opk_row_of(const struct op_dcookie_table *images, const struct op_image_name *image)
	OP_NONNULL_ARGS(2);

/*
 * Compares the header that was found with the name of its file and the rows of its images.
 * `images` may be NULL.
 */
void opk_header_compare(const struct op_dcookie_table *images, const struct op_sample_name *name, const struct op_odb_header *found,
			struct opk_header *ret_header) OP_NONNULL_ARGS(2, 3, 4);

/*
 * Whether a header fits a name, where it did not fit another (`elsewhere`): no field is wrong, and
 * one that identified it as wrong there is known here.
 */
bool opk_header_belongs(const struct op_dcookie_table *images, const struct op_sample_name *name, const struct op_odb_header *found,
			const struct opk_header *elsewhere) OP_NONNULL_ARGS(2, 3, 4);

#endif
