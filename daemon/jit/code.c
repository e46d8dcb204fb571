/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "daemon/jit/code.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#include "daemon/jit/space.h"
#include "libop/base/clock.h"

#define VISIT_MAX_BYTES  ((uint64_t)8 << 20) /* read of all maps and dumps in one visit; the rest in the next */
#define RETRY_NS         ((uint64_t)100 * OP_NS_PER_MS)
#define READ_COST_FACTOR 16u /* the same for reading one process's files */
#define SECOND_LETTERS   "/Sadm" /* of the files below */
#define BASES_MAX        16u /* forks behind each other that are gone back */

void opd_jit_init(struct opd_jit *jit, struct op_dcookie_table *table)
{
	*jit = (struct opd_jit){ .table = table, .max_fd = INT_MAX };
}

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

/* ---- spaces ---- */

void opd_jit_space_free(struct opd_jit_space *space)
{
	struct opd_jit_space *base = space->base;

	*space->link = space->next;
	if (space->next)
		space->next->link = space->link;
	space->jit->nr_spaces--;
	opd_jit_map_free(&space->map);
	opd_jitdump_close(&space->dump);
	opd_jit_owner_close(&space->owner);
	free(space);
	opd_jit_space_put(base);
}

struct opd_jit_space *opd_jit_space_get(struct opd_jit_space *space)
{
	if (space)
		space->refs++;
	return space;
}

/* Of a process that is gone nothing more is read. */
void opd_jit_space_put(struct opd_jit_space *space)
{
	if (!space || --space->refs)
		return;
	opd_jit_owner_close(&space->owner);
	if (opd_jit_space_is_written(space))
		opd_jit_space_free(space);
}

/* There is no descriptor left, or only those that others need. */
static bool is_short(const struct opd_jit *jit, int fd)
{
	return fd == -EMFILE || fd == -ENFILE || fd >= jit->max_fd;
}

static void refuse_process(struct opd_jit *jit, struct opd_mm *mm)
{
	jit->counters[OP_JIT_refused_processes] += !mm->jit_refused;
	mm->jit_refused = true;
}

static struct opd_jit_space *new_space(struct opd_jit *jit, const struct opd_process *process, const struct opd_mm *mm)
{
	struct opd_jit_space *space = calloc(1, sizeof(*space));

	if (!space)
		return NULL;
	*space = (struct opd_jit_space){ .jit = jit, .refs = 1, .next = jit->spaces, .link = &jit->spaces, .refused = mm->jit_file_refused };
	space->map.counters = jit->counters;
	space->dump.fd = space->owner.proc_fd = -1;
	space->owner.pid = process->pid;
	if (process->exit_ns == UINT64_MAX)
		opd_jit_owner_init(&space->owner, process->pid, mm->from_ns);
	if (!space->owner.is_known && !is_short(jit, space->owner.proc_fd))
		opd_jit_owner_init_ended(&space->owner, process->pid, process->parent_pid, mm->from_ns);
	if (space->next)
		space->next->link = &space->next;
	jit->spaces = space;
	jit->nr_spaces++;
	return space;
}

/* To look with; keep_useful or opd_jit_space_put must follow. NULL when there cannot be one. */
static struct opd_jit_space *begin_space(struct opd_jit *jit, const struct opd_process *process, struct opd_mm *mm)
{
	bool is_full = jit->nr_spaces >= OPD_JIT_PROCESSES_MAX;
	struct opd_jit_space *space = is_full ? NULL : new_space(jit, process, mm);

	if (space && !is_short(jit, space->owner.proc_fd))
		return space;
	if (space || is_full)
		refuse_process(jit, mm);
	opd_jit_space_put(space);
	return NULL;
}

/* Most processes with memory of this kind tell nothing of it, and nothing is kept for them: neither a descriptor nor one of the places for those that do. */
static bool is_useful(const struct opd_jit_space *space)
{
	return space->map.nr_functions || (space->dump.fd >= 0 && !space->dump.ended);
}

