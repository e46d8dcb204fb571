/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Writing to the disk what a dump promises: every changed sample file, and the directories that lead to it. In a thread of
 * its own, since a disk may take seconds and the rings do not wait.
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "daemon/count/jit_objects.h"
#include "libop/base/log.h"
#include "daemon/keep/recover.h"
#include "daemon/keep/syncer.h"
#include "daemon/keep/stats_dir.h"
#include "daemon/write_out.h"
#include "libop/session/dcookie.h"
#include "libop/base/file.h"
#include "libop/session/layout.h"
#include "libop/session/list.h"
#include "libop/session/close.h"
#include "libop/session/ledger_file.h"
#include "libop/base/sys.h"

#define CLOSED_COOKIES_BYTES (sizeof(OP_SESSION_CLOSED_COOKIES "-") + 20)

/*
 * So many files and their directories are written one by one, each with a flush of the disk; more are written with all that the file
 * system has, in one go, which costs what others have not written yet and no more flushes.
 */
#define TOGETHER_PATHS 64

#define GROWN "a sample file that has grown"

static int sync_path(int current_fd, const char *path, int flags)
{
	int fd = current_fd < 0 ? current_fd : op_file_open_below(current_fd, path, flags, 0);
	int err;

	if (fd < 0)
		return fd;
	err = op_sys_fsync(fd);
	close(fd);
	return err;
}

/* Something else in the place of a sample file, or on the way to it, or one that was cut short: the file is gone. */
static int open_sample_file(int current_fd, const char *path)
{
	struct stat st;
	int fd = current_fd < 0 ? current_fd : op_file_open_below(current_fd, path, O_RDONLY, 0);
	int err;

	if (fd < 0)
		return fd == -ELOOP || fd == -ENOTDIR ? -ENOENT : fd;
	err = op_sys_fstat(fd, &st);
	if (!err && (!S_ISREG(st.st_mode) || (!op_session_is_jit_object(path) && !op_odb_is_length((uint64_t)st.st_size))))
		err = -ENOENT;
	if (err)
		close(fd);
	return err ? err : fd;
}

static int sync_sample_file(int current_fd, const char *path)
{
	int fd = open_sample_file(current_fd, path), err;

	if (fd < 0)
		return fd;
	err = op_sys_fsync(fd);
	close(fd);
	return err;
}

