/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pipeline/resolve/jit_lookup.h"

#include <errno.h>

#include "libop/base/clock.h"
#include "pipeline/jit/space.h"

#define RETRY_NS        ((uint64_t)100 * OP_NS_PER_MS)
#define ASK_COST_FACTOR 16u     /* asking one process takes this part of the time at most */
#define SECOND_LETTERS  "/Sadm" /* second letters of the names in opd_jit_may_be_in */
#define BASES_MAX       16u     /* forks that are followed back */
/* then the samples have their turn; one more process may be looked at */
#define LOOK_AT_ONCE_NS (20u * (uint64_t)OP_NS_PER_MS)

bool opd_jit_may_be_in(const char *mapping_name)
{
	static const char *const files[] = { "/memfd:", "/dev/shm/", "/dev/zero", "/SYSV", "/anon_hugepage", "//anon", "[anon" };

	if (mapping_name[0] == '/' && !strchr(SECOND_LETTERS, mapping_name[1]))
		return false;
	for (size_t i = 0; i < op_array_size(files); i++)
		if (!strncmp(mapping_name, files[i], strlen(files[i])))
			return true;
	return !*mapping_name || !strcmp(mapping_name, "[heap]") || !strcmp(mapping_name, "[stack]");
}

/* ---- the space of an address space ---- */

static void refuse_process(struct opd_jit *jit, struct opd_mm *mm)
{
	jit->counters[OP_JIT_refused_processes] += !mm->jit_refused;
	mm->jit_refused = true;
}

/* The images of the space and of samples that wait have one label: a report shows one image. */
static void attach_waiting(struct opd_jit_space *space, struct opd_jit_waiting *waiting)
{
	space->waiting = waiting;
	memcpy(space->label, waiting->label, sizeof(space->label));
}

/* What was known of the process while it lived is better than what its parent says later. */
static void keep_owner(struct opd_mm *mm, struct opd_jit_space *space, bool has_ended)
{
	int proc_fd = space->owner.proc_fd;

	if (mm->jit_owner.is_known && (has_ended || !space->owner.is_known)) {
		space->owner = mm->jit_owner;
		space->owner.proc_fd = proc_fd;
	} else if (space->owner.is_known) {
		mm->jit_owner = space->owner;
		mm->jit_owner.proc_fd = -1;
	}
}

/* The caller must call keep_if_useful. NULL: no memory, or too many spaces. */
static struct opd_jit_space *new_space(struct opd_jit *jit, const struct opd_process *process, struct opd_mm *mm)
{
	const struct opd_jit_process asked = {
		.pid = process->pid,
		.parent_pid = process->parent_pid,
		.began_ns = mm->from_ns,
		.has_ended = process->exit_ns != UINT64_MAX,
		.about = opd_mount_view_about(mm->mount_view, process->pid),
	};
	struct opd_jit_space *space;
	int err = opd_jit_space_new(jit, &asked, &space);

	if (err == -ENFILE)
		refuse_process(jit, mm);
	if (err)
		return NULL;
	space->refused = mm->jit_file_refused;
	keep_owner(mm, space, asked.has_ended);
	if (mm->jit_waiting)
		attach_waiting(space, mm->jit_waiting);
	return space;
}

/*
 * Takes over the reference. Most processes with such memory describe none of it; no descriptor and
 * no space is kept for them.
 */
static void keep_if_useful(struct opd_mm *mm, struct opd_jit_space *space)
{
	mm->jit_file_refused = space->refused;
	mm->jit = opd_jit_space_is_useful(space) ? space : NULL;
	if (!mm->jit) {
		space->waiting = NULL; /* it stays with the address space */
		opd_jit_space_put(space);
	} else if (!space->base) {
		space->base = opd_jit_space_get(mm->jit_base);
	}
}

static void set_base(struct opd_jit_space **base, struct opd_jit_space *space)
{
	struct opd_jit_space *old = *base;

	*base = opd_jit_space_get(space);
	opd_jit_space_put(old);
}

