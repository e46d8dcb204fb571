/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What each image of each application has of each event, twice: in the sample files or in the file
 * of stacks, and in the minutes of the timeline.
 */
#ifndef OPK_SHARES_H
#define OPK_SHARES_H

#include "libop/base/htable.h"
#include "libop/session/dcookie.h"
#include "tools/opcheck/findings.h"

enum opk_share_kind { OPK_OF_SAMPLES, OPK_OF_STACKS };

/* Images are cookies; OP_DCOOKIE_NONE: of the application as a whole, or of none. */
struct opk_share {
	struct op_hlink link;
	enum opk_share_kind kind;
	uint32_t event;
	uint64_t app, image;
	uint64_t in_files, in_minutes;
};

/* Zeroed at first; opk_shares_free in any case. */
struct opk_shares {
	struct op_htable table;
	char **events; /* "NAME:COUNT:0xMASK" */
	uint32_t nr_events;
	size_t capacity, nr_shares;
};

/* The number of an event. 0 or -ENOMEM. */
int opk_shares_event(struct opk_shares *shares, const char *name, uint32_t *ret_event) OP_NONNULL OP_MUST_CHECK;

/* The share of an image, added if it is new. NULL: no memory. */
struct opk_share *opk_share(struct opk_shares *shares, enum opk_share_kind kind, uint32_t event, uint64_t app, uint64_t image)
	OP_NONNULL OP_MUST_CHECK;

/*
 * Reports applications and images of which the minutes do not have what the files have, of events
 * of which both have the same sum. What a minute does not keep apart is part of the application, or
 * of the event. `images`: the table of the session. 0 or -ENOMEM.
 */
int opk_shares_compare(struct opk_shares *shares, struct opk_check *check, const struct op_dcookie_table *images)
	OP_NONNULL OP_MUST_CHECK;

void opk_shares_free(struct opk_shares *shares) OP_NONNULL;

#endif
