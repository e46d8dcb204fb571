/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A part of a session: a file or a directory that opd makes in samples/<session>/. parts.h has the
 * table of them. Any thread.
 */
#ifndef OP_SESSION_PART_H
#define OP_SESSION_PART_H

#include "libop/base/compiler.h"

struct op_session_ledger;

enum op_part_kind {
	OP_PART_SAMPLES, /* a directory with sample files and JIT objects at any depth */
	OP_PART_DIR,     /* another directory */
	OP_PART_FILE,
};

/* When an archive has a part of which a profile selects samples. */
enum op_part_archiving {
	OP_ARCHIVE_ALWAYS,
	OP_ARCHIVE_SELECTED, /* those of its sample files that are selected */
	OP_ARCHIVE_WHOLE,    /* when all samples of the session are selected */
	OP_ARCHIVE_FIRST,    /* always, before the others: they have at least what it counts */
	OP_ARCHIVE_LAST,     /* always, after the others: it describes all that they name */
	OP_ARCHIVE_NEVER,    /* the archive has what is in it as other files */
};

/* What `read` of a part adds to, calls and finds. The numbers are 0 before the call. */
struct op_part_reading {
	struct op_session_ledger *sums; /* the samples in the file are added; NULL: not wanted */
	/* called for each record that names an image; NULL: not wanted */
	void (*see_image)(uint64_t cookie, void *arg);
	void *arg;
	uint64_t nr_whole, nr_damaged; /* records */
	uint64_t damaged_offset;       /* where the first damaged record begins */
};

struct op_session_part {
	const char *name; /* below the session's directory; NULL ends the table */
	enum op_part_kind kind;
	enum op_part_archiving archiving;
	const char *noun;   /* for messages: "not a NOUN" */
	const char *record; /* what it consists of, when it has `read` */
	bool is_published;  /* its writer makes NAME.tmp beside it and renames that */
	bool is_dumped;     /* each dump writes it to the disk, after the files that have changed */
	bool is_in_ledger;  /* the fingerprint in the ledger covers its sample files, or it */
	/*
	 * Reads and checks the file at `path` below dir_fd, also beside its writer. 0; -ENOENT;
	 * -EBADMSG: it is another file, or of a later version; -ENOMEM; another -errno. NULL: it
	 * has no records, or its reader needs more than this (the ledger, the table of images).
	 */
	int (*read)(int dir_fd, const char *path, struct op_part_reading *reading);
	/*
	 * Drops what a kill or a power cut has damaged, with `tmp_path` for a new file. 0 or -errno
	 * as `read`. NULL: each reader copes with a damaged end.
	 */
	int (*recover)(int dir_fd, const char *path, const char *tmp_path, uint64_t *ret_nr_dropped);
	/*
	 * Makes the part smaller once its session is closed. Without success it stays as it is.
	 * NULL: there is nothing to do.
	 */
	void (*compact)(int dir_fd, const char *path);
};

#endif
