/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Writes the page: one HTML file that needs no other file and no network. */
#ifndef OPR_WRITE_PAGE_H
#define OPR_WRITE_PAGE_H

#include "libop/base/text.h"

/* `json`: of opr_page_pack. Whether it was written is seen when `out` is closed. */
void opr_page_write(const struct op_text *json, FILE *out) OP_NONNULL;

#define OPR_PAGE_NAME "page of opreport" /* for messages */

/* Whether a file is a page: it begins as one. */
bool opr_page_is(int fd) OP_MUST_CHECK;

#endif
