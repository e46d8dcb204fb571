/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "daemon/unwritten.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "libop/base/log.h"
#include "daemon/keep/syncer.h"
#include "daemon/write_out.h"
#include "libop/base/clock.h"
#include "libop/odb/odb.h"
#include "libop/session/walk.h"
#include "libop/base/sys.h"

#define RETRY_NS     (5 * (uint64_t)OP_NS_PER_S)
#define RETRY_MAX_NS (600 * (uint64_t)OP_NS_PER_S)
#define KEPT_MAX     64 /* each has a descriptor */
#define PIECE_BYTES  65536

/* ---- the list ---- */

static uint64_t delay_ns(unsigned int nr_tries)
{
	return nr_tries < 16 ? op_min_u64(RETRY_NS << nr_tries, RETRY_MAX_NS) : RETRY_MAX_NS;
}

bool opd_unwritten_keep(struct opd_write_out *out)
{
	struct opd_sync *sync = out->sync;
	bool keep;

	pthread_mutex_lock(&sync->lock);
	keep = out->current_fd >= 0 && (out->nr_tries || sync->nr_unwritten < KEPT_MAX);
	if (keep) {
		sync->nr_unwritten += !out->nr_tries;
		out->retry_ns = 0;
		out->nr_tries++;
		out->next = sync->unwritten;
		sync->unwritten = out;
	}
	pthread_mutex_unlock(&sync->lock);
	return keep;
}

/* One that is new waits from now on. */
static bool is_due(struct opd_write_out *out, uint64_t now_ns)
{
	if (!out->retry_ns)
		out->retry_ns = now_ns + delay_ns(out->nr_tries - 1);
	return now_ns >= out->retry_ns;
}

static struct opd_write_out *take_due(struct opd_sync *sync, uint64_t now_ns)
{
	struct opd_write_out **link = &sync->unwritten, *out;

	pthread_mutex_lock(&sync->lock);
	while (*link && !is_due(*link, now_ns))
		link = &(*link)->next;
	out = *link;
	if (out)
		*link = out->next;
	pthread_mutex_unlock(&sync->lock);
	return out;
}

uint64_t opd_unwritten_count(struct opd_sync *sync)
{
	uint64_t nr;

	pthread_mutex_lock(&sync->lock);
	nr = sync->nr_unwritten;
	pthread_mutex_unlock(&sync->lock);
	return nr;
}

void opd_unwritten_free(struct opd_sync *sync)
{
	struct opd_write_out *next;

	for (struct opd_write_out *out = sync->unwritten; out; out = next) {
		next = out->next;
		opd_write_out_free(out);
	}
	sync->unwritten = NULL;
}

/* ---- writing anew ---- */

/* Nobody else writes it: what was read is what it has. */
static int write_anew(int fd)
{
	char piece[PIECE_BYTES];
	off_t at = 0;
	ssize_t nr;

	while ((nr = op_sys_pread(fd, piece, sizeof(piece), at)) > 0) {
		int err = op_sys_pwrite_all(fd, piece, (size_t)nr, at);

		if (err)
			return err;
		at += nr;
	}
	return nr < 0 ? (int)nr : op_sys_fsync(fd);
}

static int visit(const char *path, unsigned char type, void *arg)
{
	const struct opd_write_out *out = arg;
	int fd, err;

	if (type != DT_REG)
		return 0;
	fd = op_sys_openat(out->current_fd, path, O_RDWR | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC, 0);
	if (fd < 0)
		return fd == -ENOENT ? 0 : fd; /* somebody removed it */
	err = write_anew(fd);
	close(fd);
	return err;
}

/* What the settler could not write of it is written with it. */
static void adopt_failed(struct opd_write_out *out)
{
	struct opd_syncer *settler = out->sync->pipeline->count.settler;

	if (settler)
		op_odb_pending_append(&out->pending, opd_syncer_take_failed(settler, out->session));
}

int opd_write_out_anew(struct opd_write_out *out, const char **ret_failed)
{
	if (out->current_fd < 0)
		return out->current_fd;
	*ret_failed = "the files";
	out->missing = true; /* visit passes over what is */
	adopt_failed(out);
	return op_session_walk(out->current_fd, ".", visit, out);
}

/* By who removes sessions that are too old, or by a user. */
static bool is_removed(const struct opd_write_out *out)
{
	struct stat st;

	return !op_sys_fstat(out->current_fd, &st) && !st.st_nlink;
}

static int write_again(struct opd_write_out *out)
{
	const char *failed = "";
	int err = opd_write_out_anew(out, &failed);

	if (!err)
		err = opd_write_out_end(out, 0, &failed);
	if (is_removed(out))
		return 0;
	if (err)
		op_log(OP_LOG_WARNING, "cannot write %s of a closed session to the disk, %u times now: %s; it is tried again", failed,
			out->nr_tries + 1, strerror(-err));
	else
		op_log(OP_LOG_NOTICE, "the closed session that could not be written is on the disk");
	return err;
}

static void drop(struct opd_write_out *out)
{
	struct opd_sync *sync = out->sync;

	opd_write_out_free(out);
	pthread_mutex_lock(&sync->lock);
	sync->nr_unwritten--;
	pthread_mutex_unlock(&sync->lock);
}

static void *run(void *arg)
{
	struct opd_write_out *out = arg;
	struct opd_sync *sync = out->sync;

	pthread_setname_np(pthread_self(), "opd-unwritten");
	if (!write_again(out) || !opd_unwritten_keep(out))
		drop(out);
	opd_sync_thread_ends(sync);
	return NULL;
}

void opd_unwritten_retry(struct opd_sync *sync, uint64_t now_ns)
{
	struct opd_write_out *out;

	while ((out = take_due(sync, now_ns))) {
		opd_sync_thread_begins(sync);
		if (!opd_sync_start_thread(run, out))
			continue;
		opd_sync_thread_ends(sync);
		if (!opd_unwritten_keep(out))
			drop(out);
	}
}
