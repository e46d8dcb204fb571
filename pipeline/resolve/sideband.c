/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pipeline/resolve/sideband.h"

#include <errno.h>
#include <sys/sysmacros.h>

#include "libop/base/sys.h"
#include "pipeline/resolve/application.h"
#include "pipeline/resolve/jit_lookup.h"

#define RECORD_BYTES_MAX UINT16_MAX /* perf_event_header.size has 16 bits */

struct drain {
	struct opd_resolver *resolver;
	struct opd_cpu *cpu; /* the CPU of the record */
	uint64_t until_ns;
	struct opd_sideband_loss loss;
};

typedef int (*handler)(struct drain *drain, const struct perf_event_header *header);

static struct opd_mapped mapped_of(const struct op_mmap_record *record, const struct opd_process *process)
{
	struct opd_mapped mapped = {
		.pid = process->leader_exited ? record->tid : record->pid,
		.start = record->start,
		.end = record->start + record->bytes,
		.offset = record->offset,
		.name = record->file_name,
		.build_id.nr_bytes = record->build_id_bytes,
		.device = makedev(record->maj, record->min),
		.inode = record->inode,
		.inode_generation = record->inode_generation,
		.time_ns = record->who.time_ns,
	};

	memcpy(mapped.build_id.bytes, record->build_id, record->build_id_bytes);
	return mapped;
}

/*
 * The root of a process may differ from that of its parent, since chroot(2) is in no record. It
 * matters only when a file is looked at. In a storm of processes few are, because all run the same
 * programs.
 */
static int update_root(struct opd_processes *processes, struct opd_mm *mm, const struct opd_mapped *mapped)
{
	if (!mm->root_is_old || opd_image_is_cached(mapped))
		return 0;
	mm->root_is_old = false;
	return opd_mount_view_update_root(&processes->mount_views, mapped->pid, &mm->mount_view);
}

/* Adds a mapping. */
static int map(struct opd_resolver *resolver, uint32_t pid, struct opd_mm *mm, struct opd_mapped *mapped)
{
	struct opd_mapping mapping = { .start = mapped->start, .end = mapped->end, .from_ns = mapped->time_ns };
	bool is_file;

	mapped->mount_views = &resolver->processes.mount_views;
	mapped->stat_cache = &resolver->processes.stat_cache;
	mapped->build_ids = resolver->processes.build_ids;
	mapped->mount_view = mm->mount_view;
	if (update_root(&resolver->processes, mm, mapped) < 0)
		return -ENOMEM;
	mapped->mount_view = mm->mount_view;
	mapping.cookie = opd_image_of_mapping(resolver->table, mapped, &is_file);
	if (mapping.cookie == OP_DCOOKIE_NONE)
		return -ENOMEM;
	mapping.may_be_jit = opd_jit_may_be_in(mapped->name);
	if (is_file) {
		mapping.key = mapped->offset;
		if (mm->begins_program)
			mm->app_cookie = mapping.cookie;
		mm->begins_program = false;
	} else {
		mapping.region_end = mapping.end;
	}
	return opd_process_map(&resolver->processes, pid, mm, &mapping);
}

/*
 * A process begins a program. Its root is asked later, when a file of it is looked at. But a view
 * needs a living process that was seen there (opd_mount_view_pid).
 */
static int update_mount_view(struct opd_processes *processes, const struct opd_process *process, struct opd_mm *mm, uint32_t tid)
{
	bool knows_ns = mm->has_mnt_ns && !opd_process_is_doubtful(processes, process);

	mm->root_is_old = knows_ns && (!mm->mount_view || !op_sys_is_gone(mm->mount_view->seen_pid));
	mm->has_mnt_ns = true;
	if (mm->root_is_old)
		return 0;
	return knows_ns ? opd_mount_view_update_root(&processes->mount_views, tid, &mm->mount_view)
			: opd_mount_view_update(&processes->mount_views, tid, &mm->mount_view);
}

