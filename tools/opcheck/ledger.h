/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Checks the ledger of a session and its stats/ against the sample files. */
#ifndef OPK_LEDGER_H
#define OPK_LEDGER_H

#include "tools/opcheck/findings.h"

/* What the check of the sample files found. */
struct opk_found {
	struct op_session_ledger sums; /* samples by event */
	bool has_images; /* the session has a table of images */
	bool changed; /* a repair added or removed samples: the ledger must follow */
};

/* Reports and repairs what differs. 0 or -errno. */
int opk_ledger_check(struct opk_check *check, const struct opk_found *found) OP_NONNULL OP_MUST_CHECK;

#endif
