/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What a directory has of earlier runs of oparchive, when another session is archived into it. All of it stays: files and their checksums, also of what was changed or is gone since, and what the archive
 * says of itself. A new line about an image of which it says something already is not added.
 */
#ifndef OPR_ARCHIVE_EARLIER_H
#define OPR_ARCHIVE_EARLIER_H

#include "tools/common/archive.h"
#include "tools/profile/archive_sums.h"

struct opr_earlier {
	bool is_there; /* else there is nothing in the rest */
	char *text;    /* of opd-archive */
	struct opr_earlier_line *lines;
	struct op_htable by_subject;
	struct opr_archive facts;
	struct opr_sums sums;
};

/*
 * Reads it from the directory, `dir` as the user named it. To be freed with opr_earlier_free in any case. 0, also when there is nothing; -EBADMSG when it cannot be believed: a checksum that
 * was told wrong would be right again; another -errno. The user was told.
 */
int opr_earlier_read(struct opr_earlier *earlier, int dir_fd, const char *dir) OP_NONNULL OP_MUST_CHECK;

/* Whether there is a line of the word and, if it is one about an image, of its path; of another word with the whole value. */
bool opr_earlier_says(const struct opr_earlier *earlier, const char *word, const char *value) OP_NONNULL;

/* Whether a file of that name, below the archive or with a / before it, was archived. */
bool opr_earlier_has(const struct opr_earlier *earlier, const char *name) OP_NONNULL;

/* Whether files of a session were. */
bool opr_earlier_has_session(const struct opr_earlier *earlier, const char *session) OP_NONNULL;

/* The inode that an image had, by its path; 0: it is not known. */
uint64_t opr_earlier_inode(const struct opr_earlier *earlier, const char *path) OP_NONNULL;

/* Adds the lines of the earlier checksums, without that of opd-archive, which is written anew. */
void opr_earlier_write_sums(const struct opr_earlier *earlier, struct op_text *text) OP_NONNULL;

void opr_earlier_free(struct opr_earlier *earlier);

#endif
