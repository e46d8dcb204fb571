/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Checks an archive (tools/common/archive.h). */
#ifndef OPR_ARCHIVE_CHECK_H
#define OPR_ARCHIVE_CHECK_H

#include "libop/base/compiler.h"

/*
 * Reads every file with a checksum again, and looks for files without one in the sessions. 0;
 * -EBADMSG: a file has changed, is missing, was added, or was left out or cut when the archive was
 * made; another -errno. Each is reported.
 */
int opr_archive_check(const char *dir) OP_NONNULL OP_MUST_CHECK;

#endif
