/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Checks a session, and repairs it: names, sample files, ledger, stats/, table of images. */
#ifndef OPK_SESSION_H
#define OPK_SESSION_H

#include "tools/opcheck/findings.h"

/* Checks the whole session. 0, also when it is damaged; -errno when it could not be checked. */
int opk_session_check(struct opk_check *check) OP_NONNULL OP_MUST_CHECK;

#endif
