/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Import: feeds the records of a recording (libop/perf/data.h) to the pipeline, through one memory
 * ring pair for each CPU. One thread.
 *
 * The file has records in the order in which perf read its rings, not in the order of time. perf
 * marks the end of a round over all rings. A record waits (backlog.h) until the round after its own
 * ends, and OPI_IMPORT_LATE_NS longer. Then the side band is taken first, by time, and the samples
 * follow. A file without rounds is one round. For the files of a directory, which are read in the
 * order of time, a round ends after every round_records. A record that comes later is resolved by
 * its own time, and counted in nr_late; if it came too late for that, it is counted in
 * nr_unordered.
 */
#ifndef OPI_IMPORT_H
#define OPI_IMPORT_H

#include "libop/base/compiler.h"
#include "libop/control/ibs_stats.h"
#include "libop/events/event_list.h"
#include "libop/perf/data.h"
#include "libop/process/stop.h"
#include "libop/session/ledger.h"
#include "pipeline/drive/drain.h"
#include "tools/opimport/stacks.h"

struct opi_import;

struct opi_import_config {
	/* All pointers and the descriptor stay the caller's. */
	/* of the file; more may be added until the first sample */
	const struct op_perf_features *features;
	/* ends opi_import_take and _finish with -EINTR; NULL: nothing does */
	const struct op_stop *stop;
	/* a session directory (op_session_open), whose samples/current is filled */
	int session_fd;
	/* knows more of the executables than the file (witness.h); NULL: nobody does */
	const struct opd_app_witness *witness;
	/* the image of the kernel; NULL: as perf names it */
	const char *vmlinux;
	struct opi_stacks_config stacks; /* its stop is the one above */
	bool separate_lib, separate_kernel, separate_thread, separate_cpu, separate_name;
	size_t max_open, max_images;
	uint64_t max_files;       /* of sample files (pipeline/count/file_limit.h); 0: no limit */
	uint64_t keep_free_bytes; /* of the file system; 0: none */
	uint64_t max_stack_bytes; /* of the stacks; 0: no limit */
	uint64_t recorded_ns;     /* wall clock at the last sample, about: for the timeline */
	size_t round_records;     /* for rings; they end a round. 0: the file marks the ends */
	/* for waiting records, and again for their side band; more goes to a file. 0: 64 MiB */
	size_t memory_bytes;
};

#define OPI_IMPORT_ROUND_RECORDS (1u << 19) /* of a directory */

/*
 * How long a record waits beyond its round. The kernel reads the clock before it reserves room in
 * the ring. A virtual CPU that stops in between writes the record rounds later (seen: 22 us, with
 * rings of one page and rounds as short).
 */
#define OPI_IMPORT_LATE_NS 100000000u

struct opi_import_counts {
	int timeline_error;       /* why the session has no timeline; 0: it has one */
	uint64_t nr_late;         /* records that came after younger ones were counted */
	/* those of them that came too late: samples may be on wrong images */
	uint64_t nr_unordered;
	/* samples, not counted, of events that the file lists behind the first samples */
	uint64_t nr_unannounced;
	uint64_t nr_unknown;      /* samples, not counted, of events that the file does not list */
	uint64_t nr_lost_unknown; /* samples that such events lost when they were recorded */
	size_t nr_undivided;      /* events of IBS without derived events */
	uint64_t sideband_records, sideband_bytes;
	size_t nr_cpus, nr_images;
	uint64_t nr_memory_dropped;
	/* samples of images that share a file, by the limits of the session */
	uint64_t nr_merged;
	/* samples not separated by thread, process or CPU, by the same limits */
	uint64_t nr_not_split;
	uint64_t nr_calls;      /* in callgraph files */
	uint64_t nr_lost_calls; /* without room in callgraph files */
	uint64_t nr_bad_chains;
	uint64_t nr_tables, nr_no_table; /* images whose row table was made, and was not */
	uint64_t ibs[OP_NR_IBS_STATS];
};

/* Begins an import, ended with opi_import_close. 0 or -errno. */
int opi_import_open(const struct opi_import_config *config, struct opi_import **ret_import) OP_NONNULL OP_MUST_CHECK;

/* Sets config.vmlinux to the kernel that runs here, before the first sample. 0 or -ENOMEM. */
int opi_import_name_kernel(struct opi_import *import, const char *vmlinux) OP_NONNULL OP_MUST_CHECK;

/*
 * Takes a record. `events` may grow until the end of the first round that has a sample; samples of
 * events that come later are left out. 0; -errno: no memory, no descriptors, or the disk failed.
 */
int opi_import_take(struct opi_import *import, const struct op_perf_events *events,
		    const struct op_perf_record *record) OP_NONNULL OP_MUST_CHECK;

/* Counts the waiting records, and completes the session. 0 or -errno. */
int opi_import_finish(struct opi_import *import, const struct op_perf_events *events) OP_NONNULL OP_MUST_CHECK;

/* After opi_import_finish: the number of events, the ledger of each, and the counts. */
size_t opi_import_nr_events(const struct opi_import *import) OP_NONNULL;
void opi_import_ledger(const struct opi_import *import, size_t index, struct op_ledger_event *ret_event) OP_NONNULL;
/* Whether the event is counted by values that samples of its group read. */
bool opi_import_is_read(const struct opi_import *import, size_t index) OP_NONNULL;
void opi_import_counts(const struct opi_import *import, struct opi_import_counts *ret_counts) OP_NONNULL;

/* How many events the file described in another way behind their first samples. */
size_t opi_import_nr_outdated(const struct opi_import *import, const struct op_perf_events *events) OP_NONNULL;

/* NULL is allowed. */
void opi_import_close(struct opi_import *import);

#endif
