/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Count: a resolved sample into its sample file. One file per (application, image, event, class); which of them share a
 * file is what --separate says:
 *
 *   none      {root}IMAGE/{dep}/{root}IMAGE, kernel samples under the kernel's own image
 *   library   user samples under {root}APP/{dep}/...
 *   kernel    kernel samples under their application as well; implies library
 *   thread    one file per thread; cpu: one per CPU
 *   cgroup    the samples of each cgroup once more below cgroup/, in files as they are without it; whoever does not know of
 *             cgroups reads the session as it would be
 *
 * Where a session has too many files, what is new is kept less apart (file_limit.h).
 *
 * What the image filter leaves out has no file, and its image no name in the session: it is booked as filtered. A call is left out when a sample at either end would be.
 *
 * The calls of a sample's chain (daemon/pipeline/arcs.h) are counted in callgraph files, IMAGE/{dep}/CALLER/{cg}/CALLEE, one for each two images. The
 * application, the event and the class are those that a sample in the caller would have. They are in no line of the ledger.
 *
 * Anonymous regions are filed under their application whatever the mode. What the memory view keeps (libop/session/memory_view.h) has files of its own
 * below mem/, by application and image only.
 *
 * Sync thread only.
 */
#ifndef OPD_COUNT_H
#define OPD_COUNT_H

#include "daemon/keep/cookie_file.h"
#include "daemon/count/file_limit.h"
#include "daemon/resolve/resolver.h"
#include "libop/control/arc_stats.h"
#include "libop/base/compiler.h"
#include "libop/control/daemonrc.h"
#include "libop/events/event.h"
#include "libop/base/htable.h"
#include "libop/session/ledger.h"

struct opd_event;
struct opd_file;
struct opd_image_filter;
struct opd_syncer;

#define OPD_RECENT_SLOTS 4096u
#define OPD_WAITING_MAX  64u

/* What samples must have in common to be counted in one file. */
struct opd_file_key {
	uint64_t app_cookie, image_cookie;
	int32_t tgid, tid, cpu;
	uint16_t event;
	uint16_t cgroup_slot; /* OPD_CGROUP_NONE: of all cgroups */
	uint64_t callee_cookie; /* of a callgraph file, whose image is the caller; OP_DCOOKIE_NONE: a sample file */
};

static_assert(sizeof(struct opd_file_key) == 40, "compared for each sample, as a whole");
static_assert(OPD_CGROUP_SLOTS_MAX < UINT16_MAX && OP_EVENTS_MAX <= UINT16_MAX, "fields of the key");

/* Samples that were counted and are not in their file yet. */
struct opd_waiting {
	struct opd_file_key key;
	uint64_t offset;
	struct opd_event *account;
	uint32_t amount;
	uint16_t cgroup_slot; /* where they are counted once more when they are stored */
	uint16_t recent;      /* index of opd_count.recent for the key, as it was at first */
	int error;            /* of storing them */
	enum opd_file_kind beyond; /* there was no room for a file of this kind; OPD_FILE_OF_LAST: there was */
	uint32_t nr_calls; /* of a callgraph file; the amount is theirs in what the event adds up, which may be cycles */
	bool unattributed;
	bool is_plain; /* went to a file that is (sample_file.h) */
};

struct opd_ledger;

/* Files by last use. */
struct opd_file_list {
	struct opd_file *newest, *oldest;
	size_t nr;
};

struct opd_count {
	int session_fd; /* the session directory; the caller's */
	struct op_dcookie_table *table;
	struct opd_cookie_file *cookie_file; /* the caller's; NULL: the table is not kept */
	const struct op_event *events;
	bool separate_lib, separate_kernel, separate_thread, separate_cpu;
	struct opd_cgroups *cgroups; /* NULL: not separated by cgroup */
	const struct opd_image_filter *filter; /* the caller's; NULL: all images are wanted */
	struct opd_ledger *ledger; /* books stored samples that are gone as lost; the caller's; NULL: they are not booked */
	struct opd_syncer *settler; /* who writes files that took the place of others to the disk; NULL: it waits for the next start */
	double cpu_speed_mhz;
	uint64_t no_process_cookie; /* application of anonymous regions whose application is not known */
	uint64_t now_ns;            /* set by the sync thread at each visit */
	struct op_htable files;
	struct opd_file_list open, closed;
	struct opd_file *recent[OPD_RECENT_SLOTS];   /* files of the last samples, by a part of their key */
	struct opd_waiting waiting[OPD_WAITING_MAX]; /* see opd_count_flush */
	size_t nr_waiting;
	struct opd_file_limit limit;
	size_t max_open;
	size_t max_closed;       /* what is known of closed files is forgotten beyond this */
	bool forgot_changed;     /* a file that was forgotten had changed: a dump has to write everything. Cleared by the dump */
	uint64_t nr_forgotten;   /* files */
	uint64_t nr_memory_nodes, nr_memory_dropped; /* of the memory view, whose nodes have a limit: OPD_MEMORY_NODES_MAX */
	uint64_t nr_too_many;    /* samples filed under the overflow image (op_dcookie_limit), as their image or their application */
	uint32_t nr_broken;      /* op_guard_nr_broken when files were looked at last */
	uint64_t nr_damaged;    /* files that were none and were put aside */
	uint64_t nr_failed_objects; /* of JIT code: not whole when they were to be renewed */
	uint64_t arcs[OP_NR_ARC_STATS]; /* what became of calls; those of following chains are drain's */
	uint64_t dropped_nodes; /* nodes that an unclean stop had left unpublished */
};

