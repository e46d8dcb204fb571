/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The frame of the page: style, and a script that marks a line and its instructions. */
#ifndef OPR_ANNOTATE_PAGE_H
#define OPR_ANNOTATE_PAGE_H

#include "libop/base/compiler.h"

void opr_annotate_page_begin(FILE *out) OP_NONNULL;
void opr_annotate_page_end(FILE *out) OP_NONNULL;

/* True when a file, at position 0, is a page of opannotate. */
bool opr_annotate_page_is(int fd) OP_MUST_CHECK;

#endif
