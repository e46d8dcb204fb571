/* SPDX-License-Identifier: GPL-3.0-or-later */
/* One oparchive at a time writes an archive. The lock is that of a file in it (fcntl(2), F_SETLK), so it ends with its process, also over NFS; the file that a killed one leaves is of no harm. */
#ifndef OPR_ARCHIVE_LOCK_H
#define OPR_ARCHIVE_LOCK_H

#include "libop/base/compiler.h"

/* Locks the directory; `dir` is what the user called it. 0 with a descriptor for opr_archive_unlock; -EBUSY: another process has it, which the user is told; another -errno, which was said. */
int opr_archive_lock(int dir_fd, const char *dir, int *ret_fd) OP_NONNULL OP_MUST_CHECK;

/* Removes the file, and lets others in. A negative descriptor is none. */
void opr_archive_unlock(int dir_fd, int fd);

#endif
