/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Processes and their address spaces over time. Each pid has a chain of address spaces, newest
 * first: fork and exec begin a new one, and a pid can be used again. A sample uses the address
 * space of its own time, because the side band is read ahead of the samples.
 *
 * Sync thread only.
 */
#ifndef OPD_PROCESS_H
#define OPD_PROCESS_H

#include "libop/base/clock.h"
#include "libop/base/compiler.h"
#include "libop/base/htable.h"
#include "pipeline/files/mount_view.h"
#include "pipeline/files/owner.h"
#include "pipeline/files/proc_maps.h"
#include "pipeline/jit/mapset.h"
#include "pipeline/resolve/image.h"
#include "pipeline/resolve/stat_cache.h"

struct opd_jit;
struct opd_jit_space;
struct opd_jit_waiting;

/*
 * The names of a process over time. A process has the name of its main thread (its comm): exec sets
 * it, fork copies it, and a program may change it (prctl(2), PR_SET_NAME). A sample has the name
 * that its process had at its time, because the side band is read ahead of the samples.
 */
struct opd_name {
	struct opd_name *older;
	uint64_t from_ns;
	char comm[OPD_COMM_BYTES];
	/* of the last look-up by program.h: the program, the application and the user behind it */
	uint64_t program_cookie, app_cookie;
	uint32_t user;
};

struct opd_mm {
	struct opd_mm *older;
	uint64_t cgroup_id; /* of a stack; 0: unknown */
	struct opd_mapset *maps;
	struct opd_mount_view *mount_view; /* as far as it is known */
	/* its mount namespace is known, and records report changes */
	bool has_mnt_ns;
	bool root_is_old; /* mount_view is from before the program; chroot(2) is in no record */
	uint64_t from_ns; /* when it began; 0: before opd looked */
	/* of the executable; OP_DCOOKIE_NONE: unknown yet, or a kernel thread */
	uint64_t app_cookie;
	uint32_t app_tried;        /* mappings when it was last chosen in vain (application.h) */
	bool begins_program;       /* exec has mapped no file yet: the next one is the executable */
	bool is_kernel_thread;     /* the kernel says so, or its parent was one; not after exec */
	/* the effective user: of the parent, or of the process after it was asked (program.h) */
	bool knows_user, user_asked;
	uint32_t user;
	char comm[OPD_COMM_BYTES]; /* when it began, or before opd looked; "": unknown */
	/* an unmarked new name, perhaps by an exec; 0: none since it began (opd_process_renamed) */
	uint64_t renamed_ns;
	char new_comm[OPD_COMM_BYTES];
	/*
	 * References to the process's own JIT space and the one from before its fork; NULL: none
	 * (jit_lookup.h).
	 */
	struct opd_jit_space *jit, *jit_base;
	/* samples that wait for a name; of jit, or owned where there is none; NULL: none */
	struct opd_jit_waiting *jit_waiting;
	struct opd_jit_owner jit_owner; /* as the process was when it was asked; without proc_fd */
	/* parent of the fork, until it described its code; 0: none, or gone */
	uint32_t jit_parent;
	bool jit_refused;      /* there were too many spaces or descriptors */
	bool jit_file_refused; /* one of its JIT files was refused */
	uint64_t jit_retry_ns; /* when a process without files is asked again */
};

struct opd_process {
	struct op_hlink link;
	uint32_t pid, parent_pid; /* parent_pid 0: unknown */
	struct opd_mm *mm;        /* the newest */
	struct opd_name *name;    /* the newest; NULL: unknown, or not wanted (keeps_names) */
	/* when mm was read from /proc: it includes older records; 0: never */
	uint64_t snapshot_ns;
	/* last time its mappings were read again for a sample outside of them */
	uint64_t reread_ns;
	uint64_t sure_ns;    /* until then all its records are known; see opd_process_is_doubtful */
	uint64_t listed_ns;  /* last time it was listed from /proc after a loss (rescan.h) */
	uint64_t exit_ns;    /* UINT64_MAX while it lives */
	uint64_t mapping_ns; /* begin of the interval in which nr_mapped mappings were made */
	/* mappings were skipped in this time because there were too many; 0: none */
	uint64_t skipped_from_ns, skipped_until_ns;
	uint32_t nr_mapped;
	/* the same for new names */
	uint32_t nr_renamed;
	uint64_t renaming_ns;
	uint32_t nr_threads; /* 0: unknown, it began before opd looked */
	bool leader_exited;
	bool prunable; /* in the list of processes with something to forget */
	struct opd_process *next_prunable;
};

