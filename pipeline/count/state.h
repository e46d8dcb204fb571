/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The state of counting, for the files of this room. Sync thread only. */
#ifndef OPD_COUNT_STATE_H
#define OPD_COUNT_STATE_H

#include "libop/base/compiler.h"
#include "libop/base/htable.h"
#include "libop/control/arc_stats.h"
#include "libop/control/daemonrc.h"
#include "libop/events/event.h"
#include "libop/odb/odb.h"
#include "libop/session/ledger.h"
#include "pipeline/count/file_limit.h"
#include "pipeline/count/sink.h"
#include "pipeline/ledger/cookie_file.h"
#include "pipeline/resolve/resolver.h"

struct opd_event;
struct opd_image_filter;
struct opd_ledger;
struct op_stacks;

#define OPD_RECENT_SLOTS 4096u
#define OPD_WAITING_MAX  64u

/* Samples with equal keys are counted in one file. */
struct opd_file_key {
	uint64_t app_cookie, image_cookie;
	int32_t tgid, tid, cpu;
	uint16_t event;
	uint16_t cgroup_slot; /* OPD_CGROUP_NONE: all cgroups together */
	/* of a callgraph file, whose image is the caller; OP_DCOOKIE_NONE: a sample file */
	uint64_t callee_cookie;
};

static_assert(sizeof(struct opd_file_key) == 40, "compared for each sample, as a whole");
static_assert(OPD_CGROUP_SLOTS_MAX < UINT16_MAX && OP_EVENTS_MAX <= UINT16_MAX, "fields of the key");

/* Equal samples on their way to the sinks. */
struct opd_keyed_sample {
	struct opd_file_key key;
	uint64_t offset;  /* in the image, as in sample files */
	uint64_t time_ns; /* of the first of them, in the clock of the samples: op_now_ns() */
	struct opd_event *account;
	uint32_t amount;  /* samples; in the unit of the event where it has another one */
	uint16_t cgroup_slot; /* the stored samples are counted again in the file of this cgroup */
	uint16_t recent;      /* index of the first key in opd_count.recent */
	int error;            /* -errno when they cannot be stored */
	/*
	 * the last kind of file that the limits refused for them; OPD_FILE_OF_LAST: none
	 */
	enum opd_file_kind refused_kind;
	/* of a callgraph file. The amount is in the unit of the event, which may be cycles. */
	uint32_t nr_calls;
	bool unattributed;
	bool is_stored; /* in its sample file; false: filtered or lost, or no sample (sink.h) */
	bool is_plain;  /* the file is plain (struct opd_file) */
};

/* Files by last use. */
struct opd_file_list {
	struct opd_file *newest, *oldest;
	size_t nr;
};

/* The stacks of the current session (stacks.h). */
struct opd_stack_file {
	struct op_stacks *store; /* NULL: not open */
	uint64_t max_bytes;      /* 0: no limit */
	/* its counts when it was closed last: [0] samples, [1] microseconds */
	uint64_t totals[2];
	uint64_t last_ns;        /* of the last stack; 0: its pages were dropped since */
	uint64_t retry_ns;
	int error; /* of the last attempt to open */
	bool changed;
	uint64_t *jit_images; /* JIT code in the stacks of this session: cookies, sorted */
	size_t nr_jit_images, jit_capacity;
};

/*
 * What the program does with files that were replaced: it writes them to the disk when it has time.
 * The list is its own then.
 */
struct opd_sync_hook {
	/* NULL: nothing. opd writes them when it starts next. */
	void (*later)(void *host, struct op_odb_pending *pending);
	void *host; /* the argument of `later` */
};

struct opd_count {
	uint64_t apart_ns; /* equal samples so far apart in time are two entries; 0: none are */
	int session_fd; /* the session directory; the caller's */
	struct op_dcookie_table *table;
	struct opd_cookie_file *cookie_file; /* the caller's; NULL: the table is not kept */
	const struct op_event *events;
	size_t nr_events;
	struct opd_stack_file stacks;
	bool separate_lib, separate_kernel, separate_thread, separate_cpu;
	struct opd_cgroups *cgroups; /* NULL: not separated by cgroup */
	const struct opd_image_filter *filter; /* the caller's; NULL: all images are wanted */
	/* stored samples that disappeared are booked as lost here; the caller's; NULL: nowhere */
	struct opd_ledger *ledger;
	struct opd_sync_hook sync;
	double cpu_speed_mhz;
	/* application of anonymous regions whose application is unknown */
	uint64_t no_process_cookie;
	uint64_t now_ns;            /* set by the sync thread at each visit */
	struct op_htable files;
	struct opd_file_list open, closed;
	/* files of the last samples, by a part of their key */
	struct opd_file *recent[OPD_RECENT_SLOTS];
	struct opd_sinks sinks; /* opd_file_sinks_open begins it */
	struct opd_keyed_sample waiting[OPD_WAITING_MAX]; /* see opd_count_flush */
	size_t nr_waiting;
	struct opd_file_limit limit;
	size_t max_open;
	size_t max_closed;       /* closed files that are remembered */
	/* a changed file was forgotten, so the next dump writes everything; the dump clears it */
	bool forgot_changed;
	uint64_t nr_forgotten;   /* files */
	uint64_t nr_memory_nodes, nr_memory_dropped; /* of the memory view (memory_limit.h) */
	/* samples filed under the overflow image (op_dcookie_limit), as image or as application */
	uint64_t nr_too_many;
	/* samples of programs (pipeline/resolve/program.h) beyond their limit */
	uint64_t nr_unnamed;
	uint32_t nr_broken;      /* op_guard_nr_broken at the last opd_files_reopen_broken */
	uint64_t nr_damaged;     /* files that were no sample files and were put aside */
	/* objects of JIT code that were damaged when they were to be renewed */
	uint64_t nr_failed_objects;
	uint64_t arcs[OP_NR_ARC_STATS]; /* what became of calls */
	uint64_t dropped_nodes; /* nodes that were unpublished after an unclean stop */
};

