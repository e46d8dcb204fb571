/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the header of a sample file has to say, by the name of the file and the table of the session's images. */
#ifndef OPK_CHECK_HEADER_H
#define OPK_CHECK_HEADER_H

#include "libop/base/compiler.h"
#include "libop/session/dcookie.h"
#include "libop/odb/format.h"

struct opk_header {
	struct op_odb_header wanted; /* fields that nothing is known of are as they were found */
	unsigned int known;          /* a bit for each field that the name or the table says */
	unsigned int wrong;          /* of these: those that were found otherwise */
	bool tells;                  /* one of these says what image or event a file is of: it may be the file of another name */
	const char *fault;           /* the first of these, a constant text; NULL: none */
	uint64_t offset;             /* where it is in the file */
};

/* The row of an image; NULL: there is none, or no table. */
const struct op_dcookie_row *opk_row_of(const struct op_dcookie_table *images, const struct op_image_name *image)
	OP_NONNULL_ARGS(2);

/* Compares what was found in the header of a file with what its name says, and the rows of its images in the table; NULL: the session has none. */
void opk_header_compare(const struct op_dcookie_table *images, const struct op_sample_name *name, const struct op_odb_header *found,
			struct opk_header *ret_header) OP_NONNULL_ARGS(2, 3, 4);

/* Whether a file of this name is where one belongs that was found to be wrong elsewhere: all fits, and what told it to be wrong there is known here. */
bool opk_header_belongs(const struct op_dcookie_table *images, const struct op_sample_name *name, const struct op_odb_header *found,
			const struct opk_header *elsewhere) OP_NONNULL_ARGS(2, 3, 4);

#endif
