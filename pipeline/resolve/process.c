/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pipeline/resolve/process.h"

#include <errno.h>

#include "libop/session/dcookie.h"
#include "pipeline/jit/space.h"

/* ---- names ---- */

struct opd_name *opd_name_at(struct opd_name *newest, uint64_t time_ns)
{
	struct opd_name *name = newest;

	while (name && name->from_ns > time_ns && name->older)
		name = name->older;
	return name;
}

int opd_name_add(struct opd_name **newest, const char *comm, uint64_t from_ns)
{
	struct opd_name *known = opd_name_at(*newest, from_ns), **at = newest, *name;

	if (known && known->from_ns <= from_ns && !strcmp(known->comm, comm))
		return 0;
	name = calloc(1, sizeof(*name));
	if (!name)
		return -ENOMEM;
	snprintf(name->comm, sizeof(name->comm), "%s", comm);
	name->from_ns = from_ns;
	while (*at && (*at)->from_ns > from_ns)
		at = &(*at)->older;
	name->older = *at;
	*at = name;
	return 0;
}

static void free_names(struct opd_name *newest)
{
	while (newest) {
		struct opd_name *older = newest->older;

		free(newest);
		newest = older;
	}
}

/* Frees the names that were replaced before horizon_ns. */
static void prune_names(struct opd_name *newest, uint64_t horizon_ns)
{
	struct opd_name *name = opd_name_at(newest, horizon_ns ? horizon_ns - 1 : 0);

	if (!name)
		return;
	free_names(name->older);
	name->older = NULL;
}

/* ---- address spaces and processes ---- */

/* Returns how many address spaces were freed, with the older ones. */
static uint64_t free_mm(struct opd_mm *mm)
{
	uint64_t nr_freed = 0;

	for (; mm; nr_freed++) {
		struct opd_mm *older = mm->older;

		opd_mapset_put(mm->maps);
		if (!mm->jit)
			opd_jit_waiting_free(mm->jit_waiting);
		opd_jit_space_put(mm->jit);
		opd_jit_space_put(mm->jit_base);
		opd_mount_view_put(mm->mount_view);
		free(mm);
		mm = older;
	}
	return nr_freed;
}

static uint64_t free_process(struct opd_process *process)
{
	uint64_t nr_freed = free_mm(process->mm);

	free_names(process->name);
	free(process);
	return nr_freed;
}

static void free_visited(struct op_hlink *link, void *arg OP_UNUSED)
{
	free_process(op_container_of(link, struct opd_process, link));
}

void opd_processes_free(struct opd_processes *processes)
{
	op_htable_visit(&processes->by_pid, free_visited, NULL);
	op_htable_free(&processes->by_pid);
	processes->prunable = NULL;
	opd_stat_cache_clear(&processes->stat_cache);
	opd_mount_views_free(&processes->mount_views);
}

struct opd_process *opd_process_find(const struct opd_processes *processes, uint32_t pid)
{
	struct op_hlink *link = op_htable_first(&processes->by_pid, op_hash_u64(pid));

	for (; link; link = op_htable_next(link)) {
		struct opd_process *process = op_container_of(link, struct opd_process, link);

		if (process->pid == pid)
			return process;
	}
	return NULL;
}

/*
 * Adds an address space with the application and mount view of `like`. It becomes the newest,
 * unless its record came late. Takes over the reference to maps, even on failure.
 */
