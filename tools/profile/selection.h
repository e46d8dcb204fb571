/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * From the words of a command line to an arranged profile: the first two steps of every reporting
 * tool.
 */
#ifndef OPR_SELECTION_H
#define OPR_SELECTION_H

#include "tools/profile/classes.h"
#include "tools/profile/groups.h"
#include "tools/profile/profile.h"
#include "tools/profile/recorded.h"
#include "tools/profile/spec.h"
#include "tools/symbols/image_path.h"

struct opr_selection_options {
	const char *session_dir;            /* NULL: as opr_session_dir_choose */
	const char *root;                   /* NULL: none */
	const struct opr_words *image_path; /* directories */
	struct opr_merge merge;
	bool exclude_dependent;
	enum opr_by by;            /* groups instead of applications */
	bool callgraph;            /* callgraph files, too */
	bool memory;               /* the memory view instead of samples */
	bool totals_only;          /* only the sums of files are needed */
	struct opr_before *earlier; /* only newer samples are counted; NULL: all */
	/* the sessions alone: their sample files are neither selected nor read */
	bool sessions_only;
	bool optional;             /* beside another report: no sample files are no error */
	bool any_axes;             /* classes may differ in more than one way */
	const char *since, *until; /* NULL: not given */
};

struct opr_selection {
	struct opr_selection_options options;
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
int opr_selection_open(struct opr_selection *selection, const struct opr_selection_options *options,
		       const struct opr_words *words) OP_NONNULL OP_MUST_CHECK;

/*
 * Step 2, read: reads the samples, finds the classes, makes the parts, and warns of losses. 0 or
 * -errno; -ESTALE as in read_samples.h.
 */
int opr_selection_read(struct opr_selection *selection) OP_NONNULL OP_MUST_CHECK;

void opr_selection_free(struct opr_selection *selection);

#endif
