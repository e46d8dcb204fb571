/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/perf/record.h"

#include <errno.h>

/* The bodies of the records, as the kernel lays them out. */
struct sample_body {
	uint64_t identifier;
	uint64_t ip;
	uint32_t pid, tid;
	uint64_t time_ns;
};

struct id_trailer {
	uint32_t pid, tid;
	uint64_t time_ns;
	uint64_t identifier;
};

struct mmap2_body {
	uint32_t pid, tid;
	uint64_t start, bytes, offset;
	union {
		struct {
			uint32_t maj, min;
			uint64_t inode, inode_generation;
		} file;
		struct {
			uint8_t nr_bytes;
			uint8_t reserved[3];
			uint8_t bytes[OP_BUILD_ID_BYTES_MAX];
		} build_id;
	} u;
	uint32_t prot, flags;
};

struct task_body {
	uint32_t pid, parent_pid, tid, parent_tid;
	uint64_t time_ns;
};

struct ksymbol_body {
	uint64_t start;
	uint32_t bytes;
	uint16_t type;
	uint16_t flags;
};

struct namespaces_body {
	uint32_t pid, tid;
	uint64_t nr;
	struct perf_ns_link_info links[MNT_NS_INDEX + 1]; /* enum perf_ns_index; more may follow */
};

static_assert(sizeof(struct sample_body) == 32, "PERF_RECORD_SAMPLE with OP_SAMPLE_TYPE");
static_assert(sizeof(struct id_trailer) == OP_RECORD_ID_BYTES, "sample_id with OP_SAMPLE_TYPE");
static_assert(sizeof(struct mmap2_body) == 64, "PERF_RECORD_MMAP2");
static_assert(sizeof(struct ksymbol_body) == 16, "PERF_RECORD_KSYMBOL");

#define KSYMBOL_UNREGISTER 1u

static enum op_cpumode cpumode(const struct perf_event_header *header)
{
	switch (header->misc & PERF_RECORD_MISC_CPUMODE_MASK) {
	case PERF_RECORD_MISC_KERNEL:
		return OP_CPUMODE_KERNEL;
	case PERF_RECORD_MISC_USER:
		return OP_CPUMODE_USER;
	case PERF_RECORD_MISC_HYPERVISOR:
		return OP_CPUMODE_HYPERVISOR;
	case PERF_RECORD_MISC_GUEST_KERNEL:
		return OP_CPUMODE_GUEST_KERNEL;
	case PERF_RECORD_MISC_GUEST_USER:
		return OP_CPUMODE_GUEST_USER;
	default:
		return OP_CPUMODE_UNKNOWN;
	}
}

int op_record_sample(const struct perf_event_header *header, struct op_sample *ret_sample)
{
	const struct sample_body *b = (const void *)(header + 1);

	if (op_unlikely(header->size < sizeof(*header) + sizeof(*b)))
		return -EBADMSG;
	ret_sample->id = b->identifier;
	ret_sample->ip = b->ip;
	ret_sample->time_ns = b->time_ns;
	ret_sample->pid = b->pid;
	ret_sample->tid = b->tid;
	ret_sample->mode = cpumode(header);
	return 0;
}

int op_record_sample_cgroup(const struct perf_event_header *header, uint64_t *ret_cgroup_id)
{
	if (op_unlikely(header->size < sizeof(*header) + sizeof(struct sample_body) + sizeof(*ret_cgroup_id)))
		return -EBADMSG;
	memcpy(ret_cgroup_id, (const uint8_t *)header + header->size - sizeof(*ret_cgroup_id), sizeof(*ret_cgroup_id));
	return 0;
}

/*
 * The trailer stands at the end. KSYMBOL is the exception: with several profilers on the host the
 * kernel (up to 6.18) writes a growing size, because perf_event_ksymbol_output in
 * kernel/events/core.c does not reset it. There the trailer stands behind the name, and the bytes
 * behind it were not written.
 */
static size_t trailer_at(const struct perf_event_header *header)
{
	const size_t last = header->size - sizeof(struct id_trailer), name = sizeof(*header) + sizeof(struct ksymbol_body);
	size_t behind;

	if (header->type != PERF_RECORD_KSYMBOL || last < name)
		return last;
	behind = name + strnlen((const char *)header + name, last - name) + 1;
	behind = (behind + sizeof(uint64_t) - 1) & ~(sizeof(uint64_t) - 1);
	return behind < last ? behind : last;
}

int op_record_id(const struct perf_event_header *header, struct op_record_id *ret_id)
{
	struct id_trailer t;

	if (header->size < sizeof(*header) + sizeof(t))
		return -EBADMSG;
	memcpy(&t, (const uint8_t *)header + trailer_at(header), sizeof(t));
	*ret_id = (struct op_record_id){ .pid = t.pid, .tid = t.tid, .time_ns = t.time_ns, .id = t.identifier };
	return 0;
}

/*
 * Decodes a record of a fixed part, a string and a trailer: copies the fixed part and returns the
 * string. NULL when one of the three is not inside the record.
 */
static const char *fixed_part_and_name(const struct perf_event_header *header, void *fixed, size_t fixed_bytes,
				       struct op_record_id *ret_who)
{
	const size_t other_bytes = sizeof(*header) + fixed_bytes + sizeof(struct id_trailer);
	const char *name = (const char *)(header + 1) + fixed_bytes;

	if (header->size < other_bytes || !memchr(name, '\0', header->size - other_bytes) || op_record_id(header, ret_who) < 0)
		return NULL;
	memcpy(fixed, header + 1, fixed_bytes);
	return name;
}

