/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The profile: the sample files that the specification selects. selection.c fills it step by step:
 * sessions (open_sessions.h), files (select_files.h), samples (read_samples.h), classes
 * (classes.h), parts (profile.c).
 */
#ifndef OPR_PROFILE_H
#define OPR_PROFILE_H

#include "libop/odb/read.h"
#include "libop/session/dcookie.h"
#include "libop/session/ledger_file.h"
#include "libop/session/list.h"
#include "tools/common/archive.h"
#include "tools/common/words.h"
#include "tools/profile/before.h"
#include "tools/profile/window.h"

/*
 * A session; or one cgroup of a session, or its memory view: both follow their session in the
 * array.
 */
struct opr_session {
	char *path;      /* of its directory */
	char *real_path; /* from the root; NULL until it is needed */
	int dir_fd;
	struct op_session_list list;
	/* NULL: the session has no table; a part shares its parent's */
	struct op_dcookie_table *images;
	char *cgroup;  /* NULL: not a cgroup */
	size_t parent; /* index of the session that this is a part of, else its own */
	bool has_ledger;
	struct op_session_ledger ledger; /* of a whole session, read before the files are listed */
	/* only its samples count, and the ledger is of it; NULL: all do. A part has its parent's */
	struct opr_window *window;
	bool is_whole; /* the list has all files: the report is not of cgroups or memory */
	/* paths that are not in the list because they are no sample files */
	struct opr_words bad_paths;
	struct opr_words damaged; /* paths of selected files that cannot be read */
	size_t nr_unselected;     /* files with samples that the specification does not select */
};

/* Stands for names that are no image, and so have no file. */
extern const struct op_image_name opr_no_file;

/* One sample file. */
struct opr_file {
	const struct op_sample_name *name;
	const char *path; /* below its session */
	size_t session;   /* index */
	/* names as image_name.h makes them, or the group; equal when libraries are merged */
	char *app, *image;
	char *application; /* of a program, the whole; NULL: `app` is none */
	char *callee; /* of a callgraph file: the image that was called; NULL: samples */
	/* the name that `app` was made of; &opr_no_file: a name that is no image */
	const struct op_image_name *app_name;
	bool is_group; /* app and image are the group (groups.h) */
	size_t class_index;
	struct op_odb_header header; /* as it was when the file was read */
	uint64_t stored;             /* sum of its samples at that time */
	uint64_t total;              /* those that are counted: of newer ones, else all */
	bool is_kept;                /* its samples of that time are kept: memory allows it */
	struct op_odb_samples kept;
};

/*
 * One image in one application, or its calls into one other image. Its files are
 * files[first_file ...], sorted by class, then session, then path.
 */
struct opr_part {
	const char *app, *image, *callee; /* callee: NULL for samples */
	const struct op_image_name *app_name, *image_name, *callee_name;
	size_t first_file, nr_files;
};

struct opr_profile {
	/* the sessions are in them; NULL: none. Set by the caller */
	const struct opr_archive *archive;
	/*
	 * Open directories of the sessions that the specification names, in its order; NULL:
	 * sessions are opened by name. Set by the caller. A session that is opened takes its
	 * descriptor and leaves -1.
	 */
	int *session_fds;
	size_t nr_session_fds;
	/*
	 * only samples of this time are counted where the timeline of a session tells it. Set by
	 * the caller; 0 and UINT64_MAX: all
	 */
	uint64_t since_ns, until_ns;
	/* only the sums of files are needed, not their samples. Set by the caller */
	bool totals_only;
	/*
	 * only samples that are newer are counted, and files without any are dropped; NULL: all
	 * are counted. Set by the caller
	 */
	struct opr_before *earlier;

	struct opr_session *sessions;
	size_t nr_sessions;
	struct opr_file *files;
	size_t nr_files;
	uint64_t nr_unkept;     /* files whose samples are not kept */
	struct opr_part *parts; /* sorted by application, then image */
	size_t nr_parts;
	bool merges_libs; /* an image is its own application */
};

/* How many files and directories were left out because they cannot be read. */
size_t opr_profile_nr_left_out(const struct opr_profile *profile) OP_NONNULL;

/* At the end of a report. 0, or -EBADMSG after a message: something is missing from the report. */
int opr_profile_end(const struct opr_profile *profile) OP_NONNULL OP_MUST_CHECK;

/*
 * Whether opd wrote a session of the profile. Reports of sessions that only the genuine tools wrote
 * look as theirs.
 */
bool opr_profile_is_ours(const struct opr_profile *profile) OP_NONNULL;

/* Drops the files without counted samples, when classes and losses are known. */
void opr_profile_drop_empty(struct opr_profile *profile) OP_NONNULL;

void opr_file_free(struct opr_file *file) OP_NONNULL;

void opr_profile_free(struct opr_profile *profile);

/*
 * Sorts the files, whose class_index is set, and makes the parts. add_sessions: the same file may
 * be in several sessions; else that is an error. 0 or -errno.
 */
int opr_profile_arrange(struct opr_profile *profile, bool add_sessions) OP_NONNULL OP_MUST_CHECK;

#endif
