/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "daemon/jobs/minutes.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libop/base/clock.h"
#include "libop/base/file.h"
#include "libop/base/log.h"
#include "libop/base/sys.h"
#include "libop/session/dcookie.h"
#include "libop/session/layout.h"
#include "libop/timeline/thin.h"

/* Nodes of a minute. More are merged: a busy minute of a compile load has less than 10 KB. */
#define MAX_SAMPLE_NODES 1344u
#define MAX_STACK_NODES  1664u
#define HOUR_NS          (3600 * (uint64_t)OP_NS_PER_S)
#define HOURS_KEEP_NS    (90 * 24 * HOUR_NS)

void opd_minutes_init(struct opd_minutes *minutes, struct opd_background *background)
{
	*minutes = (struct opd_minutes){
		.background = background,
		.limits = { .max_samples = MAX_SAMPLE_NODES, .max_stacks = MAX_STACK_NODES },
		.keep.session_fd = -1,
	};
	pthread_mutex_init(&minutes->opening, NULL);
	pthread_mutex_init(&minutes->lock, NULL);
}

static void free_waiting(struct opd_minute_waiting *waiting)
{
	op_minute_free(&waiting->minute);
	close(waiting->dir_fd);
}

/* ---- in the background ---- */

/* A file may be made only in a session that was not emptied meanwhile. */
static int open_file(struct opd_minutes *minutes, const struct opd_minute_waiting *waiting)
{
	int err = -ECANCELED;

	pthread_mutex_lock(&minutes->opening);
	if (waiting->nr_resets == minutes->nr_resets)
		err = op_timeline_append_open(waiting->dir_fd, OP_SESSION_TIMELINE, &minutes->writer, NULL);
	pthread_mutex_unlock(&minutes->opening);
	return err;
}

/* Another session, or its file was removed: it is opened anew. */
static int use_file(struct opd_minutes *minutes, const struct opd_minute_waiting *waiting)
{
	struct stat st;
	int err = op_sys_fstat(waiting->dir_fd, &st);
	bool is_same;

	if (err)
		return err;
	is_same = st.st_dev == minutes->writer_device && st.st_ino == minutes->writer_inode;
	minutes->has_lost &= is_same;
	if (minutes->writer && (!is_same || !op_timeline_append_is_linked(minutes->writer))) {
		op_timeline_append_close(minutes->writer);
		minutes->writer = NULL;
	}
	minutes->writer_device = st.st_dev;
	minutes->writer_inode = st.st_ino;
	return minutes->writer ? 0 : open_file(minutes, waiting);
}

/* The table of images is on the disk before a minute that names its rows. */
static int sync_images(int dir_fd)
{
	int fd = op_file_open_below(dir_fd, OP_DCOOKIE_FILE, O_RDONLY | O_NONBLOCK, 0), err;

	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	err = op_sys_fsync(fd);
	close(fd);
	return err;
}

/*
 * Since the last minute in the file the host was off, or opd, or a minute was not written. That one
 * has more to say than a stop or a suspend beside it.
 */
static void set_gap(const struct opd_minutes *minutes, struct op_minute *minute)
{
	struct op_timeline_clocks last;
	bool has_last = op_timeline_append_last(minutes->writer, &last);

	if ((minutes->has_lost && minute->gap != OP_GAP_FIRST) ||
	    (minute->gap == OP_GAP_NONE && (!has_last || last.mono_ns != minute->begin.mono_ns)))
		minute->gap = OP_GAP_UNWRITTEN;
	else if (has_last && minute->gap == OP_GAP_FIRST)
		minute->gap = last.boot_ns > minute->begin.boot_ns ? OP_GAP_BOOT : OP_GAP_OFF;
}

static int write_minute(struct opd_minutes *minutes, struct opd_minute_waiting *waiting, uint64_t *ret_nr_bytes)
{
	uint64_t before;
	int err = sync_images(waiting->dir_fd);

	if (!err)
		err = use_file(minutes, waiting);
	if (err)
		return err;
	set_gap(minutes, &waiting->minute);
	before = op_timeline_append_bytes(minutes->writer);
	err = op_timeline_append(minutes->writer, &waiting->minute, &minutes->limits);
	*ret_nr_bytes = op_timeline_append_bytes(minutes->writer) - before;
	return err;
}

