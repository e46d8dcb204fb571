/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The code of the symbols of one image, which a child process (tools/common/child.h) lists. */
#ifndef OPR_IMAGE_CODE_H
#define OPR_IMAGE_CODE_H

#include "tools/code/listing.h"
#include "tools/report/symbol_rows.h"

/* What is listed, and how. */
struct opr_code_query {
	struct opr_image_cache *images;
	const struct opr_symbol_report *report; /* with details */
	const struct opr_code_style *style;
	bool lines; /* instructions have their source lines */
	bool quiet; /* no warning of code that is not listed */
};

struct opr_image_code {
	struct opr_code *codes; /* one for each row; empty: nothing could be listed */
	size_t nr_codes;
	const struct opr_symbol_report *report;
	char *format;        /* of the object, as objdump shows it */
	unsigned int digits; /* of a full address */
	struct opr_code_section *sections;
	size_t nr_sections;
	char *reason; /* why some code is not listed; NULL: no special reason */
};

/*
 * Lists the code of rows of one image: from its file, or for /proc/kallsyms from the memory of the
 * running kernel. Warns the user, unless the query is quiet, how many samples are in code that is
 * not listed, and why. Fills a zeroed structure, to be freed with opr_image_code_free in any case.
 * 0 or -errno.
 */
int opr_image_code_list(struct opr_image_code *listing, const struct opr_code_query *query,
			const struct opr_symbol_row *const *rows, size_t nr_rows) OP_NONNULL OP_MUST_CHECK;

/*
 * Sets `counts` to the samples of a line of a row's code; false: there are none. *detail is 0 at
 * the first call for a row and goes through its details, so the lines must come in rising order.
 */
bool opr_image_code_sum(const struct opr_image_code *listing, const struct opr_symbol_row *row, const struct opr_code *code,
			size_t line, size_t *detail, uint64_t *counts) OP_NONNULL;

void opr_image_code_free(struct opr_image_code *listing);

#endif