static int compare_strings(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Cuts the last component off; false when there is none left. */
static bool parent_of(char *path)
{
	char *slash = strrchr(path, '/');

	if (!slash)
		return false;
	*slash = '\0';
	return true;
}

/* Paths are sorted, so the directories that two neighbours share were written for the first of them. */
static int sync_directories(int current_fd, const char *path, const char *previous)
{
	char *directory = strdup(path);
	int err = directory ? 0 : -ENOMEM;

	while (!err && parent_of(directory)) {
		size_t length = strlen(directory);

		if (!strncmp(directory, previous, length) && previous[length] == '/')
			break;
		err = sync_path(current_fd, directory, O_RDONLY | O_DIRECTORY);
	}
	free(directory);
	return err;
}

struct failure {
	int err; /* the first one */
	const char *path;
	bool closing, missing;
};

/* What is missing of a session that is closed does not come back: its ledger says so. */
static void note_failure(struct failure *failure, int err, const char *path)
{
	if (err == -ENOENT && failure->closing)
		failure->missing = true;
	else if (err && !failure->err)
		*failure = (struct failure){ .err = err, .path = path, .closing = failure->closing, .missing = failure->missing };
}

static const char *below_current(const char *path)
{
	return path + strlen(OP_SESSION_CURRENT "/");
}

/* All of them, also after a failure. */
static void write_each(const struct opd_write_out *out, struct failure *failure)
{
	const char *previous = "";

	for (size_t i = 0; i < out->nr_paths; i++) {
		const char *path = below_current(out->paths[i]);
		int err = sync_sample_file(out->current_fd, path);

		if (!err)
			err = sync_directories(out->current_fd, path, previous);
		if (!err)
			previous = path;
		note_failure(failure, err, out->paths[i]);
	}
}

/* The whole file system; each file must still be there to be in it. */
static void write_together(const struct opd_write_out *out, struct failure *failure)
{
	for (size_t i = 0; i < out->nr_paths; i++) {
		int fd = open_sample_file(out->current_fd, below_current(out->paths[i]));

		if (fd >= 0)
			close(fd);
		else
			note_failure(failure, fd, out->paths[i]);
	}
	note_failure(failure, op_sys_syncfs(out->session_fd), OP_SESSION_CURRENT);
}

static int write_paths(struct opd_write_out *out, const char **ret_failed)
{
	struct failure failure = { .closing = out->closing };

	qsort(out->paths, out->nr_paths, sizeof(*out->paths), compare_strings);
	if (out->nr_paths > TOGETHER_PATHS)
		write_together(out, &failure);
	else
		write_each(out, &failure);
	out->missing |= failure.missing;
	if (failure.err)
		*ret_failed = failure.path;
	return failure.err;
}

static int sync_ledger(const struct opd_write_out *out)
{
	return sync_path(out->current_fd, OP_SESSION_LEDGER, O_RDONLY | O_NONBLOCK);
}

static int sync_table(const struct opd_write_out *out)
{
	return sync_path(out->current_fd, OP_DCOOKIE_FILE, O_RDONLY | O_NONBLOCK);
}

static int sync_stats(const struct opd_write_out *out)
{
	return opd_stats_dir_sync(out->current_fd);
}

static int sync_current(const struct opd_write_out *out)
{
	return op_sys_fsync(out->current_fd);
}

/* What lies beside the sample files, and the way to them. */
static int write_rest(const struct opd_write_out *out, const char **ret_failed)
{
	static const struct {
		int (*sync)(const struct opd_write_out *out);
		const char *path;
	} parts[] = {
		{ sync_ledger, OP_SESSION_CURRENT "/" OP_SESSION_LEDGER },
		{ sync_table, OP_SESSION_CURRENT "/" OP_DCOOKIE_FILE },
		{ sync_stats, OP_SESSION_CURRENT "/stats" },
		{ sync_current, OP_SESSION_CURRENT },
	};

	for (size_t i = 0; i < op_array_size(parts) && out->current_fd >= 0; i++) {
		int err = parts[i].sync(out);

		if (!err || err == -ENOENT)
			continue;
		*ret_failed = parts[i].path;
		return err;
	}
	*ret_failed = "the session directory";
	return op_session_sync_dirs(out->session_fd);
}

/* The times of the last samples; the rows are there without it. */
static int write_closed_cookies(const struct opd_write_out *out)
{
	const struct op_text *text = &out->closed_cookies;
	char path[CLOSED_COOKIES_BYTES];
	const char *name;
	int tmp_fd, fd, err;

	if (text->failed)
		return -ENOMEM;
	if (!text->length || out->current_fd < 0)
		return 0;
	snprintf(path, sizeof(path), OP_SESSION_CLOSED_COOKIES "-%llu", (unsigned long long)out->number);
	tmp_fd = op_file_open_parent(out->session_fd, path, true, &name);
	if (tmp_fd < 0)
		return tmp_fd;
	fd = op_file_open_below(tmp_fd, name, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	err = fd < 0 ? fd : op_sys_write_all(fd, text->data, text->length);
	if (!err)
		err = op_sys_fsync(fd);
	if (fd >= 0)
		close(fd);
	if (!err)
		err = op_sys_renameat(tmp_fd, name, out->current_fd, OP_DCOOKIE_FILE);
	if (err)
		op_sys_unlinkat(tmp_fd, name, 0);
	close(tmp_fd);
	return err;
}

/* What a dump had promised of them is kept until they are written; what cannot be written stays in the list. */
static int settle_files(struct opd_write_out *out)
{
	struct op_odb_pending **link = &out->pending;
	int first_err = 0;

	while (*link) {
		struct op_odb_pending *pending = *link, *next = *op_odb_pending_next(pending);
		int err = out->current_fd < 0 ? out->current_fd : op_odb_pending_open(pending, out->current_fd, OP_SESSION_CURRENT);

		if (!err)
			err = op_odb_settle_or_keep(out->session_fd, pending);
		if (!first_err)
			first_err = err;
		if (err)
			link = op_odb_pending_next(pending);
		else
			*link = next;
	}
	return first_err;
}

static int write_cookies(struct opd_write_out *out)
{
	if (out->closing)
		return write_closed_cookies(out);
	return out->cookie_file ? opd_cookie_file_publish(out->cookie_file, out->cookies) : 0;
}

/* Of a session that is closed nobody writes later what another dump, or the settler, has taken and not finished. */
static int write_whole(const struct opd_write_out *out)
{
	return out->whole || out->closing ? op_sys_syncfs(out->session_fd) : 0;
}

void opd_write_out_free(struct opd_write_out *out)
{
	for (size_t i = 0; i < out->nr_paths; i++)
		free(out->paths[i]);
	free(out->paths);
	op_text_free(&out->closed_cookies);
	op_odb_pending_free(out->pending);
	if (out->current_fd >= 0)
		close(out->current_fd);
	free(out);
}

/*
 * After such an error the kernel takes pages that are not on the disk for written, may forget them, and tells nobody a second time (fsync(2)). Writing
 * them again is writing them to other files.
 */
static bool may_have_dropped(int err)
{
	return err == -EIO || err == -ENOSPC || err == -EDQUOT;
}

int opd_write_out_end(struct opd_write_out *out, int err, const char **ret_failed)
{
	int settle_err = settle_files(out), table_err = write_cookies(out);

	if (!err && settle_err) {
		*ret_failed = GROWN;
		err = settle_err;
	}
	out->dropped = may_have_dropped(err);
	if (!err && table_err) {
		*ret_failed = OP_SESSION_CURRENT "/" OP_DCOOKIE_FILE;
		err = table_err;
	}
	if (!err && out->missing && out->current_fd >= 0) {
		*ret_failed = OP_SESSION_LEDGER;
		err = opd_correct_ledger(out->current_fd);
	}
	if (!err)
		err = write_rest(out, ret_failed);
	if (!err && out->closing && out->current_fd >= 0)
		op_session_compact(out->current_fd);
	if (!err) {
		*ret_failed = "the session";
		err = write_whole(out);
	}
	out->dropped |= !table_err && may_have_dropped(err);
	if (!err && out->closing && out->current_fd >= 0)
		op_session_mark_whole(out->current_fd);
	return err;
}

/* In a session that is closed nobody counts any more, so what failed before, and may be clean for the kernel, can be written anew. */
static int write_all(struct opd_write_out *out, const char **ret_failed)
{
	struct opd_syncer *settler = out->sync->pipeline->count.settler;
	bool anew = out->closing && settler && opd_syncer_has_failed(settler);
	int err = anew ? opd_write_out_anew(out, ret_failed) : write_paths(out, ret_failed);

	return opd_write_out_end(out, err, ret_failed);
}

static void tell(const struct opd_write_out *out, int err, const char *failed)
{
	struct opd_job *job = out->job;

	if (!job) {
		op_log(OP_LOG_WARNING, "cannot write %s of a closed session to the disk: %s; it is tried again", failed, strerror(-err));
		return;
	}
	job->error = err == -ENOENT ? -ESTALE : err; /* the daemon is there, the file is not */
	snprintf(job->message, sizeof(job->message), "cannot write %s to the disk: %s", failed,
		 err == -ENOENT ? "somebody removed it, and what was counted in it" : strerror(-err));
}

/* Under the lock. */
static void end_turn(struct opd_write_out *out)
{
	struct opd_write_out **here = &out->sync->writing;

	while (*here != out)
		here = &(*here)->next;
	*here = out->next;
}

/* What was taken before this dump began is on the disk when it ends, whoever had taken it. A session that is closed was written with all there is. Under the lock. */
static int await_turn(const struct opd_write_out *out, int err, const char **ret_failed)
{
	struct opd_sync *sync = out->sync;

	while (!out->closing && sync->writing != out)
		pthread_cond_wait(&sync->dump_ended, &sync->lock);
	if (err || sync->nr_write_failures == out->nr_failures)
		return err;
	*ret_failed = "what another dump had taken";
	return -EIO;
}

static int look_at_settler(const struct opd_write_out *out, const char **ret_failed)
{
	struct opd_syncer *settler = out->sync->pipeline->count.settler;

	if (!settler || opd_syncer_nr_failed(settler, true) == out->nr_settle_failures)
		return 0;
	*ret_failed = GROWN;
	return -EIO;
}

static void note_failure_of(struct opd_write_out *out, int err)
{
	struct opd_sync *sync = out->sync;

	if (!err || err == -ENOENT)
		return;
	sync->nr_write_failures++;
	sync->write_failed = true;
	sync->pages_gone |= out->dropped;
}

/* What the file system has to say of the same fault is heard now and not by the next dump, which makes all anew. */
static void forget_errors(int session_fd)
{
	int err = op_sys_syncfs(session_fd);

	(void)err;
}

static void *run(void *arg)
{
	struct opd_write_out *out = arg;
	struct opd_sync *sync = out->sync;
	struct opd_job *job = out->job;
	const char *failed = "";
	bool closing = out->closing;
	int err = write_all(out, &failed);

	if (!err)
		err = look_at_settler(out, &failed);
	if (out->dropped)
		forget_errors(out->session_fd);
	pthread_mutex_lock(&sync->lock);
	if (err == -ENOENT && out->nr_resets != sync->nr_resets)
		err = 0; /* a reset removed what was to be written */
	err = await_turn(out, err, &failed);
	end_turn(out);
	sync->files_removed |= err == -ENOENT && !closing;
	note_failure_of(out, err);
	pthread_cond_broadcast(&sync->dump_ended);
	pthread_mutex_unlock(&sync->lock);
	if (err)
		tell(out, err, failed);
	out->job = NULL;
	if (!err || !closing || !opd_unwritten_keep(out))
		opd_write_out_free(out);
	if (job)
		opd_sync_give_back(sync, job);
	opd_sync_thread_ends(sync);
	return NULL;
}

int opd_sync_start_thread(void *(*start)(void *arg), void *arg)
{
	pthread_attr_t attr;
	pthread_t thread;
	int err = pthread_attr_init(&attr);

	if (err)
		return -err;
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	err = pthread_create(&thread, &attr, start, arg);
	pthread_attr_destroy(&attr);
	return -err;
}

void opd_sync_thread_begins(struct opd_sync *sync)
{
	pthread_mutex_lock(&sync->lock);
	sync->nr_dumps_under_way++;
	pthread_mutex_unlock(&sync->lock);
}

void opd_sync_thread_ends(struct opd_sync *sync)
{
	pthread_mutex_lock(&sync->lock);
	sync->nr_dumps_under_way--;
	pthread_cond_broadcast(&sync->dump_ended);
	pthread_mutex_unlock(&sync->lock);
}

static void drop(struct opd_write_out *out)
{
	struct opd_sync *sync = out->sync;

	if (!out->closing && out->cookie_file)
		opd_cookie_file_give_up(out->cookie_file, out->cookies);
	if (out->pending)
		opd_syncer_add(sync->pipeline->count.settler, out->pending);
	out->pending = NULL;
	pthread_mutex_lock(&sync->lock);
	end_turn(out);
	sync->write_failed = true;
	pthread_mutex_unlock(&sync->lock);
	opd_write_out_free(out);
	opd_sync_thread_ends(sync);
}

void opd_write_out_drop(struct opd_write_out *out)
{
	out->sync->pipeline->count.forgot_changed |= out->whole;
	drop(out);
}

static int take(struct opd_write_out *out)
{
	struct opd_pipeline *pipeline = out->sync->pipeline;
	int err = opd_count_take_changed(&pipeline->count, &out->paths, &out->nr_paths);

	if (!err)
		err = opd_jit_take_changed(pipeline->resolver.jit, &out->paths, &out->nr_paths);
	if (err || !out->cookie_file)
		return err;
	if (out->closing)
		opd_cookie_file_format(out->cookie_file, &out->closed_cookies);
	else
		out->cookies = opd_cookie_file_begin(out->cookie_file);
	return 0;
}

/* Its place among those that write, and what went wrong before it. False when all files that are there were written, or will be by another one. */
static bool begin_turn(struct opd_write_out *out, bool *ret_gone)
{
	struct opd_sync *sync = out->sync;
	struct opd_write_out **last = &sync->writing;
	bool again;

	pthread_mutex_lock(&sync->lock);
	while (*last)
		last = &(*last)->next;
	*last = out;
	again = sync->write_failed;
	*ret_gone = sync->pages_gone;
	sync->write_failed = sync->pages_gone = false;
	sync->nr_dumps_under_way++;
	out->nr_resets = sync->nr_resets;
	out->nr_failures = sync->nr_write_failures;
	pthread_mutex_unlock(&sync->lock);
	return again;
}

static bool has_settler_failed(struct opd_write_out *out)
{
	struct opd_sync *sync = out->sync;
	struct opd_syncer *settler = sync->pipeline->count.settler;
	uint64_t before = sync->nr_settle_failures;

	if (settler)
		sync->nr_settle_failures = opd_syncer_nr_failed(settler, false);
	out->nr_settle_failures = sync->nr_settle_failures;
	return sync->nr_settle_failures != before;
}

/* What was not written, or may not have been, is written with all there is. */
static int make_up(struct opd_write_out *out)
{
	struct opd_sync *sync = out->sync;
	struct opd_count *count = &sync->pipeline->count;
	bool gone, again = begin_turn(out, &gone), settler_failed = has_settler_failed(out);
	int err = gone || settler_failed ? opd_count_renew(count) : 0;

	out->whole = again || settler_failed || count->forgot_changed;
	if (again || settler_failed)
		opd_count_mark_changed(count);
	if (!err)
		return 0;
	pthread_mutex_lock(&sync->lock);
	sync->pages_gone = true;
	pthread_mutex_unlock(&sync->lock);
	return err;
}

int opd_write_out_begin(struct opd_sync *sync, struct opd_job *job, bool closing, struct opd_write_out **ret_out)
{
	struct opd_count *count = &sync->pipeline->count;
	struct opd_write_out *out = calloc(1, sizeof(*out));
	int err;

	if (!out)
		return -ENOMEM;
	out->sync = sync;
	out->job = job;
	out->closing = closing;
	out->number = sync->nr_closings += closing;
	out->cookie_file = count->cookie_file;
	out->session_fd = count->session_fd;
	out->current_fd =
		op_sys_openat(count->session_fd, OP_SESSION_CURRENT, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
	err = make_up(out);
	if (!err)
		err = take(out);
	if (err) {
		drop(out);
		return err;
	}
	count->forgot_changed = false;
	if (closing && count->settler)
		out->pending = opd_syncer_take(count->settler, &out->session);
	*ret_out = out;
	return 0;
}

int opd_write_out_go(struct opd_write_out *out)
{
	int err = opd_sync_start_thread(run, out);

	/* A session that is closed has nobody who would come back to it. */
	if (err && out->closing) {
		run(out);
		return 0;
	}
	if (err)
		opd_write_out_drop(out);
	return err;
}

int opd_sync_write_out(struct opd_sync *sync, struct opd_job *job)
{
	struct opd_write_out *out;
	int err = opd_write_out_begin(sync, job, false, &out);

	if (!err)
		err = opd_write_out_go(out);
	if (!err)
		sync->dumps++;
	return err;
}
