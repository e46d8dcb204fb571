/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The ledger: where every sample went.
 *
 *   taken    = received + lost_kernel
 *   received = stored + filtered + sum of lost_<reason>
 *
 * What the user asked to leave out (filtered: opcontrol --image) is no loss.
 *
 * Both hold at any quiet moment for every event. The structs are what crosses the control socket: fixed width, no pointers.
 */
#ifndef OP_LEDGER_H
#define OP_LEDGER_H

#include "libop/base/compiler.h"
#include "libop/events/event.h"
#include "libop/base/text.h"

/* Why a sample that was received could not be stored: name (lost_<name> in every output) and meaning. */
#define OP_LOSS_REASONS(X) \
	X(undecodable, "the record could not be decoded") \
	X(no_space, "no space on the file system of the session") \
	X(too_many_files, "no descriptor free for another sample file: raise LimitNOFILE= or ulimit -n") \
	X(io_error, "the sample file could not be opened or written, or has lost what it had") \
	X(no_memory, "no memory")

enum op_loss {
#define X(name, meaning) OP_LOSS_##name,
	OP_LOSS_REASONS(X)
#undef X
	OP_NR_LOSS,
};

/* "no_space" ... and the meaning, from the table above. */
const char *op_loss_name(enum op_loss reason);
const char *op_loss_meaning(enum op_loss reason);

/* What a daemon that lives long holds back so that it does not grow without bound: name and meaning. Counted since it began. */
#define OP_BOUNDS(X) \
	X(too_many_images, "samples of images beyond MaxImages=, filed under too-many-images") \
	X(too_many_sample_files, "samples of images that have no file since the session has MaxSampleFiles=, filed under too-many-images") \
	X(classes_merged, "samples of threads, processes or CPUs that are not kept apart since the session has three quarters of MaxSampleFiles=") \
	X(images_refused, "new images that there was no room for in memory: filed under too-many-images") \
	X(images_forgotten, "images without samples that nothing led to any more") \
	X(files_forgotten, "sample files, closed and not in use, that are found by name when they are needed again") \
	X(mappings_dropped, "mappings of processes that have too many") \
	X(processes_dropped, "processes that there was no room for: filed under no-process") \
	X(places_dropped, "containers and chroots that there was no room for: their mounts are read again, or paths are filed as the process sees them") \
	X(memory_dropped, "facts for opreport --mem that there was no room for, or whose file failed") \
	X(cgroups_forgotten, "cgroups that were forgotten to make room; those that are there are found again") \
	X(cgroup_slots_taken_back, "cgroups that had no samples lately, whose files are found by name when they have some") \
	X(dcookie_errors, "times that the dcookie table could not be written; it is tried again") \
	X(dcookie_lines_damaged, "lines of the dcookie table that were passed over at the start") \
	X(sessions_not_written, "sessions that were closed and could not be written to the disk; it is tried again")

enum op_bound {
#define X(name, meaning) OP_BOUND_##name,
	OP_BOUNDS(X)
#undef X
	OP_NR_BOUNDS,
};

/* "too_many_images" ... and the meaning, from the table above. */
const char *op_bound_name(enum op_bound bound);
const char *op_bound_meaning(enum op_bound bound);

struct op_ledger_event {
	char name[OP_EVENT_NAME_BYTES];
	uint64_t count;		/* sampling period */
	uint32_t unit_mask;
	uint32_t every_event;	/* 1: taken is the event's own count; 0: received + lost_kernel by definition */
	/*
	 * enum op_event_role. The samples of a SAMPLER are stored when they have been decoded; what they said is in the rows of
	 * the DERIVED events, which count in units of their own (op_ibs_event_unit).
	 */
	uint32_t role;
	uint32_t padding;
	uint64_t taken;
	uint64_t received;
	uint64_t stored;
	uint64_t unattributed;	/* part of stored: filed under a pseudo-image */
	uint64_t filtered;	/* of images that were not asked for (opcontrol --image) */
	uint64_t lost_kernel;	/* rings full, as the kernel counts it */
	uint64_t lost[OP_NR_LOSS];
	/*
	 * taken - received - lost_kernel: on their way in the rings. At a quiet moment: what the kernel counted and took no sample
	 * of, as it does with a few page faults in 10^6 (6.18; every page-fault event on the CPU misses the same ones).
	 */
	uint64_t outstanding;
	uint64_t throttled_ns;	/* time without samples, from THROTTLE to UNTHROTTLE, summed over CPUs */
	uint64_t nr_throttles;
};

struct op_ledger_cpu {
	uint32_t cpu;
	uint32_t online;
	uint64_t swaps;
	uint64_t swap_wait_ns;	   /* time asleep in swaps */
	uint64_t swap_longest_ns;  /* in one swap */
	uint64_t bytes_read;	   /* from the ring pair */
	uint64_t records_read;
	uint64_t turn_bytes, turn_records;	     /* of that after the last swap */
	uint64_t turn_most_bytes, turn_most_records; /* after the swap with the most of them */
	uint64_t sideband_bytes;
	uint64_t sideband_lost;	   /* side-band records that the kernel dropped */
	uint64_t late;		   /* samples that were committed after a swap to the ring that was left, and read a turn later (op_ring_pair_is_late) */
	uint64_t damaged;	   /* times that lengths in a ring made no sense and what was there was passed over */
	uint64_t received;
	uint64_t lost_kernel;
	uint64_t lost[OP_NR_LOSS];
	uint64_t throttled_ns;
};

/* Sum of all lost[]. */
uint64_t op_ledger_lost(const struct op_ledger_event *event) OP_NONNULL;

/*
 * The share of what was wanted that is lost, from 0 to 1; above OP_LOSS_TOLERATED the user is warned. What the kernel dropped is taken to be like the rest: as much of it
 * would have been filtered.
 */
#define OP_LOSS_TOLERATED 0.0001
double op_ledger_loss_share(uint64_t received, uint64_t filtered, uint64_t lost_kernel, uint64_t lost);

/* True when what was received is stored, filtered or lost, to the last one. */
bool op_ledger_adds_up(const struct op_ledger_event *event) OP_NONNULL;

/* True when both lines hold. They need not while samples are on their way: ask when profiling is stopped, or after a dump. */
bool op_ledger_balanced(const struct op_ledger_event *event) OP_NONNULL;

#endif
