/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The ledger of a session, samples/<session>/ledger: its time span, how it ended, and for each
 * event what became of the samples:
 *
 *   received = stored + filtered + sum of lost_<reason>
 *   stored   = the samples in the sample files
 *
 * once the session is closed. An IBS sampler has no sample files: the second line holds for its
 * derived events. STACKS and WAIT have none either: they are in the stack store, and the numbers of
 * WAIT are microseconds. The file is text: the
 * first line is "opd-ledger 1", the others are a word and its values, separated by tabs
 * (doc/format.md). Readers skip unknown words. Sessions of the genuine tools have none.
 */
#ifndef OP_SESSION_LEDGER_H
#define OP_SESSION_LEDGER_H

#include "libop/base/compiler.h"
#include "libop/session/ledger.h"
#include "libop/session/wait_states.h"
#include "libop/base/text.h"

#define OP_SESSION_LEDGER            "ledger"
#define OP_SESSION_LEDGER_EVENTS_MAX 1024 /* in one session */
#define OP_SESSION_HOST_BYTES        65   /* HOST_NAME_MAX and a NUL */

/* How a session ended, as the word in the file. */
#define OP_SESSION_ENDS(X)                                                      \
	X(open)    /* it is being written, or its daemon was killed */          \
	X(stopped) /* its daemon stopped in order; the next one continues it */ \
	X(rotated) /* SessionInterval=: it is removed when it is old */         \
	X(saved)   /* opcontrol --save: only the user removes it */

enum op_session_end {
#define X(word) OP_SESSION_##word,
	OP_SESSION_ENDS(X)
#undef X
		OP_NR_SESSION_ENDS,
};

/* Shows whether sample files were removed, added or changed. */
struct op_session_files {
	uint64_t nr;
	uint64_t fingerprint; /* sum of the hashes of inode, length and time of each file */
};

struct op_session_ledger {
	enum op_session_end ended;
	bool has_files; /* `files` is set; only a stopped session has it */
	struct op_session_files files;

	/*
	 * Nanoseconds since 1970, by the clock at the time of writing. The end of an open session
	 * is that time.
	 */
	uint64_t begin_ns, end_ns;
	uint64_t paused_ns; /* between them, when nothing was sampled */
	/* a daemon writes the session, and samples nothing since the end */
	bool is_stopped;

	/*
	 * Where the samples were taken, the release of that kernel, and oprofile's name for that
	 * CPU ("i386/skylake"); "": not known, and for the CPU also: it has no PMU.
	 */
	char host[OP_SESSION_HOST_BYTES], kernel[OP_SESSION_HOST_BYTES], cpu[OP_SESSION_HOST_BYTES];
	/* from a recording of another profiler: the times are those of the import */
	bool is_imported;

	/*
	 * One row each: name, count, unit_mask, role, received, stored, unattributed, filtered,
	 * lost_kernel, enabled_ns, counted_ns, lost[], ends[].
	 */
	struct op_ledger_event *events;
	size_t nr_events;
	struct op_wait_ledger waits; /* what became of switches; all 0: the session has no waits */
};

/*
 * The row of an event, a new one if needed; valid until the next call. NULL: no memory, or
 * OP_SESSION_LEDGER_EVENTS_MAX.
 */
struct op_ledger_event *op_session_ledger_row(struct op_session_ledger *ledger,
					      const struct op_ledger_event *event) OP_NONNULL OP_MUST_CHECK;

/* The row of an event, or NULL. */
const struct op_ledger_event *op_session_ledger_find(const struct op_session_ledger *ledger,
						     const struct op_ledger_event *event) OP_NONNULL OP_MUST_CHECK;

/*
 * Sets the host. A name that is too long, or has other characters than printable ASCII, counts as
 * not known; NULL also does.
 */
void op_session_ledger_set_host(struct op_session_ledger *ledger, const char *name) OP_NONNULL_ARGS(1);
void op_session_ledger_set_kernel(struct op_session_ledger *ledger, const char *release) OP_NONNULL_ARGS(1);
void op_session_ledger_set_cpu(struct op_session_ledger *ledger, const char *type) OP_NONNULL_ARGS(1);

/* Whether the session has no samples and no losses: it is not worth keeping. */
bool op_session_ledger_is_empty(const struct op_session_ledger *ledger) OP_NONNULL OP_MUST_CHECK;

/* The losses of all events that count samples, by one reason. */
uint64_t op_session_ledger_lost(const struct op_session_ledger *ledger, enum op_loss reason) OP_NONNULL OP_MUST_CHECK;

/* Adds the text of the file. */
void op_session_ledger_format(const struct op_session_ledger *ledger, struct op_text *text) OP_NONNULL;

/* Writes and syncs dir_fd/ledger. 0 or -errno. */
int op_session_ledger_publish(const struct op_session_ledger *ledger, int dir_fd) OP_NONNULL OP_MUST_CHECK;

/*
 * Reads dir_fd/ledger of a session. 0 and a ledger for op_session_ledger_free; -ENOENT; -EBADMSG:
 * it is no ledger, and *ret_line, when given, is the wrong line, from 1; another -errno.
 */
int op_session_ledger_read(int dir_fd, struct op_session_ledger *ret_ledger, unsigned int *ret_line)
	OP_NONNULL_ARGS(2) OP_MUST_CHECK;

/*
 * Sets the time span of a session without a ledger: from when its directory was made to its last
 * change.
 */
void op_session_ledger_guess_times(struct op_session_ledger *ledger, int dir_fd) OP_NONNULL;

/* Frees the rows; NULL is allowed. */
void op_session_ledger_free(struct op_session_ledger *ledger);

#endif
