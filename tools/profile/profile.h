/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The profile: the sample files that the specification selects, put in order. A file belongs to a part (one image in one application) and to a class
 * (classes.h). Reading the files' samples is for the stages that follow.
 */
#ifndef OPR_PROFILE_H
#define OPR_PROFILE_H

#include "libop/odb/odb.h"
#include "libop/session/list.h"
#include "libop/session/ledger_file.h"
#include "tools/symbols/image_identity.h"
#include "tools/profile/selector.h"

struct opr_merge {
	bool cpu, lib, tid, tgid, unit_mask;
};

struct opr_file {
	const struct op_sample_name *name;
	const char *path; /* below its session */
	size_t session;
	char *app, *image;                    /* opr_image_name of both, that of JIT code the path of its object; equal when libraries are merged */
	char *callee;                         /* of a callgraph file: the image that was called; NULL for samples */
	const struct op_image_name *app_name; /* what `app` is the name of */
	bool is_cgroup;                       /* app and image are the cgroup, whatever ran in it */
	size_t class_index;
	struct op_odb_header header; /* as it was when the file was selected, */
	uint64_t total;              /* and its samples then, */
	struct op_odb_samples kept;  /* which are here until they are asked for, as long as those of all files are not too much */
};

/* One image in one application, or its calls into another image: files[first_file ...], sorted by class, then session, then path. */
struct opr_part {
	const char *app, *image, *callee; /* callee: NULL for samples */
	const struct op_image_name *app_name, *image_name, *callee_name;
	size_t first_file, nr_files;
};

/* A session, or the part of one that a cgroup has for itself. */
struct opr_session {
	char *path; /* of its directory */
	char *real_path; /* the same from the root; NULL until it is needed */
	int dir_fd;
	struct op_session_list list;
	struct op_dcookie_table *images; /* NULL: the session has no dcookie table; that of the parent for a part */
	char *cgroup;  /* NULL: a whole session */
	size_t parent; /* index of the session that it is a part of, its own for a whole one */
	bool has_ledger;
	struct op_session_ledger ledger; /* of a whole session, as it was before the files were listed */
	bool is_listed;                  /* its list is all there is: no cgroup or memory view of it was asked for */
	struct opr_words misfits;        /* files and directories that are in no list: paths below the session */
	struct opr_words damaged;        /* selected files that cannot be read: they are in the list, and in no part */
	size_t nr_unselected;            /* files with samples that the specification leaves out */
};

struct opr_profile {
	struct opr_session *sessions;
	size_t nr_sessions;
	const struct opr_archive *archive; /* that the sessions lie in; NULL: none */
	int *held_fds; /* directories of the specification's sessions, in their order, set before they are opened; taken over, -1 then. NULL: they are opened by name */
	size_t nr_held;
	bool totals_only; /* set before: how many samples a file has is enough, and what they are need not be kept */
	uint64_t nr_kept_bytes;
	uint64_t nr_unkept; /* files whose samples are not kept */
	bool add_sessions; /* the same file of two sessions is added up */
	bool merges_libs;  /* an image has its samples for itself, whatever application they are of */
	struct opr_file *files;
	size_t nr_files;
	struct opr_part *parts; /* sorted by application, then image */
	size_t nr_parts;
};

/* The name of an image as reports show it in full: a path, "/no-vmlinux", "anon (tgid:1 range:0x1000-0x2000)". Freed by the caller; NULL: no memory. */
char *opr_image_name(const struct op_image_name *image) OP_NONNULL OP_MUST_CHECK;

/*
 * The name that an image of a session has among those of all sessions: as opr_image_name, but another file than the one that has the name in a later session
 * is "PATH (build-id 0123456789ab)" or "PATH (inode N)". Freed by the caller; NULL: no memory.
 */
char *opr_session_image_name(const struct opr_profile *profile, size_t session, const struct op_image_name *image) OP_NONNULL OP_MUST_CHECK;

/* The name without its directories; that of an anonymous region has none. Points into `name`. */
const char *opr_base_name(const char *name) OP_NONNULL;

/*
 * Opens the sessions of the specification below SESSION-DIR/samples, selects their files and reads each once. What cannot be read is left out, with a warning that names it
 * (opr_profile_end). To be freed with opr_profile_free in any case. 0 or -errno. A session without files and a specification that selects none are errors; -ESTALE, after a warning, for one that was removed meanwhile: doing all of it
 * again finds what is there.
 */
int opr_profile_open(struct opr_profile *profile, const char *session_dir, const struct opr_spec *spec,
		     const struct opr_merge *merge, bool exclude_dependent) OP_NONNULL OP_MUST_CHECK;

/* The row of an image in the session's dcookie table; NULL when there is none. */
const struct op_dcookie_row *opr_session_row(const struct opr_session *session, const struct op_image_name *image) OP_NONNULL;

/*
 * What is known of an image called `name` (opr_session_image_name): of one session, or of the last that knows it, which is the one that has the name. Valid as
 * long as name and session.
 */
struct opr_identity opr_session_identity(const struct opr_session *session, const struct op_image_name *image,
					 const char *name) OP_NONNULL;
struct opr_identity opr_profile_identity(const struct opr_profile *profile, const struct op_image_name *image,
					 const char *name) OP_NONNULL;

/* Sorts the files, whose class_index is set, and makes the parts. 0 or -errno. */
int opr_profile_arrange(struct opr_profile *profile, const struct opr_merge *merge) OP_NONNULL OP_MUST_CHECK;

/* The samples of one file, as they were when it was selected where they are kept, else read again; freed with op_odb_samples_free. 0 or -errno; -ESTALE, after a warning, when it was removed meanwhile. */
int opr_profile_read(const struct opr_profile *profile, struct opr_file *file,
		     struct op_odb_samples *ret_samples) OP_NONNULL OP_MUST_CHECK;

/* How many files and directories were left out. */
size_t opr_profile_nr_left_out(const struct opr_profile *profile) OP_NONNULL;

/* At the end of a report: 0, or -EBADMSG, when something of the sessions was left out of it, and the user is told so. */
int opr_profile_end(const struct opr_profile *profile) OP_NONNULL OP_MUST_CHECK;

void opr_profile_free(struct opr_profile *profile);

#endif
