/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The archive that earlier runs made in the directory of this run. Nothing of it is changed:
 * neither its files, nor their checksums (also of files that were changed or removed), nor the
 * lines of opd-archive. A line about an image is added only when there is none yet.
 */
#ifndef OPR_ARCHIVE_EARLIER_H
#define OPR_ARCHIVE_EARLIER_H

#include "tools/common/archive.h"
#include "tools/profile/archive_sums.h"

struct opr_earlier {
	bool is_there; /* else the other fields are empty */
	char *text;    /* of opd-archive */
	struct opr_earlier_line *lines;
	char *line_text; /* a copy, split into the strings of the lines */
	struct op_htable by_subject;
	struct opr_archive facts;
	struct opr_sums sums;
};

/*
 * Reads the directory; `dir` is its name in messages. Call opr_earlier_free in any case. 0, also
 * when there is no archive; -EBADMSG: a checksum is wrong, and a new one would hide that; another
 * -errno. Reports errors.
 */
int opr_earlier_read(struct opr_earlier *earlier, int dir_fd, const char *dir) OP_NONNULL OP_MUST_CHECK;

/*
 * Whether there is a line with this word and value; of a line about an image, only the path is
 * compared.
 */
bool opr_earlier_has_line(const struct opr_earlier *earlier, const char *word, const char *value) OP_NONNULL;

/* Whether a file of that name below the archive, also with a / before it, was archived. */
bool opr_earlier_has(const struct opr_earlier *earlier, const char *name) OP_NONNULL;

/* Whether files of a session were archived. */
bool opr_earlier_has_session(const struct opr_earlier *earlier, const char *session) OP_NONNULL;

/* The inode of an image, by its path; 0: unknown. */
uint64_t opr_earlier_inode(const struct opr_earlier *earlier, const char *path) OP_NONNULL;

/* Adds the lines of the earlier checksums, but for opd-archive, which is written again. */
void opr_earlier_write_sums(const struct opr_earlier *earlier, struct op_text *text) OP_NONNULL;

void opr_earlier_free(struct opr_earlier *earlier);

#endif
