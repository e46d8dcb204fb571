/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The bytes of a payload as a span, with every check: numbers of texts, events, images and code,
 * which node lies below which, and that all weights together are less than 2^63. Any thread.
 */
#ifndef OP_TIMELINE_DECODE_H
#define OP_TIMELINE_DECODE_H

#include "libop/timeline/minute.h"

/*
 * Fills a span that op_minute_init made; what was in it is gone. Times, gap and flags are the
 * caller's. 0; -EBADMSG: the payload is not as opd-timeline(5) says, and the span is empty;
 * -ENOMEM.
 */
int op_minute_decode(struct op_minute *minute, const uint8_t *payload, size_t nr_bytes) OP_NONNULL OP_MUST_CHECK;

#endif
