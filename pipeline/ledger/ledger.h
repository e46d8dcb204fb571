/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The ledger of the current session (libop/session/ledger_file.h) and its stats/ (stats_dir.h):
 * where the samples of this session went. A session may have had several daemons, and a daemon
 * several sessions. The counters of the capture never restart, so their values at the begin of the
 * session are subtracted: each sample is in exactly one ledger.
 *
 * Times are kept by CLOCK_BOOTTIME, which never steps, and converted to the wall clock when they
 * are written. After a step of the wall clock its new time is used.
 *
 * Sync thread, or before it starts.
 */
#ifndef OPD_LEDGER_H
#define OPD_LEDGER_H

#include "libop/base/compiler.h"
#include "libop/session/ledger_file.h"
#include "pipeline/capture/cpu_rings.h"

struct opd_ledger {
	int session_fd; /* the session directory; the caller's */
	const struct opd_capture *capture;
	/*
	 * The host of an import, "" if it is not known, and its kernel or NULL. Both NULL: the
	 * samples are taken on this host. The caller's, set after opd_ledger_open.
	 */
	const char *foreign_host, *foreign_kernel;
	const char *cpu_type;           /* of this host; NULL: it has no PMU */
	struct op_session_ledger base;  /* samples of earlier daemons in this session */
	uint64_t stats_base[3];         /* the same from stats/, for a session without a ledger */
	/* for each event of the capture: its sums when the session began */
	struct op_ledger_event *before;
	struct op_ledger_event *latest; /* at the last opd_ledger_sum */
	int64_t latest_boot_ns;         /* when that was; as begin_boot_ns */
	/* switches of this daemon: now, when the session began, at the last opd_ledger_sum */
	struct op_wait_ledger waits, waits_before, waits_latest;
	/* of the session; the caller's; NULL: opd_ledger_sum looks for them */
	const struct op_session_files *files;
	bool hides_kernel;              /* for stats/ */
	bool begun;                     /* this daemon or an earlier one has begun to sample */
	bool sampled;                   /* this daemon has; else the session ended as `base` says */
	/* `base` differs from the ledger on the disk: opd_ledger_write is due */
	bool is_mended;
	/* by op_sys_boot_ns; negative: before the machine started */
	int64_t begin_boot_ns;
	bool is_stopped;         /* this daemon has sampled, and does not since */
	int64_t stopped_boot_ns;
	uint64_t paused_ns;      /* earlier pauses in this session, since this daemon began */
};

/*
 * Reads the ledger that an earlier daemon left in samples/current. When that daemon did not end in
 * order, or the files have changed since, `stored` becomes what the files hold (is_mended); that
 * takes as long as reading them. A damaged ledger is kept below damaged/. 0 or -ENOMEM. Closed with
 * opd_ledger_close.
 */
int opd_ledger_open(struct opd_ledger *ledger, int session_fd, const struct opd_capture *capture, bool was_unclean)
	OP_NONNULL OP_MUST_CHECK;
void opd_ledger_close(struct opd_ledger *ledger) OP_NONNULL;

/* Sampling is about to start: the session begins now unless it has begun; a pause ends. */
void opd_ledger_begin(struct opd_ledger *ledger) OP_NONNULL;

/* Sampling has stopped: the session ends here until it goes on. */
void opd_ledger_stop(struct opd_ledger *ledger) OP_NONNULL;

/* The begin of the session by the present wall clock, ns since 1970. */
uint64_t opd_ledger_begin_ns(const struct opd_ledger *ledger) OP_NONNULL;

/*
 * What became of switches since this daemon began: numbers that never restart, also not with
 * opd_ledger_reset. The next opd_ledger_sum takes them.
 */
void opd_ledger_set_waits(struct opd_ledger *ledger, const struct op_wait_ledger *waits) OP_NONNULL;

/* The present sums of the session, to be freed with op_session_ledger_free. 0 or -ENOMEM. */
int opd_ledger_sum(struct opd_ledger *ledger, enum op_session_end ended, struct op_session_ledger *ret_sums)
	OP_NONNULL OP_MUST_CHECK;

/* Writes ledger and stats/ of samples/current. 0 or -errno. */
int opd_ledger_write(const struct opd_ledger *ledger, const struct op_session_ledger *sums) OP_NONNULL OP_MUST_CHECK;

/* After a failed opd_ledger_write: the path with something else in its place; NULL: none. */
const char *opd_ledger_in_the_way(const struct opd_ledger *ledger) OP_NONNULL OP_MUST_CHECK;

/* Books stored samples of an event as lost_io_error: the sample files lack them now. */
void opd_ledger_lose(struct opd_ledger *ledger, uint32_t event, uint64_t amount) OP_NONNULL;

/*
 * Adds up the files of samples/current. Stored samples that they lack become lost_io_error, and the
 * log says how many. All waiting samples must be flushed. Takes as long as reading the files. 0, or
 * -errno and nothing has changed; -EBADMSG: some files could not be read.
 */
int opd_ledger_recount(struct opd_ledger *ledger) OP_NONNULL OP_MUST_CHECK;

/* Begins the next session at the last opd_ledger_sum. Later samples are the next session's. */
void opd_ledger_begin_next(struct opd_ledger *ledger) OP_NONNULL;

/* The session is empty, the counters are 0: it begins anew, now or when sampling starts. */
void opd_ledger_reset(struct opd_ledger *ledger) OP_NONNULL;

/* The same when files could not be removed: their samples are the session's from now on. */
void opd_ledger_reset_to_rest(struct opd_ledger *ledger) OP_NONNULL;

#endif
