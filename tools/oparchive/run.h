/* SPDX-License-Identifier: GPL-3.0-or-later */
/* oparchive in parts: main.c has the options, the sessions and the run, images.c the images and what is said of them, tell.c what is told of files that are left out. */
#ifndef OPARCHIVE_H
#define OPARCHIVE_H

#include "tools/oparchive/writer.h"
#include "tools/profile/image_cache.h"
#include "tools/profile/selection.h"

struct opa_options {
	int list_files, exclude_dependent;
	char *session_dir, *root, *output_dir, *check, *since, *until; /* NULL: not given */
	struct opr_words image_path, words;
};

struct opa_run {
	const struct opa_options *options;
	struct opr_selection selection;
	struct opr_image_cache images;
	struct opr_archive_writer writer;
	size_t nr_left_out;
};

/* The archive says that a file was left out, and the program ends with 1. */
void opa_note_left_out(struct opa_run *run, const char *path) OP_NONNULL;

/* The same for a file that cannot be read because of `err`, with a warning that says who could: a report has to do without it at home, too. */
void opa_tell_left_out(struct opa_run *run, int err, const char *path) OP_NONNULL;

/*
 * The same for what opr_archive_add returned; -EEXIST: opa_leave_other. The error when there will be no archive; else 0.
 */
int opa_warn_left_out(struct opa_run *run, int err, const char *path) OP_NONNULL OP_MUST_CHECK;

/* The archive has another file there, or says that there was none, `why`, with an earlier session, whose reports are to stay what they are. */
void opa_leave_other(struct opa_run *run, const char *path, const char *why) OP_NONNULL;

/* Adds the images of the profile with their debug files, or says that they are absent. Objects of JIT code lie in the session. 0 or -errno. */
int opa_add_images(struct opa_run *run) OP_NONNULL OP_MUST_CHECK;

/* Says which packages have the debug files of the images, which is known here alone. 0 or -ENOMEM. */
int opa_note_packages(struct opa_run *run) OP_NONNULL OP_MUST_CHECK;

#endif
