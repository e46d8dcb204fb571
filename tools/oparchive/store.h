/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Writes an archive (tools/common/archive.h): copies files into it, each once, with their times,
 * and keeps their sums.
 */
#ifndef OPR_ARCHIVE_WRITER_H
#define OPR_ARCHIVE_WRITER_H

#include "libop/base/htable.h"
#include "libop/process/stop.h"
#include "libop/base/text.h"
#include "tools/oparchive/earlier.h"
#include "tools/oparchive/copy.h"

struct opr_archive_writer {
	const char *dir; /* as the user named it; NULL: files are listed, not copied */
	int dir_fd, lock_fd;
	size_t nr_bytes_there;		/* of its path, that existed before */
	const struct op_stop *stop;	/* the caller's, set after the start; NULL: never stops */
	FILE *list;             /* for the paths of files, one a line */
	struct op_htable names; /* of the files in the archive */
	struct opr_archive_name *last_name; /* of the files that were added */
	/* for opr_archive_undo: facts where there were none, or that replaced earlier ones */
	bool has_own_facts, has_new_facts;
	struct opr_earlier earlier;
	size_t nr_cut;
	struct opr_archive_access access;
	struct op_text facts, sums;
	uint64_t nr_files, nr_bytes;
};

/*
 * Makes the directory, for its owner only, and locks it. `dir` NULL: writes paths to `list`
 * instead. Call opr_archive_writer_free in any case. 0 or -errno.
 */
int opr_archive_writer_init(struct opr_archive_writer *writer, const char *dir, FILE *list) OP_NONNULL_ARGS(1, 3) OP_MUST_CHECK;

/*
 * Copies a file to `name`, a path below the directory, of which no link is followed. Does nothing
 * for a name that was added before. A cut because of holes (copy.h) is reported, noted and counted.
 * 0; an error with opr_archive_is_fatal(), which was reported; or an error that was not reported:
 * -EFBIG: too many holes; -EEXIST: an earlier session has another file there, which stays; another
 * -errno: the file cannot be read.
 */
int opr_archive_add(struct opr_archive_writer *writer, const char *path, const char *name) OP_NONNULL OP_MUST_CHECK;

/* The same for the file `below` dir_fd; `path` is its name in messages. */
int opr_archive_add_below(struct opr_archive_writer *writer, int dir_fd, const char *below, const char *path,
			  const char *name) OP_NONNULL OP_MUST_CHECK;

/*
 * The same for an open file, at its beginning; `path` is its name in messages. Takes the descriptor
 * over.
 */
int opr_archive_add_open(struct opr_archive_writer *writer, int fd, const char *path, const char *name) OP_NONNULL OP_MUST_CHECK;

/*
 * The inode of the file whose bytes are at `name`, by the descriptor that they were read from. 0:
 * no file was added there.
 */
uint64_t opr_archive_copied_inode(const struct opr_archive_writer *writer, const char *name) OP_NONNULL OP_MUST_CHECK;

/*
 * Adds a line "WORD<TAB>VALUE" to the facts, unless the value has a newline or the archive has such
 * a line (opr_earlier_has_line).
 */
void opr_archive_note(struct opr_archive_writer *writer, const char *word, const char *value) OP_NONNULL;

/*
 * Adds a line "WORD<TAB>PATH<TAB>VALUE" about an image, under the same conditions, unless the path
 * has a tab.
 */
void opr_archive_note_image(struct opr_archive_writer *writer, const char *word, const char *path, const char *value) OP_NONNULL;

/* Whether an error ends the archive: no memory, no room, a signal. */
bool opr_archive_is_fatal(int err) OP_MUST_CHECK;

/* Removes the new files and the new directories. */
void opr_archive_undo(struct opr_archive_writer *writer) OP_NONNULL;

/* Writes the facts and the sums, earlier ones first. 0 or -errno. */
int opr_archive_finish(struct opr_archive_writer *writer) OP_NONNULL OP_MUST_CHECK;

void opr_archive_writer_free(struct opr_archive_writer *writer);

#endif
