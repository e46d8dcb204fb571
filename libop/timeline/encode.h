/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A span as the bytes of a payload, not packed. What is small does not fit: of the samples, and of
 * the stacks, the nodes with the largest shares of their events are kept, up to a limit, and the
 * weights of the others go to the `rest` of the node above. Any thread.
 */
#ifndef OP_TIMELINE_ENCODE_H
#define OP_TIMELINE_ENCODE_H

#include "libop/timeline/bytes.h"
#include "libop/timeline/minute.h"

struct op_encode_limits {
	/* nodes below those of kind SAMPLES, and of kind STACKS; 0: no limit */
	uint32_t max_samples, max_stacks;
};

/* Adds the payload to `bytes`. 0; -ENOMEM; -E2BIG: beyond the limits of the format. */
int op_minute_encode(const struct op_minute *minute, const struct op_encode_limits *limits, struct op_bytes *bytes)
	OP_NONNULL OP_MUST_CHECK;

#endif
