/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * From the words of a command line to an arranged profile: the first two steps of every reporting
 * tool.
 */
#ifndef OPR_SELECTION_H
#define OPR_SELECTION_H

#include "tools/profile/profile.h"
#include "tools/profile/query.h"
#include "tools/profile/recorded.h"
#include "tools/profile/spec.h"
#include "tools/symbols/image_path.h"

struct opr_selection {
	const struct opr_query *query;
	struct opr_spec spec;
	struct opr_archive *archives; /* NULL: none */
	struct opr_finder finder;
	struct opr_profile profile;
	struct opr_classes classes;
	struct opr_recorded recorded;
	char *session_dir;
};

/*
 * Step 1, select: opens the sessions and selects the sample files that the words ask for. What the
 * options point at is used as long as the selection. Freed with opr_selection_free in any case. 0
 * or -errno.
 */
int opr_selection_open(struct opr_selection *selection, const struct opr_query *query,
		       const struct opr_words *words) OP_NONNULL OP_MUST_CHECK;

/*
 * Step 2, read: reads the samples, finds the classes, makes the parts, and warns of losses. 0 or
 * -errno; -ESTALE as in read_samples.h.
 */
int opr_selection_read(struct opr_selection *selection) OP_NONNULL OP_MUST_CHECK;

void opr_selection_free(struct opr_selection *selection);

#endif
