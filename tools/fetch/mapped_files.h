/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What a child process does for living.h: it lists the files in executable mappings of all
 * processes, and copies one of them. Both may hang in the file system of a stranger.
 */
#ifndef OPR_MAPPED_FILES_H
#define OPR_MAPPED_FILES_H

#include <stdio.h>
#include <sys/types.h>

#include "libop/base/compiler.h"

/* The file that is looked for. */
struct opr_living_wanted {
	const char *path; /* as the process saw it, path_length bytes */
	size_t path_length;
	uint64_t device, inode; /* inode 0: unknown */
	/* Whether the file at a path is the one that is wanted. Runs in a child, too. */
	bool (*is_it)(const char *path, const void *arg);
	const void *arg;
};

/* A file that a process has mapped. In the list its path follows, path_bytes long. */
struct opr_mapping {
	uint64_t device, inode, start, end;
	int32_t pid;
	uint32_t path_bytes;
};

/* In memory that child and parent share. */
struct opr_look_state {
	uint64_t beats;
	int32_t pid; /* the process that is looked at */
};

struct opr_list_request {
	struct opr_look_state *state; /* processes above its pid are listed */
};

struct opr_copy_request {
	struct opr_look_state *state;
	const struct opr_mapping *mapping;
	const struct opr_living_wanted *wanted;
	uint64_t bytes_max;
	int fd; /* an empty file, for the copy */
};

/* opr_child_fn for a struct opr_list_request: writes a struct opr_mapping and its path for each. */
int opr_mapped_files_list(FILE *out, void *arg) OP_NONNULL OP_MUST_CHECK;

/*
 * opr_child_fn for a struct opr_copy_request: writes the path that the file was read from. 0;
 * -ESTALE: the process has another file mapped; -EFBIG; another -errno.
 */
int opr_mapped_file_copy(FILE *out, void *arg) OP_NONNULL OP_MUST_CHECK;

#endif
