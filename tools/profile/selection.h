/* SPDX-License-Identifier: GPL-3.0-or-later */
/* From the words of a command line to an arranged profile: what the reporting tools have in common before they report. */
#ifndef OPR_SELECTION_H
#define OPR_SELECTION_H

#include "tools/symbols/image_path.h"
#include "tools/profile/profile.h"
#include "tools/profile/classes.h"

struct opr_selection_options {
	const char *session_dir;            /* NULL: as opr_session_dir_choose */
	const char *root;                   /* NULL: none */
	const struct opr_words *image_path; /* directories */
	struct opr_merge merge;
	bool exclude_dependent;
	bool cgroups, callgraph;   /* by cgroup; callgraph files too */
	bool memory;               /* what the memory view kept, in the place of samples */
	bool totals_only;          /* no sample of a file is asked for alone */
	bool any_axes;             /* classes may differ in more than one way */
	const char *since, *until; /* NULL: not given */
};

struct opr_selection {
	struct opr_spec spec;
	struct opr_archive archive;
	struct opr_finder finder;
	struct opr_profile profile;
	struct opr_classes classes;
	char *session_dir;
};

/* Opens what the words select. The words of options are used as long as the selection. To be freed with opr_selection_free in any case. 0 or -errno. */
int opr_selection_open(struct opr_selection *selection, const struct opr_selection_options *options,
		       const struct opr_words *words) OP_NONNULL OP_MUST_CHECK;

void opr_selection_free(struct opr_selection *selection);

#endif