void opd_jit_saw_mapping(struct opd_processes *processes, const struct opd_process *process, struct opd_mm *mm,
			 const struct opd_mapped *mapped)
{
	struct opd_jit_space *space;

	if (!processes->jit || !opd_jit_is_dump(mapped->name) || (mm->jit && mm->jit->dump.file.fd >= 0))
		return;
	space = mm->jit ? mm->jit : new_space(processes->jit, process, mm);
	if (!space)
		return;
	if (opd_jit_space_open_dump(space, mapped->start, mapped->end, mapped->name) == -ENFILE)
		refuse_process(processes->jit, mm);
	keep_if_useful(mm, space);
}

/* ---- samples ---- */

static void ask(struct opd_processes *processes, const struct opd_process *process, struct opd_mm *mm,
		const struct opd_jit_times *times, unsigned int nr_forks);

/* Goes on with the files of a process that were put off, when it has no sample of its own. */
static void read_on(struct opd_mm *mm, const struct opd_jit_times *times)
{
	if (!mm->jit || !mm->jit->put_off)
		return;
	opd_jit_space_refresh(mm->jit, times);
	keep_if_useful(mm, mm->jit);
	if (!mm->jit)
		mm->jit_retry_ns = times->now_ns + RETRY_NS;
}

/*
 * A child may run code that its parent made, and the parent may not have been asked yet. So the
 * parent is asked too, until it has a file or is gone.
 */
static void ask_parent(struct opd_processes *processes, struct opd_mm *mm, const struct opd_jit_times *times, unsigned int nr_forks)
{
	const struct opd_process *parent = opd_process_find(processes, mm->jit_parent);
	struct opd_mm *parent_mm = parent ? opd_process_mm_at(parent, mm->from_ns) : NULL;
	struct opd_jit_space *base;

	if (!parent_mm || parent_mm == mm || parent_mm->from_ns >= mm->from_ns) {
		mm->jit_parent = 0;
		return;
	}
	ask(processes, parent, parent_mm, times, nr_forks);
	read_on(parent_mm, times);
	if (parent_mm->jit && !opd_jit_space_has_read(parent_mm->jit))
		return; /* whether it has code is not known yet */
	base = parent_mm->jit ? parent_mm->jit : parent_mm->jit_base;
	if (!base)
		return;
	set_base(&mm->jit_base, base);
	if (mm->jit)
		set_base(&mm->jit->base, base);
	if (parent_mm->jit)
		mm->jit_parent = 0;
}

/* False: the user has no time left in this visit, and the first question waits for a later one. */
static bool may_ask(struct opd_jit *jit, const struct opd_process *process, const struct opd_mm *mm,
		    const struct opd_jit_times *times)
{
	uid_t uid = mm->jit_owner.uid;

	opd_jit_budget_begin(&jit->budget, times->now_ns);
	if ((!mm->jit_owner.is_known && !opd_jit_owner_uid(process->pid, &uid)) || opd_jit_budget_has_time(&jit->budget, uid))
		return true;
	jit->counters[OP_JIT_put_off]++;
	return false;
}

/*
 * Reads the files of a process and of those that it was forked from. Tries again later until there
 * is a file.
 */
static void ask(struct opd_processes *processes, const struct opd_process *process, struct opd_mm *mm,
		const struct opd_jit_times *times, unsigned int nr_forks)
{
	struct opd_jit_space *space;
	uint64_t begin_ns;

	if (op_likely(times->now_ns < mm->jit_retry_ns))
		return;
	begin_ns = op_now_ns();
	space = mm->jit || !may_ask(processes->jit, process, mm, times) ? NULL : new_space(processes->jit, process, mm);
	if (space) {
		opd_jit_space_refresh(space, times);
		keep_if_useful(mm, space);
	}
	if (mm->jit_parent && nr_forks < BASES_MAX)
		ask_parent(processes, mm, times, nr_forks + 1);
	mm->jit_retry_ns = times->now_ns + op_max_u64(RETRY_NS, ASK_COST_FACTOR * (op_now_ns() - begin_ns));
	if (mm->jit && !mm->jit_parent)
		mm->jit_retry_ns = UINT64_MAX;
}

