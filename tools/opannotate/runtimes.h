/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The sources of functions of runtimes, such as Python, with samples of stacks. One thread. */
#ifndef OPR_ANNOTATE_RUNTIMES_H
#define OPR_ANNOTATE_RUNTIMES_H

#include "tools/opannotate/annotation.h"
#include "tools/profile/classes.h"
#include "tools/stacks/runtime_rows.h"

/* Zeroed at first; opr_annotate_runtimes_free in any case. */
struct opr_annotate_runtimes {
	struct opr_runtime_rows rows;
	struct opr_classes classes; /* the events of stacks */
	struct opr_annotation annotation;
};

/* Reads the stacks of a selection. None is no error. 0 or -errno after a message. */
int opr_annotate_runtimes_read(struct opr_annotate_runtimes *runtimes, struct opr_selection *selection,
			       const struct opr_query *query) OP_NONNULL OP_MUST_CHECK;

void opr_annotate_runtimes_free(struct opr_annotate_runtimes *runtimes) OP_NONNULL;

#endif
