/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Selects the sample files of the open sessions: those that the specification asks for. */
#ifndef OPR_SELECT_FILES_H
#define OPR_SELECT_FILES_H

#include "tools/profile/classes.h"
#include "tools/profile/groups.h"
#include "tools/profile/profile.h"
#include "tools/profile/spec.h"

struct opr_file_choice {
	struct opr_spec *spec; /* a bare word becomes a pattern of base names */
	const struct opr_merge *merge;
	bool exclude_dependent; /* only images that are their own application */
	enum opr_by by;         /* groups instead of applications */
	bool whole_groups;      /* and instead of images */
	bool optional;          /* to select no file is no error */
};

/*
 * Sets the files of the profile, with their names. 0 or -errno. A word without a slash that is no
 * name selects the images with that base name, in sessions of opd. A word that matches nothing is a
 * warning; a choice that selects no file is an error. Both say which name comes near. The error
 * looks for a hint in session_dir, too.
 */
int opr_files_select(struct opr_profile *profile, const struct opr_file_choice *choice,
		     const char *session_dir) OP_NONNULL OP_MUST_CHECK;

/* Names of images, as reports have them. */
struct opr_image_names {
	const char **names;
	size_t nr_names;
};

/*
 * Gives words of images that are none of these names the meaning of base names, if they may have
 * it. The hint is for the first word that matches nothing. 0 or -ENOMEM after a message.
 */
int opr_spec_resolve(struct opr_spec *spec, const struct opr_image_names *names, bool may_be_base,
		     struct op_text *ret_hint) OP_NONNULL OP_MUST_CHECK;

/*
 * The name of an image of stacks, freed by the caller: JIT code with symbols has the path of its
 * object, as in the names of the files above. NULL: no memory.
 */
char *opr_stack_image_name(struct opr_profile *profile, size_t session, const struct op_image_name *image) OP_NONNULL OP_MUST_CHECK;

#endif
