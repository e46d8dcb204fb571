/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "daemon/jobs/dump.h"

#include <errno.h>
#include <stdlib.h>

#include "daemon/jobs/syncer.h"
#include "daemon/jobs/write_out.h"
#include "libop/base/log.h"
#include "libop/base/sys.h"
#include "pipeline/count/jit_objects.h"

struct opd_dump {
	struct opd_dumps *dumps;
	struct opd_job *job; /* NULL: no client waits for it */
	struct opd_write_out *out;
	uint64_t nr_resets, nr_failures, nr_syncer_failures; /* when the dump began */
	struct opd_dump *next;
};

void opd_dumps_init(struct opd_dumps *dumps, struct opd_pipeline *pipeline, struct opd_background *background,
		    struct opd_job_queue *queue)
{
	*dumps = (struct opd_dumps){ .pipeline = pipeline, .background = background, .queue = queue };
	pthread_mutex_init(&dumps->lock, NULL);
	pthread_cond_init(&dumps->ended, NULL);
	opd_unwritten_init(&dumps->unwritten, background);
}

void opd_dumps_free(struct opd_dumps *dumps)
{
	opd_unwritten_free(&dumps->unwritten);
	pthread_mutex_destroy(&dumps->lock);
	pthread_cond_destroy(&dumps->ended);
}

void opd_dump_note_reset(struct opd_dumps *dumps)
{
	pthread_mutex_lock(&dumps->lock);
	dumps->nr_resets++;
	pthread_mutex_unlock(&dumps->lock);
}

void opd_dump_note_removed(struct opd_dumps *dumps)
{
	pthread_mutex_lock(&dumps->lock);
	dumps->files_removed = true;
	pthread_mutex_unlock(&dumps->lock);
}

bool opd_dump_take_removed(struct opd_dumps *dumps)
{
	bool removed;

	pthread_mutex_lock(&dumps->lock);
	removed = dumps->files_removed;
	dumps->files_removed = false;
	pthread_mutex_unlock(&dumps->lock);
	return removed;
}

/* ---- in the background ---- */

static void report(const struct opd_dump *dump, int err, const char *failed)
{
	struct opd_job *job = dump->job;

	if (!job) {
		op_log(OP_LOG_WARNING, "cannot write %s of a closed session to the disk: %s; opd tries again", failed,
		       strerror(-err));
		return;
	}
	job->error = err == -ENOENT ? -ESTALE : err; /* -ENOENT means that there is no daemon */
	snprintf(job->message, sizeof(job->message), "cannot write %s to the disk: %s", failed,
		 err == -ENOENT ? "the file was removed, and its counts are lost" : strerror(-err));
}

/* Under the lock. */
static void unlink_dump(const struct opd_dump *dump)
{
	struct opd_dump **link = &dump->dumps->under_way;

	while (*link != dump)
		link = &(*link)->next;
	*link = dump->next;
}

/*
 * Files that an older dump took must be on the disk when this dump ends. A session that is closed
 * was written with everything there is, and need not wait. Under the lock.
 */
static int await_older(const struct opd_dump *dump, int err, const char **ret_failed)
{
	struct opd_dumps *dumps = dump->dumps;

	while (!dump->out->closing && dumps->under_way != dump)
		pthread_cond_wait(&dumps->ended, &dumps->lock);
	if (err || dumps->nr_failures == dump->nr_failures)
		return err;
	*ret_failed = "files of another dump";
	return -EIO;
}

/* The syncer has the only report of an error in a file that it wrote. */
static int check_syncer(const struct opd_dump *dump, const char **ret_failed)
{
	if (!dump->out->syncer || opd_syncer_nr_failed(dump->out->syncer, true) == dump->nr_syncer_failures)
		return 0;
	*ret_failed = "a sample file that has grown";
	return -EIO;
}

/* Clears the report of the same fault, so that the next dump, which writes all anew, succeeds. */
static void clear_error(int session_fd)
{
	int err = op_sys_syncfs(session_fd);

	(void)err;
}

static void run(void *context, void *arg)
{
	struct opd_dumps *dumps = context;
	struct opd_dump *dump = arg;
	struct opd_write_out *out = dump->out;
	bool closing = out->closing;
	const char *failed = "";
	int err = opd_write_out_write(out, &failed);

	if (!err)
		err = check_syncer(dump, &failed);
	if (out->dropped)
		clear_error(out->session_fd);
	pthread_mutex_lock(&dumps->lock);
	if (err == -ENOENT && dump->nr_resets != dumps->nr_resets)
		err = 0; /* the reset removed the files */
	err = await_older(dump, err, &failed);
	unlink_dump(dump);
	if (err == -ENOENT) {
		dumps->files_removed |= !closing;
	} else if (err) {
		dumps->nr_failures++;
		dumps->write_failed = true;
		dumps->pages_dropped |= out->dropped;
	}
	pthread_cond_broadcast(&dumps->ended);
	pthread_mutex_unlock(&dumps->lock);
	if (err)
		report(dump, err, failed);
	if (!err || !closing || !opd_unwritten_keep(&dumps->unwritten, out))
		opd_write_out_free(out);
	if (dump->job)
		opd_job_queue_give_back(dumps->queue, dump->job);
	free(dump);
}

