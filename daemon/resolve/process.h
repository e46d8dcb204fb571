/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Processes: who had which address space at which time. Each pid has a chain of address spaces, newest first: fork and exec
 * begin one, and the pid of a process that ended may get another. A sample asks for the one that held at its own time, since
 * the side band is read ahead of the samples.
 *
 * Sync thread only.
 */
#ifndef OPD_PROCESS_H
#define OPD_PROCESS_H

#include "daemon/resolve/image.h"
#include "daemon/jit/mapset.h"
#include "daemon/resolve/mount_view.h"
#include "libop/base/clock.h"
#include "libop/base/compiler.h"
#include "libop/base/htable.h"

struct opd_jit;
struct opd_jit_space;

struct opd_mm {
	struct opd_mm *older;
	struct opd_mapset *maps;
	struct opd_mount_view *mount_view; /* where it sees files from, as far as it is known */
	bool has_mnt_ns;         /* the mount namespace of place is its own: the side band tells when it goes into another one */
	uint64_t from_ns;    /* 0: since before opd looked */
	uint64_t app_cookie; /* of the executable; OP_DCOOKIE_NONE: not known yet, or a kernel thread */
	/* daemon/jit/code.h: what it tells of its JIT code itself and what a fork left, references; NULL: nothing */
	struct opd_jit_space *jit, *jit_base;
	uint32_t jit_parent;   /* the process that a fork left it by, until that told something itself; 0: none, or gone */
	bool jit_refused;      /* there were too many */
	bool jit_file_refused; /* a file that would tell of it was */
	uint64_t jit_retry_ns; /* when it is asked again what it has not told yet */
};

struct opd_process {
	struct op_hlink link;
	uint32_t pid, parent_pid; /* who forked it; 0: not known */
	struct opd_mm *mm;    /* newest */
	uint64_t snapshot_ns; /* what /proc said at this time is in mm, older records are part of it; 0: never asked */
	uint64_t reread_ns;   /* when its mappings were last read again, because of a sample outside of them */
	uint64_t sure_ns;     /* what it did until then is known; see opd_process_is_doubtful */
	uint64_t listed_ns;   /* when /proc was last seen to have it, while that matters (rescan.h) */
	uint64_t exit_ns;     /* UINT64_MAX while it lives */
	uint64_t mapping_ns;  /* when the time began in which it made nr_mapped mappings */
	uint64_t skipped_from_ns, skipped_until_ns; /* mappings that were not taken in, there were too many; 0: none */
	uint32_t nr_mapped;
	uint32_t nr_threads;  /* 0: not known, it began before opd looked */
	bool leader_exited;
	bool prunable;                     /* in the list of those that have something to forget */
	struct opd_process *next_prunable;
};

#define OPD_PROCESSES_MAX 131072 /* processes known; the samples of those beyond are filed under no-process */
/* Mappings that a process may make in a time; what those beyond are is in doubt. Where it has n times as many, each counts as n more. */
#define OPD_PROCESS_MAPS_MAX 1024u
#define OPD_PROCESS_MAPS_NS  (100u * OP_NS_PER_MS)
#define OPD_CHANGE_SLOTS 1024u /* pids that share one are taken for changed together */

struct opd_processes {
	struct op_htable by_pid;
	struct opd_jit *jit; /* NULL: no JIT code is looked for; the caller's */
	struct opd_build_ids *build_ids;    /* NULL: nobody is asked for them; the caller's */
	uint32_t changes[OPD_CHANGE_SLOTS]; /* of processes, by pid: see opd_process_changes */
	struct opd_mount_views mount_views;
	struct opd_stat_cache stat_cache;
	uint64_t horizon_ns; /* no sample older than this will come */
	struct opd_process *prunable; /* those that end, or that have an older address space: a few of the many that sleep */
	uint64_t nr_freed; /* address spaces: where pids come again soon, a process has many before it is forgotten */
	uint64_t lost_from_ns, lost_until_ns; /* side-band records were lost in between; 0: none, or nothing before that is in doubt any more */
	struct opd_mapset_account account;
	uint64_t nr_dropped; /* processes that there was no room for */
	uint32_t round;      /* of visits */
};

void opd_processes_free(struct opd_processes *processes);

/* False for what the kernel says of a process that has no number in opd's pid namespace, 0 for all of them, and of one that is being reaped. */
static inline bool opd_is_pid(uint32_t pid)
{
	return pid && pid != UINT32_MAX;
}

/* The process with this pid, living or ended and not yet forgotten; NULL for none. */
struct opd_process *opd_process_find(const struct opd_processes *processes, uint32_t pid) OP_NONNULL;

