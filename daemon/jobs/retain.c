/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "daemon/jobs/retain.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libop/base/atomic.h"
#include "libop/base/clock.h"
#include "libop/base/file.h"
#include "libop/base/log.h"
#include "libop/session/layout.h"
#include "libop/session/walk.h"
#include "libop/timeline/thin.h"
#include "libop/base/sys.h"

#define INTERVAL_NS    (60 * (uint64_t)OP_NS_PER_S)
#define NS_PER_US      1000u
#define HOUR_NS        (3600 * (uint64_t)OP_NS_PER_S)
/* nodes of an hour: three times those of a minute (minutes.c) */
#define HOUR_SAMPLE_NODES 4032u
#define HOUR_STACK_NODES  4992u
/* the hours of a session go when it is older */
#define HOURS_KEEP_US  (90ull * 24 * HOUR_NS / NS_PER_US)
#define MERGE_RETRY_NS HOUR_NS
#define TIMELINE_PATH_BYTES (sizeof("samples//" OP_SESSION_TIMELINE) + OP_SESSION_NAME_BYTES)
/* a closed session still gets its table, its ledger and its mark: fewer files than this */
#define REMOVE_TRIES   8
/* the current session is weighed when it has grown by this part of SessionMaxUse */
#define GROWN_SHARE    16

/* ---- removing ---- */

struct rest {
	int session_fd, err; /* the first */
	uint64_t bytes;      /* that could not be removed */
};

/* An earlier call could not remove it, or a kill left it. */
static int remove_rest(const char *name, void *arg)
{
	struct rest *rest = arg;
	char path[sizeof(OP_SESSION_TMP "/") + NAME_MAX + 1];
	uint64_t left = 0;
	int err;

	if (strncmp(name, OP_SESSION_REMOVED, strlen(OP_SESSION_REMOVED)))
		return 0;
	snprintf(path, sizeof(path), OP_SESSION_TMP "/%s", name);
	err = op_session_remove(rest->session_fd, path);
	if (err && !op_session_disk_bytes(rest->session_fd, path, &left))
		rest->bytes += left;
	if (!rest->err)
		rest->err = err;
	return 0;
}

/* Bytes of a session that could not be removed. A complete one goes back to samples/. */
static uint64_t bytes_that_stay(int session_fd, const struct opd_sized_session *session, const char *from, const char *to)
{
	uint64_t left;

	if (op_session_disk_bytes(session_fd, to, &left))
		return session->disk_bytes;
	return left >= session->disk_bytes && op_file_rename_below(session_fd, to, from) ? session->disk_bytes : left;
}

static void report_failure(struct opd_sized_session *session, const char *why, int err)
{
	if (!session->is_reported)
		op_log(OP_LOG_WARNING,
			"cannot remove session %s (%s): %s; the next oldest is removed instead, and it is tried again",
			session->name, why, strerror(-err));
	session->is_reported = true;
}

/* A session that was just closed is still written: it may get its table while it is emptied. */
static int remove_all(int session_fd, const char *path)
{
	int err, nr_tries = 0;

	do
		err = op_session_remove(session_fd, path);
	while (err == -ENOTEMPTY && ++nr_tries < REMOVE_TRIES);
	return err;
}

/* Somebody may have put another session in its place since it was looked at: that one goes back. */
static int take_away(int session_fd, const struct opd_sized_session *session, const char *from, const char *to)
{
	int err = op_file_rename_below(session_fd, from, to);
	struct stat st;

	if (err || !session->inode)
		return err;
	if (!fstatat(session_fd, to, &st, AT_SYMLINK_NOFOLLOW) && st.st_ino == session->inode)
		return 0;
	err = op_file_rename_below(session_fd, to, from);
	return err ? err : -ESTALE;
}

static int remove_session(struct opd_retention *retention, int session_fd, struct opd_sized_session *session, const char *why)
{
	char from[sizeof("samples/") + OP_SESSION_NAME_BYTES],
		to[sizeof(OP_SESSION_TMP "/" OP_SESSION_REMOVED) + OP_SESSION_NAME_BYTES];
	int err;

	snprintf(from, sizeof(from), "samples/%s", session->name);
	snprintf(to, sizeof(to), OP_SESSION_TMP "/" OP_SESSION_REMOVED "%s", session->name);
	err = take_away(session_fd, session, from, to);
	if (!err) {
		err = remove_all(session_fd, to);
		session->disk_bytes = err ? bytes_that_stay(session_fd, session, from, to) : 0;
	}
	if (err) {
		report_failure(session, why, err);
		return err;
	}
	retention->nr_removed++;
	op_log(OP_LOG_NOTICE, "session %s is removed: %s", session->name, why);
	return 0;
}

