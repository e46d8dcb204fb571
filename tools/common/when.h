/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Points in time as systemd.time(7) has them, for --since and --until. */
#ifndef OPR_WHEN_H
#define OPR_WHEN_H

#include "libop/base/compiler.h"

/*
 * Reads a point in time. All times are microseconds since 1970.
 *
 *   now, today, yesterday, tomorrow              the last three mean 00:00 of that day
 *   yesterday HH:MM[:SS[.FFFFFF]]                a time of that day; also of today and tomorrow
 *   [WEEKDAY] YYYY-MM-DD [HH:MM[:SS[.FFFFFF]]]   without a time of day 00:00; T may separate them
 *   [WEEKDAY] HH:MM[:SS[.FFFFFF]]                today
 *   @SECONDS[.FFFFFF]                            since 1970
 *   -SPAN, +SPAN, "SPAN ago", "SPAN left"        from now (op_parse_span_us)
 *   2026-11-21T03:00Z                            the name of a session, which is in UTC
 *
 * A weekday must be that of the date. Days and times of day are in the local time zone (TZ). Behind
 * them may stand another one: UTC, a name of the local time such as CEST, a zone of the time zone
 * database such as Europe/Berlin, or, behind a time of day, an offset such as +02:00. For a zone of
 * the database TZ is changed for a moment: no other thread may use local time.
 *
 * 0; -EINVAL: none of these; -ERANGE: no such date or time, or before 1970. No message.
 */
int opr_when_parse(const char *text, uint64_t now_us, uint64_t *ret_us) OP_NONNULL OP_MUST_CHECK;

/* "2026-11-21 03:00:00 CET", in local time, for messages. */
#define OPR_WHEN_BYTES 64
void opr_when_format(uint64_t us, char text[OPR_WHEN_BYTES]) OP_NONNULL;

#endif
