/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Lets one oparchive at a time write an archive, by a lock on a file in it (fcntl(2), F_SETLK). The
 * lock ends with its process, also over NFS. A file that a killed process leaves does no harm.
 */
#ifndef OPR_ARCHIVE_LOCK_H
#define OPR_ARCHIVE_LOCK_H

#include "libop/base/compiler.h"

/*
 * Locks the directory; `dir` is its name in messages. 0 with a descriptor for opr_archive_unlock;
 * -EBUSY: another process has the lock; another -errno.
 */
int opr_archive_lock(int dir_fd, const char *dir, int *ret_fd) OP_NONNULL OP_MUST_CHECK;

/* Removes the file and unlocks. Does nothing for a negative descriptor. */
void opr_archive_unlock(int dir_fd, int fd);

#endif
