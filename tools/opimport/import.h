/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Import: records that were taken elsewhere (libop/perf/data.h) through memory ring pairs, one for each CPU, into the same code
 * as live samples.
 *
 * Records come in the order in which perf read its rings, not in that of time. They are held back until all that is older has
 * come, which a finished round says, and OPI_IMPORT_LATE_NS more; then the side band goes first, by time, and the samples follow. However long a round is, it is not cut:
 * what memory has no room for waits in a file without a name in the session directory (tools/opimport/backlog.h). A file without rounds is one round. The
 * files of a directory, which are read side by side by time, have a round after every round_records. What comes later than its round is
 * resolved by its own time all the same, and counted (nr_late); where that cannot put it right any more, it is told (nr_unordered).
 *
 * One thread.
 */
#ifndef OPI_IMPORT_H
#define OPI_IMPORT_H

#include "daemon/pipeline/drain.h"
#include "libop/base/compiler.h"
#include "libop/events/event_list.h"
#include "libop/control/ibs_stats.h"
#include "libop/session/ledger.h"
#include "libop/perf/data.h"
#include "libop/base/stop.h"

#define OPI_IMPORT_CPUS_MAX 4096u

struct opi_import;

struct opi_import_config {
	const struct op_perf_features *features; /* of the file; may become more until the first sample comes */
	const struct op_stop *stop; /* ends opi_import_take and _finish with -EINTR; the caller's. NULL: nothing does */
	int session_fd;      /* a session directory (op_session_open), whose samples/current is filled; the caller's */
	const char *vmlinux; /* what the kernel's text is filed as; NULL: as perf names it */
	bool separate_lib, separate_kernel, separate_thread, separate_cpu;
	size_t max_open, max_images;
	uint64_t max_files;       /* sample files; what is beyond is kept less apart (daemon/count/file_limit.h), as in a session of the daemon. 0: no limit */
	uint64_t keep_free_bytes; /* of the file system: likewise, as long as it has no more room. 0: none */
	size_t round_records; /* for rings, end a round; 0: the file says where one ends */
	size_t memory_bytes;  /* of records that wait, and of their side band; more is in a file. 0: 64 MiB */
};

#define OPI_IMPORT_ROUND_RECORDS (1u << 19) /* of a directory */

/*
 * How much longer than for its round a record is waited for. The kernel takes the time of a record before it has a place in the ring; a virtual CPU that
 * stands still in between puts it there rounds later (seen: 22 us with rings of a page, whose rounds are as short).
 */
#define OPI_IMPORT_LATE_NS 100000000u

struct opi_import_counts {
	uint64_t nr_late; /* records that came when younger ones had been counted, and */
	uint64_t nr_unordered; /* of these those that came too late: samples may be on wrong images */
	uint64_t nr_unannounced; /* samples of events that were told when samples had been counted, and */
	uint64_t nr_unknown; /* of events that the file does not have: on no event's account */
	uint64_t nr_lost_unknown; /* what records of the kernel or of perf say that events of these two kinds have lost */
	size_t nr_undivided; /* events of IBS whose samples are counted, but not what they say */
	uint64_t sideband_records, sideband_bytes;
	size_t nr_cpus, nr_images;
	uint64_t nr_memory_dropped;
	uint64_t nr_merged;     /* samples of images that may have no file of their own, and */
	uint64_t nr_not_split;  /* of threads, processes and CPUs */
	uint64_t nr_calls; /* in callgraph files */
	uint64_t nr_lost_calls; /* not there, for want of room */
	uint64_t nr_bad_chains;
	uint64_t ibs[OP_NR_IBS_STATS];
};

/*
 * The events of a file as events of a session: the names as opi_import_name_event makes them, the period as count; behind them all
 * that IBS says on the CPU of the file, of as many samplers as the ledger of a session has room for: those behind are plain events, whose samples are counted and
 * nothing that they say. 0; -EINTR: `stop`, which may be NULL; -ENOMEM; the list is to be freed by op_event_list_free in any case.
 */
int opi_import_events(const struct op_perf_events *from, const struct op_perf_features *features, const struct op_stop *stop,
		      struct op_ibs_cpu *ret_cpu, struct op_event_list *ret_list) OP_NONNULL_ARGS(1, 2, 4, 5) OP_MUST_CHECK;

/* The CPU of the file. False: it does not say, or one without IBS; each record is then read by what its capability word implies. */
bool opi_import_find_cpu(const struct op_perf_features *features, struct op_ibs_cpu *ret_cpu) OP_NONNULL;

/*
 * One of them. A name has what a file name may have; everything else becomes '_'. An event without name is called what opd calls
 * it, else rCONFIG when it is a raw one, else type-TYPE-config-CONFIG. A frequency has no period: the count of a clock is then
 * 10^9 / frequency, that of another event 1.
 */
void opi_import_name_event(const struct op_perf_event *from, struct op_event *ret_event) OP_NONNULL;

/* 0, or -errno, and then nothing is left. Strings and descriptor must outlive the import. */
int opi_import_open(const struct opi_import_config *config, struct opi_import **ret_import) OP_NONNULL OP_MUST_CHECK;

/* The file's word on its kernel came after the opening: config.vmlinux is this, before the first sample has come. 0 or -ENOMEM. */
int opi_import_name_kernel(struct opi_import *import, const char *vmlinux) OP_NONNULL OP_MUST_CHECK;

/* Takes a record. `events` may grow until the first round that has a sample ends; samples of later ones are left out. 0; -errno: it cannot go on, for want of memory or descriptors. */
int opi_import_take(struct opi_import *import, const struct op_perf_events *events,
		    const struct op_perf_record *record) OP_NONNULL OP_MUST_CHECK;

/* All that was held back is counted, and the files are whole: sample files, the table of images, stats. 0 or -errno. */
int opi_import_finish(struct opi_import *import, const struct op_perf_events *events) OP_NONNULL OP_MUST_CHECK;

/* After opi_import_finish: how many events there are, the ledger of each, and the counts. */
size_t opi_import_nr_events(const struct opi_import *import) OP_NONNULL;
void opi_import_ledger(const struct opi_import *import, size_t index, struct op_ledger_event *ret_event) OP_NONNULL;
void opi_import_counts(const struct opi_import *import, struct opi_import_counts *ret_counts) OP_NONNULL;

/* How many events the file tells something else of now than when their samples began to be counted: what they are, or on which CPU. */
size_t opi_import_nr_outdated(const struct opi_import *import, const struct op_perf_events *events) OP_NONNULL;

/* NULL is allowed. */
void opi_import_close(struct opi_import *import);

#endif