#define OPD_PROCESSES_MAX 131072 /* the samples of further processes are filed under no-process */
/*
 * Mappings that are taken per process and interval. A process with n times as many in its address
 * space has n + 1 counted for each. Skipped mappings leave the process in doubt.
 */
#define OPD_PROCESS_MAPS_MAX 1024u
#define OPD_PROCESS_MAPS_NS  (100u * OP_NS_PER_MS)
/* New names that are taken per process and such an interval. After that the last one stays. */
#define OPD_PROCESS_NAMES_MAX 16u
#define OPD_CHANGE_SLOTS     1024u /* pids that share a slot count as changed together */

struct opd_processes {
	struct op_htable by_pid;
	bool keeps_names;                   /* of all processes; else of kernel threads only */
	bool by_name, by_user;              /* what divides an application (program.h) */
	uint64_t nr_names_skipped;          /* of processes that changed theirs too often */
	struct opd_jit *jit;                /* of the caller; NULL: no JIT code is looked for */
	struct opd_build_ids *build_ids;    /* of the caller; NULL: build-ids are not queried */
	uint32_t changes[OPD_CHANGE_SLOTS]; /* by pid, see opd_process_changes */
	struct opd_mount_views mount_views;
	struct opd_stat_cache stat_cache;
	uint64_t horizon_ns;          /* no older sample will come */
	struct opd_process *prunable; /* those that end, or have an older address space */
	uint64_t nr_freed;            /* address spaces; many, where pids are soon used again */
	/* bounds of the loss of side-band records; 0: nothing is in doubt any more */
	uint64_t lost_from_ns, lost_until_ns;
	struct opd_mapset_account account;
	uint64_t nr_dropped; /* processes without room */
	uint32_t round;      /* number of the last opd_processes_visit_cookies */
};

void opd_processes_free(struct opd_processes *processes);

/*
 * False for pid 0, which stands for all processes outside of opd's pid namespace, and for -1, a
 * process that is being reaped.
 */
static inline bool opd_is_pid(uint32_t pid)
{
	return pid && pid != UINT32_MAX;
}

/* Finds a process, living, or ended and not yet forgotten. NULL: unknown. */
struct opd_process *opd_process_find(const struct opd_processes *processes, uint32_t pid) OP_NONNULL;

static inline bool opd_processes_are_full(const struct opd_processes *processes)
{
	return processes->by_pid.nr_entries >= OPD_PROCESSES_MAX;
}

/*
 * Calls `visit` for the cookie of every application and every mapping, past ones included;
 * OP_DCOOKIE_NONE among them.
 */
void opd_processes_visit_cookies(struct opd_processes *processes, void (*visit)(uint64_t cookie, void *arg), void *arg)
	OP_NONNULL_ARGS(1, 2);

/*
 * Finds a process. Adds an unknown one, with an empty address space that holds since from_ns. 0;
 * -ENOSPC: too many processes, which is counted; -ENOMEM.
 */
int opd_process_get(struct opd_processes *processes, uint32_t pid, uint64_t from_ns,
		    struct opd_process **ret_process) OP_NONNULL OP_MUST_CHECK;

/*
 * A number that changes with every change of the process's address spaces. While it is the same, a
 * result from the newest address space, in a mapping that still holds, stays valid.
 */
static inline uint32_t opd_process_changes(const struct opd_processes *processes, uint32_t pid)
{
	return processes->changes[pid % OPD_CHANGE_SLOTS];
}

/*
 * The records of the side band. A fork of an unknown parent gives a process without mappings. 0,
 * -ENOMEM, or -ENOSPC: too many processes.
 */
int opd_process_fork(struct opd_processes *processes, uint32_t parent_pid, uint32_t pid, uint64_t time_ns) OP_NONNULL OP_MUST_CHECK;
int opd_process_exec(struct opd_processes *processes, uint32_t pid, const char *comm, uint64_t time_ns) OP_NONNULL OP_MUST_CHECK;
int opd_process_map(struct opd_processes *processes, uint32_t pid, struct opd_mm *mm,
		    const struct opd_mapping *mapping) OP_NONNULL OP_MUST_CHECK;

