/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Decodes perf records into structs. Source: perf_event_open(2), <linux/perf_event.h>.
 *
 * The functions require only that header.size bytes are readable, as op_ring_next promises. They
 * check all lengths inside: -EBADMSG for a record that does not fit. Strings point into the record.
 * Any thread.
 */
#ifndef OP_RECORD_H
#define OP_RECORD_H

#include <linux/perf_event.h>

#include "libop/base/build_id.h"
#include "libop/base/compiler.h"

/*
 * The sample_type of every event of opd; sample_id_all adds TID, TIME and IDENTIFIER to other
 * records.
 */
#define OP_SAMPLE_TYPE (PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME)
#define OP_SAMPLE_RECORD_BYTES 40u /* of a sample: header and four words */

/* With separation by cgroup (Linux 5.7): the id of the cgroup stands at the end of the sample. */
#define OP_SAMPLE_TYPE_CGROUP (OP_SAMPLE_TYPE | PERF_SAMPLE_CGROUP)

/* A sampler of IBS adds its registers (libop/events/ibs.h). */
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
	/* thread group; 0: idle or in another pid namespace; UINT32_MAX: a task that ends */
	uint32_t pid;
	uint32_t tid;
	uint32_t cpu;	  /* not in the record: filled in by the reader of the ring */
	enum op_cpumode mode;
};

/*
 * In a sample of a perf.data file, set by data_record.c: behind OP_SAMPLE_RECORD_BYTES stands a
 * word that says how many events the sample stands for.
 */
#define OP_RECORD_MISC_AMOUNT (1u << 15)

/* The amount of a sample of an event that carries one (op_event.carries_amount); 1 without it. */
static inline uint64_t op_record_amount(const struct perf_event_header *header)
{
	uint64_t amount = 1;

	if (header->misc & OP_RECORD_MISC_AMOUNT && header->size >= OP_SAMPLE_RECORD_BYTES + sizeof(amount))
		memcpy(&amount, (const char *)header + OP_SAMPLE_RECORD_BYTES, sizeof(amount));
	return amount;
}

/* In a COMM of a perf.data file, set by data_record.c: the file marks execs, and this is none. */
#define OP_RECORD_MISC_RENAME (1u << 15)

#define OP_RECORD_ID_BYTES 24u /* at the end of all records but samples */

/* The process and the time, from the end of a record (sample_id_all). */
struct op_record_id {
	uint32_t pid, tid;
	uint64_t time_ns;
	uint64_t id;
};

struct op_mmap_record {
	struct op_record_id who;
	uint32_t pid, tid;
	uint64_t start, bytes, offset; /* offset in the file, bytes */
	uint32_t maj, min;	       /* only without a build-id, like inode and generation */
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
	bool is_rename; /* certainly no exec: OP_RECORD_MISC_RENAME */
	const char *comm;
};

struct op_lost_record {
	uint64_t id; /* of the event that found room again; LOST counts records of the whole ring */
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
	uint64_t mnt_ns, user_ns; /* inodes of the namespaces */
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
 * The same for an event without perf_event_attr.build_id: the record has no build-id, whatever its
 * flag says. While another profiler uses build-ids, Linux (seen with 6.18) leaves
 * PERF_RECORD_MISC_MMAP_BUILD_ID set in records for others.
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

/*
 * The id of the cgroup, the last word of a sample of OP_SAMPLE_TYPE_CGROUP, also with
 * PERF_SAMPLE_RAW. 0 or -EBADMSG.
 */
int op_record_sample_cgroup(const struct perf_event_header *header, uint64_t *ret_cgroup_id) OP_NONNULL OP_MUST_CHECK;

/* The process and the time of any record except SAMPLE. */
int op_record_id(const struct perf_event_header *header, struct op_record_id *ret_id) OP_NONNULL OP_MUST_CHECK;

#endif
