/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "daemon/count/jit_objects.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "daemon/count/sample_file.h"
#include "daemon/count/session_files.h"
#include "daemon/jit/object.h"
#include "daemon/jit/space.h"
#include "libop/base/clock.h"
#include "libop/base/grow.h"
#include "libop/session/layout.h"

#define WRITE_INTERVAL_NS (10u * (uint64_t)OP_NS_PER_S)
#define WRITE_COST_FACTOR 100u /* writing objects takes at most this part of the time */
/* objects that wait for a dump; with more, the dump writes everything */
#define CHANGED_MAX       4096

/* An object and its place. */
struct target {
	struct opd_jit_space *space;
	char *path;
};

struct targets {
	struct opd_jit *jit;
	struct target *targets;
	size_t nr_targets, capacity;
};

/* ".../{anon:JIT}/TGID.START.END/EVENT" to ".../{anon:JIT}/TGID.jo"; NULL without memory. */
static char *object_path(const char *sample_path, uint32_t pid)
{
	struct op_text path = { 0 };
	char *slash;

	op_text_add(&path, sample_path);
	for (int i = 0; i < 2 && !path.failed; i++) {
		slash = strrchr(path.data, '/');
		op_text_truncate(&path, slash ? (size_t)(slash - path.data) : 0);
	}
	op_text_printf(&path, "/%u.jo", pid);
	return op_text_steal(&path);
}

static struct opd_jit_space *find_space(const struct opd_jit *jit, uint64_t cookie)
{
	const struct op_image_name *name = &op_dcookie_row(jit->table, cookie)->id.name;
	struct opd_jit_space *space = jit->spaces;

	if (name->kind != OP_IMAGE_ANON || strncmp(name->name, OPD_JIT_LABEL, strlen(OPD_JIT_LABEL)))
		return NULL;
	while (space && space->cookie != cookie)
		space = space->next;
	return space;
}

static void note_target(uint64_t image_cookie, const char *sample_path, void *arg)
{
	struct targets *targets = arg;
	struct target target = { .space = find_space(targets->jit, image_cookie) };

	if (!target.space)
		return;
	target.path = object_path(sample_path, target.space->owner.pid);
	if (!target.path)
		return;
	for (size_t i = targets->nr_targets; i > 0; i--) {
		if (!strcmp(targets->targets[i - 1].path, target.path)) {
			free(target.path);
			return;
		}
	}
	if (!op_grow(&targets->targets, &targets->capacity, targets->nr_targets + 1)) {
		free(target.path);
		return;
	}
	targets->targets[targets->nr_targets++] = target;
}

/* Takes over the path. False without memory. */
static bool add_path(struct opd_jit_paths *paths, char *path)
{
	char **more = reallocarray(paths->paths, paths->nr + 1, sizeof(*more));

	if (!more) {
		free(path);
		return false;
	}
	paths->paths = more;
	more[paths->nr++] = path;
	return true;
}

static bool has_path(const struct opd_jit_paths *paths, const char *path)
{
	for (size_t i = 0; i < paths->nr; i++)
		if (!strcmp(paths->paths[i], path))
			return true;
	return false;
}

/* The object lacks functions, could not be written, or is missing. */
static bool is_outdated(const struct target *target, int session_fd, const struct opd_jit_paths *failed)
{
	const struct opd_jit_space *space = target->space;

	return space->nr_written != space->map.nr_sampled || has_path(failed, target->path) ||
	       faccessat(session_fd, target->path, F_OK, AT_SYMLINK_NOFOLLOW) < 0;
}

/* Takes over the path. Without memory to note it, all objects of the space are written again. */
static void note_failure(struct opd_jit *jit, const struct target *target)
{
	struct opd_jit_space *space = target->space;

	jit->counters[OP_JIT_failed_objects]++;
	if (add_path(&jit->failed, target->path))
		space->nr_failed++;
	else
		space->nr_written = UINT32_MAX;
}

/* Takes over the path. */
static void write_target(struct opd_jit *jit, struct opd_count *count, const struct target *target)
{
	const struct opd_jit_space *space = target->space;
	struct op_odb_pending *pending;
	uint64_t dir_bytes;
	int err = opd_jit_object_write(count->session_fd, target->path, OP_SESSION_TMP_SAMPLE, &space->map, &space->dump,
				       &dir_bytes, &pending);

	if (err) {
		note_failure(jit, target);
		return;
	}
	count->limit.space.taken_bytes += dir_bytes;
	opd_count_sync_later(count, pending);
	jit->counters[OP_JIT_objects]++;
	add_path(&jit->changed, target->path);
}

/* A space may have several objects. Only the failed ones are tried again. */
static void write_targets(struct opd_jit *jit, struct opd_count *count, struct targets *targets)
{
	struct opd_jit_paths failed = jit->failed;

	jit->failed = (struct opd_jit_paths){ 0 };
	for (size_t i = 0; i < targets->nr_targets; i++)
		targets->targets[i].space->nr_failed = 0;
	for (size_t i = 0; i < targets->nr_targets; i++) {
		if (is_outdated(&targets->targets[i], count->session_fd, &failed))
			write_target(jit, count, &targets->targets[i]);
		else
			free(targets->targets[i].path);
	}
	for (size_t i = 0; i < targets->nr_targets; i++) {
		struct opd_jit_space *space = targets->targets[i].space;

		space->nr_written = space->nr_written == UINT32_MAX ? 0 : space->map.nr_sampled;
	}
	opd_jit_forget_paths(&failed);
}

/* Frees spaces of processes that are gone, when their objects are written or have no samples. */
static void free_spaces(struct opd_jit *jit, const struct targets *targets)
{
	struct opd_jit_space *space, *next;

	for (space = jit->spaces; space; space = next) {
		bool has_target = false;

		next = space->next;
		for (size_t i = 0; i < targets->nr_targets && !has_target; i++)
			has_target = targets->targets[i].space == space;
		if (space->refs || (has_target && !opd_jit_space_is_written(space)))
			continue;
		opd_jit_space_free(space);
		next = jit->spaces; /* its base may have gone with it */
	}
}

void opd_jit_write(struct opd_jit *jit, struct opd_count *count, uint64_t now_ns, bool at_once)
{
	struct targets targets = { .jit = jit };
	uint64_t begin_ns = op_now_ns();

	/* There was no dump for a long time. */
	if (jit->changed.nr >= CHANGED_MAX) {
		opd_jit_forget_paths(&jit->changed);
		count->forgot_changed = true;
	}

	if (!jit->spaces || (!at_once && now_ns < jit->next_write_ns))
		return;
	opd_count_visit_files(count, note_target, &targets);
	write_targets(jit, count, &targets);
	free_spaces(jit, &targets);
	free(targets.targets);
	jit->next_write_ns = now_ns + op_max_u64(WRITE_INTERVAL_NS, WRITE_COST_FACTOR * (op_now_ns() - begin_ns));
}

int opd_jit_take_changed(struct opd_jit *jit, char ***paths, size_t *nr_paths)
{
	char **all;

	if (!jit->changed.nr)
		return 0;
	all = reallocarray(*paths, *nr_paths + jit->changed.nr, sizeof(*all));
	if (!all)
		return -ENOMEM;
	memcpy(all + *nr_paths, jit->changed.paths, jit->changed.nr * sizeof(*all));
	*paths = all;
	*nr_paths += jit->changed.nr;
	jit->changed.nr = 0;
	return 0;
}

void opd_jit_forget_changed(struct opd_jit *jit)
{
	opd_jit_forget_paths(&jit->changed);
}
