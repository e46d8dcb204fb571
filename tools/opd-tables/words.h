/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The words of an image that has a runtime (libop/unwind/runtime_words.h). One thread. */
#ifndef OPT_WORDS_H
#define OPT_WORDS_H

#include "libop/unwind/runtime_words.h"
#include "tools/opd-tables/image.h"

struct opt_words {
	struct op_row_word words[OP_NR_RUNTIME_WORDS]; /* as in the file */
	size_t nr_words; /* 0: the image has no runtime */
};

void opt_words_read(struct opt_words *words, const struct opt_image *image) OP_NONNULL;

#endif
