/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The making of an archive (tools/common/archive.h): files are copied into it, each once, with their times, and their sums are kept. */
#ifndef OPR_ARCHIVE_WRITER_H
#define OPR_ARCHIVE_WRITER_H

#include "libop/base/htable.h"
#include "libop/base/stop.h"
#include "libop/base/text.h"
#include "tools/oparchive/earlier.h"
#include "tools/oparchive/copy_mode.h"

struct opr_archive_writer {
	const char *dir; /* as the user named it; NULL: files are listed and not copied */
	int dir_fd, lock_fd;
	size_t nr_bytes_there;		/* of its path: what leads to a directory that was there before */
	const struct op_stop *stop;	/* the caller's, to be set after the start; NULL: nothing stops it */
	FILE *list;             /* of files, one path in each line */
	struct op_htable names; /* of the files that are in it */
	struct opr_archive_name *last_name; /* that was added */
	bool has_own_facts, has_new_facts; /* where there were none, and in the place of the earlier */
	struct opr_earlier earlier;
	size_t nr_cut;
	struct opr_archive_way way;
	struct op_text facts, sums;
	uint64_t nr_files, nr_bytes;
};

/* Makes the directory, for its owner alone, and keeps another oparchive from writing it; `dir` NULL: paths are written to `list`. To be freed with opr_archive_writer_free in any case. 0 or -errno. */
int opr_archive_writer_init(struct opr_archive_writer *writer, const char *dir, FILE *list) OP_NONNULL_ARGS(1, 3) OP_MUST_CHECK;

/*
 * Copies a file to `name`, a path below the directory. One that was copied there before is left as it is; nothing of the path is followed that is a symbolic link. Holes stay holes, and
 * what is cut off because of them (copy.h) is told, noted and counted. 0; an error for which opr_archive_is_over is true, of which the user was told; another -errno: the file
 * cannot be read, -EFBIG: it has too many holes, -EEXIST: the archive has another one there of an earlier session, which stays; nothing is said then.
 */
int opr_archive_add(struct opr_archive_writer *writer, const char *path, const char *name) OP_NONNULL OP_MUST_CHECK;

/* The same for a file `below` the directory dir_fd, wherever that is by now; it is `path` where the user is told of it. */
int opr_archive_add_below(struct opr_archive_writer *writer, int dir_fd, const char *below, const char *path,
			  const char *name) OP_NONNULL OP_MUST_CHECK;

/* The same for a file that was made and is open at its beginning; `path` is what it was made of. Takes the descriptor over. */
int opr_archive_add_open(struct opr_archive_writer *writer, int fd, const char *path, const char *name) OP_NONNULL OP_MUST_CHECK;

/* Adds a line "WORD<TAB>VALUE" to the facts. A value with a newline is left out, and what the archive says already (opr_earlier_says). */
void opr_archive_note(struct opr_archive_writer *writer, const char *word, const char *value) OP_NONNULL;

/* Adds a line "WORD<TAB>PATH<TAB>VALUE" to the facts, about an image. A path with a tab is left out. */
void opr_archive_note_image(struct opr_archive_writer *writer, const char *word, const char *path, const char *value) OP_NONNULL;

/* True for an error with which there will be no archive: no memory, no room, the user's wish. */
bool opr_archive_is_over(int err) OP_MUST_CHECK;

/* Removes the files that were added where none was before, and the directories that were made for them. */
void opr_archive_undo(struct opr_archive_writer *writer) OP_NONNULL;

/* Writes the facts and the sums, earlier ones first. 0 or -errno. */
int opr_archive_finish(struct opr_archive_writer *writer) OP_NONNULL OP_MUST_CHECK;

void opr_archive_writer_free(struct opr_archive_writer *writer);

#endif