/* ---- sync thread ---- */

static void drop(struct opd_dump *dump)
{
	struct opd_dumps *dumps = dump->dumps;
	struct opd_write_out *out = dump->out;

	if (!out->closing && out->cookie_file)
		opd_cookie_file_give_up(out->cookie_file, out->cookies);
	if (out->pending)
		opd_syncer_add(out->syncer, out->pending);
	out->pending = NULL;
	pthread_mutex_lock(&dumps->lock);
	unlink_dump(dump);
	dumps->write_failed = true;
	pthread_mutex_unlock(&dumps->lock);
	opd_write_out_free(out);
	free(dump);
}

void opd_dump_drop(struct opd_dump *dump)
{
	dump->dumps->pipeline->count.forgot_changed |= dump->out->whole;
	drop(dump);
}

static int take_changed(struct opd_pipeline *pipeline, struct opd_write_out *out)
{
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

/* Appends the dump to those under way, and takes what went wrong before it. */
static void link_dump(struct opd_dump *dump, bool *ret_write_failed, bool *ret_pages_dropped)
{
	struct opd_dumps *dumps = dump->dumps;
	struct opd_dump **last = &dumps->under_way;

	pthread_mutex_lock(&dumps->lock);
	while (*last)
		last = &(*last)->next;
	*last = dump;
	*ret_write_failed = dumps->write_failed;
	*ret_pages_dropped = dumps->pages_dropped;
	dumps->write_failed = dumps->pages_dropped = false;
	dump->nr_resets = dumps->nr_resets;
	dump->nr_failures = dumps->nr_failures;
	pthread_mutex_unlock(&dumps->lock);
}

static bool has_syncer_failed(struct opd_dump *dump)
{
	struct opd_dumps *dumps = dump->dumps;
	uint64_t before = dumps->nr_syncer_failures;

	if (dump->out->syncer)
		dumps->nr_syncer_failures = opd_syncer_nr_failed(dump->out->syncer, false);
	dump->nr_syncer_failures = dumps->nr_syncer_failures;
	return dumps->nr_syncer_failures != before;
}

/* After a failure this dump writes everything, to new files if the kernel may have dropped data. */
static int link_and_repair(struct opd_dump *dump)
{
	struct opd_dumps *dumps = dump->dumps;
	struct opd_count *count = &dumps->pipeline->count;
	bool write_failed, pages_dropped, syncer_failed;
	int err;

	link_dump(dump, &write_failed, &pages_dropped);
	syncer_failed = has_syncer_failed(dump);
	err = pages_dropped || syncer_failed ? opd_count_renew(count) : 0;
	dump->out->whole = write_failed || syncer_failed || count->forgot_changed;
	if (write_failed || syncer_failed)
		opd_count_mark_changed(count);
	if (!err)
		return 0;
	pthread_mutex_lock(&dumps->lock);
	dumps->pages_dropped = true;
	pthread_mutex_unlock(&dumps->lock);
	return err;
}

static struct opd_dump *new_dump(struct opd_dumps *dumps, struct opd_job *job, bool closing)
{
	struct opd_count *count = &dumps->pipeline->count;
	struct opd_dump *dump = calloc(1, sizeof(*dump));
	struct opd_write_out *out = dump ? opd_write_out_new(count->session_fd, closing) : NULL;

	if (!out) {
		free(dump);
		return NULL;
	}
	out->number = dumps->nr_closings += closing;
	out->cookie_file = count->cookie_file;
	out->syncer = count->sync.host; /* as init_pipeline of opd.c says */
	*dump = (struct opd_dump){ .dumps = dumps, .job = job, .out = out };
	return dump;
}

int opd_dump_begin(struct opd_dumps *dumps, struct opd_job *job, bool closing, struct opd_dump **ret_dump)
{
	struct opd_dump *dump = new_dump(dumps, job, closing);
	int err;

	if (!dump)
		return -ENOMEM;
	err = link_and_repair(dump);
	if (!err)
		err = take_changed(dumps->pipeline, dump->out);
	if (err) {
		drop(dump);
		return err;
	}
	dumps->pipeline->count.forgot_changed = false;
	if (closing && dump->out->syncer)
		dump->out->pending = opd_syncer_take(dump->out->syncer, &dump->out->syncer_session);
	*ret_dump = dump;
	return 0;
}

int opd_dump_go(struct opd_dump *dump)
{
	int err = opd_background_start(dump->dumps->background, "opd-dump", run, dump->dumps, dump);

	if (!err)
		return 0;
	/* Nobody comes back to a closed session, so it is written here. */
	if (dump->out->closing) {
		run(dump->dumps, dump);
		return 0;
	}
	opd_dump_drop(dump);
	return err;
}

int opd_dump_start(struct opd_dumps *dumps, struct opd_job *job)
{
	struct opd_dump *dump;
	int err = opd_dump_begin(dumps, job, false, &dump);

	if (!err)
		err = opd_dump_go(dump);
	dumps->nr_done += !err;
	return err;
}
