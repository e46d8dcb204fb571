/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A directory that oparchive made. It has images at their full paths, sessions below
 * var/lib/oprofile, and two files:
 *
 *   opd-archive   lines "WORD<TAB>VALUE", see below
 *   SHA256SUMS    a line for each file, for sha256sum(1)
 *
 * Words of opd-archive:
 *   session-dir   the directory of the sessions on the other host
 *   inode         "NUMBER PATH": the inode of an image there
 *   whole         the name of a session that is complete here
 *   left-out      a file that could not be read there, or a damaged sample file that is here
 *   other         a file of a later session that differs from the one of an earlier session
 *
 * Words for an image, "PATH<TAB>VALUE", so that reports are the same as on the other host:
 *   package       the Debian package with the debug file
 *   debug         the path of the debug file
 *   absent        why the image is not here (opr_image_state_word), or which other kernel or
 *                 module is there (opr_finder_other_kernel)
 *   cut           the number of bytes that are here, of a file with holes (tools/oparchive/copy.h)
 *
 * An archive of the genuine oparchive has neither file.
 */
#ifndef OPR_ARCHIVE_H
#define OPR_ARCHIVE_H

#include "tools/common/words.h"

#define OPR_ARCHIVE_SESSIONS "var/lib/oprofile"
#define OPR_ARCHIVE_SAMPLES  OPR_ARCHIVE_SESSIONS "/samples"
#define OPR_ARCHIVE_TABLES   "var/cache/opd/tables" /* of images that are absent */
#define OPR_ARCHIVE_FACTS    "opd-archive"
#define OPR_ARCHIVE_SUMS     "SHA256SUMS"
#define OPR_FACTS_BYTES_MAX  (64u << 20)

struct opr_archive {
	struct opr_archive *next; /* another one of the same report; NULL: none */
	char *dir;  /* its real path */
	char *sessions_dir; /* the directory of the sessions here */
	char *origin_dir;   /* their directory on the other host; NULL: not known */
	struct opr_archive_inode {
		uint64_t inode;
		char *path; /* of the image, without the archive */
	} * inodes;
	size_t nr_inodes, capacity;
	/* values of the facts of these names */
	struct opr_words whole, packages, debug, absent, left_out, cut, other;
};

/* Reads the file opd-archive. Freed with opr_archive_free in any case. 0 or -errno. */
int opr_archive_open(struct opr_archive *archive, const char *dir) OP_NONNULL OP_MUST_CHECK;

/* Below, `archives` is the first archive of a report, or NULL. */

/* The archive that has the file with the real path `path`; NULL: none. */
const struct opr_archive *opr_archive_of(const struct opr_archive *archives, const char *path) OP_NONNULL_ARGS(2);

/* A file's path on the other host, a part of `path`. Elsewhere, or without an archive: `path`. */
const char *opr_archive_strip(const struct opr_archive *archives, const char *path) OP_NONNULL_ARGS(2);

/*
 * Translates the path of a file of the sessions to the other host, and back; for other files a copy
 * of `path`. With several archives the path stays: two hosts may have the same. Freed by the
 * caller; NULL: no memory.
 */
char *opr_archive_to_home(const struct opr_archive *archives, const char *path) OP_NONNULL_ARGS(2) OP_MUST_CHECK;
char *opr_archive_from_home(const struct opr_archive *archives, const char *path) OP_NONNULL_ARGS(2) OP_MUST_CHECK;

/* The inode that the original of a file in an archive had; 0: none. */
uint64_t opr_archive_inode_of(const struct opr_archive *archives, const char *path) OP_NONNULL_ARGS(2);

/* True when the session with the directory `path` has all its files. */
bool opr_archive_is_whole(const struct opr_archive *archives, const char *path) OP_NONNULL;

/* The value of the fact that begins with `path`. Points into the facts; NULL: none. */
const char *opr_archive_fact(const struct opr_words *facts, const char *path) OP_NONNULL;

void opr_archive_free(struct opr_archive *archive);

#endif
