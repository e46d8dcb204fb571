/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The ledger: where every sample went.
 *
 *   taken    = received + lost_kernel
 *   received = stored + filtered + sum of lost_<reason>
 *
 * filtered: samples of images that the user leaves out (opcontrol --image); they are no loss. Both
 * lines hold at any quiet moment for every event. For STACKS also
 *
 *   received = sum of end_<end> + filtered + sum of lost_<reason>
 *
 * The structs cross the control socket: fixed width, no pointers.
 *
 * A new loss reason is a line in OP_LOSS_REASONS, and a case in arc_stat_of of
 * pipeline/count/count.c. A new limit that drops data is a line in OP_BOUNDS. Both change the
 * status, so OP_CONTROL_VERSION (libop/control/protocol.h) goes up by one.
 */
#ifndef OP_LEDGER_H
#define OP_LEDGER_H

#include "libop/base/compiler.h"
#include "libop/events/event.h"
#include "libop/base/text.h"
#include "libop/session/stack_ends.h"

/* Why a received sample is not stored: name (lost_<name> in every output) and meaning. */
#define OP_LOSS_REASONS(X) \
	X(undecodable, "the record could not be decoded") \
	X(no_space, "no space on the file system of the session") \
	X(too_many_files, "no descriptor free for another sample file: raise LimitNOFILE= or ulimit -n") \
	X(file_limit, "a file may not have as many bytes: raise LimitFSIZE= or ulimit -f") \
	X(io_error, "the sample file could not be opened or written, or samples in it are gone") \
	X(no_memory, "no memory")

enum op_loss {
#define X(name, meaning) OP_LOSS_##name,
	OP_LOSS_REASONS(X)
#undef X
	OP_NR_LOSS,
};

const char *op_loss_name(enum op_loss reason);
const char *op_loss_meaning(enum op_loss reason);

/*
 * Limits of the daemon that drop or merge data, with a counter for each since the start: name and
 * meaning. Without the limits the daemon would grow without end.
 */
#define OP_BOUNDS(X) \
	X(too_many_images, "samples of images beyond MaxImages=, filed under too-many-images") \
	X(too_many_sample_files, \
	  "samples of images that have no file since the session has MaxSampleFiles=, filed under too-many-images") \
	X(classes_merged, \
	  "samples whose thread, process, process name, user or CPU is not kept, since the session has three quarters of " \
	  "MaxSampleFiles=") \
	X(images_refused, "new images without room in memory, filed under too-many-images") \
	X(images_forgotten, "images without samples and without mappings, forgotten") \
	X(files_forgotten, "sample files that were closed and forgotten; they are found by name when they are needed again") \
	X(mappings_dropped, "mappings of processes with too many mappings") \
	X(processes_dropped, "processes without room in memory, filed under no-process") \
	X(places_dropped, \
	  "containers and chroots without room in memory: their mounts are read again, or paths stay those of the process") \
	X(looks_unanswered, \
	  "questions about files of processes without an answer, because a file system hung; the files stay unknown") \
	X(helpers_ended, "helper processes that ended by themselves, or were killed; others take their place") \
	X(memory_dropped, "facts for opreport --mem without room, or whose file failed") \
	X(cgroups_forgotten, "cgroups that were forgotten to make room; those that still exist are found again") \
	X(cgroup_slots_taken_back, "cgroups without recent samples that were forgotten; their files are found by name") \
	X(programs_refused, \
	  "samples whose process name or user is not kept, since the session has a quarter of MaxImages= of them") \
	X(process_names_skipped, "new names of processes that change theirs too often; the samples have the name before") \
	X(tables_crashed, "images whose row table opd-tables could not make, because it crashed; stacks end there") \
	X(tables_timed_out, "images whose row table opd-tables did not make in time; stacks end there") \
	X(tables_uncached, "row tables that TableDir= did not take; they are made again after the next start") \
	X(dcookie_errors, "times that the dcookie table could not be written; opd tries again") \
	X(dcookie_lines_damaged, "damaged lines of the dcookie table, skipped at the start") \
	X(sessions_not_written, "closed sessions that could not be written to the disk; opd tries again") \
	X(minutes_lost, "minutes of the timeline that could not be written; their samples are in the sample files") \
	X(minutes_lengthened, "minutes of the timeline that became longer, because the disk was slow")

