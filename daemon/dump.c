/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Writing to the disk what a dump promises: every changed sample file, and the directories that lead to it. In a thread of
 * its own, since a disk may take seconds and the rings do not wait.
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "daemon/jit_write.h"
#include "daemon/sync.h"
#include "libop/session.h"
#include "libop/sys.h"

/*
 * So many files and their directories are written one by one, each with a flush of the disk; more are written with all that the file
 * system has, in one go, which costs what others have not written yet and no more flushes.
 */
#define TOGETHER_PATHS 64

struct write_out {
	struct opd_sync *sync;
	struct opd_job *job;
	int session_fd;
	char **paths;
	size_t nr_paths;
	struct opd_cookie_snapshot *cookies;
	bool whole;         /* of files that changed not all are known: all that is to be written in this file system */
	uint64_t nr_resets; /* when the dump began */
};

static int sync_path(int session_fd, const char *path, int flags)
{
	int fd = op_sys_openat(session_fd, path, flags | O_NOFOLLOW | O_CLOEXEC, 0);
	int err;

	if (fd < 0)
		return fd;
	err = op_sys_fsync(fd);
	close(fd);
	return err;
}

/* Something else in the place of a sample file, or on the way to it: the file is gone. */
static int open_sample_file(int session_fd, const char *path)
{
	struct stat st;
	int fd = op_sys_openat(session_fd, path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC, 0);
	int err;

	if (fd < 0)
		return fd == -ELOOP || fd == -ENOTDIR ? -ENOENT : fd;
	err = op_sys_fstat(fd, &st);
	if (!err && !S_ISREG(st.st_mode))
		err = -ENOENT;
	if (err)
		close(fd);
	return err ? err : fd;
}

