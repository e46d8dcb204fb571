/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The code of the symbols of an image, listed in a process of its own (tools/common/child.h). */
#ifndef OPR_ANNOTATE_CODE_H
#define OPR_ANNOTATE_CODE_H

#include "tools/opannotate/forms.h"
#include "tools/code/listing.h"

struct opr_image_code {
	struct opr_code *codes; /* one for each row; empty where there is none */
	size_t nr_codes;
	char *format;        /* of the object, as objdump shows it */
	unsigned int digits; /* of an address in full */
	struct opr_code_section *sections;
	size_t nr_sections;
	char *reason; /* why there is code that is not listed; NULL: no more is known */
};

/*
 * Lists the code of rows that are all of one image: of its file, or for /proc/kallsyms of the memory of the running kernel. What cannot be listed is empty; the
 * user is told how many samples are in no code that is listed, and why. To be freed with opr_image_code_free in any case. 0 or -errno.
 */
int opr_image_code_list(struct opr_image_code *listing, const struct opr_annotate *annotate, const struct opr_symbol_row *const *rows,
		     size_t nr_rows) OP_NONNULL OP_MUST_CHECK;

/*
 * The counts of the samples from `start` to `end`, which all belong to the instruction at `start`, added up in `counts`; false when there are none. *detail goes through the
 * row's details and is 0 at first; addresses of calls that follow each other rise.
 */
bool opr_image_code_sum(const struct opr_image_code *listing, const struct opr_symbol_report *report, const struct opr_symbol_row *row,
		     uint64_t start, uint64_t end, size_t *detail, uint64_t *counts) OP_NONNULL;

void opr_image_code_free(struct opr_image_code *listing);

#endif
