/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The pipeline from the rings to the sample files. opd, opimport, operf and the benchmarks use it
 * like this:
 *
 *   open the capture       opd_capture_open, opd_capture_open_tasks for some processes, or
 *                          opd_capture_open_memory for rings of its own
 *   opd_pipeline_open      everything behind the rings
 *   opd_ledger_open        the ledger of the session
 *   opd_visit_all          swaps, reads the side band and drains (visit.h); or, with rings of its
 *                          own, opd_sideband_drain and opd_drain_ring (drain.h)
 *   opd_count_flush        the last samples go to their files
 *   opd_ledger_write       the ledger and stats/
 *   opd_pipeline_close
 *
 * One thread at a time; in the daemon that is the sync thread.
 */
#ifndef OPD_PIPELINE_H
#define OPD_PIPELINE_H

#include "libop/base/compiler.h"
#include "libop/events/ibs.h"
#include "libop/perf/record.h"
#include "pipeline/capture/cpu_rings.h"
#include "pipeline/count/count.h"
#include "pipeline/count/session_files.h"
#include "pipeline/drive/arcs.h"
#include "pipeline/drive/record_source.h"
#include "pipeline/drive/interpreter_notes.h"
#include "pipeline/files/build_ids.h"
#include "pipeline/ledger/cookie_file.h"
#include "pipeline/ledger/ledger.h"
#include "pipeline/resolve/resolver.h"

/* The last resolved sample of the ring that is read. A hot loop repeats it with another time. */
struct opd_repeat {
	struct op_sample sample;
	struct opd_event *event; /* NULL: the next sample has to be resolved */
	uint32_t nr;             /* repetitions that are not in the resolver's counts yet */
};

struct opd_deep;
struct opd_notes;
struct opd_stacks;
struct opd_tables;
struct opd_waits;

struct opd_ibs {
	struct op_ibs_cpu cpu; /* the CPU model that took the samples */
	struct op_ibs_counts counts[OP_IBS_NR_KINDS];
};

struct opd_pipeline {
	struct opd_capture capture; /* opened and closed by the caller */
	struct opd_resolver resolver;
	struct opd_build_ids build_ids;
	struct opd_count count;
	struct opd_repeat repeat;
	struct opd_cookie_file cookie_file;
	struct opd_ledger ledger; /* opened and closed by the caller */
	struct opd_ibs ibs;
	struct opd_arcs arcs; /* callers of the last sample */
	struct opd_stacks *stacks; /* NULL: no event has stacks */
	struct opd_waits *waits; /* the caller's, one of the sources; NULL: waits are not sampled */
	struct opd_deep *deep; /* the caller's, one of the sources; NULL: no deep copies */
	struct opd_notes *notes; /* the caller's; NULL: no program adds to samples */
	struct opd_interpreters *interpreters; /* the caller's; NULL: they are not read */
	struct opd_interpreter_notes interpreter_notes;
	struct opd_record_sources sources; /* beside those that every pipeline has */
};

struct opd_pipeline_config {
	int session_fd;      /* the session directory; stays the caller's */
	const char *vmlinux; /* NULL: none */
	size_t max_images;
	/* records of another machine: this host's /proc and files say nothing about them */
	bool is_foreign;
	bool user_only; /* the kernel is not sampled */
	bool build_ids;      /* ask the kernel for the build-ids of images */
	/* stay the caller's; NULL: this process looks at files itself, which may hang */
	struct opd_lookers *lookers;
	bool separate_lib, separate_kernel, separate_thread, separate_cpu, separate_cgroup;
	bool separate_name, separate_user; /* by the name and the user of processes */
	uint64_t runtimes; /* whose functions have names: a bit for each enum op_runtime */
	/* stay the caller's, who tells them the images; NULL: only frame pointers are followed */
	struct opd_tables *tables;
	const struct op_event *events;            /* stay the caller's */
	size_t nr_events;
	/* stays the caller's; NULL: all images are wanted */
	const struct opd_image_filter *filter;
	struct opd_sync_hook sync; /* for replaced files; all zero: none */
	/* sample files that are open, and closed ones that are remembered */
	size_t max_open, max_closed;
	uint64_t max_files, max_bytes;            /* of the session; 0: no limit */
	uint64_t max_stack_bytes; /* of the stacks of a session; 0: no limit */
	/* the key that max_bytes comes from; NULL: SessionMaxUse */
	const char *bytes_of;
};

/*
 * Opens everything behind the rings. The cookies, files and nodes that the session has are known
 * afterwards. 0 or -errno; then nothing is open.
 */
int opd_pipeline_open(struct opd_pipeline *pipeline, const struct opd_pipeline_config *config) OP_NONNULL OP_MUST_CHECK;

/* Closes the sample files and frees everything behind the rings. Allowed on a zeroed pipeline. */
void opd_pipeline_close(struct opd_pipeline *pipeline) OP_NONNULL;

#endif
