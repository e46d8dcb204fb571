/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What stands around opannotate's page: style and the script that marks a line and its instructions together. */
#ifndef OPR_ANNOTATE_PAGE_H
#define OPR_ANNOTATE_PAGE_H

#include "libop/base/compiler.h"

void opr_annotate_page_begin(FILE *out) OP_NONNULL;
void opr_annotate_page_end(FILE *out) OP_NONNULL;

/* Whether a file, open at its beginning, is a page of opannotate. */
bool opr_annotate_page_is(int fd) OP_MUST_CHECK;

#endif