static int push_mm(struct opd_process *process, struct opd_mapset *maps, const struct opd_mm *like, uint64_t from_ns)
{
	struct opd_mm *mm = maps ? calloc(1, sizeof(*mm)) : NULL;
	struct opd_mm **at = &process->mm;

	if (!mm) {
		opd_mapset_put(maps);
		return -ENOMEM;
	}
	mm->maps = maps;
	if (like) {
		mm->app_cookie = like->app_cookie;
		mm->begins_program = like->begins_program;
		mm->is_kernel_thread = like->is_kernel_thread;
		mm->knows_user = like->knows_user;
		mm->user = like->user;
		memcpy(mm->comm, like->comm, sizeof(mm->comm));
		mm->mount_view = opd_mount_view_ref(like->mount_view);
		mm->has_mnt_ns = like->has_mnt_ns;
		mm->root_is_old = like->root_is_old;
		mm->jit_base = opd_jit_space_get(like->jit ? like->jit : like->jit_base);
	}
	mm->from_ns = from_ns;
	while (*at && (*at)->from_ns > from_ns)
		at = &(*at)->older;
	mm->older = *at;
	*at = mm;
	return 0;
}

static void note_change(struct opd_processes *processes, uint32_t pid)
{
	processes->changes[pid % OPD_CHANGE_SLOTS]++;
}

/* Puts the process on the list of those with something to forget. */
static void mark_prunable(struct opd_processes *processes, struct opd_process *process)
{
	if (process->prunable)
		return;
	process->prunable = true;
	process->next_prunable = processes->prunable;
	processes->prunable = process;
}

/* Adds a process with one address space. Takes over the reference to maps, even on failure. */
static int add_process(struct opd_processes *processes, uint32_t pid, struct opd_mapset *maps, const struct opd_mm *like,
		       uint64_t from_ns, struct opd_process **ret_process)
{
	struct opd_process *process;
	int err;

	if (opd_processes_are_full(processes)) {
		processes->nr_dropped++;
		opd_mapset_put(maps);
		return -ENOSPC;
	}
	process = calloc(1, sizeof(*process));
	if (!process) {
		opd_mapset_put(maps);
		return -ENOMEM;
	}
	process->pid = pid;
	process->exit_ns = UINT64_MAX;
	err = push_mm(process, maps, like, from_ns);
	if (!err)
		err = op_htable_insert(&processes->by_pid, &process->link, op_hash_u64(pid));
	if (err < 0) {
		free_process(process);
		return -ENOMEM;
	}
	note_change(processes, pid);
	*ret_process = process;
	return 0;
}

int opd_process_get(struct opd_processes *processes, uint32_t pid, uint64_t from_ns, struct opd_process **ret_process)
{
	struct opd_process *process = opd_process_find(processes, pid);

	if (!process)
		return add_process(processes, pid, opd_mapset_new(&processes->account), NULL, from_ns, ret_process);
	*ret_process = process;
	return 0;
}

/* A child has the name of its parent until it gets one of its own. */
static int inherit_name(const struct opd_processes *processes, struct opd_process *process, const struct opd_process *parent,
			uint64_t time_ns)
{
	const struct opd_name *name = parent ? opd_name_at(parent->name, time_ns) : NULL;

	if (!name || !(processes->keeps_names || opd_process_mm_at(process, time_ns)->is_kernel_thread))
		return 0;
	return opd_name_add(&process->name, name->comm, time_ns);
}

int opd_process_fork(struct opd_processes *processes, uint32_t parent_pid, uint32_t pid, uint64_t time_ns)
{
	const struct opd_process *parent = opd_process_find(processes, parent_pid);
	struct opd_process *process = opd_process_find(processes, pid);
	const struct opd_mm *from;
	struct opd_mapset *maps;
	int err;

	if (process && time_ns <= process->snapshot_ns)
		return 0;
	from = parent ? opd_process_mm_at(parent, time_ns) : NULL;
	maps = from ? opd_mapset_get(from->maps) : opd_mapset_new(&processes->account);
	note_change(processes, pid);
	err = process ? push_mm(process, maps, from, time_ns) : add_process(processes, pid, maps, from, time_ns, &process);
	if (err)
		return err;
	if (from)
		opd_process_mm_at(process, time_ns)->jit_parent = parent_pid;
	if (process->mm->older)
		mark_prunable(processes, process);
	process->sure_ns = !parent ? 0 : opd_process_is_doubtful(processes, parent) ? parent->sure_ns : time_ns;
	process->skipped_from_ns = parent ? parent->skipped_from_ns : 0;
	process->skipped_until_ns = parent ? parent->skipped_until_ns : 0;
	err = inherit_name(processes, process, parent, time_ns);
	if (err)
		return err;
	process->parent_pid = parent_pid;
	process->snapshot_ns = 0;
	process->exit_ns = UINT64_MAX;
	process->nr_threads = 1;
	process->leader_exited = false;
	return 0;
}

