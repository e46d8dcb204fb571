/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Selects the sample files of the open sessions: those that the specification asks for. */
#ifndef OPR_SELECT_FILES_H
#define OPR_SELECT_FILES_H

#include "tools/profile/classes.h"
#include "tools/profile/profile.h"
#include "tools/profile/spec.h"

struct opr_file_choice {
	const struct opr_spec *spec;
	const struct opr_merge *merge;
	bool exclude_dependent; /* only images that are their own application */
};

/*
 * Sets the files of the profile, with their names. 0 or -errno. A choice that selects no file is an
 * error; its message looks for a hint in session_dir.
 */
int opr_files_select(struct opr_profile *profile, const struct opr_file_choice *choice,
		     const char *session_dir) OP_NONNULL OP_MUST_CHECK;

#endif
