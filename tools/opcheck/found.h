/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the check of the sample files leaves for the checks of ledger and timeline. */
#ifndef OPK_FOUND_H
#define OPK_FOUND_H

#include "tools/opcheck/shares.h"

struct opk_found {
	struct op_session_ledger sums; /* samples by event */
	bool has_images; /* the session has a table of images */
	const struct op_dcookie_table *images; /* NULL: it has none */
	struct opk_shares *shares; /* what the files have; the check of the timeline adds to it */
	bool changed; /* a repair added or removed samples: the ledger must follow */
};

#endif
