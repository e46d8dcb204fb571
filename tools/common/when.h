/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Points in time as systemd.time(7) has them, for --since and --until. */
#ifndef OPR_WHEN_H
#define OPR_WHEN_H

#include "libop/base/compiler.h"

/*
 * Reads a point in time. All times are microseconds since 1970. Dates and times of day are in the
 * local time zone (TZ), or with " UTC" behind them in UTC:
 *
 *   now, today, yesterday, tomorrow              the last three mean 00:00 of that day
 *   [WEEKDAY] YYYY-MM-DD [HH:MM[:SS[.FFFFFF]]]   without a time of day 00:00; T may separate them
 *   HH:MM[:SS[.FFFFFF]]                          today
 *   @SECONDS[.FFFFFF]                            since 1970
 *   -SPAN, +SPAN, "SPAN ago", "SPAN left"        from now (op_parse_span_us)
 *   2026-11-21T03:00Z                            the name of a session, which is in UTC
 *
 * 0; -EINVAL: none of these; -ERANGE: no such date or time, or before 1970. No message.
 */
int opr_when_parse(const char *text, uint64_t now_us, uint64_t *ret_us) OP_NONNULL OP_MUST_CHECK;

/* "2026-11-21 03:00:00 CET", in local time, for messages. */
#define OPR_WHEN_BYTES 64
void opr_when_format(uint64_t us, char text[OPR_WHEN_BYTES]) OP_NONNULL;

#endif