static void copy_comm(char to[OPD_COMM_BYTES], const char *comm)
{
	snprintf(to, OPD_COMM_BYTES, "%s", comm);
}

int opd_process_exec(struct opd_processes *processes, uint32_t pid, const char *comm, uint64_t time_ns)
{
	struct opd_process *process = opd_process_find(processes, pid);
	struct opd_mm like = { .app_cookie = OP_DCOOKIE_NONE, .begins_program = true };
	const struct opd_mm *old;
	int err;

	copy_comm(like.comm, comm);
	if (!process) {
		err = add_process(processes, pid, opd_mapset_new(&processes->account), &like, time_ns, &process);
		if (err)
			return err;
		process->sure_ns = time_ns;
		return processes->keeps_names ? opd_name_add(&process->name, comm, time_ns) : 0;
	}
	if (time_ns <= process->snapshot_ns)
		return 0;
	/* The thread that calls exec becomes the main thread. */
	process->leader_exited = false;
	note_change(processes, pid);
	old = opd_process_mm_at(process, time_ns);
	like.mount_view = old->mount_view;
	like.has_mnt_ns = old->has_mnt_ns;
	like.knows_user = old->knows_user;
	like.user = old->user;
	mark_prunable(processes, process);
	process->sure_ns = op_max_u64(process->sure_ns, time_ns);
	err = processes->keeps_names ? opd_name_add(&process->name, comm, time_ns) : 0;
	return err ? err : push_mm(process, opd_mapset_new(&processes->account), &like, time_ns);
}

static bool may_rename(struct opd_processes *processes, struct opd_process *process, uint64_t time_ns)
{
	if (time_ns >= process->renaming_ns + OPD_PROCESS_MAPS_NS) {
		process->renaming_ns = time_ns;
		process->nr_renamed = 0;
	}
	if (process->nr_renamed < OPD_PROCESS_NAMES_MAX) {
		process->nr_renamed++;
		return true;
	}
	processes->nr_names_skipped++;
	return false;
}

int opd_process_named(struct opd_processes *processes, uint32_t pid, const char *comm, uint64_t time_ns)
{
	struct opd_process *process = opd_process_find(processes, pid);

	if (!process || !(processes->keeps_names || opd_process_mm_at(process, time_ns)->is_kernel_thread))
		return 0;
	/* What was read from /proc is newer than such a record. */
	if ((process->snapshot_ns && time_ns <= process->snapshot_ns) || !may_rename(processes, process, time_ns))
		return 0;
	note_change(processes, pid);
	mark_prunable(processes, process);
	return opd_name_add(&process->name, comm, time_ns);
}

int opd_process_renamed(struct opd_processes *processes, uint32_t pid, const char *comm, uint64_t time_ns)
{
	struct opd_process *process;
	struct opd_mm *mm;
	int err = opd_process_get(processes, pid, 0, &process);

	if (err)
		return err;
	mm = opd_process_mm_at(process, time_ns);
	if (!mm->comm[0]) {
		copy_comm(mm->comm, comm);
		return 0;
	}
	mm->renamed_ns = time_ns;
	copy_comm(mm->new_comm, comm);
	return 0;
}

/* The first file that was mapped since a time. */
struct first_file {
	uint64_t since_ns, from_ns, cookie;
};