/* A file of a session that was emptied meanwhile does not come back. */
static int replace_file(struct opd_minutes *minutes, const struct opd_minute_waiting *waiting, int session_fd)
{
	int err = -ECANCELED;

	pthread_mutex_lock(&minutes->opening);
	if (waiting->nr_resets == minutes->nr_resets)
		err = op_file_move_below(session_fd, OP_SESSION_TMP_SHORT, waiting->dir_fd, OP_SESSION_TIMELINE);
	pthread_mutex_unlock(&minutes->opening);
	if (err) {
		op_file_unlink_below(session_fd, OP_SESSION_TMP_SHORT);
		return err;
	}
	op_timeline_append_close(minutes->writer);
	minutes->writer = NULL;
	return 0;
}

/*
 * A session may never end, so what is too old becomes hours or goes. The file is looked at once in
 * an hour of its time, and when it has grown by a part of its limit.
 */
static void shorten_file(struct opd_minutes *minutes, const struct opd_minute_waiting *waiting, const struct opd_minutes_keep *kept)
{
	static const struct op_encode_limits of_hour = { .max_samples = 3 * MAX_SAMPLE_NODES, .max_stacks = 3 * MAX_STACK_NODES };
	static struct op_rate rate;
	struct op_timeline_keep keep = {
		.minutes_ns = kept->keep_ns, .hours_ns = HOURS_KEEP_NS, .grain_ns = HOUR_NS, .max_bytes = kept->max_bytes
	};
	uint64_t boot_ns = waiting->minute.end.boot_ns, nr_bytes = op_timeline_append_bytes(minutes->writer);
	bool is_due = boot_ns < minutes->looked_boot_ns || boot_ns - minutes->looked_boot_ns >= HOUR_NS ||
		      nr_bytes < minutes->looked_bytes || nr_bytes - minutes->looked_bytes > kept->max_bytes / 16;
	int err = 0;

	if (kept->session_fd < 0 || !is_due)
		return;
	for (int i = 0; i < 3 && !err; i++) {
		err = op_timeline_shorten(waiting->dir_fd, OP_SESSION_TIMELINE, &keep, &of_hour, kept->session_fd,
					  OP_SESSION_TMP_SHORT);
		if (!err)
			err = replace_file(minutes, waiting, kept->session_fd);
		/* once it is too large, there is some room for what comes */
		keep.max_bytes = kept->max_bytes - kept->max_bytes / 4;
	}
	minutes->looked_boot_ns = boot_ns;
	minutes->looked_bytes = nr_bytes;
	if (err && err != -EALREADY && err != -ECANCELED)
		op_log_failure(&rate, op_now_ns(), "cannot merge old minutes of the current session into hours", err);
}

/* The minute of a session that was emptied meanwhile is neither written nor lost. */
static void note_result(struct opd_minutes *minutes, const struct opd_minute_waiting *waiting, int err, uint64_t nr_bytes)
{
	static struct op_rate rate;

	if (waiting->nr_resets != minutes->nr_resets)
		return;
	minutes->state.last_error = err;
	minutes->has_lost = err;
	if (!err) {
		minutes->state.nr_written++;
		minutes->state.nr_bytes += nr_bytes;
		minutes->growth += nr_bytes;
		return;
	}
	minutes->state.nr_lost++;
	op_log_failure(&rate, op_now_ns(), "cannot write a minute to " OP_SESSION_CURRENT "/" OP_SESSION_TIMELINE, err);
}

