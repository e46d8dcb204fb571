/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Count: adds a resolved sample to its sample file. There is one file per (application, image,
 * event, class). --separate decides which samples share a file:
 *
 *   none      {root}IMAGE/{dep}/{root}IMAGE, kernel samples under the kernel's own image
 *   library   user samples under {root}APP/{dep}/...
 *   kernel    kernel samples under their application as well; implies library
 *   thread    one file per thread; cpu: one per CPU
 *   process-name, user
 *             the application of a file is a program (pipeline/resolve/program.h); implies kernel
 *   cgroup    the samples of each cgroup a second time below cgroup/; a reader that does not know
 *             cgroups reads the ordinary files only
 *
 * A session with too many files separates new samples less (file_limit.h). The image filter rejects
 * samples of unwanted images: they have no file and are booked as filtered. It rejects a call when
 * it would reject a sample of the caller or of the callee.
 *
 * Calls (pipeline/drive/arcs.h) are counted in callgraph files, IMAGE/{dep}/CALLER/{cg}/CALLEE,
 * one for each pair of images. The application, the event and the class are those of a sample in
 * the caller. Calls are not in the ledger.
 *
 * Anonymous regions are filed under their application in every mode. The memory view
 * (libop/session/memory_view.h) has files of its own below mem/, by application and image only.
 *
 * Sync thread only.
 */
#ifndef OPD_COUNT_H
#define OPD_COUNT_H

#include "libop/base/compiler.h"
#include "pipeline/count/state.h"

/* open sample files are mappings, not descriptors: well below vm.max_map_count */
#define OPD_MAX_OPEN_FILES 4096

/* max_open for a value of MaxOpenFiles=; 0 leaves it to opd. */
static inline size_t opd_count_max_open(uint64_t configured)
{
	return configured ? configured : OPD_MAX_OPEN_FILES;
}

/* An attributed sample on its way to its file. */
struct opd_counted {
	const struct opd_resolved *resolved;
	struct opd_event *account; /* books it as stored, filtered or lost */
	uint32_t event;            /* index of the event */
	uint32_t amount;           /* 1 for a sample */
	uint32_t pid, tid, cpu;
	uint64_t time_ns;
	uint64_t cgroup_id; /* used with count.cgroups only */
};

/* Counts one sample. It is booked by one of the next calls, at the latest by opd_count_flush. */
void opd_count_sample(struct opd_count *count, const struct opd_counted *counted) OP_NONNULL;

/* Counts one call, from the return address in `counted` to `callee`, the frame inside it. */
void opd_count_call(struct opd_count *count, const struct opd_counted *counted, const struct opd_resolved *callee) OP_NONNULL;

/* Whether two times are near enough for samples of one entry. */
static inline bool opd_count_is_near(const struct opd_count *count, uint64_t first_ns, uint64_t time_ns)
{
	return op_likely(!count->apart_ns) || time_ns - first_ns < count->apart_ns;
}

/*
 * Counts the last sample again, for one that differs in its time alone. False: the last sample is
 * in its file already, or of another time, and this one must be counted as any other.
 */
static inline bool opd_count_again(struct opd_count *count, uint64_t time_ns)
{
	if (!count->nr_waiting || !opd_count_is_near(count, count->waiting[count->nr_waiting - 1].time_ns, time_ns))
		return false;
	count->waiting[count->nr_waiting - 1].amount++;
	return true;
}

/* Hands all waiting samples to the sinks, first to the sample files, which book them. */
void opd_count_flush(struct opd_count *count) OP_NONNULL;

/* Tells the sinks that all rings were read (sink.h). Flushes first. */
void opd_count_end_turn(struct opd_count *count, uint64_t now_ns, uint64_t horizon_ns) OP_NONNULL;

/*
 * The sample files as a sink: brings samples into their files and books them. Many at once are
 * cheaper: files and their nodes are spread over the memory, and the waits for them overlap.
 */
void opd_files_take(void *host, struct opd_keyed_sample *samples, size_t nr) OP_NONNULL;

/*
 * Names an image in the session, before a file has its dcookie. Beyond the limits *cookie becomes
 * the application of a program, or else the overflow image. 0 or -ENOMEM.
 */
int opd_count_in(const struct opd_count *count, uint64_t *cookie) OP_NONNULL OP_MUST_CHECK;

/* Under which loss a sample is booked that could not be stored. */
enum op_loss opd_loss_of(int err);

#endif
