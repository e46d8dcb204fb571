/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Recording: sampling into the current session, switched on and off, with the session's ledger on
 * the disk. Sync thread, or before it starts.
 */
#ifndef OPD_RECORDING_H
#define OPD_RECORDING_H

#include "daemon/jobs/dump.h"
#include "daemon/jobs/minutes.h"
#include "libop/base/compiler.h"
#include "pipeline/drive/visit.h"

struct opd_recording {
	struct opd_pipeline *pipeline;
	struct opd_visits visits;
	struct opd_dumps dumps;
	struct opd_minutes minutes;
	struct opd_timeline timeline;
	uint64_t begin_ns;         /* of the daemon */
	uint64_t running_since_ns; /* sampling was switched on; 0: never */
	uint64_t running_ns;       /* before that */
};

/* Begins or ends to sample. 0 or the first -errno; some CPUs may sample all the same. */
int opd_recording_switch(struct opd_recording *recording, bool on) OP_NONNULL OP_MUST_CHECK;

/* Ends to sample, and counts everything that was taken. 0 or the first -errno. */
int opd_recording_stop(struct opd_recording *recording) OP_NONNULL OP_MUST_CHECK;

/* Writes ledger and stats/ if this daemon has sampled, or `always`. 0, or -errno after a log. */
int opd_recording_write_ledger(struct opd_recording *recording, enum op_session_end ended, bool always) OP_NONNULL;

/* Says that the ledger cannot be written, with the path when something else is in its place. */
void opd_recording_explain_ledger(const struct opd_recording *recording, char text[256]) OP_NONNULL;

/*
 * Checks that the sample files are still there; `thorough`: see opd_file_limit_misses. When a
 * file is missing, the ledger is corrected to the samples that the files have, including the files
 * of an earlier daemon.
 */
void opd_recording_check_files(struct opd_recording *recording, bool thorough) OP_NONNULL;

/* Forgets removed sample files. The next sample makes them anew. */
void opd_recording_forget_removed(struct opd_recording *recording) OP_NONNULL;

#endif
