/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The option --merge, for the rows of tools/common/option_table.h. */
#ifndef OPR_MERGE_OPTION_H
#define OPR_MERGE_OPTION_H

#include "tools/common/words.h"

/* Classes that differ only in these are one class; lib: an image is its own application. */
struct opr_merge {
	bool cpu, lib, tid, tgid, unit_mask;
};

struct opr_merge_option {
	struct opr_words words; /* freed by the tool */
	struct opr_merge merge; /* what the words say */
};

/* a struct opr_merge_option */
int opr_take_merge(void *field, const char *value);

#endif