static uint64_t free_bytes(int session_fd)
{
	struct statvfs vfs;

	return op_sys_statvfs(session_fd, &vfs) < 0 ? UINT64_MAX : (uint64_t)vfs.f_bavail * vfs.f_frsize;
}

struct limits {
	const struct op_config *config;
	int session_fd;
	uint64_t now_ns; /* ages are taken from it; 0: nothing is too old */
};

/* Why a session has to go; NULL: it stays. */
static const char *reason(const struct opd_sized_session *session, const struct limits *limits, uint64_t used)
{
	const struct op_config *config = limits->config;

	if (config->session_keep_us && session->end_ns < limits->now_ns &&
	    (limits->now_ns - session->end_ns) / NS_PER_US > config->session_keep_us)
		return "it is older than SessionKeep";
	if (config->session_max_use && used > config->session_max_use)
		return "the sessions take more than SessionMaxUse";
	if (config->session_keep_free && free_bytes(limits->session_fd) < config->session_keep_free)
		return "the file system has less room left than SessionKeepFree";
	return NULL;
}

/* Only sessions that were closed by time count. */
static uint64_t newest_end_ns(const struct opd_retention *retention)
{
	uint64_t newest_ns = 0;

	for (size_t i = 0; i < retention->sizes.nr_sessions; i++)
		if (retention->sizes.sessions[i].is_timed)
			newest_ns = op_max_u64(newest_ns, retention->sizes.sessions[i].end_ns);
	return newest_ns;
}

static int check_clock(struct opd_retention *retention, struct limits *limits)
{
	uint64_t keep_us = limits->config->session_keep_us;

	if (!keep_us)
		return 0;
	return opd_trusted_clock_look(&retention->age, limits->session_fd, op_min_u64(keep_us, UINT64_MAX / NS_PER_US) * NS_PER_US,
			    newest_end_ns(retention), &limits->now_ns);
}

/* A session that ends in the future counts as the newest. */
static int compare_age(const void *a, const void *b)
{
	const struct opd_sized_session *left = *(struct opd_sized_session *const *)a;
	const struct opd_sized_session *right = *(struct opd_sized_session *const *)b;

	if (left->end_ns != right->end_ns)
		return left->end_ns < right->end_ns ? -1 : 1;
	return strcmp(left->name, right->name);
}

/* *used is what all sessions take. */
static int remove_if_beyond(struct opd_retention *retention, const struct limits *limits, struct opd_sized_session *session,
			    uint64_t *used)
{
	const char *why = reason(session, limits, *used);
	int err;

	if (!why)
		return 0;
	*used -= session->disk_bytes;
	err = remove_session(retention, limits->session_fd, session, why);
	*used += err ? session->disk_bytes : 0;
	return err;
}

/* A session that cannot be removed must not keep the others, which fill the disk. */
static int remove_what_must_go(struct opd_retention *retention, const struct limits *limits, uint64_t rest_bytes)
{
	struct opd_session_sizes *sizes = &retention->sizes;
	uint64_t used = rest_bytes + opd_sizes_closed_bytes(sizes) + sizes->current.disk_bytes;
	struct opd_sized_session **oldest = calloc(sizes->nr_sessions + 1, sizeof(struct opd_sized_session *));
	size_t nr_oldest = 0;
	int first_err = 0;

	if (!oldest)
		return -ENOMEM;
	for (size_t i = 0; i < sizes->nr_sessions; i++)
		if (sizes->sessions[i].is_timed)
			oldest[nr_oldest++] = &sizes->sessions[i];
	qsort(oldest, nr_oldest, sizeof(struct opd_sized_session *), compare_age);
	for (size_t i = 0; i < nr_oldest; i++) {
		int err = remove_if_beyond(retention, limits, oldest[i], &used);

		first_err = first_err ? first_err : err;
	}
	free(oldest);
	retention->kept_bytes = used - sizes->current.disk_bytes;
	retention->has_looked = true;
	return first_err;
}