#define OPD_MAX_OPEN_FILES 4096 /* open sample files are mappings, not descriptors: well below vm.max_map_count */

/* max_open as MaxOpenFiles= says it: 0 leaves it to opd. */
static inline size_t opd_count_max_open(uint64_t configured)
{
	return configured ? configured : OPD_MAX_OPEN_FILES;
}

/* What a sample is counted as, beside where it lies. */
struct opd_counted {
	const struct opd_resolved *resolved;
	struct opd_event *account; /* where it is booked as stored or lost */
	uint32_t event;            /* index into the events */
	uint32_t amount;           /* what it adds: 1 for a sample */
	uint32_t pid, tid, cpu;
	uint64_t cgroup_id; /* where count.cgroups is given */
};

/*
 * Counts one sample. It is booked in its account when it is in its file, filtered or lost, which is now or with one of the next calls,
 * at the latest with opd_count_flush.
 */
void opd_count_sample(struct opd_count *count, const struct opd_counted *counted) OP_NONNULL;

/*
 * Counts one call, whatever its amount: `counted` is as of a sample that was taken where the call returns to, in the caller, and `callee` is what was called, or called from there on.
 */
void opd_count_call(struct opd_count *count, const struct opd_counted *counted, const struct opd_resolved *callee) OP_NONNULL;

/*
 * Counts the last sample once more: one that differs in its time alone. True; false when that went to its file already, and it has to be counted
 * as any other.
 */
static inline bool opd_count_again(struct opd_count *count)
{
	if (!count->nr_waiting)
		return false;
	count->waiting[count->nr_waiting - 1].amount++;
	return true;
}

/*
 * What was counted goes to the files, and is booked. Many at once: files and their nodes are all over the memory, and the waits for
 * them overlap. What follows does it first.
 */
void opd_count_flush(struct opd_count *count) OP_NONNULL;

/*
 * The paths, below the session directory, of files that changed since the last call; they count as written from now on. When
 * forgot_changed is set there are others. The times of the last samples go to the dcookie table.
 * 0 and strings and an array to be freed by the caller, or -ENOMEM.
 */
int opd_count_take_changed(struct opd_count *count, char ***ret_paths, size_t *ret_nr_paths) OP_NONNULL OP_MUST_CHECK;

/* Lets every file count as changed: what had been taken could not be written. */
void opd_count_mark_changed(struct opd_count *count) OP_NONNULL;

/*
 * Every sample file of the current session, also those that are forgotten, and every object of JIT code is replaced by one with the same contents, none of which is on the disk yet: what the kernel
 * took for written and was not is written again with the next dump. An object that is not whole stays as it is. What is not there any more is counted as lost. Takes as long as making so many files. 0 or -errno.
 */
int opd_count_renew(struct opd_count *count) OP_NONNULL OP_MUST_CHECK;

/* Hands what is pending of a file, NULL for nothing, to the settler; without one it waits for the next start. Does not wait. */
void opd_count_settle(const struct opd_count *count, struct op_odb_pending *pending) OP_NONNULL_ARGS(1);

/*
 * Calls `visit` with image and path, below the session directory, of every file that was opened; of a callgraph file for each of its two images, when they are
 * anonymous, with the path that a sample file of it would have.
 */
void opd_count_visit_files(struct opd_count *count, void (*visit)(uint64_t image_cookie, const char *path, void *arg),
			   void *arg) OP_NONNULL_ARGS(1, 2);

/* Takes files that no sample came for in the last second out of the memory; they stay open. */
void opd_count_let_go(struct opd_count *count) OP_NONNULL;

/* Closes every file but keeps what is known of it; the next sample opens it again, or makes it when there is room by now. */
void opd_count_release_files(struct opd_count *count) OP_NONNULL;

/*
 * Looks for every file that is known where it should be: what was counted in one that is gone, or is another one now, is lost_io_error from here on, and named in the
 * log. True when there was one, or files that are not known are missing (opd_file_limit_misses). A gone one that had changed is still handed out by opd_count_take_changed.
 */
bool opd_count_look(struct opd_count *count, bool thorough) OP_NONNULL;

/* As opd_count_release_files and opd_count_look, after which those that are gone are not known any more: they cannot be written. The files are counted anew. */
bool opd_count_give_up_files(struct opd_count *count) OP_NONNULL;

/*
 * What op_session_files_look finds in a session where nobody else made a file, without a walk over it. 0; -ESTALE: files were forgotten, and it takes the walk; another
 * -errno.
 */
struct op_session_files;
int opd_count_note_files(struct opd_count *count, struct op_session_files *ret_files) OP_NONNULL OP_MUST_CHECK;

/* Closes and forgets every file; what was counted is in them. The next sample opens its file again. */
void opd_count_close_files(struct opd_count *count) OP_NONNULL;

#endif