/* The place of an address in the image of its region, under the label of samples that wait. */
static bool place_in_region(const struct opd_jit_waiting *waiting, uint64_t address, const struct opd_mapping *mapping,
			    struct op_location *ret_location)
{
	uint64_t start = mapping->region_end ? mapping->start - mapping->key : mapping->start;
	uint64_t end = mapping->region_end ? mapping->region_end : mapping->end;
	uint64_t cookie = opd_image_of_region(waiting->waits->table, waiting->label_cookie, waiting->pid, start, end);

	if (cookie == OP_DCOOKIE_NONE)
		return false;
	*ret_location = (struct op_location){ .cookie = cookie, .offset = address - start };
	return true;
}

/* NULL: no process has files that could name it later, or there is no memory. */
static struct opd_jit_waiting *waiting_of(struct opd_processes *processes, const struct opd_process *process, struct opd_mm *mm)
{
	char label[OPD_JIT_LABEL_BYTES];

	if (mm->jit_waiting || !mm->jit_owner.is_known)
		return mm->jit_waiting;
	if (!mm->jit)
		opd_jit_make_label(label);
	mm->jit_waiting = opd_jit_waiting_new(&processes->jit->waits, process->pid, mm->jit_owner.uid,
					      mm->jit ? opd_jit_space_label(mm->jit) : label);
	if (mm->jit)
		mm->jit->waiting = mm->jit_waiting;
	return mm->jit_waiting;
}

/*
 * Memory that is shared under a name is an image of its own, unless the process is known to have
 * JIT code.
 */
static bool may_wait(const struct opd_jit *jit, const struct opd_mm *mm, const struct opd_mapping *mapping)
{
	if (!mapping->region_end)
		return mm->jit;
	return !strcmp(op_dcookie_row(jit->table, mapping->cookie)->id.name.name, OP_ANONYMOUS_LABEL);
}

bool opd_jit_wait(struct opd_processes *processes, const struct opd_process *process, struct opd_mm *mm,
		  const struct opd_mapping *mapping, const struct op_sample *sample, bool is_caller,
		  struct op_location *ret_location)
{
	struct opd_jit_waiting *waiting;

	if (!processes->jit || !may_wait(processes->jit, mm, mapping))
		return false;
	/* The address has a name already, which is not that of this sample. */
	if (mm->jit && opd_jit_map_is_late(&mm->jit->map, sample->ip))
		return false;
	waiting = waiting_of(processes, process, mm);
	if (!waiting)
		return false;
	waiting->has_file = mm->jit;
	return opd_jit_waiting_add(waiting, sample->ip, sample->time_ns, is_caller) &&
	       place_in_region(waiting, sample->ip, mapping, ret_location);
}

static bool find(struct opd_jit_space *space, const struct op_sample *sample, const struct opd_mapping *mapping,
		 struct op_location *ret_location)
{
	switch (opd_jit_space_find(space, sample->ip, sample->time_ns, ret_location)) {
	case OPD_JIT_NOWHERE:
		return false;
	case OPD_JIT_IN_RANGE:
		break;
	case OPD_JIT_AT_ADDRESS:
		return place_in_region(space->waiting, sample->ip, mapping, ret_location);
	}
	return true;
}

bool opd_jit_resolve(struct opd_processes *processes, const struct opd_process *process, struct opd_mm *mm,
		     const struct opd_mapping *mapping, const struct op_sample *sample, uint64_t now_ns,
		     struct op_location *ret_location)
{
	const struct opd_jit_times times = { .now_ns = now_ns, .horizon_ns = processes->horizon_ns };
	struct opd_jit_space *space;

