/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The time that counts as now when sessions are removed by their age. The wall clock alone is not
 * enough: a machine that starts with a clock far in the future would lose all its sessions before
 * the clock is corrected. So opd keeps the last trusted time in SESSION-DIR/clock, and
 * advances it by CLOCK_BOOTTIME, which never steps. A wall clock that is near this time is trusted;
 * "near" is half of SessionKeep=, a week at most. Any other wall clock is trusted after daemons
 * have seen it for a day, or for SessionKeep= if that is shorter; pauses between daemons do not
 * count. Until then sessions are removed by their size only, not by their age.
 *
 * Without the file, the last trusted time is the end of the newest closed session.
 *
 *   SESSION-DIR/clock   "opd-clock 1" and three lines, each a word, a tab and seconds:
 *                       trusted, the trusted time since 1970; claimed, what the wall clock says
 *                       against it, 0 for nothing; held, for how long it has said so
 *
 * One thread at a time.
 */
#ifndef OPD_TRUSTED_CLOCK_H
#define OPD_TRUSTED_CLOCK_H

#include "libop/base/compiler.h"

#define OPD_TRUSTED_CLOCK_FILE "clock"

struct opd_trusted_clock {
	uint64_t trusted_ns; /* 0: not known yet */
	uint64_t claimed_ns, held_ns;
	/* at the last look, by the clock that never steps; 0: this daemon has not looked */
	uint64_t boot_ns;
	uint64_t written_boot_ns;
	bool is_written;
};

/*
 * Looks at the clocks, and writes the file when that is due. *ret_now_ns is the time since 1970 to
 * take ages from, or 0 when no clock can be trusted. 0, or -errno when the file could not be
 * written; *ret_now_ns is set in any case.
 */
int opd_trusted_clock_look(struct opd_trusted_clock *age, int session_fd, uint64_t keep_ns, uint64_t newest_end_ns,
			   uint64_t *ret_now_ns)
	OP_NONNULL OP_MUST_CHECK;

#endif
