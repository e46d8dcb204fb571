/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pipeline/count/jit_objects.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "libop/base/clock.h"
#include "libop/base/grow.h"
#include "libop/session/layout.h"
#include "pipeline/count/sample_file.h"
#include "pipeline/count/session_files.h"
#include "pipeline/jit/object.h"
#include "pipeline/jit/space.h"

#define WRITE_INTERVAL_NS (10u * (uint64_t)OP_NS_PER_S)
#define WRITE_COST_FACTOR 100u /* writing objects takes at most this part of the time */
/* then the samples have their turn; the objects of one more process may be written */
#define WRITE_AT_ONCE_NS (20u * (uint64_t)OP_NS_PER_MS)
/* objects that wait for a dump; with more, the dump writes everything */
#define CHANGED_MAX 4096

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

/* An object names all images of its process and label. NULL: there is nothing to name. */
static struct opd_jit_space *find_space(const struct opd_jit *jit, uint64_t cookie)
{
	const struct op_image_name *name = &op_dcookie_row(jit->table, cookie)->id.name;
	struct opd_jit_space *space = jit->spaces;

	if (name->kind != OP_IMAGE_ANON || strncmp(name->name, OP_JIT_LABEL, strlen(OP_JIT_LABEL)))
		return NULL;
	while (space && ((int32_t)space->owner.pid != name->tgid || strcmp(space->label, name->name) != 0))
		space = space->next;
	return space && space->map.nr_sampled ? space : NULL;
}

/* Takes over the path; NULL: no memory. */
static void add_target(struct targets *targets, struct opd_jit_space *space, char *path)
{
	struct target target = { .space = space, .path = path };

	if (!target.path)
		return;
	for (size_t i = targets->nr_targets; i > 0; i--) {
		if (targets->targets[i - 1].space == target.space && !strcmp(targets->targets[i - 1].path, target.path)) {
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

static void note_target(uint64_t image_cookie, const char *sample_path, void *arg)
{
	struct targets *targets = arg;
	struct opd_jit_space *space = find_space(targets->jit, image_cookie);

	if (space)
		add_target(targets, space, object_path(sample_path, space->owner.pid));
}

/* Stacks have frames in code of which no sample file has samples. */
static void note_targets_of_stacks(struct targets *targets, const struct opd_count *count)
{
	for (size_t i = 0; i < count->stacks.nr_jit_images; i++) {
		uint64_t cookie = count->stacks.jit_images[i];
		struct opd_jit_space *space = find_space(targets->jit, cookie);
		struct op_text path = { 0 };

		if (!space)
			continue;
		op_text_add(&path, OP_SESSION_CURRENT "/");
		op_mangle_jit_object(&op_dcookie_row(count->table, cookie)->id.name, &path);
		add_target(targets, space, op_text_steal(&path));
	}
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

/* Those that waited longest come first, and the objects of a space follow each other. */
static int compare_targets(const void *left, const void *right)
{
	const struct opd_jit_space *a = ((const struct target *)left)->space, *b = ((const struct target *)right)->space;

	if (a->tried_ns != b->tried_ns)
		return a->tried_ns < b->tried_ns ? -1 : 1;
	return a < b ? -1 : a > b;
}

/* A space may have several objects. Only the failed ones are tried again. */
static void write_space(struct opd_jit *jit, struct opd_count *count, const struct target *targets, size_t nr_targets,
			const struct opd_jit_paths *failed)
{
	struct opd_jit_space *space = targets->space;

	space->nr_failed = 0;
	for (size_t i = 0; i < nr_targets; i++) {
		if (is_outdated(&targets[i], count->session_fd, failed))
			write_target(jit, count, &targets[i]);
		else
			free(targets[i].path);
	}
	space->nr_written = space->nr_written == UINT32_MAX ? 0 : space->map.nr_sampled;
	space->tried_ns = op_now_ns();
}

/* A space whose turn comes later. Takes over the paths. */
static void pass_over(struct opd_jit *jit, const struct target *targets, size_t nr_targets, const struct opd_jit_paths *failed)
{
	for (size_t i = 0; i < nr_targets; i++) {
		if (!has_path(failed, targets[i].path))
			free(targets[i].path);
		else if (!add_path(&jit->failed, targets[i].path))
			targets[i].space->nr_written = UINT32_MAX;
	}
}

/* False: spaces are left that were not tried since since_ns. */
static bool write_targets(struct opd_jit *jit, struct opd_count *count, const struct targets *all, uint64_t since_ns)
{
	uint64_t end_ns = UINT64_MAX; /* one space is always tried */
	struct opd_jit_paths failed = jit->failed;
	const struct target *targets = all->targets;
	bool is_over = false;
	size_t nr;

	jit->failed = (struct opd_jit_paths){ 0 };
	if (all->nr_targets)
		qsort(all->targets, all->nr_targets, sizeof(*targets), compare_targets);
	for (size_t i = 0; i < all->nr_targets; i += nr, targets += nr) {
		bool is_tried = targets->space->tried_ns >= since_ns;

		nr = 1;
		while (i + nr < all->nr_targets && targets[nr].space == targets->space)
			nr++;
		is_over |= !is_tried && op_now_ns() >= end_ns;
		if (is_tried || is_over) {
			pass_over(jit, targets, nr, &failed);
			continue;
		}
		end_ns = op_min_u64(end_ns, op_now_ns() + WRITE_AT_ONCE_NS);
		write_space(jit, count, targets, nr, &failed);
	}
	opd_jit_forget_paths(&failed);
	return !is_over;
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
		if (space->refs || space->ends_ns || (has_target && !opd_jit_space_is_written(space)))
			continue;
		opd_jit_space_free(space);
		next = jit->spaces; /* its base may have gone with it */
	}
}

bool opd_jit_write(struct opd_jit *jit, struct opd_count *count, uint64_t since_ns)
{
	struct targets targets = { .jit = jit };
	uint64_t begin_ns = op_now_ns();
	bool is_done;

	/* There was no dump for a long time. */
	if (jit->changed.nr >= CHANGED_MAX) {
		opd_jit_forget_paths(&jit->changed);
		count->forgot_changed = true;
	}
	if (!jit->spaces)
		return true;
	opd_count_visit_files(count, note_target, &targets);
	note_targets_of_stacks(&targets, count);
	is_done = write_targets(jit, count, &targets, since_ns);
	free_spaces(jit, &targets);
	free(targets.targets);
	jit->next_write_ns = begin_ns + op_max_u64(is_done ? WRITE_INTERVAL_NS : 0, WRITE_COST_FACTOR * (op_now_ns() - begin_ns));
	if (is_done)
		jit->write_since_ns = UINT64_MAX;
	return is_done;
}

void opd_jit_write_if_due(struct opd_jit *jit, struct opd_count *count, uint64_t now_ns)
{
	if (!jit->spaces || now_ns < jit->next_write_ns)
		return;
	jit->write_since_ns = op_min_u64(jit->write_since_ns, now_ns);
	opd_jit_write(jit, count, jit->write_since_ns);
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
