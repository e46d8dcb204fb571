/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pipeline/jit/space.h"

#include <errno.h>
#include <limits.h>
#include <unistd.h>

#include "libop/base/clock.h"
#include "pipeline/files/lookers.h"

void opd_jit_init(struct opd_jit *jit, struct op_dcookie_table *table)
{
	*jit = (struct opd_jit){ .table = table, .max_fd = INT_MAX, .write_since_ns = UINT64_MAX };
	jit->waits.table = table;
	jit->waits.counters = jit->counters;
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
	opd_jit_waiting_free(space->waiting);
	opd_far_close(&space->map_file);
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
	if (!space || --space->refs || space->ends_ns)
		return;
	/* The process is gone: nothing more is read from it. */
	opd_jit_owner_close(&space->owner);
	opd_far_close(&space->map_file);
	if (opd_jit_space_is_written(space))
		opd_jit_space_free(space);
}

/* True when there is no descriptor left, or only those that are for others. */
static bool is_short(const struct opd_jit *jit, int fd)
{
	return fd == -EMFILE || fd == -ENFILE || fd >= jit->max_fd;
}

/* The first question is charged to the user, whom only the answer tells for sure. */
static void ask_owner(struct opd_jit_space *space, const struct opd_jit_process *process)
{
	struct opd_jit_budget *budget = &space->jit->budget;
	const struct opd_jit_allowance allowance = opd_jit_budget_allowance(budget);

	opd_jit_owner_ask(&space->owner, space->jit->lookers, process);
	space->jit->counters[OP_JIT_cpu_ns] +=
		opd_jit_budget_charge(budget, space->owner.is_known ? space->owner.uid : OPD_JIT_NOBODY, &allowance);
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
	space->dump.file.fd = space->map_file.fd = -1;
	space->about = process->about;
	ask_owner(space, process);
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

/*
 * The map by the descriptor of the last reading. When the process has ended, its root directory is
 * gone, and in a container there is no other way to the map.
 */
static int use_known_map(const struct opd_jit_space *space, struct stat *ret_stat)
{
	struct stat st;
	uint64_t nr_bytes;
	int err;

	opd_perf_map_is_read(&space->perf_map, &st);
	err = opd_far_length(&space->map_file, &nr_bytes);
	if (err)
		return err;
	if ((uint64_t)st.st_size != nr_bytes)
		clock_gettime(CLOCK_REALTIME, &st.st_mtim);
	st.st_size = (off_t)nr_bytes;
	*ret_stat = st;
	return 0;
}

/* Opens the map by its path, as space->map_file, unless it was read to its end before. */
static int find_map(struct opd_jit_space *space, struct stat *ret_stat, bool *ret_is_read)
{
	struct opd_jit_wanted wanted = { 0 };
	struct opd_far_file file;
	struct stat known;
	char path[64];
	int err;

	snprintf(path, sizeof(path), "/tmp/perf-%u.map", space->owner.ns_pid);
	wanted.path = path;
	wanted.known = opd_perf_map_is_read(&space->perf_map, &known) ? &known : NULL;
	err = opd_jit_owner_ask_file(&space->owner, space->jit->lookers, &space->about, &wanted, &file, ret_stat);
	if (err)
		return err;
	*ret_is_read = file.fd < 0;
	if (*ret_is_read)
		return 0;
	if (opd_jit_owner_is_older(&space->owner, ret_stat)) {
		opd_far_close(&file);
		return -ESTALE;
	}
	opd_far_close(&space->map_file);
	space->map_file = file;
	return 0;
}

static void read_perf_map(struct opd_jit_space *space, const struct opd_jit_times *times, struct opd_jit_allowance *allowance)
{
	bool has_known = space->map_file.fd >= 0 && !opd_far_is_lost(&space->map_file), is_read = false;
	struct stat st;
	int err = space->ends_ns && has_known ? use_known_map(space, &st) : find_map(space, &st, &is_read);

	if (err == -ENOENT && has_known && !space->ends_ns)
		err = use_known_map(space, &st);
	if (err == -EPERM || err == -ELOOP)
		refuse_file(space);
	if (err == -ENOENT)
		space->perf_map.more = false;
	if (err || is_read)
		return;
	/* Without memory the functions are unknown, as if the process had not written them. */
	if (opd_perf_map_read(&space->perf_map, &space->map_file, &st, &space->map, times, allowance) == -ENOMEM)
		space->jit->counters[OP_JIT_refused_memory]++;
	if (!space->map_file.lookers && is_short(space->jit, space->map_file.fd))
		opd_far_close(&space->map_file);
}

/* Functions that ended while samples wait are kept: their names may be the ones. */
static struct opd_jit_times times_of(const struct opd_jit_space *space, const struct opd_jit_times *times)
{
	struct opd_jit_times wanted = *times;

	wanted.has_ended = space->ends_ns;
	if (space->waiting && space->waiting->lines.nr_entries)
		wanted.horizon_ns = op_min_u64(wanted.horizon_ns, space->waiting->first_ns);
	return wanted;
}

/* Counts a process that has a function with samples. */
static void count_process(struct opd_jit_space *space)
{
	space->jit->counters[OP_JIT_processes] += space->map.nr_sampled && !space->is_counted;
	space->is_counted |= space->map.nr_sampled > 0;
}

/* Opens the dump, as dump->file. */
static int open_dump(struct opd_jit_space *space, struct opd_jitdump *dump, const char *path, struct stat *ret_stat)
{
	const struct opd_jit_wanted wanted = { .path = path, .start = dump->start, .end = dump->end };
	struct opd_far_file file;
	int err = opd_jit_owner_ask_file(&space->owner, space->jit->lookers, &space->about, &wanted, &file, ret_stat);

	if (err == -EPERM || err == -ELOOP)
		refuse_file(space);
	if (!err && !file.lookers && is_short(space->jit, file.fd)) {
		opd_far_close(&file);
		err = -ENFILE;
	}
	if (err)
		return is_short(space->jit, err) ? -ENFILE : err;
	dump->file = file;
	return 0;
}

/* With a looker its descriptors are gone. The reading goes on where it was, in the same file. */
static void open_lost_dump(struct opd_jit_space *space)
{
	struct opd_jitdump *dump = &space->dump, again = *dump;
	struct stat st;

	if (!opd_far_is_lost(&dump->file) || !dump->path || open_dump(space, &again, dump->path, &st))
		return;
	if (st.st_dev == dump->device && st.st_ino == dump->inode)
		dump->file = again.file;
	else
		opd_far_close(&again.file);
}

static void read_files(struct opd_jit_space *space, const struct opd_jit_times *times, struct opd_jit_allowance *allowance)
{
	const struct opd_jit_times wanted = times_of(space, times);
	struct opd_jit *jit = space->jit;

	if (!space->map.user)
		space->map.user = opd_jit_use_get(&jit->waits.users, space->owner.uid);
	space->map.keeps_added = space->waiting && space->waiting->lines.nr_entries;
	read_perf_map(space, &wanted, allowance);
	open_lost_dump(space);
	if (opd_jitdump_read(&space->dump, &space->map, &wanted, allowance) == -ENOMEM)
		jit->counters[OP_JIT_refused_memory]++;
	/* Before the end of the files, other code may still turn out to have been there. */
	if (space->waiting && space->map.nr_added && !allowance->is_spent)
		opd_jit_waiting_name(space->waiting, &space->map, allowance);
	count_process(space);
	jit->counters[OP_JIT_cpu_ns] += opd_jit_budget_charge(&jit->budget, space->owner.uid, allowance);
	jit->counters[OP_JIT_cpu_longest_ns] = op_max_u64(jit->counters[OP_JIT_cpu_longest_ns], jit->budget.spent_ns);
}

static uint64_t nr_unanswered(const struct opd_jit *jit)
{
	return jit->lookers ? opd_lookers_nr_unanswered(jit->lookers) : 0;
}

void opd_jit_space_refresh(struct opd_jit_space *space, const struct opd_jit_times *times)
{
	struct opd_jit *jit = space->jit;
	struct opd_jit_allowance allowance = { .is_spent = true };
	uint64_t before = nr_unanswered(jit);

	if (space->visit_ns == times->now_ns)
		return;
	space->visit_ns = times->now_ns;
	opd_jit_budget_begin(&jit->budget, times->now_ns);
	if (opd_jit_budget_grant(&jit->budget, space->owner.uid, &space->round, &allowance))
		read_files(space, times, &allowance);
	/* On a busy machine the answer may come too late, and a later visit asks again. */
	space->put_off = allowance.is_spent || nr_unanswered(jit) != before;
	jit->counters[OP_JIT_put_off] += allowance.is_spent;
}

/* ---- the end of a process ---- */

void opd_jit_space_ends(struct opd_jit_space *space, const struct opd_jit_times *times)
{
	if (space->ends_ns)
		return;
	space->ends_ns = times->now_ns + OPD_JIT_ENDING_NS;
	space->visit_ns = 0;
	opd_jit_space_refresh(space, times);
}

/* True when nothing more is read of it. */
static bool has_ended(struct opd_jit_space *space, const struct opd_jit_times *times)
{
	if (!space->ends_ns || space->refs)
		return false;
	if (space->put_off && times->now_ns < space->ends_ns)
		opd_jit_space_refresh(space, times);
	return !space->put_off || times->now_ns >= space->ends_ns;
}

void opd_jit_read_ended(struct opd_jit *jit, const struct opd_jit_times *times)
{
	struct opd_jit_space *space = jit->spaces;

	while (space) {
		if (!has_ended(space, times)) {
			space = space->next;
			continue;
		}
		space->ends_ns = 0;
		opd_jit_space_put(opd_jit_space_get(space));
		space = jit->spaces; /* others may have gone with it */
	}
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
	struct opd_jitdump dump = { .start = start, .end = end };
	struct stat st;
	int err = open_dump(space, &dump, path, &st);

	if (err)
		return err;
	dump.path = strdup(path); /* without memory it is not opened again */
	dump.device = st.st_dev;
	dump.inode = st.st_ino;
	opd_jitdump_close(&space->dump);
	space->dump = dump;
	return 0;
}

/* ---- samples ---- */

const char *opd_jit_space_label(struct opd_jit_space *space)
{
	if (!space->label[0])
		opd_jit_make_label(space->label);
	return space->label;
}

/*
 * Each space has its own name: pids are used again, and an earlier opd may have filed the same
 * process.
 */
static uint64_t cookie_of(struct opd_jit_space *space)
{
	struct op_image_id id = {
		.name = {
			.kind = OP_IMAGE_ANON,
			.name = opd_jit_space_label(space),
			.tgid = (int32_t)space->owner.pid,
			.start = OPD_JIT_RANGE_START,
			.end = OPD_JIT_RANGE_START + OPD_JIT_RANGE_BYTES,
		},
	};

	if (space->cookie == OP_DCOOKIE_NONE)
		space->cookie = op_dcookie_get(space->jit->table, &id);
	return space->cookie;
}

enum opd_jit_place opd_jit_space_find(struct opd_jit_space *space, uint64_t address, uint64_t time_ns,
				      struct op_location *ret_location)
{
	struct op_location location;
	enum opd_jit_place place = opd_jit_map_find(&space->map, address, time_ns, &location.offset);

	if (place != OPD_JIT_IN_RANGE)
		return place;
	count_process(space);
	location.cookie = cookie_of(space);
	if (location.cookie == OP_DCOOKIE_NONE)
		return OPD_JIT_NOWHERE;
	*ret_location = location;
	return place;
}

void opd_jit_visit_cookies(const struct opd_jit *jit, void (*visit)(uint64_t cookie, void *arg), void *arg)
{
	for (const struct opd_jit_space *space = jit->spaces; space; space = space->next)
		visit(space->cookie, arg);
	opd_jit_waits_visit_cookies(&jit->waits, visit, arg);
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