static int take_mmap(struct drain *drain, const struct perf_event_header *header)
{
	struct opd_resolver *resolver = drain->resolver;
	struct op_mmap_record record;
	struct opd_mapped mapped;
	struct opd_process *process;
	struct opd_mm *mm;
	int err;

	/*
	 * opd does not request build-ids in records, because that breaks other profilers
	 * (build_ids.h). Records from elsewhere may have them.
	 */
	err = drain->cpu->source->is_host ? op_record_mmap_unasked(header, &record) : op_record_mmap(header, &record);
	if (err < 0)
		return -EBADMSG;
	if (!opd_is_pid(record.pid) || !record.bytes || header->misc & PERF_RECORD_MISC_MMAP_DATA)
		return 0;
	err = opd_process_get(&resolver->processes, record.pid, 0, &process);
	if (err)
		return err;
	if (record.who.time_ns <= process->snapshot_ns)
		return 0;
	/* /proc of another machine cannot be read later for skipped mappings. */
	if (!resolver->is_foreign && !opd_process_may_map(&resolver->processes, process, record.who.time_ns))
		return 0;
	mm = opd_process_mm_at(process, record.who.time_ns);
	if (op_unlikely(mm->renamed_ns && mm->renamed_ns <= record.who.time_ns && opd_app_shows_exec(mm, record.file_name))) {
		err = opd_process_ran(&resolver->processes, process, mm);
		if (err)
			return err;
		mm = opd_process_mm_at(process, record.who.time_ns);
	}
	mapped = mapped_of(&record, process);
	mapped.is_foreign = resolver->is_foreign;
	if (!resolver->is_foreign && !opd_mapset_count(mm->maps) && mm == process->mm &&
	    update_mount_view(&resolver->processes, process, mm, record.tid) < 0)
		return -ENOMEM;
	if (opd_image_may_be_text_copy(mapped.name) && opd_resolve_text_copy(resolver, process, mm, &mapped))
		return 0;
	opd_jit_saw_mapping(&resolver->processes, process, mm, &mapped);
	return map(resolver, record.pid, mm, &mapped);
}

static int take_comm(struct drain *drain, const struct perf_event_header *header)
{
	struct op_comm_record record;

	if (op_record_comm(header, &record) < 0)
		return -EBADMSG;
	if (!opd_is_pid(record.pid))
		return 0;
	if (record.is_exec)
		return opd_process_exec(&drain->resolver->processes, record.pid, record.comm, record.who.time_ns);
	if (record.pid != record.tid)
		return 0;
	if (drain->resolver->is_foreign && !record.is_rename) {
		int err = opd_process_renamed(&drain->resolver->processes, record.pid, record.comm, record.who.time_ns);

		if (err)
			return err;
	}
	return opd_process_named(&drain->resolver->processes, record.pid, record.comm, record.who.time_ns);
}

static int take_fork(struct drain *drain, const struct perf_event_header *header)
{
	struct op_task_record record;

	if (op_record_task(header, &record) < 0)
		return -EBADMSG;
	if (!opd_is_pid(record.pid))
		return 0;
	if (record.pid != record.parent_pid)
		return opd_process_fork(&drain->resolver->processes, record.parent_pid, record.pid, record.time_ns);
	opd_process_thread_began(&drain->resolver->processes, record.pid);
	return 0;
}

/* A process entered other namespaces. A thread that did so alone is not followed. */
static int take_namespaces(struct drain *drain, const struct perf_event_header *header)
{
	struct opd_processes *processes = &drain->resolver->processes;
	struct op_namespaces_record record;
	struct opd_process *process;
	struct opd_mm *mm;

	if (op_record_namespaces(header, &record) < 0)
		return -EBADMSG;
	if (record.pid != record.tid || drain->resolver->is_foreign)
		return 0;
	process = opd_process_find(processes, record.pid);
	if (!process || record.who.time_ns <= process->snapshot_ns)
		return 0;
	mm = opd_process_mm_at(process, record.who.time_ns);
	mm->has_mnt_ns = true;
	return opd_mount_view_enter(&processes->mount_views, record.mnt_ns, record.user_ns, &mm->mount_view);
}

static int take_exit(struct drain *drain, const struct perf_event_header *header)
{
	struct op_task_record record;

	if (op_record_task(header, &record) < 0)
		return -EBADMSG;
	opd_process_thread_ended(&drain->resolver->processes, record.pid, record.tid, record.time_ns);
	return 0;
}

/* nr_dropped: all dropped records of the CPU so far. */
static void note_lost(struct drain *drain, struct opd_cpu *cpu, uint64_t nr_dropped, uint64_t until_ns)
{
	uint64_t nr_new = nr_dropped - op_min_u64(nr_dropped, cpu->sideband_known);

	cpu->sideband_known += nr_new;
	cpu->sideband_lost += nr_new;
	if (!nr_new || !cpu->source->is_host)
		return;
	drain->loss.nr_lost += nr_new;
	drain->loss.until_ns = op_max_u64(drain->loss.until_ns, until_ns);
}

static int take_lost(struct drain *drain, const struct perf_event_header *header)
{
	struct op_lost_record record;
	struct op_record_id who;

	if (op_record_lost(header, &record) < 0)
		return -EBADMSG;
	drain->cpu->sideband_reported += record.lost;
	/* The record has the time of the next record after the loss. */
	note_lost(drain, drain->cpu, drain->cpu->sideband_reported, op_record_id(header, &who) < 0 ? drain->until_ns : who.time_ns);
	return 0;
}

static int take_ksymbol(struct drain *drain, const struct perf_event_header *header)
{
	struct op_ksymbol_record record;

	if (op_record_ksymbol(header, &record) < 0)
		return -EBADMSG;
	return opd_kernel_map_ksymbol(&drain->resolver->kernel, &record);
}