/* ---- minutes into hours ---- */

/* Whether a closed session ended longer ago. Into one that is not whole minutes may come. */
static bool is_older(const struct opd_sized_session *session, uint64_t now_ns, uint64_t us)
{
	return session->is_timed && session->is_whole && session->end_ns < now_ns && (now_ns - session->end_ns) / NS_PER_US > us;
}

/* The disk may have room, and the host memory, later; a file that is damaged stays so. */
static bool is_passing(int err)
{
	return err == -ENOSPC || err == -EDQUOT || err == -EROFS || err == -EIO || err == -ENOMEM || err == -EMFILE ||
	       err == -ENFILE || err == -EAGAIN;
}

static void merge_session(struct opd_retention *retention, int session_fd, struct opd_sized_session *session)
{
	static const struct op_encode_limits of_hour = { .max_samples = HOUR_SAMPLE_NODES, .max_stacks = HOUR_STACK_NODES };
	static struct op_rate rate;
	char path[TIMELINE_PATH_BYTES];
	int err;

	snprintf(path, sizeof(path), "samples/%s/" OP_SESSION_TIMELINE, session->name);
	err = op_timeline_thin(session_fd, path, OP_SESSION_TMP_TIMELINE, HOUR_NS, &of_hour);
	if (is_passing(err))
		retention->merge_due_ns = op_now_ns() + MERGE_RETRY_NS;
	else
		session->is_thin = true; /* also of a damaged file */
	if (err && err != -EALREADY && err != -ENOENT)
		op_log_failure(&rate, op_now_ns(), "cannot merge the minutes of an old session into hours", err);
}

static void remove_hours(int session_fd, struct opd_sized_session *session)
{
	char path[TIMELINE_PATH_BYTES];

	snprintf(path, sizeof(path), "samples/%s/" OP_SESSION_TIMELINE, session->name);
	op_file_unlink_below(session_fd, path);
	session->is_hourless = session->is_thin = true;
}

/*
 * The age is taken from the clock that removes sessions, or from the newest closed session: a wrong
 * clock must not merge what is new.
 */
static void merge_minutes(struct opd_retention *retention, const struct limits *limits)
{
	uint64_t keep_us = limits->config->timeline_keep_us, now_ns = limits->now_ns ? limits->now_ns : newest_end_ns(retention);

	for (size_t i = 0; i < retention->sizes.nr_sessions && keep_us && !retention->sizes.is_stopped; i++) {
		struct opd_sized_session *session = &retention->sizes.sessions[i];

		if (!session->is_hourless && is_older(session, now_ns, op_max_u64(keep_us, HOURS_KEEP_US)))
			remove_hours(limits->session_fd, session);
		else if (!session->is_thin && is_older(session, now_ns, keep_us) && op_now_ns() >= retention->merge_due_ns)
			merge_session(retention, limits->session_fd, session);
	}
}

int opd_retain(struct opd_retention *retention, const struct op_config *config)
{
	struct limits limits = { .config = config, .session_fd = retention->sizes.session_fd };
	struct rest rest = { .session_fd = limits.session_fd };
	int tmp_err = op_session_visit_dir(limits.session_fd, OP_SESSION_TMP, remove_rest, &rest),
	    err = opd_sizes_look(&retention->sizes, true), clock_err = err ? 0 : check_clock(retention, &limits),
	    remove_err = err ? 0 : remove_what_must_go(retention, &limits, rest.bytes);

	if (!err)
		merge_minutes(retention, &limits);
	return err ? err : tmp_err ? tmp_err : rest.err ? rest.err : clock_err ? clock_err : remove_err;
}

/* ---- in the background ---- */

static void set_runs(struct opd_retention *retention, bool runs)
{
	pthread_mutex_lock(&retention->lock);
	retention->runs = runs;
	pthread_mutex_unlock(&retention->lock);
}

static bool is_running(struct opd_retention *retention)
{
	bool runs;

	pthread_mutex_lock(&retention->lock);
	runs = retention->runs;
	pthread_mutex_unlock(&retention->lock);
	return runs;
}