static void find_first_file(const struct opd_mapping *mapping, void *arg)
{
	struct first_file *first = arg;

	if (mapping->region_end || mapping->from_ns < first->since_ns || mapping->from_ns >= first->from_ns)
		return;
	first->from_ns = mapping->from_ns;
	first->cookie = mapping->cookie;
}

/*
 * The address spaces share their mappings. Those of the old program do no harm: wherever the new
 * one runs, it has mapped something over them.
 */
int opd_process_ran(struct opd_processes *processes, struct opd_process *process, struct opd_mm *mm)
{
	struct first_file first = { .since_ns = mm->renamed_ns, .from_ns = UINT64_MAX, .cookie = OP_DCOOKIE_NONE };
	struct opd_mm like = { 0 };

	opd_mapset_visit(mm->maps, find_first_file, &first);
	like.app_cookie = first.cookie;
	like.begins_program = first.cookie == OP_DCOOKIE_NONE;
	copy_comm(like.comm, mm->new_comm);
	note_change(processes, process->pid);
	mark_prunable(processes, process);
	mm->renamed_ns = 0;
	return push_mm(process, opd_mapset_get(mm->maps), &like, first.since_ns);
}

int opd_process_replaced(struct opd_processes *processes, struct opd_process *process, uint64_t from_ns)
{
	int err;

	note_change(processes, process->pid);
	err = push_mm(process, opd_mapset_new(&processes->account), NULL, from_ns);
	if (err)
		return err;
	mark_prunable(processes, process);
	process->exit_ns = UINT64_MAX;
	process->nr_threads = 0;
	process->leader_exited = false;
	return 0;
}

int opd_process_map(struct opd_processes *processes, uint32_t pid, struct opd_mm *mm, const struct opd_mapping *mapping)
{
	note_change(processes, pid);
	return opd_mapset_add(&mm->maps, mapping, processes->horizon_ns);
}

bool opd_process_may_map(struct opd_processes *processes, struct opd_process *process, uint64_t time_ns)
{
	if (time_ns >= process->mapping_ns + OPD_PROCESS_MAPS_NS) {
		process->mapping_ns = time_ns;
		process->nr_mapped = 0;
	}
	if (process->nr_mapped < OPD_PROCESS_MAPS_MAX) {
		process->nr_mapped += 1 + (uint32_t)(opd_mapset_count(process->mm->maps) / OPD_PROCESS_MAPS_MAX);
		return true;
	}
	if (process->skipped_until_ns <= process->sure_ns)
		process->skipped_from_ns = time_ns;
	process->skipped_until_ns = time_ns;
	processes->account.mappings.nr_dropped++;
	note_change(processes, process->pid);
	return false;
}

void opd_process_thread_began(struct opd_processes *processes, uint32_t pid)
{
	struct opd_process *process = opd_process_find(processes, pid);

	if (process && process->nr_threads)
		process->nr_threads++;
}

void opd_process_thread_ended(struct opd_processes *processes, uint32_t pid, uint32_t tid, uint64_t time_ns)
{
	struct opd_process *process = opd_process_find(processes, pid);

	if (!process || process->exit_ns != UINT64_MAX)
		return;
	if (pid == tid)
		process->leader_exited = true;
	mark_prunable(processes, process);
	if (!process->nr_threads || --process->nr_threads)
		return;
	process->exit_ns = time_ns;
	note_change(processes, pid);
}

struct opd_mm *opd_process_mm_at(const struct opd_process *process, uint64_t time_ns)
{
	struct opd_mm *mm = process->mm;

	while (mm->from_ns > time_ns && mm->older)
		mm = mm->older;
	return mm;
}

void opd_processes_lost(struct opd_processes *processes, uint64_t from_ns, uint64_t until_ns)
{
	if (!processes->lost_from_ns)
		processes->lost_from_ns = from_ns;
	processes->lost_until_ns = op_max_u64(processes->lost_until_ns, until_ns);
	for (size_t i = 0; i < OPD_CHANGE_SLOTS; i++)
		processes->changes[i]++;
}

