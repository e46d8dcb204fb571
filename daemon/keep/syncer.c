/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "daemon/keep/syncer.h"

#include <errno.h>
#include <pthread.h>

#include "libop/base/log.h"

#define KEPT_MAX 256

struct opd_syncer {
	int session_fd;
	pthread_t thread;
	pthread_mutex_t lock; /* protects what follows */
	pthread_cond_t changed;
	uint64_t nr_begun, nr_ended, nr_failed; /* ever */
	uint64_t session; /* the number that what comes has */
	struct op_odb_pending *failed; /* each has a descriptor */
	unsigned int nr_kept;          /* of these */
	struct op_odb_pending *first; /* the newest is settled first: it makes older ones of its file needless */
	bool end;
};

/* The next one, open, since its directory may get another name as soon as the lock is free; or NULL at the end. Waits for it. */
static struct op_odb_pending *take(struct opd_syncer *settler, int *ret_err)
{
	struct op_odb_pending *pending;

	pthread_mutex_lock(&settler->lock);
	while (!settler->first && !settler->end)
		pthread_cond_wait(&settler->changed, &settler->lock);
	pending = settler->first;
	if (pending) {
		settler->first = *op_odb_pending_next(pending);
		*op_odb_pending_next(pending) = NULL;
		settler->nr_begun++;
		*ret_err = op_odb_pending_open(pending, settler->session_fd, "");
	}
	pthread_mutex_unlock(&settler->lock);
	return pending;
}

static bool keep(struct opd_syncer *settler, struct op_odb_pending *pending)
{
	bool has_room;

	pthread_mutex_lock(&settler->lock);
	has_room = settler->nr_kept < KEPT_MAX;
	if (has_room) {
		*op_odb_pending_next(pending) = settler->failed;
		settler->failed = pending;
		settler->nr_kept++;
	}
	pthread_mutex_unlock(&settler->lock);
	return has_room;
}

/* One that cannot be opened, or that there is no room for, is left to the next start. */
static int settle(struct opd_syncer *settler, struct op_odb_pending *pending, int err)
{
	int open_err = err;

	if (!err)
		err = op_odb_settle_or_keep(settler->session_fd, pending);
	if (err && (open_err || !keep(settler, pending)))
		op_odb_pending_free(pending);
	return err;
}

static void note_end(struct opd_syncer *settler, int err)
{
	pthread_mutex_lock(&settler->lock);
	settler->nr_ended++;
	settler->nr_failed += !!err;
	pthread_cond_broadcast(&settler->changed);
	pthread_mutex_unlock(&settler->lock);
}

static void *run(void *arg)
{
	static struct op_rate rate;
	struct opd_syncer *settler = arg;
	struct op_odb_pending *pending;
	int err = 0;

	pthread_setname_np(pthread_self(), "opd-settle");
	while ((pending = take(settler, &err))) {
		err = settle(settler, pending, err);
		note_end(settler, err);
		if (err)
			op_log_failure(&rate, op_now_ns(), "cannot write a sample file that has grown to the disk", err);
	}
	return NULL;
}

int opd_syncer_new(int session_fd, struct opd_syncer **ret_settler)
{
	struct opd_syncer *settler = calloc(1, sizeof(*settler));
	int err;

	if (!settler)
		return -ENOMEM;
	settler->session_fd = session_fd;
	pthread_mutex_init(&settler->lock, NULL);
	pthread_cond_init(&settler->changed, NULL);
	err = pthread_create(&settler->thread, NULL, run, settler);
	if (err) {
		pthread_cond_destroy(&settler->changed);
		pthread_mutex_destroy(&settler->lock);
		free(settler);
		return -err;
	}
	*ret_settler = settler;
	return 0;
}

void opd_syncer_add(struct opd_syncer *settler, struct op_odb_pending *pending)
{
	struct op_odb_pending *first = pending;

	pthread_mutex_lock(&settler->lock);
	for (struct op_odb_pending *each = first; each; each = *op_odb_pending_next(each))
		*op_odb_pending_number(each) = settler->session;
	op_odb_pending_append(&first, settler->first);
	settler->first = first;
	pthread_cond_broadcast(&settler->changed);
	pthread_mutex_unlock(&settler->lock);
}

struct op_odb_pending *opd_syncer_take(struct opd_syncer *settler, uint64_t *ret_session)
{
	struct op_odb_pending *first;

	pthread_mutex_lock(&settler->lock);
	first = settler->first;
	settler->first = NULL;
	*ret_session = settler->session++;
	pthread_mutex_unlock(&settler->lock);
	return first;
}

uint64_t opd_syncer_nr_failed(struct opd_syncer *settler, bool wait)
{
	uint64_t nr_begun, nr_failed;

	pthread_mutex_lock(&settler->lock);
	nr_begun = settler->nr_begun;
	while (wait && settler->nr_ended < nr_begun)
		pthread_cond_wait(&settler->changed, &settler->lock);
	nr_failed = settler->nr_failed;
	pthread_mutex_unlock(&settler->lock);
	return nr_failed;
}

struct op_odb_pending *opd_syncer_take_failed(struct opd_syncer *settler, uint64_t session)
{
	struct op_odb_pending *taken;
	unsigned int nr_taken;

	pthread_mutex_lock(&settler->lock);
	taken = op_odb_pending_take(&settler->failed, session, &nr_taken);
	settler->nr_kept -= nr_taken;
	pthread_mutex_unlock(&settler->lock);
	return taken;
}

bool opd_syncer_has_failed(struct opd_syncer *settler)
{
	bool has;

	pthread_mutex_lock(&settler->lock);
	has = settler->failed;
	pthread_mutex_unlock(&settler->lock);
	return has;
}

void opd_syncer_free(struct opd_syncer *settler)
{
	if (!settler)
		return;
	pthread_mutex_lock(&settler->lock);
	settler->end = true;
	pthread_cond_broadcast(&settler->changed);
	pthread_mutex_unlock(&settler->lock);
	pthread_join(settler->thread, NULL);
	pthread_cond_destroy(&settler->changed);
	pthread_mutex_destroy(&settler->lock);
	op_odb_pending_free(settler->failed);
	free(settler);
}
