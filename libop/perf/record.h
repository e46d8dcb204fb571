/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * From the bytes of a perf record to a struct. Source: perf_event_open(2), <linux/perf_event.h>.
 *
 * All functions take a record whose header.size bytes are readable (op_ring_next promises that) and nothing else: lengths
 * inside are checked, and a record that does not fit is -EBADMSG. Strings and raw data are pointers into the record.
 */
#ifndef OP_RECORD_H
#define OP_RECORD_H

#include <linux/perf_event.h>

#include "libop/base/build_id.h"
#include "libop/base/compiler.h"

/* What opd asks for with every event; sample_id_all puts TID, TIME and IDENTIFIER at the end of other records as well. */
#define OP_SAMPLE_TYPE (PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME)
#define OP_SAMPLE_RECORD_BYTES 40u /* such a sample: header and four words */

/* Separated by cgroup, the sampling events ask for this as well (Linux 5.7): the cgroup's id stands behind the rest of the sample. */
#define OP_SAMPLE_TYPE_CGROUP (OP_SAMPLE_TYPE | PERF_SAMPLE_CGROUP)

/* A sampler of IBS asks for its registers as well (libop/events/ibs.h). */
#define OP_SAMPLE_TYPE_IBS(with_cgroup) (((with_cgroup) ? OP_SAMPLE_TYPE_CGROUP : OP_SAMPLE_TYPE) | PERF_SAMPLE_RAW)

enum op_cpumode {
	OP_CPUMODE_UNKNOWN,
	OP_CPUMODE_KERNEL,
	OP_CPUMODE_USER,
	OP_CPUMODE_HYPERVISOR,
	OP_CPUMODE_GUEST_KERNEL,
	OP_CPUMODE_GUEST_USER,
};

struct op_sample {
	uint64_t id;	  /* of the event */
	uint64_t ip;
	uint64_t time_ns; /* OP_CLOCK */
	uint32_t pid;	  /* thread group; 0 idle or in a foreign pid namespace, (uint32_t)-1 a task that is being reaped */
	uint32_t tid;
	uint32_t cpu;	  /* filled by who knows the ring */
	enum op_cpumode mode;
};

/* Who and when, from the end of a record (sample_id_all). */
struct op_record_id {
	uint32_t pid, tid;
	uint64_t time_ns;
	uint64_t id;
};

struct op_mmap_record {
	struct op_record_id who;
	uint32_t pid, tid;
	uint64_t start, bytes, offset; /* offset in the file, bytes */
	uint32_t maj, min;	       /* without a build-id only, like inode and generation */
	uint64_t inode, inode_generation;
	uint8_t build_id[OP_BUILD_ID_BYTES_MAX];
	uint8_t build_id_bytes;	       /* 0: none */
	uint32_t prot, flags;
	const char *file_name;
};

struct op_task_record { /* fork and exit */
	uint32_t pid, parent_pid, tid, parent_tid;
	uint64_t time_ns;
};

struct op_comm_record {
	struct op_record_id who;
	uint32_t pid, tid;
	bool is_exec;
	const char *comm;
};

struct op_lost_record {
	uint64_t id; /* of the event that found room again; LOST is counted for the ring */
	uint64_t lost;
};

struct op_throttle_record {
	uint64_t time_ns;
	uint64_t id;
};

struct op_ksymbol_record {
	uint64_t start;
	uint32_t bytes;
	bool unregister;
	const char *name;
	struct op_record_id who;
};

struct op_namespaces_record {
	struct op_record_id who;
	uint32_t pid, tid;
	uint64_t mnt_ns; /* inode of the mount namespace */
};

struct op_cgroup_record {
	uint64_t id;	  /* of the cgroup: the inode number of its directory */
	const char *path; /* from the root of the hierarchy, "/" for the root itself */
	struct op_record_id who;
};

/* One function per record; 0 or -EBADMSG. */
int op_record_sample(const struct perf_event_header *header, struct op_sample *ret_sample) OP_NONNULL OP_MUST_CHECK;
int op_record_mmap(const struct perf_event_header *header, struct op_mmap_record *ret_mmap) OP_NONNULL OP_MUST_CHECK;

/*
 * The same where nobody asked for build-ids (perf_event_attr.build_id): the record has none, whatever it says. While another profiler asks, Linux (6.18 seen) leaves
 * PERF_RECORD_MISC_MMAP_BUILD_ID in the records that come behind its own.
 */
int op_record_mmap_unasked(const struct perf_event_header *header, struct op_mmap_record *ret_mmap) OP_NONNULL OP_MUST_CHECK;
int op_record_task(const struct perf_event_header *header, struct op_task_record *ret_task) OP_NONNULL OP_MUST_CHECK;
int op_record_comm(const struct perf_event_header *header, struct op_comm_record *ret_comm) OP_NONNULL OP_MUST_CHECK;
int op_record_lost(const struct perf_event_header *header, struct op_lost_record *ret_lost) OP_NONNULL OP_MUST_CHECK;
int op_record_lost_samples(const struct perf_event_header *header, struct op_lost_record *ret_lost) OP_NONNULL OP_MUST_CHECK;
int op_record_throttle(const struct perf_event_header *header, struct op_throttle_record *ret_throttle) OP_NONNULL OP_MUST_CHECK;
int op_record_ksymbol(const struct perf_event_header *header, struct op_ksymbol_record *ret_ksymbol) OP_NONNULL OP_MUST_CHECK;
int op_record_namespaces(const struct perf_event_header *header,
			 struct op_namespaces_record *ret_namespaces) OP_NONNULL OP_MUST_CHECK;
int op_record_cgroup(const struct perf_event_header *header, struct op_cgroup_record *ret_cgroup) OP_NONNULL OP_MUST_CHECK;

/* The cgroup's id, the last word of a sample of OP_SAMPLE_TYPE_CGROUP, or of one with PERF_SAMPLE_RAW as well. 0 or -EBADMSG. */
int op_record_sample_cgroup(const struct perf_event_header *header, uint64_t *ret_cgroup_id) OP_NONNULL OP_MUST_CHECK;

/* Who and when of any record but SAMPLE. */
int op_record_id(const struct perf_event_header *header, struct op_record_id *ret_id) OP_NONNULL OP_MUST_CHECK;

#endif
