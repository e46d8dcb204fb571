/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The book of the current session: its ledger (libop/session/ledger_file.h) and stats/ (stats_dir.h), which say where the samples of this session went, also when
 * daemons came and went in it, or when the daemon has seen other sessions before. The counters of the capture go on over sessions; what they were when
 * the session began is subtracted here, so that nothing is in two books or in none.
 *
 * Times are kept by the clock that never steps and turned into those of the wall clock when they are written: after a step, the new time of day is
 * taken to be the right one.
 *
 * Sync thread, or before it starts.
 */
#ifndef OPD_LEDGER_H
#define OPD_LEDGER_H

#include "daemon/capture/cpu_rings.h"
#include "libop/base/compiler.h"
#include "libop/session/ledger_file.h"

struct opd_ledger {
	int session_fd; /* the session directory; the caller's */
	const struct opd_capture *capture;
	struct op_session_ledger base;  /* what the session had before this daemon */
	uint64_t stats_base[3];         /* the same for a session without a ledger, as stats/ has it */
	struct op_ledger_event *before; /* for each event of the capture: its sums when the session began */
	struct op_ledger_event *latest; /* at the last opd_ledger_sum */
	int64_t latest_boot_ns;         /* when that was; as begin_boot_ns */
	const struct op_session_files *files; /* the session's, where somebody knows them; the caller's; NULL: they are looked for */
	bool hides_kernel;              /* for stats/ */
	bool begun;                     /* samples may have been taken, by an earlier daemon too */
	bool sampled;                   /* by this one; else the session ended when base says */
	bool is_mended;                 /* base is not what the disk has: opd_ledger_write */
	int64_t begin_boot_ns;          /* by op_sys_boot_ns; negative: before the machine started */
};

/*
 * Reads what an earlier daemon left in samples/current. Where it did not end in order, its ledger is not that of a stopped one, or the files are others than it left, `stored` is what the files
 * hold (is_mended), which takes as long as reading them. A ledger that is none is kept below damaged/. 0 or -ENOMEM. Closed with opd_ledger_close.
 */
int opd_ledger_open(struct opd_ledger *book, int session_fd, const struct opd_capture *capture,
		  bool was_unclean) OP_NONNULL OP_MUST_CHECK;
void opd_ledger_close(struct opd_ledger *book) OP_NONNULL;

/* Sampling is about to start: the session begins now unless it has. */
void opd_ledger_begin(struct opd_ledger *book) OP_NONNULL;

/* When the session began, by the wall clock of now, ns since 1970. */
uint64_t opd_ledger_begin_ns(const struct opd_ledger *book) OP_NONNULL;

/* The ledger of the session as of now, to be freed with op_session_ledger_free. 0 or -ENOMEM. */
int opd_ledger_sum(struct opd_ledger *book, enum op_session_end ended, struct op_session_ledger *ret_ledger) OP_NONNULL OP_MUST_CHECK;

/* Writes ledger and stats/ of samples/current. 0 or -errno. */
int opd_ledger_write(const struct opd_ledger *book, const struct op_session_ledger *ledger) OP_NONNULL OP_MUST_CHECK;

/* After opd_ledger_write has failed: the path at which something else stands than a file or directory of the book, a constant text; NULL: that is not why. */
const char *opd_ledger_in_the_way(const struct opd_ledger *book) OP_NONNULL OP_MUST_CHECK;

/* So much that was booked as stored is not in the sample files any more: it is lost_io_error. */
void opd_ledger_lose(struct opd_ledger *book, uint32_t event, uint64_t amount) OP_NONNULL;

/*
 * Adds up the files of samples/current, in which all that was booked as stored is: what they lack is lost_io_error, whoever had stored it, and the log says how much. Takes as long as
 * reading them. 0, or -errno and nothing has changed; -EBADMSG: some could not be read.
 */
int opd_ledger_recount(struct opd_ledger *book) OP_NONNULL OP_MUST_CHECK;

/* Another session begins where the last opd_ledger_sum ended this one, with what that did not count, however long it has taken to close it. */
void opd_ledger_turn_page(struct opd_ledger *book) OP_NONNULL;

/* The session was emptied and the counters of the capture were set to 0: it begins anew, now, or when sampling does. */
void opd_ledger_reset(struct opd_ledger *book) OP_NONNULL;

/* The same where not all files could be removed: what they hold is the session's from then on. */
void opd_ledger_reset_to_rest(struct opd_ledger *book) OP_NONNULL;

#endif
