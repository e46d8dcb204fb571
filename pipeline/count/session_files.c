/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pipeline/count/session_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "libop/base/clock.h"
#include "libop/base/file.h"
#include "libop/base/log.h"
#include "libop/odb/replace.h"
#include "libop/session/layout.h"
#include "libop/session/ledger_file.h"
#include "libop/session/list.h"
#include "libop/session/sum.h"
#include "libop/session/walk.h"
#include "pipeline/count/count.h"
#include "pipeline/count/file_name.h"
#include "pipeline/count/memory_limit.h"
#include "pipeline/count/sample_file.h"
#include "pipeline/count/stack_file.h"

#define IDLE_NS OP_NS_PER_S

struct changed {
	struct opd_count *count;
	char **paths;
	size_t nr_paths;
	bool failed;
};

/* ---- is a file still there? ---- */

enum state { THERE, REPLACED, GONE };

/* A file that another program has overwritten counts as replaced. */
static enum state find_state(const struct opd_count *count, const struct opd_file *file)
{
	struct stat st;

	if (fstatat(count->session_fd, file->path, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT || errno == ENOTDIR ? GONE : THERE;
	if (!S_ISREG(st.st_mode))
		return GONE;
	if (st.st_ino != (file->odb ? op_odb_inode(file->odb) : file->inode) || !op_odb_is_length((uint64_t)st.st_size))
		return REPLACED;
	return file->odb && op_odb_is_broken(file->odb) ? REPLACED : THERE;
}

/* Books its samples as lost. A changed file keeps its path, so that the next dump fails. */
static void book_all_lost(struct opd_count *count, struct opd_file *file)
{
	opd_file_close(count, file);
	if (file->total)
		opd_file_book_lost(count, file, file->total,
			      "the file was removed; use opcontrol --reset to empty a session, --save=NAME to keep it");
	file->total = 0;
	opd_memory_note_gone(count, file);
	if (file->changed)
		return;
	free(file->path);
	file->path = NULL;
}

/* Counts in the file that is there now. Opening it books what the old one had more as lost. */
static void reopen(struct opd_count *count, struct opd_file *file)
{
	opd_file_close(count, file);
	file->error = opd_file_open(count, file); /* after an error the next sample tries again */
}

struct file_check {
	struct opd_count *count;
	bool found;
};

static void check_file(struct op_hlink *link, void *arg)
{
	struct opd_file *file = op_container_of(link, struct opd_file, link);
	struct file_check *check = arg;
	enum state state = file->path ? find_state(check->count, file) : THERE;

	check->found |= state != THERE;
	if (op_unlikely(state == GONE))
		book_all_lost(check->count, file);
	else if (op_unlikely(state == REPLACED))
		reopen(check->count, file);
}

bool opd_count_check_files(struct opd_count *count, bool thorough)
{
	struct file_check check = { .count = count, .found = opd_file_limit_misses(&count->limit, count->session_fd, thorough) };

	opd_count_flush(count);
	op_htable_visit(&count->files, check_file, &check);
	check.found |= opd_stack_file_check(count);
	return check.found;
}

/* ---- changed files ---- */

static void take_changed(struct op_hlink *link, void *arg)
{
	struct opd_file *file = op_container_of(link, struct opd_file, link);
	struct changed *changed = arg;

	opd_file_note_seen(changed->count, file);
	if (!file->changed || changed->failed)
		return;
	changed->paths[changed->nr_paths] = strdup(file->path);
	if (!changed->paths[changed->nr_paths]) {
		changed->failed = true;
		return;
	}
	changed->nr_paths++;
	if (file->odb)
		op_odb_mark_dumped(file->odb);
}

static void mark_written(struct op_hlink *link, void *arg OP_UNUSED)
{
	op_container_of(link, struct opd_file, link)->changed = false;
}

int opd_count_take_changed(struct opd_count *count, char ***ret_paths, size_t *ret_nr_paths)
{
	struct changed changed;

	opd_count_flush(count);
	changed = (struct changed){ .count = count, .paths = calloc(count->files.nr_entries + 2, sizeof(char *)) };

	if (!changed.paths)
		return -ENOMEM;
	op_htable_visit(&count->files, take_changed, &changed);
	if (!changed.failed && count->stacks.changed) {
		changed.paths[changed.nr_paths] = strdup(OPD_STACKS_PATH);
		changed.failed = !changed.paths[changed.nr_paths++];
	}
	if (changed.failed) {
		for (size_t i = 0; i < changed.nr_paths; i++)
			free(changed.paths[i]);
		free(changed.paths);
		return -ENOMEM;
	}
	op_htable_visit(&count->files, mark_written, NULL);
	count->stacks.changed = false;
	*ret_paths = changed.paths;
	*ret_nr_paths = changed.nr_paths;
	return 0;
}

static void mark_changed(struct op_hlink *link, void *arg OP_UNUSED)
{
	struct opd_file *file = op_container_of(link, struct opd_file, link);

	file->changed = file->path;
}

void opd_count_mark_changed(struct opd_count *count)
{
	opd_count_flush(count);
	op_htable_visit(&count->files, mark_changed, NULL);
	count->stacks.changed |= count->stacks.totals[0] || count->stacks.totals[1] || count->stacks.store;
}

/* ---- new copies of all files ---- */

struct renewal {
	struct opd_count *count;
	char **paths; /* collected first: reading a directory that changes may never end */
	size_t nr_paths;
	int err;
};

static int add_path(const char *path, unsigned char type, void *arg)
{
	struct renewal *renewal = arg;
	char **paths;

	if (type != DT_REG)
		return 0;
	paths = reallocarray(renewal->paths, renewal->nr_paths + 1, sizeof(*paths));
	if (!paths)
		return -ENOMEM;
	renewal->paths = paths;
	paths[renewal->nr_paths] = strdup(path);
	return paths[renewal->nr_paths++] ? 0 : -ENOMEM;
}

/* Makes a complete copy of an object in tmp/. */
static int copy_object(const struct opd_count *count, const char *path)
{
	int err = op_file_copy_below(count->session_fd, path, OP_SESSION_TMP_SAMPLE);

	if (err)
		return err;
	err = op_odb_check_seal(count->session_fd, OP_SESSION_TMP_SAMPLE);
	if (err)
		op_file_unlink_below(count->session_fd, OP_SESSION_TMP_SAMPLE);
	return err;
}

/* A damaged object stays, with the parts that it still has. Its samples do not depend on it. */
static int renew_object(struct opd_count *count, const char *path)
{
	struct op_odb_pending *pending = NULL;
	uint64_t dir_bytes = 0;
	int err = copy_object(count, path);

	if (!err)
		err = op_odb_publish_sealed(count->session_fd, OP_SESSION_TMP_SAMPLE, path, &dir_bytes, &pending);
	count->limit.space.taken_bytes += dir_bytes;
	opd_count_sync_later(count, pending);
	if (err == -EBADMSG) {
		count->nr_failed_objects++;
		op_log(OP_LOG_WARNING, "%s is damaged: reports may show JIT code of this process without function names",
		       path);
	}
	return err == -EBADMSG || err == -ENOENT ? 0 : err;
}

/* Other files, as those in stats/, are written anew by each dump anyway. */
static int renew_sample_file(const struct opd_count *count, const char *path)
{
	static const struct op_odb_header none = { 0 };
	struct op_odb *odb;
	int err = op_odb_open(count->session_fd, path, OP_SESSION_TMP_SAMPLE, &none, &odb);

	if (err)
		return err == -EBADMSG ? 0 : err;
	err = op_odb_renew(odb);
	opd_count_sync_later(count, op_odb_take_pending(odb));
	op_odb_close(odb);
	return err;
}

static void renew_paths(struct renewal *renewal)
{
	for (size_t i = 0; i < renewal->nr_paths; i++) {
		char *path = renewal->paths[i];

		if (!renewal->err)
			renewal->err = op_session_is_jit_object(path) ? renew_object(renewal->count, path)
								      : renew_sample_file(renewal->count, path);
		free(path);
	}
	free(renewal->paths);
}

/* Opening a known file books the samples that it has lost. */
static void open_known(struct op_hlink *link, void *arg)
{
	struct opd_file *file = op_container_of(link, struct opd_file, link);
	struct renewal *renewal = arg;

	if (file->path && !renewal->err)
		renewal->err = opd_file_open(renewal->count, file);
}

int opd_count_renew(struct opd_count *count)
{
	struct renewal renewal = { .count = count };

	opd_count_release_files(count);
	renewal.err = op_session_walk(count->session_fd, OP_SESSION_CURRENT, add_path, &renewal);
	renew_paths(&renewal);
	if (!renewal.err)
		renewal.err = opd_stack_file_renew(count);
	op_htable_visit(&count->files, open_known, &renewal);
	return renewal.err;
}

struct visit {
	const struct opd_count *count;
	void (*visit)(uint64_t image_cookie, const char *path, void *arg);
	void *arg;
};

static void visit_end(const struct visit *visit, const struct opd_file *file, uint64_t image_cookie)
{
	char *path;

	if (op_dcookie_row(visit->count->table, image_cookie)->id.name.kind != OP_IMAGE_ANON ||
	    opd_file_plain_path(visit->count, file, image_cookie, &path) < 0)
		return;
	visit->visit(image_cookie, path, visit->arg);
	free(path);
}

static void visit_file(struct op_hlink *link, void *arg)
{
	const struct opd_file *file = op_container_of(link, struct opd_file, link);
	const struct visit *visit = arg;

	if (!file->path)
		return;
	if (op_likely(file->key.callee_cookie == OP_DCOOKIE_NONE)) {
		visit->visit(file->key.image_cookie, file->path, visit->arg);
		return;
	}
	visit_end(visit, file, file->key.image_cookie);
	visit_end(visit, file, file->key.callee_cookie);
}

void opd_count_visit_files(struct opd_count *count, void (*visit)(uint64_t image_cookie, const char *path, void *arg), void *arg)
{
	struct visit both = { count, visit, arg };

	op_htable_visit(&count->files, visit_file, &both);
}

void opd_count_drop_idle_pages(struct opd_count *count)
{
	for (struct opd_file *file = count->open.newest; file; file = file->older) {
		if (file->pages_dropped || count->now_ns < file->last_ns + IDLE_NS)
			continue;
		op_odb_drop_pages(file->odb);
		file->pages_dropped = true;
	}
	if (count->now_ns >= count->stacks.last_ns + IDLE_NS)
		opd_stack_file_drop_pages(count);
}

static void allow_again(struct op_hlink *link, void *arg OP_UNUSED)
{
	op_container_of(link, struct opd_file, link)->over_limit = false;
}

void opd_count_release_files(struct opd_count *count)
{
	opd_count_flush(count);
	op_htable_visit(&count->files, allow_again, NULL);
	while (count->open.oldest)
		opd_file_close(count, count->open.oldest);
	opd_stack_file_close(count);
}

/* Forgets a file that is gone. The next sample makes it anew. */
static void forget_missing(struct op_hlink *link, void *arg)
{
	struct opd_file *file = op_container_of(link, struct opd_file, link);
	struct file_check *check = arg;

	if (!file->path)
		return;
	if (find_state(check->count, file) != GONE) {
		opd_file_limit_note(&check->count->limit, opd_file_kind_of(check->count, &file->key), false);
		return;
	}
	file->changed = false;
	book_all_lost(check->count, file);
}

bool opd_count_forget_missing(struct opd_count *count)
{
	static struct op_rate rate;
	struct file_check check = { .count = count, .found = opd_count_check_files(count, false) };
	int err = opd_file_limit_recount(&count->limit, count->session_fd);

	opd_count_release_files(count);
	op_htable_visit(&count->files, forget_missing, &check);
	opd_stack_file_forget_missing(count);
	if (!err)
		err = opd_memory_recount(count);
	if (err)
		op_log_failure(&rate, count->now_ns, "counting the sample files", err);
	return check.found;
}

struct noting {
	const struct opd_count *count;
	struct op_session_files files;
	int err;
};

/* The fingerprint leaves out the files of the memory view and of cgroups. */
static void note_file(struct op_hlink *link, void *arg)
{
	const struct opd_file *file = op_container_of(link, struct opd_file, link);
	struct noting *noting = arg;

	if (noting->err || !file->path || file->key.cgroup_slot != OPD_CGROUP_NONE ||
	    opd_is_of_memory(noting->count, file->key.event))
		return;
	noting->err = op_session_files_add(noting->count->session_fd, file->path, &noting->files);
}

int opd_count_note_files(struct opd_count *count, struct op_session_files *ret_files)
{
	struct noting noting = { .count = count, .err = count->nr_forgotten ? -ESTALE : 0 };

	if (!noting.err)
		op_htable_visit(&count->files, note_file, &noting);
	if (!noting.err)
		*ret_files = noting.files;
	return noting.err;
}

static void free_visited(struct op_hlink *link, void *arg)
{
	opd_file_free(arg, op_container_of(link, struct opd_file, link));
}

void opd_files_close(void *host)
{
	struct opd_count *count = host;

	op_htable_visit(&count->files, free_visited, count);
	op_htable_free(&count->files);
	count->nr_memory_nodes = 0;
	opd_file_limit_begin(&count->limit);
	if (count->cgroups)
		opd_cgroups_forget_slots(count->cgroups);
}

void opd_count_close_files(struct opd_count *count)
{
	opd_count_flush(count);
	opd_sinks_close(&count->sinks);
}