static int take_mmap(const struct perf_event_header *header, bool has_build_id, struct op_mmap_record *ret_mmap)
{
	struct op_mmap_record mmap = { 0 };
	struct mmap2_body b;

	mmap.file_name = fixed_part_and_name(header, &b, sizeof(b), &mmap.who);
	if (!mmap.file_name || b.start + b.bytes < b.start)
		return -EBADMSG;
	if (has_build_id) {
		if (b.u.build_id.nr_bytes > OP_BUILD_ID_BYTES_MAX)
			return -EBADMSG;
		mmap.build_id_bytes = b.u.build_id.nr_bytes;
		memcpy(mmap.build_id, b.u.build_id.bytes, mmap.build_id_bytes);
	} else {
		mmap.maj = b.u.file.maj;
		mmap.min = b.u.file.min;
		mmap.inode = b.u.file.inode;
		mmap.inode_generation = b.u.file.inode_generation;
	}
	mmap.pid = b.pid;
	mmap.tid = b.tid;
	mmap.start = b.start;
	mmap.bytes = b.bytes;
	mmap.offset = b.offset;
	mmap.prot = b.prot;
	mmap.flags = b.flags;
	*ret_mmap = mmap;
	return 0;
}

int op_record_mmap(const struct perf_event_header *header, struct op_mmap_record *ret_mmap)
{
	return take_mmap(header, header->misc & PERF_RECORD_MISC_MMAP_BUILD_ID, ret_mmap);
}

int op_record_mmap_unasked(const struct perf_event_header *header, struct op_mmap_record *ret_mmap)
{
	return take_mmap(header, false, ret_mmap);
}

/* Copies the first bytes of the body. False: the record is too short. */
static bool copy_body(const struct perf_event_header *header, void *ret_body, size_t nr_bytes, size_t trailer_bytes)
{
	if (header->size < sizeof(*header) + nr_bytes + trailer_bytes)
		return false;
	memcpy(ret_body, header + 1, nr_bytes);
	return true;
}

int op_record_task(const struct perf_event_header *header, struct op_task_record *ret_task)
{
	struct task_body b;

	if (!copy_body(header, &b, sizeof(b), 0))
		return -EBADMSG;
	*ret_task = (struct op_task_record){
		.pid = b.pid,
		.parent_pid = b.parent_pid,
		.tid = b.tid,
		.parent_tid = b.parent_tid,
		.time_ns = b.time_ns,
	};
	return 0;
}

int op_record_comm(const struct perf_event_header *header, struct op_comm_record *ret_comm)
{
	struct op_comm_record comm = { 0 };
	uint32_t ids[2];

	comm.comm = fixed_part_and_name(header, ids, sizeof(ids), &comm.who);
	if (!comm.comm)
		return -EBADMSG;
	comm.pid = ids[0];
	comm.tid = ids[1];
	comm.is_exec = header->misc & PERF_RECORD_MISC_COMM_EXEC;
	comm.is_rename = header->misc & OP_RECORD_MISC_RENAME;
	*ret_comm = comm;
	return 0;
}

int op_record_lost(const struct perf_event_header *header, struct op_lost_record *ret_lost)
{
	uint64_t values[2];

	if (!copy_body(header, values, sizeof(values), 0))
		return -EBADMSG;
	*ret_lost = (struct op_lost_record){ .id = values[0], .lost = values[1] };
	return 0;
}

int op_record_lost_samples(const struct perf_event_header *header, struct op_lost_record *ret_lost)
{
	struct op_record_id who;
	uint64_t lost;

	if (!copy_body(header, &lost, sizeof(lost), sizeof(struct id_trailer)) || op_record_id(header, &who) < 0)
		return -EBADMSG;
	*ret_lost = (struct op_lost_record){ .id = who.id, .lost = lost };
	return 0;
}

int op_record_throttle(const struct perf_event_header *header, struct op_throttle_record *ret_throttle)
{
	uint64_t values[3]; /* time, id, stream id */

	if (!copy_body(header, values, sizeof(values), 0))
		return -EBADMSG;
	*ret_throttle = (struct op_throttle_record){ .time_ns = values[0], .id = values[1] };
	return 0;
}

int op_record_ksymbol(const struct perf_event_header *header, struct op_ksymbol_record *ret_ksymbol)
{
	struct op_ksymbol_record ksymbol = { 0 };
	struct ksymbol_body b;

	ksymbol.name = fixed_part_and_name(header, &b, sizeof(b), &ksymbol.who);
	if (!ksymbol.name)
		return -EBADMSG;
	ksymbol.start = b.start;
	ksymbol.bytes = b.bytes;
	ksymbol.unregister = b.flags & KSYMBOL_UNREGISTER;
	*ret_ksymbol = ksymbol;
	return 0;
}

int op_record_namespaces(const struct perf_event_header *header, struct op_namespaces_record *ret_namespaces)
{
	struct op_namespaces_record namespaces = { 0 };
	struct namespaces_body b;

	if (!copy_body(header, &b, sizeof(b), sizeof(struct id_trailer)) || b.nr <= MNT_NS_INDEX ||
	    op_record_id(header, &namespaces.who) < 0)
		return -EBADMSG;
	namespaces.pid = b.pid;
	namespaces.tid = b.tid;
	namespaces.mnt_ns = b.links[MNT_NS_INDEX].ino;
	namespaces.user_ns = b.links[USER_NS_INDEX].ino;
	*ret_namespaces = namespaces;
	return 0;
}

int op_record_cgroup(const struct perf_event_header *header, struct op_cgroup_record *ret_cgroup)
{
	struct op_cgroup_record cgroup = { 0 };

	cgroup.path = fixed_part_and_name(header, &cgroup.id, sizeof(cgroup.id), &cgroup.who);
	if (!cgroup.path)
		return -EBADMSG;
	*ret_cgroup = cgroup;
	return 0;
}