static void run(void *context, void *arg OP_UNUSED)
{
	static struct op_rate rate;
	struct opd_retention *retention = context;
	const struct op_config *config = &retention->thread_config;
	int err = config->session_interval_us ? opd_retain(retention, config) : opd_sizes_look(&retention->sizes, false);

	if (err && err != -ECANCELED)
		op_log_failure(&rate, op_now_ns(), "cannot check the sessions for removal", err);
	set_runs(retention, false);
}

/* ---- sync thread ---- */

void opd_retention_init(struct opd_retention *retention, int session_fd, const struct op_config *config,
			struct opd_file_limit *limit, struct opd_background *background)
{
	*retention = (struct opd_retention){
		.config = config, .limit = limit, .background = background, .sizes.session_fd = session_fd
	};
	pthread_mutex_init(&retention->lock, NULL);
}

void opd_retention_stop(struct opd_retention *retention)
{
	op_store_relaxed(&retention->sizes.is_stopped, true);
}

void opd_retention_free(struct opd_retention *retention)
{
	opd_sizes_free(&retention->sizes);
	pthread_mutex_destroy(&retention->lock);
	*retention = (struct opd_retention){ 0 };
}

/* The current session gets what the others leave of SessionMaxUse, at least half of it. */
static void limit_current(struct opd_retention *retention)
{
	uint64_t most = retention->config->session_max_use, others_bytes = retention->is_known ? retention->others_bytes : most;

	if (retention->config->session_interval_us)
		opd_file_limit_give(retention->limit, most - op_min_u64(others_bytes, most / 2));
}

void opd_retain_note_closed(struct opd_retention *retention)
{
	uint64_t disk_bytes = opd_file_limit_bytes(retention->limit);

	retention->closed_bytes += disk_bytes;
	retention->others_bytes += disk_bytes;
	limit_current(retention);
}

bool opd_retain_may_close(const struct opd_retention *retention)
{
	uint64_t most = retention->config->session_max_use, others_bytes = retention->others_bytes;

	if (!retention->is_known || others_bytes > most)
		return false;
	return others_bytes <= most / 2 || opd_file_limit_bytes(retention->limit) <= most - others_bytes;
}

static void take_weight(struct opd_retention *retention)
{
	struct opd_current_size *weighed = &retention->sizes.weighed;

	if (weighed->inode && weighed->nr_begun == retention->limit->nr_begun)
		opd_file_limit_weigh(retention->limit, weighed->disk_bytes, weighed->taken_bytes);
	weighed->inode = 0;
}

static void take_sizes(struct opd_retention *retention)
{
	bool runs = is_running(retention);

	if (!runs)
		take_weight(retention);
	if (!runs && retention->has_looked) {
		/* The thread may have found the sessions that were closed meanwhile, or not. */
		retention->others_bytes = retention->kept_bytes + retention->closed_bytes;
		retention->is_known = true;
		retention->has_looked = false;
	}
	limit_current(retention);
}

static void start_thread(struct opd_retention *retention, bool has_grown)
{
	struct opd_session_sizes *sizes = &retention->sizes;
	struct stat st;
	int err = fstatat(sizes->session_fd, OP_SESSION_CURRENT, &st, AT_SYMLINK_NOFOLLOW);

	sizes->current = (struct opd_current_size){
		.inode = err < 0 ? 0 : st.st_ino,
		.nr_begun = retention->limit->nr_begun,
		.taken_bytes = opd_file_limit_bytes(retention->limit),
	};
	sizes->is_due = has_grown;
	retention->closed_bytes = 0;
	op_config_adopt(&retention->thread_config, retention->config);
	set_runs(retention, true);
	if (opd_background_start(retention->background, "opd-retain", run, retention, NULL))
		set_runs(retention, false);
}

void opd_retain_if_due(struct opd_retention *retention, uint64_t now_ns)
{
	const struct op_config *config = retention->config;
	uint64_t most = config->session_max_use;
	bool has_grown;

	if (!config->session_interval_us && !most)
		return;
	take_sizes(retention);
	has_grown = most && opd_file_limit_bytes(retention->limit) - retention->limit->weighed_bytes > most / GROWN_SHARE;
	if ((now_ns < retention->due_ns && !has_grown) || is_running(retention))
		return;
	retention->due_ns = now_ns + INTERVAL_NS;
	start_thread(retention, has_grown);
}