static void write_all(void *context, void *arg)
{
	struct opd_minutes *minutes = context;

	(void)arg;
	pthread_mutex_lock(&minutes->lock);
	while (minutes->nr_waiting) {
		struct opd_minute_waiting waiting = minutes->waiting[0];
		struct opd_minutes_keep keep = minutes->keep;
		uint64_t nr_bytes = 0;
		int err;

		minutes->nr_waiting--;
		memmove(minutes->waiting, minutes->waiting + 1, minutes->nr_waiting * sizeof(waiting));
		pthread_mutex_unlock(&minutes->lock);
		err = write_minute(minutes, &waiting, &nr_bytes);
		if (!err)
			shorten_file(minutes, &waiting, &keep);
		free_waiting(&waiting);
		pthread_mutex_lock(&minutes->lock);
		note_result(minutes, &waiting, err, nr_bytes);
	}
	minutes->is_running = false;
	pthread_mutex_unlock(&minutes->lock);
}

/* The thread is not started, so it is this thread's. */
void opd_minutes_free(struct opd_minutes *minutes)
{
	write_all(minutes, NULL);
	op_timeline_append_close(minutes->writer);
	pthread_mutex_destroy(&minutes->opening);
	pthread_mutex_destroy(&minutes->lock);
}

/* ---- for the collector ---- */

static bool is_busy(void *host)
{
	struct opd_minutes *minutes = host;
	bool busy;

	pthread_mutex_lock(&minutes->lock);
	busy = minutes->is_running;
	pthread_mutex_unlock(&minutes->lock);
	return busy;
}

/* The queue is full only when sessions end one after the other beside a slow disk. */
static void take(void *host, struct op_minute *minute, int dir_fd)
{
	struct opd_minutes *minutes = host;
	struct opd_minute_waiting waiting = { .minute = *minute, .dir_fd = dir_fd };
	bool starts;
	int err = 0;

	pthread_mutex_lock(&minutes->lock);
	if (minutes->nr_waiting == OPD_MINUTES_WAITING_MAX) {
		minutes->state.nr_lost++;
		pthread_mutex_unlock(&minutes->lock);
		free_waiting(&waiting);
		return;
	}
	waiting.nr_resets = minutes->nr_resets;
	minutes->waiting[minutes->nr_waiting++] = waiting;
	starts = !minutes->is_running;
	minutes->is_running = true;
	pthread_mutex_unlock(&minutes->lock);
	if (starts)
		err = opd_background_start(minutes->background, "opd-minutes", write_all, minutes, NULL);
	if (!err)
		return;
	/* It waits for the next one. */
	pthread_mutex_lock(&minutes->lock);
	minutes->is_running = false;
	minutes->state.last_error = err;
	pthread_mutex_unlock(&minutes->lock);
}

static uint64_t take_growth(void *host)
{
	struct opd_minutes *minutes = host;
	uint64_t growth;

	pthread_mutex_lock(&minutes->lock);
	growth = minutes->growth;
	minutes->growth = 0;
	pthread_mutex_unlock(&minutes->lock);
	return growth;
}

struct opd_minute_host opd_minutes_host(struct opd_minutes *minutes)
{
	return (struct opd_minute_host){ .is_busy = is_busy, .take = take, .take_growth = take_growth, .host = minutes };
}

void opd_minutes_set_keep(struct opd_minutes *minutes, const struct opd_minutes_keep *keep)
{
	pthread_mutex_lock(&minutes->lock);
	minutes->keep = *keep;
	pthread_mutex_unlock(&minutes->lock);
}

void opd_minutes_reset(struct opd_minutes *minutes)
{
	pthread_mutex_lock(&minutes->opening);
	pthread_mutex_lock(&minutes->lock);
	while (minutes->nr_waiting)
		free_waiting(&minutes->waiting[--minutes->nr_waiting]);
	minutes->nr_resets++;
	minutes->growth = 0;
	pthread_mutex_unlock(&minutes->lock);
	pthread_mutex_unlock(&minutes->opening);
}

void opd_minutes_state(struct opd_minutes *minutes, struct opd_minutes_state *ret_state)
{
	pthread_mutex_lock(&minutes->lock);
	*ret_state = minutes->state;
	pthread_mutex_unlock(&minutes->lock);
}
