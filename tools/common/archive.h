/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A directory that oparchive made. Images lie in it at their whole paths, sessions below var/lib/oprofile, and beside them:
 *
 *   opd-archive   lines "WORD<TAB>VALUE": `session-dir`, where the sessions were; `inode`, "NUMBER PATH", what file an image was; `whole`, the name of a session that is here
 *                 with all its files; `left-out`, a file that was to be here and could not be read, or a sample file that is here and is damaged; `other`, a file that was to be here with a later session, and is another than the one
 *                 of an earlier one; and, so that reports are those of home,
 *                 "PATH<TAB>VALUE" of images: `package`, the Debian package that has the debug file; `debug`, where the debug file was; `absent`, why the image is not here
 *                 (opr_image_state_word), and of a kernel or module which other is
 *                 there (opr_finder_other_kernel); `cut`, how many bytes it has here, where it was cut off because of its holes (tools/oparchive/copy.h)
 *   SHA256SUMS    a line for each file, as sha256sum(1) writes and checks them
 *
 * One that the genuine tool made has neither.
 */
#ifndef OPR_ARCHIVE_H
#define OPR_ARCHIVE_H

#include "tools/common/words.h"

#define OPR_ARCHIVE_SESSIONS "var/lib/oprofile"
#define OPR_ARCHIVE_SAMPLES  OPR_ARCHIVE_SESSIONS "/samples"
#define OPR_ARCHIVE_FACTS    "opd-archive"
#define OPR_ARCHIVE_SUMS     "SHA256SUMS"
#define OPR_FACTS_BYTES_MAX  (64u << 20)

struct opr_archive {
	char *dir;  /* its real path */
	char *kept; /* where the sessions are */
	char *home; /* where they were; NULL: not known */
	struct opr_archive_inode {
		uint64_t inode;
		char *path; /* of the image, without the archive */
	} * inodes;
	size_t nr_inodes, capacity;
	struct opr_words whole, packages, debug, absent, left_out, cut, other; /* values of the facts of these names */
};

/* Reads what an archive says of itself. To be freed with opr_archive_free in any case. 0 or -errno. */
int opr_archive_open(struct opr_archive *archive, const char *dir) OP_NONNULL OP_MUST_CHECK;

/* The path that a file of the archive has without it: points into `path`, which is returned when it lies elsewhere, or there is no archive (NULL). */
const char *opr_archive_strip(const struct opr_archive *archive, const char *path) OP_NONNULL_ARGS(2);

/* Where a file of the sessions was, and where one that was there is now; a copy of `path` when it is none. Freed by the caller; NULL: no memory. */
char *opr_archive_to_home(const struct opr_archive *archive, const char *path) OP_NONNULL_ARGS(2) OP_MUST_CHECK;
char *opr_archive_from_home(const struct opr_archive *archive, const char *path) OP_NONNULL_ARGS(2) OP_MUST_CHECK;

/* The inode that a file had; 0 when there is none. In an archive that of the original. */
uint64_t opr_archive_inode_of(const struct opr_archive *archive, const char *path) OP_NONNULL_ARGS(2);

/* Whether a session, `path` its directory, is there with all the files that it had. */
bool opr_archive_is_whole(const struct opr_archive *archive, const char *path) OP_NONNULL;

/* What is behind the tab of the fact that begins with that path. Points into the facts; NULL: there is none. */
const char *opr_archive_fact(const struct opr_words *facts, const char *path) OP_NONNULL;

void opr_archive_free(struct opr_archive *archive);

#endif
