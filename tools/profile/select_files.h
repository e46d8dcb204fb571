/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Selects the sample files of the open sessions: those that the specification asks for. */
#ifndef OPR_SELECT_FILES_H
#define OPR_SELECT_FILES_H

#include "tools/profile/profile.h"
#include "tools/profile/query.h"
#include "tools/profile/spec.h"

/*
 * Sets the files of the profile, with their names. 0 or -errno. A word without a slash that is no
 * name selects the images with that base name, in sessions of opd. A word that matches nothing is a
 * warning; a choice that selects no file is an error. Both say which name comes near. The error
 * looks for a hint in session_dir, too. A bare word of `spec` may become a pattern of base names.
 */
int opr_files_select(struct opr_profile *profile, const struct opr_query *query, struct opr_spec *spec,
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