/*
 * Records of another machine may not tell an exec from another change of the name. The first name
 * of a process is the one that it had before opd looked. A later one may be that of a new program.
 * When a mapping shows that (opd_app_shows_exec), opd_process_ran begins the address space of the
 * program, at the time of its name. 0 or -errno as above.
 */
int opd_process_renamed(struct opd_processes *processes, uint32_t pid, const char *comm, uint64_t time_ns) OP_NONNULL OP_MUST_CHECK;
int opd_process_ran(struct opd_processes *processes, struct opd_process *process, struct opd_mm *mm) OP_NONNULL OP_MUST_CHECK;

/*
 * The main thread has a new name, without an exec. Taken for kernel threads, and for all processes
 * with keeps_names. 0 or -ENOMEM.
 */
int opd_process_named(struct opd_processes *processes, uint32_t pid, const char *comm, uint64_t time_ns) OP_NONNULL OP_MUST_CHECK;

void opd_process_thread_began(struct opd_processes *processes, uint32_t pid) OP_NONNULL;
void opd_process_thread_ended(struct opd_processes *processes, uint32_t pid, uint32_t tid, uint64_t time_ns) OP_NONNULL;

/* The address space that the process had at that time, or its oldest known one. */
struct opd_mm *opd_process_mm_at(const struct opd_process *process, uint64_t time_ns) OP_NONNULL;

/*
 * False when the process makes too many mappings at once: the mapping is counted as dropped, and
 * the process is in doubt.
 */
bool opd_process_may_map(struct opd_processes *processes, struct opd_process *process, uint64_t time_ns) OP_NONNULL OP_MUST_CHECK;

/* Records of this time were lost: every process is in doubt until it is read from /proc. */
void opd_processes_lost(struct opd_processes *processes, uint64_t from_ns, uint64_t until_ns) OP_NONNULL;

/*
 * Records were lost since the process was last certain: it may have ended, or run another program.
 */
static inline bool opd_process_missed_records(const struct opd_processes *processes, const struct opd_process *process)
{
	return process->sure_ns < processes->lost_until_ns;
}

static inline bool opd_process_is_doubtful(const struct opd_processes *processes, const struct opd_process *process)
{
	return opd_process_missed_records(processes, process) || process->sure_ns < process->skipped_until_ns;
}

/* The time from which a process in doubt may have changed without a record. */
static inline uint64_t opd_process_doubtful_from_ns(const struct opd_processes *processes, const struct opd_process *process)
{
	uint64_t from_ns = opd_process_missed_records(processes, process) ? processes->lost_from_ns : process->skipped_from_ns;

	return op_max_u64(process->sure_ns, from_ns);
}

/*
 * /proc shows that the pid has another process, or runs another program, since from_ns: begins an
 * empty address space. 0 or -ENOMEM.
 */
int opd_process_replaced(struct opd_processes *processes, struct opd_process *process, uint64_t from_ns) OP_NONNULL OP_MUST_CHECK;

/* 0: the process exists; else a time by which it had ended. */
typedef uint64_t (*opd_gone_check)(uint32_t pid);

/*
 * Called after a loss, when /proc was listed at listed_ns. Ends processes that were not listed and
 * are gone. The numbers of threads are unknown from now on.
 */
void opd_processes_resync(struct opd_processes *processes, uint64_t listed_ns, opd_gone_check gone_ns) OP_NONNULL;

/*
 * Forgets processes and address spaces that ended before horizon_ns. Looks only at those in the
 * list. gone_ns decides for a process whose main thread ended and whose number of threads is
 * unknown.
 */
void opd_processes_prune(struct opd_processes *processes, uint64_t horizon_ns, opd_gone_check gone_ns) OP_NONNULL;

/* Adds a name that holds from then on. Nothing changes when it holds already. 0 or -ENOMEM. */
int opd_name_add(struct opd_name **newest, const char *comm, uint64_t from_ns) OP_NONNULL OP_MUST_CHECK;

/* The name at that time, or the oldest known one; NULL: none is known. */
struct opd_name *opd_name_at(struct opd_name *newest, uint64_t time_ns) OP_MUST_CHECK;

#endif
