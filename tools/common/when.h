/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Points in time as systemd.time(7) has them, for --since and --until. */
#ifndef OPR_WHEN_H
#define OPR_WHEN_H

#include "libop/base/compiler.h"

/*
 * Reads a point in time, `now_us` being that of the call; all in microseconds since 1970, dates and times of day by the local time zone (TZ) or, with " UTC"
 * behind them, by UTC:
 *
 *   now, today, yesterday, tomorrow       the last three are 00:00 of that day
 *   [WEEKDAY] YYYY-MM-DD [HH:MM[:SS[.FFFFFF]]]   without a time of day 00:00; T may stand for the blank; HH:MM alone is of today
 *   @SECONDS[.FFFFFF]                     since 1970
 *   -SPAN, +SPAN, "SPAN ago", "SPAN left" from now (op_parse_span_us)
 *   2026-11-21T03:00Z                     the name of a session, which is in UTC
 *
 * 0; -EINVAL: none of these; -ERANGE: a date or time that there is not, or one before 1970. Says nothing.
 */
int opr_when_parse(const char *text, uint64_t now_us, uint64_t *ret_us) OP_NONNULL OP_MUST_CHECK;

/* "2026-11-21 03:00:00 CET", in local time, for messages. */
#define OPR_WHEN_BYTES 64
void opr_when_format(uint64_t us, char text[OPR_WHEN_BYTES]) OP_NONNULL;

#endif
