/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "daemon/jobs/syncer.h"

#include <errno.h>
#include <pthread.h>

#include "libop/base/log.h"
#include "libop/odb/replace.h"

#define FAILED_MAX 256 /* each keeps a descriptor */

struct opd_syncer {
	int session_fd;
	pthread_t thread;
	pthread_mutex_t lock; /* of all members below */
	pthread_cond_t changed;
	uint64_t nr_begun, nr_ended, nr_failures; /* ever */
	uint64_t session;             /* the number for what is added */
	struct op_odb_pending *first; /* newest first: older ones of its file cost little then */
	struct op_odb_pending *failed;
	unsigned int nr_failed; /* in that list */
	bool end;
};

/*
 * Waits for the next file; NULL at the end. Opens it under the lock: its session may be renamed
 * afterwards.
 */
static struct op_odb_pending *take_next(struct opd_syncer *syncer, int *ret_err)
{
	struct op_odb_pending *pending;

	pthread_mutex_lock(&syncer->lock);
	while (!syncer->first && !syncer->end)
		pthread_cond_wait(&syncer->changed, &syncer->lock);
	pending = syncer->first;
	if (pending) {
		syncer->first = pending->next;
		pending->next = NULL;
		syncer->nr_begun++;
		*ret_err = op_odb_open_pending(pending, syncer->session_fd, "");
	}
	pthread_mutex_unlock(&syncer->lock);
	return pending;
}

/* A file that could not be opened, or is one too many, waits for the next start. */
static void add_failed(struct opd_syncer *syncer, struct op_odb_pending *pending)
{
	if (!pending->is_open || syncer->nr_failed >= FAILED_MAX) {
		op_odb_free_pending(pending);
		return;
	}
	pending->next = syncer->failed;
	syncer->failed = pending;
	syncer->nr_failed++;
}

static void *run(void *arg)
{
	static struct op_rate rate;
	struct opd_syncer *syncer = arg;
	struct op_odb_pending *pending;
	int err = 0;

	pthread_setname_np(pthread_self(), "opd-syncer");
	while ((pending = take_next(syncer, &err))) {
		if (!err)
			err = op_odb_sync_pending(syncer->session_fd, pending);
		pthread_mutex_lock(&syncer->lock);
		if (err)
			add_failed(syncer, pending);
		syncer->nr_ended++;
		syncer->nr_failures += !!err;
		pthread_cond_broadcast(&syncer->changed);
		pthread_mutex_unlock(&syncer->lock);
		if (err)
			op_log_failure(&rate, op_now_ns(), "cannot write a sample file that has grown to the disk", err);
	}
	return NULL;
}

int opd_syncer_new(int session_fd, struct opd_syncer **ret_syncer)
{
	struct opd_syncer *syncer = calloc(1, sizeof(*syncer));
	int err;

	if (!syncer)
		return -ENOMEM;
	syncer->session_fd = session_fd;
	pthread_mutex_init(&syncer->lock, NULL);
	pthread_cond_init(&syncer->changed, NULL);
	err = pthread_create(&syncer->thread, NULL, run, syncer);
	if (err) {
		pthread_cond_destroy(&syncer->changed);
		pthread_mutex_destroy(&syncer->lock);
		free(syncer);
		return -err;
	}
	*ret_syncer = syncer;
	return 0;
}

void opd_syncer_add(struct opd_syncer *syncer, struct op_odb_pending *pending)
{
	pthread_mutex_lock(&syncer->lock);
	for (struct op_odb_pending *each = pending; each; each = each->next)
		each->session = syncer->session;
	op_odb_append_pending(&pending, syncer->first);
	syncer->first = pending;
	pthread_cond_broadcast(&syncer->changed);
	pthread_mutex_unlock(&syncer->lock);
}

struct op_odb_pending *opd_syncer_take(struct opd_syncer *syncer, uint64_t *ret_session)
{
	struct op_odb_pending *first;

	pthread_mutex_lock(&syncer->lock);
	first = syncer->first;
	syncer->first = NULL;
	*ret_session = syncer->session++;
	pthread_mutex_unlock(&syncer->lock);
	return first;
}

uint64_t opd_syncer_nr_failed(struct opd_syncer *syncer, bool wait)
{
	uint64_t nr_begun, nr_failures;

	pthread_mutex_lock(&syncer->lock);
	nr_begun = syncer->nr_begun;
	while (wait && syncer->nr_ended < nr_begun)
		pthread_cond_wait(&syncer->changed, &syncer->lock);
	nr_failures = syncer->nr_failures;
	pthread_mutex_unlock(&syncer->lock);
	return nr_failures;
}

struct op_odb_pending *opd_syncer_take_failed(struct opd_syncer *syncer, uint64_t session)
{
	struct op_odb_pending *taken = NULL, **link;

	pthread_mutex_lock(&syncer->lock);
	link = &syncer->failed;
	while (*link) {
		struct op_odb_pending *pending = *link;

		if (pending->session != session) {
			link = &pending->next;
			continue;
		}
		*link = pending->next;
		pending->next = taken;
		taken = pending;
		syncer->nr_failed--;
	}
	pthread_mutex_unlock(&syncer->lock);
	return taken;
}

bool opd_syncer_has_failed(struct opd_syncer *syncer)
{
	bool has;

	pthread_mutex_lock(&syncer->lock);
	has = syncer->failed;
	pthread_mutex_unlock(&syncer->lock);
	return has;
}

void opd_syncer_free(struct opd_syncer *syncer)
{
	if (!syncer)
		return;
	pthread_mutex_lock(&syncer->lock);
	syncer->end = true;
	pthread_cond_broadcast(&syncer->changed);
	pthread_mutex_unlock(&syncer->lock);
	pthread_join(syncer->thread, NULL);
	pthread_cond_destroy(&syncer->changed);
	pthread_mutex_destroy(&syncer->lock);
	op_odb_free_pending(syncer->failed);
	free(syncer);
}