	if (!processes->jit)
		return false;
	ask(processes, process, mm, &times, 0);
	space = mm->jit ? mm->jit : mm->jit_base;
	for (size_t i = 0; i < BASES_MAX && space; i++, space = space->base) {
		opd_jit_space_refresh(space, &times);
		if (find(space, sample, mapping, ret_location))
			return true;
	}
	if (mm->jit) {
		/* A dump that ended without a function is not kept. */
		keep_if_useful(mm, mm->jit);
		if (!mm->jit)
			mm->jit_retry_ns = now_ns + RETRY_NS;
	}
	return false;
}

/* ---- files that are read without a sample ---- */

static struct opd_jit_times times_at(const struct opd_processes *processes, uint64_t now_ns)
{
	return (struct opd_jit_times){ .now_ns = now_ns, .horizon_ns = processes->horizon_ns };
}

/* A process whose samples wait, and that had no file so far, may have one now. */
static void look_for_files(struct opd_processes *processes, const struct opd_process *process, struct opd_mm *mm,
			   const struct opd_jit_times *times)
{
	struct opd_jit_space *space = new_space(processes->jit, process, mm);

	if (!space)
		return;
	opd_jit_space_refresh(space, times);
	keep_if_useful(mm, space);
}

static void look_at_end(struct opd_processes *processes, const struct opd_process *process, uint64_t now_ns)
{
	const struct opd_jit_times times = times_at(processes, now_ns);
	struct opd_mm *mm = process->mm;
	struct opd_jit_space *space = mm->jit;

	if (!space && mm->jit_waiting && mm->jit_waiting->lines.nr_entries)
		space = new_space(processes->jit, process, mm);
	if (!space)
		return;
	opd_jit_space_ends(space, &times);
	if (!mm->jit)
		keep_if_useful(mm, space);
}

/* The number of threads is unknown for a process that opd found in /proc. */
static bool has_ended(const struct opd_processes *processes, const struct opd_process *process, opd_gone_check gone_ns)
{
	if (process->exit_ns != UINT64_MAX)
		return process->exit_ns < processes->horizon_ns;
	return process->leader_exited && !process->nr_threads && gone_ns(process->pid);
}

void opd_jit_look_at_ended(struct opd_processes *processes, uint64_t now_ns, opd_gone_check gone_ns)
{
	const struct opd_jit_times times = times_at(processes, now_ns);

	if (!processes->jit)
		return;
	for (const struct opd_process *process = processes->prunable; process; process = process->next_prunable)
		if ((process->mm->jit || process->mm->jit_waiting) && has_ended(processes, process, gone_ns))
			look_at_end(processes, process, now_ns);
	opd_jit_read_ended(processes->jit, &times);
}

static struct opd_mm *mm_of(const struct opd_process *process, const struct opd_jit_waiting *waiting)
{
	struct opd_mm *mm = process ? process->mm : NULL;

	return mm && mm->jit_waiting == waiting ? mm : NULL;
}

static void look_at_waiting(struct opd_processes *processes, struct opd_jit_waiting *waiting, const struct opd_jit_times *times)
{
	const struct opd_process *process = opd_process_find(processes, waiting->pid);
	struct opd_mm *mm = mm_of(process, waiting);

	if (!mm)
		return;
	if (mm->jit)
		opd_jit_space_refresh(mm->jit, times);
	else
		look_for_files(processes, process, mm, times);
}

bool opd_jit_look_at_waiting(struct opd_processes *processes, uint64_t now_ns, uint64_t since_ns)
{
	const struct opd_jit_times times = times_at(processes, now_ns);
	uint64_t end_ns = op_now_ns() + LOOK_AT_ONCE_NS;

	if (!processes->jit)
		return true;
	for (struct opd_jit_waiting *waiting = processes->jit->waits.first; waiting; waiting = waiting->next) {
		if (waiting->asked_ns >= since_ns || !waiting->lines.nr_entries)
			continue;
		if (op_now_ns() >= end_ns)
			return false;
		waiting->asked_ns = op_now_ns();
		look_at_waiting(processes, waiting, &times);
	}
	return true;
}
