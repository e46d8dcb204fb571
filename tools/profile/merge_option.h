/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The option --merge, for the rows of tools/common/option_table.h. */
#ifndef OPR_MERGE_OPTION_H
#define OPR_MERGE_OPTION_H

#include "tools/common/words.h"
#include "tools/profile/profile.h"

struct opr_merge_option {
	struct opr_words words; /* freed by the tool */
	struct opr_merge merge; /* what the words say */
};

/* a struct opr_merge_option */
int opr_take_merge(void *field, const char *value);

#endif