static int take_cgroup(struct drain *drain, const struct perf_event_header *header)
{
	struct op_cgroup_record record;

	if (op_record_cgroup(header, &record) < 0)
		return -EBADMSG;
	return opd_cgroups_add(&drain->resolver->cgroups, record.id, record.path);
}

static const handler handlers[] = {
	[PERF_RECORD_MMAP2] = take_mmap,
	[PERF_RECORD_COMM] = take_comm,
	[PERF_RECORD_FORK] = take_fork,
	[PERF_RECORD_EXIT] = take_exit,
	[PERF_RECORD_LOST] = take_lost,
	[PERF_RECORD_KSYMBOL] = take_ksymbol,
	[PERF_RECORD_NAMESPACES] = take_namespaces,
	[PERF_RECORD_CGROUP] = take_cgroup,
};

/* Unknown and damaged records are skipped; only -ENOMEM is an error. */
static int apply(struct drain *drain, const struct perf_event_header *header)
{
	handler handle = header->type < op_array_size(handlers) ? handlers[header->type] : NULL;

	return handle && handle(drain, header) == -ENOMEM ? -ENOMEM : 0;
}

/* The next record of a CPU with its time. Records without a time (LOST) go first. */
struct cursor {
	struct opd_cpu *cpu;
	uint64_t first; /* position in the ring where this drain began */
	/* younger records stay, because older ones of other CPUs may still be unread */
	uint64_t until_ns;
	const struct perf_event_header *next;
	uint64_t time_ns;
};

static void advance(struct cursor *cursor)
{
	struct op_record_id id;

	cursor->next = op_ring_next(&cursor->cpu->sideband);
	if (!cursor->next)
		return;
	cursor->time_ns = op_record_id(cursor->next, &id) < 0 ? 0 : id.time_ns;
	if (cursor->time_ns > cursor->until_ns) {
		op_ring_put_back(&cursor->cpu->sideband, cursor->next);
		cursor->next = NULL;
		return;
	}
	cursor->cpu->sideband_bytes += cursor->next->size;
}

static struct cursor *earliest(struct cursor *cursors, size_t nr_cursors)
{
	struct cursor *first = NULL;

	for (size_t i = 0; i < nr_cursors; i++)
		if (cursors[i].next && (!first || cursors[i].time_ns < first->time_ns))
			first = &cursors[i];
	return first;
}

/* True when the ring may have had no room for a record. */
static bool is_full(const struct op_ring *ring, uint64_t nr_bytes)
{
	return nr_bytes + RECORD_BYTES_MAX >= ring->data_bytes;
}

/* False: nothing to read. */
static bool begin(struct drain *drain, struct cursor *cursor, struct opd_cpu *cpu)
{
	struct op_ring *ring = &cpu->sideband;
	uint64_t nr_bytes;

	if (!cpu->online)
		return false;
	nr_bytes = op_ring_begin(ring);
	if (op_unlikely(cpu->sideband_was_full || is_full(ring, nr_bytes)))
		note_lost(drain, cpu, opd_capture_sideband_dropped(cpu), drain->until_ns);
	cpu->sideband_was_full = false;
	if (!nr_bytes)
		return false;
	*cursor = (struct cursor){ .cpu = cpu, .first = ring->tail, .until_ns = drain->until_ns };
	advance(cursor);
	return true;
}

/* The kernel had no more room during this drain than at its start. */
static void end(const struct cursor *cursor)
{
	struct op_ring *ring = &cursor->cpu->sideband;

	op_ring_begin(ring);
	cursor->cpu->sideband_was_full = is_full(ring, ring->head - cursor->first);
	op_ring_end(ring);
}

int opd_sideband_drain(struct opd_capture *capture, struct opd_resolver *resolver, uint64_t until_ns,
		       struct opd_sideband_loss *ret_loss)
{
	struct drain drain = { .resolver = resolver, .until_ns = until_ns };
	struct cursor *cursors = calloc(capture->nr_cpus, sizeof(*cursors)), *cursor;
	size_t nr_cursors = 0;
	int err = 0;

	*ret_loss = drain.loss;
	if (!cursors)
		return -ENOMEM;
	for (size_t i = 0; i < capture->nr_cpus; i++)
		nr_cursors += begin(&drain, &cursors[nr_cursors], &capture->cpus[i]);
	while ((cursor = earliest(cursors, nr_cursors))) {
		drain.cpu = cursor->cpu;
		if (apply(&drain, cursor->next) < 0)
			err = -ENOMEM;
		opd_forget_images(resolver);
		advance(cursor);
	}
	for (size_t i = 0; i < nr_cursors; i++)
		end(&cursors[i]);
	free(cursors);
	*ret_loss = drain.loss;
	return err;
}
