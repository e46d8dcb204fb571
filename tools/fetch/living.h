/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Image files that are no longer, or never were, at a path of this host, but that a living process
 * has mapped: a file that was removed or replaced while it runs, a file of a container. Root reads
 * those of all processes; other users read the programs of their own processes, and what is still
 * below /proc/PID/root.
 *
 * The file systems of a process may not answer. So a child process looks, with a deadline, and the
 * file becomes a copy in memory. A hang costs one line, and all hangs of a report together
 * OPR_LIVING_MS_MAX.
 */
#ifndef OPR_LIVING_H
#define OPR_LIVING_H

#include "tools/fetch/mapped_files.h"

#define OPR_LIVING_MS_MAX	  10000
#define OPR_LIVING_PATIENCE_MS	  1000 /* for one step: a read, an open */
#define OPR_LIVING_FILE_BYTES_MAX (512ull << 20)
#define OPR_LIVING_ALL_BYTES_MAX  (1ull << 30)
#define OPR_LIVING_TRIES_MAX	  32 /* files that are looked at for one image */

struct opr_mapped_file;

/* What is known of processes and their files: one for a report. Zeroed at first. */
struct opr_living {
	struct opr_mapped_file *files; /* in executable mappings; the same one up to three times */
	size_t nr_files, capacity;
	bool is_scanned;
	uint64_t spent_ms, copied_bytes;
	struct opr_living_copy {
		char *path;   /* of the copy, "/proc/self/fd/7" */
		char *origin; /* where it was, "/proc/1234/root/usr/bin/gzip" */
		int fd;
	} *copies;
	size_t nr_copies, copies_capacity;
};

/*
 * Copies the wanted file. 0 with *ret_path, valid until opr_living_free; -ENOENT: no living process
 * has it, or nobody may look; -ENOMEM.
 */
int opr_living_find(struct opr_living *living, const struct opr_living_wanted *wanted, const char **ret_path)
	OP_NONNULL OP_MUST_CHECK;

/* Where the file at a path was before it was copied; the path itself if it is no copy. */
const char *opr_living_origin(const struct opr_living *living, const char *path) OP_NONNULL;

/* True for the path of a copy. */
bool opr_living_is_copy(const char *path) OP_NONNULL;

void opr_living_free(struct opr_living *living) OP_NONNULL;

#endif
