/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Whether an archive (tools/common/archive.h) is what was archived. */
#ifndef OPR_ARCHIVE_CHECK_H
#define OPR_ARCHIVE_CHECK_H

#include "libop/base/compiler.h"

/*
 * Reads every file that has a checksum again, and looks for files among the sessions that have none. 0; -EBADMSG when one is not what it was, is missing, was not archived, or was
 * left out or cut off then, each of which the user is told; another -errno.
 */
int opr_archive_check(const char *dir) OP_NONNULL OP_MUST_CHECK;

#endif