struct resync {
	struct opd_processes *processes;
	uint64_t listed_ns;
	opd_gone_check gone_ns;
};

static void resync_visited(struct op_hlink *link, void *arg)
{
	struct opd_process *process = op_container_of(link, struct opd_process, link);
	const struct resync *resync = arg;
	uint64_t gone_ns;

	if (process->exit_ns != UINT64_MAX)
		return;
	process->nr_threads = 0;
	gone_ns = process->listed_ns == resync->listed_ns ? 0 : resync->gone_ns(process->pid);
	if (!gone_ns)
		return;
	process->exit_ns = gone_ns;
	mark_prunable(resync->processes, process);
}

void opd_processes_resync(struct opd_processes *processes, uint64_t listed_ns, opd_gone_check gone_ns)
{
	struct resync resync = { .processes = processes, .listed_ns = listed_ns, .gone_ns = gone_ns };

	op_htable_visit(&processes->by_pid, resync_visited, &resync);
}

/* Frees address spaces that were replaced before the horizon. Returns how many. */
static uint64_t prune_mm(struct opd_process *process, uint64_t horizon_ns)
{
	struct opd_mm *mm = process->mm, *older;

	while (mm->from_ns >= horizon_ns && mm->older)
		mm = mm->older;
	older = mm->older;
	mm->older = NULL;
	return free_mm(older);
}

/*
 * True when the process can leave the list: nothing is left to forget unless something happens to
 * it.
 */
static bool prune_process(struct opd_processes *processes, struct opd_process *process, opd_gone_check gone_ns)
{
	uint64_t ended_ns = 0;

	if (process->exit_ns == UINT64_MAX && process->leader_exited && !process->nr_threads)
		ended_ns = gone_ns(process->pid);
	if (ended_ns)
		process->exit_ns = ended_ns;
	processes->nr_freed += prune_mm(process, processes->horizon_ns);
	prune_names(process->name, processes->horizon_ns);
	return process->exit_ns == UINT64_MAX && !process->leader_exited && !process->mm->older &&
	       !(process->name && process->name->older);
}

static void forget(struct opd_processes *processes, struct opd_process *process)
{
	note_change(processes, process->pid);
	op_htable_remove(&processes->by_pid, &process->link);
	processes->nr_freed += free_process(process);
}

void opd_processes_prune(struct opd_processes *processes, uint64_t horizon_ns, opd_gone_check gone_ns)
{
	struct opd_process **at = &processes->prunable;

	processes->horizon_ns = horizon_ns;
	while (*at) {
		struct opd_process *process = *at;
		bool is_done = prune_process(processes, process, gone_ns), has_ended = process->exit_ns < horizon_ns;

		if (!is_done && !has_ended) {
			at = &process->next_prunable;
			continue;
		}
		*at = process->next_prunable;
		process->prunable = false;
		if (has_ended)
			forget(processes, process);
	}
}

struct visiting {
	uint32_t round;
	void (*visit)(uint64_t cookie, void *arg);
	void *arg;
};

static void visit_process(struct op_hlink *link, void *arg)
{
	const struct opd_process *process = op_container_of(link, struct opd_process, link);
	const struct visiting *visiting = arg;

	for (const struct opd_mm *mm = process->mm; mm; mm = mm->older) {
		visiting->visit(mm->app_cookie, visiting->arg);
		opd_mapset_visit_cookies(mm->maps, visiting->round, visiting->visit, visiting->arg);
	}
	for (const struct opd_name *name = process->name; name; name = name->older)
		visiting->visit(name->program_cookie, visiting->arg);
}

void opd_processes_visit_cookies(struct opd_processes *processes, void (*visit)(uint64_t cookie, void *arg), void *arg)
{
	struct visiting visiting = { ++processes->round, visit, arg };

	op_htable_visit(&processes->by_pid, visit_process, &visiting);
}