/* True when there is no room for another process. */
static inline bool opd_processes_are_full(const struct opd_processes *processes)
{
	return processes->by_pid.nr_entries >= OPD_PROCESSES_MAX;
}

/* Calls `visit` for the cookie of every application and mapping, the past ones too; OP_DCOOKIE_NONE among them. */
void opd_processes_visit_cookies(struct opd_processes *processes, void (*visit)(uint64_t cookie, void *arg),
				 void *arg) OP_NONNULL_ARGS(1, 2);

/*
 * A process that was not known: an address space without mappings that holds since from_ns. NULL without memory, or, and that is counted,
 * when there is no room.
 */
struct opd_process *opd_process_add(struct opd_processes *processes, uint32_t pid, uint64_t from_ns) OP_NONNULL OP_MUST_CHECK;

/*
 * A number that is another one after anything was done to the address spaces of the process: what was found in the newest of
 * them, in a mapping that still holds, is found again while it is the same.
 */
static inline uint32_t opd_process_changes(const struct opd_processes *processes, uint32_t pid)
{
	return processes->changes[pid % OPD_CHANGE_SLOTS];
}

/* What the side band reports. 0, -ENOMEM or -ENOSPC, no room. A fork of an unknown parent gives a process without mappings. */
int opd_process_fork(struct opd_processes *processes, uint32_t parent_pid, uint32_t pid, uint64_t time_ns) OP_NONNULL OP_MUST_CHECK;
int opd_process_exec(struct opd_processes *processes, uint32_t pid, uint64_t time_ns) OP_NONNULL OP_MUST_CHECK;
int opd_process_map(struct opd_processes *processes, uint32_t pid, struct opd_mm *mm,
		    const struct opd_mapping *mapping) OP_NONNULL OP_MUST_CHECK;
void opd_process_thread_began(struct opd_processes *processes, uint32_t pid) OP_NONNULL;
void opd_process_thread_ended(struct opd_processes *processes, uint32_t pid, uint32_t tid, uint64_t time_ns) OP_NONNULL;

/* The address space that the process had at that time; the oldest known when that is younger. */
struct opd_mm *opd_process_mm_at(const struct opd_process *process, uint64_t time_ns) OP_NONNULL;

/* False when the process makes too many mappings at once; then this one is counted as dropped and what is mapped is in doubt. */
bool opd_process_may_map(struct opd_processes *processes, struct opd_process *process, uint64_t time_ns) OP_NONNULL OP_MUST_CHECK;

/* Records were lost in this time: what any process did in it is in doubt until /proc was asked. */
void opd_processes_lost(struct opd_processes *processes, uint64_t from_ns, uint64_t until_ns) OP_NONNULL;

/* A part of what the process did was not told at all: it may even have ended, or run another program. */
static inline bool opd_process_missed_records(const struct opd_processes *processes, const struct opd_process *process)
{
	return process->sure_ns < processes->lost_until_ns;
}

static inline bool opd_process_is_doubtful(const struct opd_processes *processes, const struct opd_process *process)
{
	return opd_process_missed_records(processes, process) || process->sure_ns < process->skipped_until_ns;
}

/* The time from which something may have happened to a process in doubt that nobody told. */
static inline uint64_t opd_process_doubtful_from_ns(const struct opd_processes *processes, const struct opd_process *process)
{
	uint64_t from_ns = opd_process_missed_records(processes, process) ? processes->lost_from_ns : process->skipped_from_ns;

	return op_max_u64(process->sure_ns, from_ns);
}

/* The process is another one, or runs another program, since from_ns, as /proc shows: an address space without mappings. 0 or -ENOMEM. */
int opd_process_began_anew(struct opd_processes *processes, struct opd_process *process, uint64_t from_ns) OP_NONNULL OP_MUST_CHECK;

/* 0: the process is there; else a time by which it had ended, so that it did nothing later. Asked after all that was done before it. */
typedef uint64_t (*opd_gone_teller)(uint32_t pid);

/*
 * After records were lost and the processes in /proc were listed (listed_ns): who is not among them and is gone has ended, and how
 * many threads the others have is not known any more.
 */
void opd_processes_resync(struct opd_processes *processes, uint64_t listed_ns, opd_gone_teller gone_ns) OP_NONNULL;

/*
 * Forgets processes and address spaces that ended before horizon_ns. Looks at those alone that may have. `gone_ns` decides about a
 * process whose leader ended and whose number of threads is not known.
 */
void opd_processes_prune(struct opd_processes *processes, uint64_t horizon_ns, opd_gone_teller gone_ns) OP_NONNULL;

#endif
