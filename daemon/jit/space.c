/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "daemon/jit/space.h"

#include <errno.h>
#include <limits.h>
#include <unistd.h>

#include "libop/base/clock.h"

void opd_jit_init(struct opd_jit *jit, struct op_dcookie_table *table)
{
	*jit = (struct opd_jit){ .table = table, .max_fd = INT_MAX, .write_since_ns = UINT64_MAX };
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

void opd_jit_space_put(struct opd_jit_space *space)
{
	if (!space || --space->refs)
		return;
	/* The process is gone: nothing more is read from it. */
	opd_jit_owner_close(&space->owner);
	if (opd_jit_space_is_written(space))
		opd_jit_space_free(space);
}

/* True when there is no descriptor left, or only those that are for others. */
static bool is_short(const struct opd_jit *jit, int fd)
{
	return fd == -EMFILE || fd == -ENFILE || fd >= jit->max_fd;
}

int opd_jit_space_new(struct opd_jit *jit, const struct opd_jit_process *process, struct opd_jit_space **ret_space)
{
	struct opd_jit_space *space;

	if (jit->nr_spaces >= OPD_JIT_SPACES_MAX)
		return -ENFILE;
	space = calloc(1, sizeof(*space));
	if (!space)
		return -ENOMEM;
	*space = (struct opd_jit_space){ .jit = jit, .refs = 1, .next = jit->spaces, .link = &jit->spaces };
	space->map.counters = jit->counters;
	space->dump.file.fd = -1;
	space->about = process->about;
	opd_jit_owner_ask(&space->owner, jit->lookers, process);
	if (space->next)
		space->next->link = &space->next;
	jit->spaces = space;
	jit->nr_spaces++;
	if (is_short(jit, space->owner.proc_fd)) {
		opd_jit_space_put(space);
		return -ENFILE;
	}
	*ret_space = space;
	return 0;
}

/* ---- reading ---- */

static void refuse_file(struct opd_jit_space *space)
{
	space->jit->counters[OP_JIT_refused_files] += !space->refused;
	space->refused = true;
}

static void read_perf_map(struct opd_jit_space *space, const struct opd_jit_times *times, struct opd_jit_allowance *allowance)
{
	struct opd_jit_wanted wanted = { 0 };
	struct opd_far_file file;
	struct stat st, known;
	char path[64];
	int err;

	snprintf(path, sizeof(path), "/tmp/perf-%u.map", space->owner.ns_pid);
	wanted.path = path;
	wanted.known = opd_perf_map_is_read(&space->perf_map, &known) ? &known : NULL;
	err = opd_jit_owner_ask_file(&space->owner, space->jit->lookers, &space->about, &wanted, &file, &st);
	if (err == -EPERM || err == -ELOOP)
		refuse_file(space);
	if (err == -ENOENT)
		space->perf_map.more = false;
	if (err || file.fd < 0)
		return;
	/* Without memory the functions are unknown, as if the process had not written them. */
	if (!opd_jit_owner_is_older(&space->owner, &st) &&
	    opd_perf_map_read(&space->perf_map, &file, &st, &space->map, times, allowance) == -ENOMEM)
		space->jit->counters[OP_JIT_refused_memory]++;
	opd_far_close(&file);
}

static void read_files(struct opd_jit_space *space, const struct opd_jit_times *times, struct opd_jit_allowance *allowance)
{
	struct opd_jit *jit = space->jit;

	read_perf_map(space, times, allowance);
	if (opd_jitdump_read(&space->dump, &space->map, times, allowance) == -ENOMEM)
		jit->counters[OP_JIT_refused_memory]++;
	jit->counters[OP_JIT_cpu_ns] += opd_jit_budget_charge(&jit->budget, space->owner.uid, allowance);
	jit->counters[OP_JIT_cpu_longest_ns] = op_max_u64(jit->counters[OP_JIT_cpu_longest_ns], jit->budget.spent_ns);
}

void opd_jit_space_refresh(struct opd_jit_space *space, const struct opd_jit_times *times)
{
	struct opd_jit *jit = space->jit;
	struct opd_jit_allowance allowance = { .is_spent = true };

	if (space->visit_ns == times->now_ns)
		return;
	space->visit_ns = times->now_ns;
	opd_jit_budget_begin(&jit->budget, times->now_ns);
	if (opd_jit_budget_grant(&jit->budget, space->owner.uid, &space->round, &allowance))
		read_files(space, times, &allowance);
	space->put_off = allowance.is_spent;
	jit->counters[OP_JIT_put_off] += space->put_off;
}

/* The last component is "jit-", digits and ".dump". */
bool opd_jit_is_dump(const char *path)
{
	static const char prefix[] = "/jit-", suffix[] = ".dump";
	const char *slash = strrchr(path, '/'), *digits = slash ? slash + strlen(prefix) : NULL;
	size_t nr_digits;

	if (!slash || strncmp(slash, prefix, strlen(prefix)))
		return false;
	nr_digits = strspn(digits, "0123456789");
	return nr_digits && !strncmp(digits + nr_digits, suffix, strlen(suffix));
}

int opd_jit_space_open_dump(struct opd_jit_space *space, uint64_t start, uint64_t end, const char *path)
{
	const struct opd_jit_wanted wanted = { .path = path, .start = start, .end = end };
	struct opd_far_file file;
	struct stat st;
	int err = opd_jit_owner_ask_file(&space->owner, space->jit->lookers, &space->about, &wanted, &file, &st);

	if (err == -EPERM || err == -ELOOP)
		refuse_file(space);
	if (!err && !file.lookers && is_short(space->jit, file.fd)) {
		opd_far_close(&file);
		err = -ENFILE;
	}
	if (err)
		return is_short(space->jit, err) ? -ENFILE : err;
	space->dump = (struct opd_jitdump){ .file = file };
	return 0;
}

/* ---- samples ---- */

/*
 * Each space has its own name: pids are used again, and an earlier opd may have filed the same
 * process.
 */
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

bool opd_jit_space_find(struct opd_jit_space *space, uint64_t address, uint64_t time_ns, struct op_location *ret_location)
{
	struct op_location location;

	if (!opd_jit_map_find(&space->map, address, time_ns, &location.offset))
		return false;
	location.cookie = cookie_of(space);
	if (location.cookie == OP_DCOOKIE_NONE)
		return false;
	*ret_location = location;
	return true;
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