struct opd_file {
	/* the fields before `link` are used for each sample: one cache line */
	struct opd_file_key key;
	struct op_odb *odb;      /* NULL: not open */
	uint64_t last_ns;        /* of the last sample; 0: it is in the dcookie table already */
	/* open, and adding a sample needs no other check: the fast path of count.c */
	bool is_plain;
	bool changed;
	bool used;       /* since opd_file_open last looked for a file to close */
	bool pages_dropped; /* op_odb_drop_pages was called, and it was not used since */
	struct op_hlink link;
	struct opd_file *newer, *older; /* among the open or the closed files */
	/* below the session directory; NULL until it was opened once */
	char *path;
	/* the limits of the session refuse it: its samples go to a file of a wider key */
	bool over_limit;
	uint32_t nr_memory_nodes;       /* its part of opd_count.nr_memory_nodes */
	/* sum of its counts, and its inode, when it was closed last */
	uint64_t total, inode;
	int error;                      /* of the last attempt to open */
	uint64_t retry_ns;
};

static_assert(sizeof(void *) < 8 || offsetof(struct opd_file, link) == OP_CACHE_LINE_BYTES, "one cache line");

/* The event is one of the memory view. */
static inline bool opd_is_of_memory(const struct opd_count *count, uint32_t event)
{
	return count->events[event].role == OP_EVENT_MEMORY;
}

/* The key is one of a callgraph file. */
static inline bool opd_is_of_calls(const struct opd_file_key *key)
{
	return key->callee_cookie != OP_DCOOKIE_NONE;
}

/* The application of a program; an application is its own. */
static inline uint64_t opd_application_of(const struct opd_count *count, uint64_t cookie)
{
	const struct op_image_id *id = &op_dcookie_row(count->table, cookie)->id;

	return op_dcookie_is_program(id) ? id->program_of : cookie;
}

/* The file has the samples of images beyond the limit of images. */
static inline bool opd_is_too_many(const struct opd_count *count, const struct opd_file_key *key)
{
	uint64_t overflow = op_dcookie_overflow(count->table);

	return overflow != OP_DCOOKIE_NONE && (key->image_cookie == overflow || key->app_cookie == overflow);
}

/* Compares field by field: a new key is in registers and need not go through the memory. */
static inline bool opd_same_file_key(const struct opd_file_key *a, const struct opd_file_key *b)
{
	return !((a->app_cookie ^ b->app_cookie) | (a->image_cookie ^ b->image_cookie) | (a->callee_cookie ^ b->callee_cookie) |
		 (uint32_t)(a->tgid ^ b->tgid) | (uint32_t)(a->tid ^ b->tid) | (uint32_t)(a->cpu ^ b->cpu) |
		 (uint32_t)(a->event ^ b->event) | (uint32_t)(a->cgroup_slot ^ b->cgroup_slot));
}

/* The slot of opd_count.recent for a key. */
static inline uint32_t opd_recent_index(const struct opd_file_key *key)
{
	uint32_t images = (uint32_t)(key->image_cookie + 7 * key->callee_cookie) * 0x9e3779b1u;
	uint32_t class = (uint32_t)key->tid ^ (uint32_t)key->event << 16 ^ (uint32_t)key->cpu << 24 ^
			 (uint32_t)key->cgroup_slot << 8;
	uint32_t mix = images ^ (uint32_t)key->app_cookie * 0x85ebca6bu ^ class * 0xc2b2ae35u;

	return mix / (UINT32_MAX / OPD_RECENT_SLOTS + 1);
}

static inline struct opd_file **opd_recent_of(struct opd_count *count, const struct opd_file_key *key)
{
	return &count->recent[opd_recent_index(key)];
}

#endif