enum op_bound {
#define X(name, meaning) OP_BOUND_##name,
	OP_BOUNDS(X)
#undef X
	OP_NR_BOUNDS,
};

const char *op_bound_name(enum op_bound bound);
const char *op_bound_meaning(enum op_bound bound);

struct op_ledger_event {
	char name[OP_EVENT_NAME_BYTES];
	uint64_t count;		/* sampling period */
	uint32_t unit_mask;
	/* 1: taken is the event's own count; 0: received + lost_kernel by definition */
	uint32_t every_event;
	/*
	 * enum op_event_role. The samples of a SAMPLER are stored when they are decoded. Their
	 * contents are in the rows of the DERIVED events, which count in units of their own
	 * (op_ibs_event_unit).
	 */
	uint32_t role;
	uint32_t padding;
	uint64_t taken;
	uint64_t received;
	uint64_t stored;
	uint64_t unattributed;	/* part of stored: filed under a pseudo-image */
	uint64_t filtered;	/* of images that opcontrol --image does not name */
	uint64_t lost_kernel;	/* rings full, as the kernel counts it */
	uint64_t lost[OP_NR_LOSS];
	/*
	 * taken - received - lost_kernel: samples that are still in the rings. At a quiet moment:
	 * events that the kernel counted without a sample, as a few page faults in 10^6 (Linux
	 * 6.18; every page-fault event of the CPU misses the same ones).
	 */
	uint64_t outstanding;
	/* time without samples, from THROTTLE to UNTHROTTLE, summed over CPUs */
	uint64_t throttled_ns;
	uint64_t nr_throttles;
	/*
	 * Time in which the event was to be counted, and in which a counter had it, summed over
	 * CPUs. counted_ns is less if there are more events than counters, which take turns then.
	 * 0: not known, as of events of tasks.
	 */
	uint64_t enabled_ns, counted_ns;
	/* how the walks of its stacks ended; without stacks: 0 */
	uint64_t ends[OP_NR_STACK_ENDS];
};

struct op_ledger_cpu {
	uint32_t cpu;
	uint32_t online;
	uint64_t swaps;
	uint64_t swap_wait_ns;	   /* time asleep in swaps */
	uint64_t swap_longest_ns;  /* in one swap */
	uint64_t bytes_read;	   /* from the ring pair */
	uint64_t records_read;
	uint64_t turn_bytes, turn_records;	     /* read after the last swap */
	uint64_t turn_most_bytes, turn_most_records; /* read after one swap, at most */
	uint64_t sideband_bytes;
	uint64_t sideband_lost;	   /* side-band records that the kernel dropped */
	/*
	 * samples committed to the old ring after a swap, and read after the next swap
	 * (op_ring_pair_is_late)
	 */
	uint64_t late;
	/* times that the rest of a ring was skipped for a length that makes no sense */
	uint64_t damaged;
	uint64_t received;
	uint64_t lost_kernel;
	uint64_t lost[OP_NR_LOSS];
	uint64_t throttled_ns;
};

/*
 * Samples with a stack, and those of them whose stack is complete. Samples that found no room in
 * the store count as not complete.
 */
uint64_t op_ledger_stacks(const struct op_ledger_event *event, uint64_t *ret_nr_complete) OP_NONNULL;

/* The part of its time in which the event was counted; 1 if the times are not known. */
double op_ledger_counted_share(const struct op_ledger_event *event) OP_NONNULL;

/* Below this share the user is warned. */
#define OP_COUNTED_NEEDED 0.99

/* Sum of all lost[]. */
uint64_t op_ledger_lost(const struct op_ledger_event *event) OP_NONNULL;

/*
 * The share of the wanted samples that is lost, from 0 to 1. Above OP_LOSS_TOLERATED the user is
 * warned. Assumes that the same share of the samples that the kernel dropped would have been
 * filtered.
 */
#define OP_LOSS_TOLERATED 0.0001
double op_ledger_loss_share(uint64_t received, uint64_t filtered, uint64_t lost_kernel, uint64_t lost);

/*
 * Whether every received sample is stored, filtered or lost. Not so while samples are on their way.
 */
bool op_ledger_adds_up(const struct op_ledger_event *event) OP_NONNULL;

#endif
