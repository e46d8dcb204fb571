/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The state of a run, and its parts: images.c, debug_files.c, sessions.c, left_out.c. */
#ifndef OPARCHIVE_RUN_H
#define OPARCHIVE_RUN_H

#include "tools/oparchive/store.h"
#include "tools/report/run.h"

struct opa_options {
	struct opr_query query;
	int list_files;
	char *output_dir, *check; /* NULL: not given */
};

struct opa_run {
	const struct opa_options *options;
	struct opr_run report; /* its images; those of stacks for a time */
	struct opr_archive_writer writer;
	size_t nr_left_out;
};

/* ---- images.c ---- */

/*
 * Adds the images of the profile and their debug files, or notes that they are absent. JIT objects
 * are in the session. 0 or -errno.
 */
int opa_add_images(struct opa_run *run) OP_NONNULL OP_MUST_CHECK;

/* The same for images that only the stacks of whole sessions name. */
int opa_add_stack_images(struct opa_run *run) OP_NONNULL OP_MUST_CHECK;

/*
 * Notes the packages with the debug files of the images, which only this machine knows. 0 or
 * -ENOMEM.
 */
int opa_note_packages(struct opa_run *run) OP_NONNULL OP_MUST_CHECK;

/* ---- debug_files.c ---- */

/*
 * Adds a file that a child process has opened and judged. Another file that is at the path by now
 * is left out. 0 or -errno.
 */
int opa_add_seen(struct opa_run *run, uint64_t device, uint64_t inode, const char *path, const char *name) OP_NONNULL OP_MUST_CHECK;

/*
 * Adds the .dwo files, the package and the alternate file that the debugging information of the
 * image at `path` refers to. `name` and `root` are those of struct opr_debug_search. `names`, the
 * last one NULL: where the archive has the file with the debugging information. 0 or -errno.
 */
int opa_add_debug_files(struct opa_run *run, const char *path, const char *name, const char *root, const char *const *names)
	OP_NONNULL_ARGS(1, 2, 3, 5) OP_MUST_CHECK;

/* ---- sessions.c ---- */

/* Adds the sessions of the profile and the files beside them. 0 or -errno. */
int opa_add_sessions(struct opa_run *run) OP_NONNULL OP_MUST_CHECK;

/* Whether all files of a session are in the profile: then its stacks belong to it, too. */
bool opa_is_whole(const struct opr_profile *profile, size_t session) OP_NONNULL OP_MUST_CHECK;

/*
 * The name of a session in the archive: the last part of its path. Freed by the caller; NULL: no
 * memory.
 */
char *opa_session_name(const struct opr_profile *profile, size_t session) OP_NONNULL OP_MUST_CHECK;

/* ---- left_out.c: files that are left out, with which the program ends with 1 ---- */

/* Notes in the archive that a file was left out. */
void opa_note_left_out(struct opa_run *run, const char *path) OP_NONNULL;

/* The same for a file that cannot be read, with a warning that says who can read it. */
void opa_warn_unreadable(struct opa_run *run, int err, const char *path) OP_NONNULL;

/* The same for an error of opr_archive_add. Returns an error that ends the archive, else 0. */
int opa_warn_left_out(struct opa_run *run, int err, const char *path) OP_NONNULL OP_MUST_CHECK;

/*
 * The same for a file that differs from that of an earlier session, which stays. `why` is a part of
 * the warning.
 */
void opa_warn_other(struct opa_run *run, const char *path, const char *why) OP_NONNULL;

#endif
