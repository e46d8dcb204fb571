/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The names of images in reports, and what is known of the image that has a name. */
#ifndef OPR_IMAGE_NAME_H
#define OPR_IMAGE_NAME_H

#include "tools/profile/profile.h"
#include "tools/symbols/image_identity.h"

/*
 * The full name of an image of a session: a path, "/no-vmlinux", "[kworker]", "anon (tgid:1
 * range:0x1000-0x2000)". Where several sessions have different files of one name, the file of the
 * last session has the plain name, and another is "PATH (build-id 0123456789ab)" or "PATH (inode
 * N)". A program is "PATH (COMM)" where its processes are not called like the file; the user is not
 * in the name. Freed by the caller; NULL: no memory.
 */
char *opr_session_image_name(const struct opr_profile *profile, size_t session,
			     const struct op_image_name *image) OP_NONNULL OP_MUST_CHECK;

/*
 * The name without its directories; an anonymous region and a thread of the kernel ([kworker]) have
 * none. A file whose name looks like such a thread keeps them. Points into `name`.
 */
const char *opr_base_name(const char *name) OP_NONNULL;

/*
 * Names of images that differ, but not without their directories. Each is shown with as many of its
 * directories as tell it apart.
 */
struct opr_short_names {
	struct opr_short_name {
		const char *full, *shown; /* shown: the end of `full` */
	} *names;                         /* sorted by `full` */
	size_t nr_names, capacity;
};

/* Makes the names of a profile, and of a second one unless it is NULL. 0 or -ENOMEM. */
int opr_short_names_make(struct opr_short_names *names, const struct opr_profile *profile,
			 const struct opr_profile *second) OP_NONNULL_ARGS(1, 2) OP_MUST_CHECK;

/*
 * The same of any names: opr_short_names_add for each, then opr_short_names_end once. They are kept
 * as pointers. 0 or -ENOMEM after a message.
 */
int opr_short_names_add(struct opr_short_names *names, const char *full) OP_NONNULL OP_MUST_CHECK;
void opr_short_names_end(struct opr_short_names *names) OP_NONNULL;

/* What is shown; NULL: the base name is the only one. Points into a name of the profile. */
const char *opr_short_name(const struct opr_short_names *names, const char *full) OP_NONNULL;

void opr_short_names_free(struct opr_short_names *names);

/* True for the application of threads of the kernel. It is no image, and no file has its name. */
bool opr_is_kernel_thread(const struct opr_session *session, const struct op_image_name *image) OP_NONNULL;

/*
 * The row of an application that is a program, the part that processes of one name or user had
 * (opd-dcookies(5)); NULL: it is none. And the application as a whole, which may be itself.
 */
const struct op_dcookie_row *opr_session_program(const struct opr_session *session,
						 const struct op_image_name *app) OP_NONNULL;
struct op_image_name opr_session_application(const struct opr_session *session, const struct op_image_name *app) OP_NONNULL;

/* The row of an image in the session's table of images; NULL: there is none. */
const struct op_dcookie_row *opr_session_row(const struct opr_session *session, const struct op_image_name *image) OP_NONNULL;

/* What a session knows of the image with that full name. Valid as long as session and name. */
struct opr_identity opr_session_identity(const struct opr_session *session, const struct op_image_name *image,
					 const char *name) OP_NONNULL;

/* The same of the last session that knows the image. */
struct opr_identity opr_profile_identity(const struct opr_profile *profile, const struct op_image_name *image,
					 const char *name) OP_NONNULL;

#endif
