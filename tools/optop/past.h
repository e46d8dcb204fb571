/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The blocks of the timelines of all sessions, one after the other in time: minutes as a rule. */
#ifndef TOP_PAST_H
#define TOP_PAST_H

#include <stdbool.h>
#include <stdint.h>

#include "libop/base/compiler.h"

/* Nanoseconds since 1970, UTC. */
struct top_span {
	uint64_t begin_ns, end_ns;
};

/* The last block that begins before a time. 0; -ENOENT: there is none; -ENOMEM; another -errno. */
int top_past_before(const char *session_dir, uint64_t wall_ns, struct top_span *ret_span) OP_NONNULL OP_MUST_CHECK;

/* The first block that begins after a time. The same. */
int top_past_after(const char *session_dir, uint64_t wall_ns, struct top_span *ret_span) OP_NONNULL OP_MUST_CHECK;

#endif
