/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "daemon/resolve/jit_lookup.h"

#include <errno.h>

#include "daemon/jit/space.h"
#include "libop/base/clock.h"

#define RETRY_NS        ((uint64_t)100 * OP_NS_PER_MS)
#define ASK_COST_FACTOR 16u     /* asking one process takes this part of the time at most */
#define SECOND_LETTERS  "/Sadm" /* second letters of the names in opd_jit_may_be_in */
#define BASES_MAX       16u     /* forks that are followed back */

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
	if (!mm->jit)
		opd_jit_space_put(space);
	else if (!space->base)
		space->base = opd_jit_space_get(mm->jit_base);
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
	space = mm->jit ? NULL : new_space(processes->jit, process, mm);
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

bool opd_jit_resolve(struct opd_processes *processes, const struct opd_process *process, struct opd_mm *mm,
		     const struct op_sample *sample, uint64_t now_ns, struct op_location *ret_location)
{
	const struct opd_jit_times times = { .now_ns = now_ns, .horizon_ns = processes->horizon_ns };
	struct opd_jit_space *space;

	if (!processes->jit)
		return false;
	ask(processes, process, mm, &times, 0);
	space = mm->jit ? mm->jit : mm->jit_base;
	for (size_t i = 0; i < BASES_MAX && space; i++, space = space->base) {
		opd_jit_space_refresh(space, &times);
		if (opd_jit_space_find(space, sample->ip, sample->time_ns, ret_location))
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