/* Takes over the reference. */
static void keep_useful(struct opd_mm *mm, struct opd_jit_space *space)
{
	mm->jit_file_refused = space->refused;
	mm->jit = is_useful(space) ? space : NULL;
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

/* ---- reading ---- */

static void refuse(struct opd_jit_space *space)
{
	space->jit->counters[OP_JIT_refused_files] += !space->refused;
	space->refused = true;
}

static void read_perf_map(struct opd_jit_space *space, const struct opd_jit_times *times)
{
	char path[64];
	struct stat st;
	int fd;

	snprintf(path, sizeof(path), "/tmp/perf-%u.map", space->owner.ns_pid);
	fd = opd_jit_owner_open(&space->owner, path, &st);
	if (fd == -EPERM || fd == -ELOOP)
		refuse(space);
	if (fd < 0)
		return;
	if (opd_jit_owner_is_older(&space->owner, &st)) {
		close(fd);
		return;
	}
	/* What could not be kept for want of memory is as if it had not been written. */
	if (opd_perf_map_read(&space->perf_map, fd, &st, &space->map, times, &space->jit->budget) == -ENOMEM)
		space->jit->counters[OP_JIT_refused_memory]++;
	close(fd);
}

static void refresh(struct opd_jit_space *space, const struct opd_jit_times *times)
{
	struct opd_jit *jit = space->jit;
	uint64_t begin_ns;

	if (jit->visit_ns != times->now_ns) {
		jit->visit_ns = times->now_ns;
		jit->budget = VISIT_MAX_BYTES;
	}
	if (space->visit_ns == times->now_ns || times->now_ns < space->next_read_ns)
		return;
	begin_ns = op_now_ns();
	space->visit_ns = times->now_ns;
	read_perf_map(space, times);
	if (opd_jitdump_read(&space->dump, &space->map, times, &jit->budget) == -ENOMEM)
		jit->counters[OP_JIT_refused_memory]++;
	space->next_read_ns = times->now_ns + READ_COST_FACTOR * (op_now_ns() - begin_ns);
}

/* "jit-" digits ".dump" */
static bool is_dump_name(const char *path)
{
	static const char prefix[] = "/jit-", suffix[] = ".dump";
	const char *slash = strrchr(path, '/'), *digits = slash ? slash + strlen(prefix) : NULL;
	size_t nr_digits;

	if (!slash || strncmp(slash, prefix, strlen(prefix)))
		return false;
	nr_digits = strspn(digits, "0123456789");
	return nr_digits && !strncmp(digits + nr_digits, suffix, strlen(suffix));
}

void opd_jit_saw_mapping(struct opd_processes *processes, struct opd_process *process, struct opd_mm *mm,
			 const struct opd_mapped *mapped)
{
	struct opd_jit *jit = processes->jit;
	struct opd_jit_space *space;
	struct stat st;
	int fd;

	if (!jit || !is_dump_name(mapped->name) || (mm->jit && mm->jit->dump.fd >= 0))
		return;
	space = mm->jit ? mm->jit : begin_space(jit, process, mm);
	if (!space)
		return;
	fd = opd_jit_owner_open_mapped(&space->owner, mapped->start, mapped->end, mapped->name, &st);
	if (fd == -EPERM || fd == -ELOOP)
		refuse(space);
	if (is_short(jit, fd)) {
		refuse_process(jit, mm);
		if (fd >= 0)
			close(fd);
	} else if (fd >= 0) {
		space->dump = (struct opd_jitdump){ .fd = fd };
	}
	keep_useful(mm, space);
}

/* ---- looking ---- */

static void look(struct opd_processes *processes, struct opd_process *process, struct opd_mm *mm, const struct opd_jit_times *times,
		 unsigned int nr_forks);

/* The code that a child has from its parent, which may have had no sample in it yet, or none of it. The parent is asked until it is gone. */
static void look_at_parent(struct opd_processes *processes, struct opd_mm *mm, const struct opd_jit_times *times, unsigned int nr_forks)
{
	struct opd_process *parent = opd_process_find(processes, mm->jit_parent);
	struct opd_mm *parent_mm = parent ? opd_process_mm_at(parent, mm->from_ns) : NULL;
	struct opd_jit_space *base;

	if (!parent_mm || parent_mm == mm || parent_mm->from_ns >= mm->from_ns) {
		mm->jit_parent = 0;
		return;
	}
	look(processes, parent, parent_mm, times, nr_forks);
	base = parent_mm->jit ? parent_mm->jit : parent_mm->jit_base;
	if (!base)
		return;
	set_base(&mm->jit_base, base);
	if (mm->jit)
		set_base(&mm->jit->base, base);
	if (parent_mm->jit)
		mm->jit_parent = 0;
}

/* Asks a process, and those that it was forked from, what they tell of their code; again after a while until they do. */
static void look(struct opd_processes *processes, struct opd_process *process, struct opd_mm *mm, const struct opd_jit_times *times,
		 unsigned int nr_forks)
{
	struct opd_jit_space *space;
	uint64_t begin_ns;

	if (op_likely(times->now_ns < mm->jit_retry_ns))
		return;
	begin_ns = op_now_ns();
	space = mm->jit ? NULL : begin_space(processes->jit, process, mm);
	if (space) {
		refresh(space, times);
		keep_useful(mm, space);
	}
	if (mm->jit_parent && nr_forks < BASES_MAX)
		look_at_parent(processes, mm, times, nr_forks + 1);
	mm->jit_retry_ns = times->now_ns + op_max_u64(RETRY_NS, READ_COST_FACTOR * (op_now_ns() - begin_ns));
	if (mm->jit && !mm->jit_parent)
		mm->jit_retry_ns = UINT64_MAX;
}

/* A dump that says nothing and has come to its end is not waited for. */
static void drop_useless(struct opd_mm *mm, uint64_t now_ns)
{
	keep_useful(mm, mm->jit);
	if (!mm->jit)
		mm->jit_retry_ns = now_ns + RETRY_NS;
}

/* ---- samples ---- */

/* A name of its own for each space: pids come again, and an opd before this one may have filed the same process. */
static uint64_t cookie_of(struct opd_jit_space *space)
{
	char label[32];
	struct op_image_id id = {
		.name = {
			.kind = OP_IMAGE_ANON,
			.name = label,
			.tgid = (int32_t)space->owner.pid,
			.start = OPD_JIT_RANGE_START,
			.end = OPD_JIT_RANGE_START + OPD_JIT_RANGE_BYTES,
		},
	};

	if (space->cookie != OP_DCOOKIE_NONE)
		return space->cookie;
	snprintf(label, sizeof(label), OPD_JIT_LABEL "%llx", (unsigned long long)op_clock_ns(CLOCK_REALTIME) / 1000u);
	space->cookie = op_dcookie_get(space->jit->table, &id);
	space->jit->counters[OP_JIT_processes]++;
	return space->cookie;
}

bool opd_jit_resolve(struct opd_processes *processes, struct opd_process *process, struct opd_mm *mm,
		     const struct op_sample *sample, uint64_t now_ns, struct op_location *ret_location)
{
	const struct opd_jit_times times = { .now_ns = now_ns, .horizon_ns = processes->horizon_ns };
	struct opd_jit_space *space;

	if (!processes->jit)
		return false;
	look(processes, process, mm, &times, 0);
	space = mm->jit ? mm->jit : mm->jit_base;
	for (size_t i = 0; i < BASES_MAX && space; i++, space = space->base) {
		struct op_location location;

		refresh(space, &times);
		if (!opd_jit_map_find(&space->map, sample->ip, sample->time_ns, &location.offset))
			continue;
		location.cookie = cookie_of(space);
		if (location.cookie == OP_DCOOKIE_NONE)
			return false;
		*ret_location = location;
		return true;
	}
	if (mm->jit)
		drop_useless(mm, now_ns);
	return false;
}

void opd_jit_visit_cookies(const struct opd_jit *jit, void (*visit)(uint64_t cookie, void *arg), void *arg)
{
	for (const struct opd_jit_space *space = jit->spaces; space; space = space->next)
		visit(space->cookie, arg);
}

void opd_jit_forget_paths(struct opd_jit_paths *paths)
{
	for (size_t i = 0; i < paths->nr; i++)
		free(paths->paths[i]);
	free(paths->paths);
	*paths = (struct opd_jit_paths){ 0 };
}

void opd_jit_free(struct opd_jit *jit)
{
	while (jit->spaces) {
		jit->spaces->base = NULL;
		opd_jit_space_free(jit->spaces);
	}
	opd_jit_forget_paths(&jit->changed);
	opd_jit_forget_paths(&jit->failed);
	*jit = (struct opd_jit){ 0 };
}