static int sync_sample_file(int session_fd, const char *path)
{
	int fd = open_sample_file(session_fd, path), err;

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
static int sync_directories(int session_fd, const char *path, const char *previous)
{
	char *directory = strdup(path);
	int err = directory ? 0 : -ENOMEM;

	while (!err && parent_of(directory)) {
		size_t length = strlen(directory);

		if (!strncmp(directory, previous, length) && previous[length] == '/')
			break;
		err = sync_path(session_fd, directory, O_RDONLY | O_DIRECTORY);
	}
	free(directory);
	return err;
}

struct failure {
	int err; /* the first one */
	const char *path;
};

static void note_failure(struct failure *failure, int err, const char *path)
{
	if (err && !failure->err)
		*failure = (struct failure){ err, path };
}

/* All of them, also after a failure. */
static void write_each(const struct write_out *out, struct failure *failure)
{
	const char *previous = "";

	for (size_t i = 0; i < out->nr_paths; i++) {
		int err = sync_sample_file(out->session_fd, out->paths[i]);

		if (!err)
			err = sync_directories(out->session_fd, out->paths[i], previous);
		if (!err)
			previous = out->paths[i];
		note_failure(failure, err, out->paths[i]);
	}
}

/* The whole file system; each file must still be there to be in it. */
static void write_together(const struct write_out *out, struct failure *failure)
{
	for (size_t i = 0; i < out->nr_paths; i++) {
		int fd = open_sample_file(out->session_fd, out->paths[i]);

		if (fd >= 0)
			close(fd);
		else
			note_failure(failure, fd, out->paths[i]);
	}
	note_failure(failure, op_sys_syncfs(out->session_fd), OP_SESSION_CURRENT);
}

static int write_paths(const struct write_out *out, const char **ret_failed)
{
	struct failure failure = { 0, NULL };

	qsort(out->paths, out->nr_paths, sizeof(*out->paths), compare_strings);
	if (out->nr_paths > TOGETHER_PATHS)
		write_together(out, &failure);
	else
		write_each(out, &failure);
	if (failure.err)
		*ret_failed = failure.path;
	return failure.err;
}

/* The sample files, the numbers beside them, and the session directory that both are in. */
static int write_all(const struct write_out *out, const char **ret_failed)
{
	int err = write_paths(out, ret_failed), stats_err = opd_stats_dir_sync(out->session_fd);

	if (!stats_err)
		stats_err = sync_path(out->session_fd, OP_SESSION_CURRENT, O_RDONLY | O_DIRECTORY);
	if (!stats_err)
		stats_err = op_sys_fsync(out->session_fd);
	if (err || !stats_err || stats_err == -ENOENT)
		return err;
	*ret_failed = OP_SESSION_CURRENT;
	return stats_err;
}

static int write_whole(const struct write_out *out)
{
	return out->whole ? op_sys_syncfs(out->session_fd) : 0;
}

static void free_write_out(struct write_out *out)
{
	for (size_t i = 0; i < out->nr_paths; i++)
		free(out->paths[i]);
	free(out->paths);
	free(out);
}

static void *run(void *arg)
{
	struct write_out *out = arg;
	struct opd_sync *sync = out->sync;
	struct opd_job *job = out->job;
	const char *failed = "";
	struct opd_cookie_file *table = sync->pipeline->count.cookie_file;
	int err = write_all(out, &failed), table_err = table ? opd_cookie_file_publish(table, out->cookies) : 0;

	if (!err && table_err) {
		failed = OP_SESSION_CURRENT "/" OP_DCOOKIE_FILE;
		err = table_err;
	}
	if (!err) {
		failed = "the session";
		err = write_whole(out);
	}

	pthread_mutex_lock(&sync->lock);
	if (err == -ENOENT && out->nr_resets != sync->nr_resets)
		err = 0; /* a reset removed what was to be written */
	sync->files_removed |= err == -ENOENT;
	pthread_mutex_unlock(&sync->lock);
	if (err) {
		job->error = err == -ENOENT ? -ESTALE : err; /* the daemon is there, the file is not */
		snprintf(job->message, sizeof(job->message), "cannot write %s to the disk: %s", failed,
			 err == -ENOENT ? "somebody removed it, and what was counted in it" : strerror(-err));
	}
	free_write_out(out);
	opd_sync_give_back(sync, job);
	pthread_mutex_lock(&sync->lock);
	sync->write_failed |= err && err != -ENOENT;
	sync->nr_dumps_under_way--;
	pthread_cond_signal(&sync->dump_ended);
	pthread_mutex_unlock(&sync->lock);
	return NULL;
}

static int start_thread(struct write_out *out)
{
	pthread_attr_t attr;
	pthread_t thread;
	int err = pthread_attr_init(&attr);

	if (err)
		return -err;
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	err = pthread_create(&thread, &attr, run, out);
	pthread_attr_destroy(&attr);
	return -err;
}

int opd_sync_write_out(struct opd_sync *sync, struct opd_job *job)
{
	struct opd_count *count = &sync->pipeline->count;
	struct write_out *out = calloc(1, sizeof(*out));
	bool again;
	int err;

	if (!out)
		return -ENOMEM;
	pthread_mutex_lock(&sync->lock);
	again = sync->write_failed;
	sync->write_failed = false;
	sync->nr_dumps_under_way++;
	out->nr_resets = sync->nr_resets;
	pthread_mutex_unlock(&sync->lock);
	out->whole = again || count->forgot_changed;
	if (again)
		opd_count_mark_changed(count);
	out->sync = sync;
	out->job = job;
	out->session_fd = count->session_fd;
	err = opd_count_take_changed(count, &out->paths, &out->nr_paths);
	if (!err && count->cookie_file)
		out->cookies = opd_cookie_file_begin(count->cookie_file);
	if (!err)
		err = opd_jit_take_changed(sync->pipeline->resolver.jit, &out->paths, &out->nr_paths);
	if (!err)
		err = start_thread(out);
	if (!err) {
		count->forgot_changed = false;
		sync->dumps++;
		return 0;
	}
	if (count->cookie_file)
		opd_cookie_file_give_up(count->cookie_file, out->cookies);
	free_write_out(out);
	pthread_mutex_lock(&sync->lock);
	sync->write_failed = true;
	sync->nr_dumps_under_way--;
	pthread_mutex_unlock(&sync->lock);
	return err;
}
