/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The file `packed` of a session: many sample files in one, without their directories. A small
 * sample file takes a block, and each directory above it another one. In the pack it takes some
 * hundred bytes. doc/format.md describes the format.
 *
 * A sample file in {root} or {kern} hides the file of the same path in the pack. A pack is whole
 * and on the disk before the files that it replaces are removed. So readers find each sample once,
 * whatever is interrupted. A pack is never changed: a new one takes its place. Any thread.
 */
#ifndef OP_SESSION_PACK_H
#define OP_SESSION_PACK_H

#include <limits.h>

#include "libop/base/compiler.h"
#include "libop/odb/read.h"

#define OP_SESSION_PACKED   "packed"     /* in a session */
#define OP_SESSION_PACK_NEW "packed.new" /* the same, or a file of it, in the making */
#define OP_SESSION_PACK_MIN 1024u        /* sessions with fewer sample files are not packed */

/* A pack that is open. */
struct op_pack {
	int fd;
	uint32_t nr_files;
	uint64_t index_offset;
};

/*
 * Opens the pack at a path below dir_fd. 0 and *ret_pack for op_pack_close; -ENOENT; -EBADMSG: it
 * is no whole pack; another -errno. Reads the head only.
 */
int op_pack_open(int dir_fd, const char *path, struct op_pack *ret_pack) OP_NONNULL OP_MUST_CHECK;
void op_pack_close(const struct op_pack *pack) OP_NONNULL;

/* Reads the whole pack. 0; -EBADMSG when it is damaged; another -errno. */
int op_pack_check(const struct op_pack *pack) OP_NONNULL OP_MUST_CHECK;

/* The path of a file in the pack, below the session; in the order of strcmp. 0 or -errno. */
int op_pack_path(const struct op_pack *pack, uint32_t index, char ret_path[PATH_MAX]) OP_NONNULL OP_MUST_CHECK;

/* Its samples, for op_odb_samples_free. 0, -EBADMSG, another -errno. */
int op_pack_read(const struct op_pack *pack, uint32_t index, struct op_odb_samples *ret_samples) OP_NONNULL OP_MUST_CHECK;

/* Finds a path. 0, -ENOENT, another -errno. */
int op_pack_find(const struct op_pack *pack, const char *path, uint32_t *ret_index) OP_NONNULL OP_MUST_CHECK;

/*
 * Reads the samples of a path of a session, from the sample file or else from the pack. As
 * op_odb_read.
 */
int op_session_read_samples(int dir_fd, const char *path, struct op_odb_samples *ret_samples, struct op_odb_fault *ret_fault)
	OP_NONNULL OP_MUST_CHECK;

/* Whether the pack of a session has the path: a sample file that is gone was packed then. */
bool op_session_has_packed(int dir_fd, const char *path) OP_NONNULL;

/*
 * Writes a pack to fd, an empty file: the sample files of a session at `paths`, which are sorted,
 * and what its pack has beside them. A file that cannot be read stays as it is: it is not in the
 * new pack, unless the old one has it. The new pack is on the disk then. 0 or -errno.
 */
int op_session_write_pack(int dir_fd, char *const *paths, size_t nr_paths, int fd) OP_NONNULL_ARGS(2) OP_MUST_CHECK;

/*
 * Removes a sample file and the directories that are empty then, but not {root} and {kern}. 0 or
 * -errno.
 */
int op_session_remove_file(int dir_fd, const char *path) OP_NONNULL OP_MUST_CHECK;

/* Writes samples to fd, an empty file, as a sample file. 0 or -errno. */
int op_session_write_sample_file(int fd, const struct op_odb_samples *samples) OP_NONNULL OP_MUST_CHECK;

/*
 * Makes one sample file of the pack anew, for a caller who has the session for itself: it is
 * OP_SESSION_PACK_NEW at first. 0; -ENOENT: the pack does not have it, or the session was removed;
 * another -errno.
 */
int op_session_unpack_file(int dir_fd, const struct op_pack *pack, const char *path) OP_NONNULL OP_MUST_CHECK;

#endif
