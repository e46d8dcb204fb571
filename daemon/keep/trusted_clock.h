/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What counts as now when sessions are removed by their age. The wall clock alone will not do: a machine whose clock is far in the future when it starts, until
 * somebody sets it right, would lose all that it has. So the time that was last believed is kept in SESSION-DIR/clock and goes on by the clock that never steps. A wall
 * clock that is near to it is believed; "near" is half of what is kept, a week at most. One that is not is believed when it has held for a day (or for as long
 * as is kept, if that is less) of daemons that ran, also with pauses between them. Until then no session is removed by its age; for size they are removed all the same.
 *
 * Without the file, the end of the newest closed session is what was believed last.
 *
 *   SESSION-DIR/clock   "opd-clock 1" and three lines, a word, a tab and seconds each: trusted, the time that is believed, since 1970; claimed, what the wall
 *                       clock says against it, 0 for nothing; held, how long that has
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
	uint64_t boot_ns;    /* when it was looked last, by the clock that never steps; 0: never by this daemon */
	uint64_t written_boot_ns;
	bool is_written;
};

/*
 * Looks at the clocks, and keeps in the session directory what came out when that is due. *ret_now_ns: the time, since 1970, that ages are reckoned to, or 0 when
 * no clock is to be believed. 0, or -errno when it could not be kept, *ret_now_ns being set all the same.
 */
int opd_trusted_clock_look(struct opd_trusted_clock *age, int session_fd, uint64_t keep_ns, uint64_t newest_end_ns, uint64_t *ret_now_ns)
	OP_NONNULL OP_MUST_CHECK;

#endif
