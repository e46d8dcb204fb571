/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Checks the ledger of a session and its stats/ against the sample files. */
#ifndef OPK_LEDGER_H
#define OPK_LEDGER_H

#include "tools/opcheck/findings.h"
#include "tools/opcheck/found.h"

/* Reports and repairs what differs. 0 or -errno. */
int opk_ledger_check(struct opk_check *check, const struct opk_found *found) OP_NONNULL OP_MUST_CHECK;

#endif
