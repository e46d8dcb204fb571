/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The names of images in reports, and what is known of the image that has a name. */
#ifndef OPR_IMAGE_NAME_H
#define OPR_IMAGE_NAME_H

#include "tools/profile/profile.h"
#include "tools/symbols/image_identity.h"

/*
 * The full name of an image of a session: a path, "/no-vmlinux", "anon (tgid:1
 * range:0x1000-0x2000)". Where several sessions have different files of one name, the file of the
 * last session has the plain name, and another is "PATH (build-id 0123456789ab)" or "PATH (inode
 * N)". Freed by the caller; NULL: no memory.
 */
char *opr_session_image_name(const struct opr_profile *profile, size_t session,
			     const struct op_image_name *image) OP_NONNULL OP_MUST_CHECK;

/* The name without its directories; an anonymous region has none. Points into `name`. */
const char *opr_base_name(const char *name) OP_NONNULL;

/* The row of an image in the session's table of images; NULL: there is none. */
const struct op_dcookie_row *opr_session_row(const struct opr_session *session, const struct op_image_name *image) OP_NONNULL;

/* What a session knows of the image with that full name. Valid as long as session and name. */
struct opr_identity opr_session_identity(const struct opr_session *session, const struct op_image_name *image,
					 const char *name) OP_NONNULL;

/* The same of the last session that knows the image. */
struct opr_identity opr_profile_identity(const struct opr_profile *profile, const struct op_image_name *image,
					 const char *name) OP_NONNULL;

#endif
