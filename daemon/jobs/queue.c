/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "daemon/jobs/queue.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* Jobs that change something are done in the order of the requests. */
static const bool is_ordered[] = {
	[OPD_JOB_STATUS] = false, [OPD_JOB_START] = true,  [OPD_JOB_STOP] = true,   [OPD_JOB_DUMP] = false, [OPD_JOB_SAVE] = true,
	[OPD_JOB_RESET] = true,   [OPD_JOB_PULSE] = false, [OPD_JOB_RELOAD] = true, [OPD_JOB_QUIT] = true,
};

void opd_jobs_append(struct opd_job **list, struct opd_job *job)
{
	while (*list)
		list = &(*list)->next;
	*list = job;
}

static struct opd_job *unlink_job(struct opd_job **at)
{
	struct opd_job *job = *at;

	*at = job->next;
	job->next = NULL;
	return job;
}

/* The link to the first of a kind; NULL for none. */
static struct opd_job **find_kind(struct opd_job **waiting, enum opd_job_kind kind)
{
	for (; *waiting; waiting = &(*waiting)->next)
		if ((*waiting)->kind == kind)
			return waiting;
	return NULL;
}

static struct opd_job **find_ordered(struct opd_job **waiting)
{
	for (; *waiting; waiting = &(*waiting)->next)
		if (is_ordered[(*waiting)->kind])
			return waiting;
	return NULL;
}

static struct opd_job *take_all(struct opd_job **waiting, enum opd_job_kind kind)
{
	struct opd_job *taken = NULL, **last = &taken;

	while ((waiting = find_kind(waiting, kind))) {
		*last = unlink_job(waiting);
		last = &(*last)->next;
	}
	return taken;
}

/* The first of a kind, with all others as sharers. */
static struct opd_job *take_together(struct opd_job **waiting, enum opd_job_kind kind)
{
	struct opd_job *job = take_all(waiting, kind);

	job->sharers = job->next;
	job->next = NULL;
	return job;
}

struct opd_job *opd_jobs_take(struct opd_job **waiting)
{
	struct opd_job **at = find_kind(waiting, OPD_JOB_PULSE), *job;

	if (!at)
		at = find_ordered(waiting);
	if (!at && !*waiting)
		return NULL;
	if (!at)
		return take_together(waiting, (*waiting)->kind);
	if ((*at)->kind != OPD_JOB_QUIT)
		return unlink_job(at);
	/* Nothing is done after QUIT, and no request comes after it. */
	if (find_kind(waiting, OPD_JOB_STATUS))
		return take_together(waiting, OPD_JOB_STATUS);
	job = unlink_job(at);
	job->sharers = take_all(waiting, OPD_JOB_DUMP);
	return job;
}

static void copy_answer(struct opd_job *to, const struct opd_job *from)
{
	to->is_shared = true;
	to->error = from->error;
	memcpy(to->message, from->message, sizeof(to->message));
	if (!from->payload)
		return;
	to->payload = malloc(from->payload_bytes);
	if (to->payload) {
		memcpy(to->payload, from->payload, from->payload_bytes);
		to->payload_bytes = from->payload_bytes;
	} else {
		to->error = -ENOMEM;
		snprintf(to->message, sizeof(to->message), "no memory for the answer");
	}
}

struct opd_job *opd_job_spread(struct opd_job *job)
{
	struct opd_job *list = job->sharers;

	for (struct opd_job *sharer = list; sharer; sharer = sharer->next)
		copy_answer(sharer, job);
	job->sharers = NULL;
	opd_jobs_append(&list, job);
	return list;
}

void opd_jobs_free(struct opd_job *jobs)
{
	struct opd_job *next;

	for (; jobs; jobs = next) {
		next = jobs->next;
		opd_jobs_free(jobs->sharers);
		free(jobs->arg);
		free(jobs->payload);
		free(jobs);
	}
}

/* ---- the queue ---- */

static void notify(int fd)
{
	uint64_t one = 1;

	/* An eventfd blocks only after 2^64 - 2 of these. */
	while (write(fd, &one, sizeof(one)) < 0 && errno == EINTR)
		;
}

int opd_job_queue_open(struct opd_job_queue *queue)
{
	*queue = (struct opd_job_queue){ .wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
					 .done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) };
	pthread_mutex_init(&queue->lock, NULL);
	if (queue->wake_fd >= 0 && queue->done_fd >= 0)
		return 0;
	opd_job_queue_close(queue);
	return -EMFILE;
}

void opd_job_queue_close(struct opd_job_queue *queue)
{
	if (queue->wake_fd >= 0)
		close(queue->wake_fd);
	if (queue->done_fd >= 0)
		close(queue->done_fd);
	queue->wake_fd = queue->done_fd = -1;
	pthread_mutex_destroy(&queue->lock);
}

static void append_and_notify(struct opd_job_queue *queue, struct opd_job **list, struct opd_job *job, int fd)
{
	pthread_mutex_lock(&queue->lock);
	opd_jobs_append(list, job);
	pthread_mutex_unlock(&queue->lock);
	notify(fd);
}

void opd_job_queue_submit(struct opd_job_queue *queue, struct opd_job *job)
{
	append_and_notify(queue, &queue->submitted, job, queue->wake_fd);
}

void opd_job_queue_give_back(struct opd_job_queue *queue, struct opd_job *job)
{
	append_and_notify(queue, &queue->done, opd_job_spread(job), queue->done_fd);
}

struct opd_job *opd_job_queue_next(struct opd_job_queue *queue)
{
	struct opd_job *job;
	uint64_t wakes;
	bool more;

	if (read(queue->wake_fd, &wakes, sizeof(wakes)) < 0)
		return NULL;
	pthread_mutex_lock(&queue->lock);
	job = opd_jobs_take(&queue->submitted);
	more = queue->submitted;
	pthread_mutex_unlock(&queue->lock);
	if (more)
		notify(queue->wake_fd);
	return job;
}

struct opd_job *opd_job_queue_take_done(struct opd_job_queue *queue)
{
	struct opd_job *jobs;
	uint64_t wakes;

	if (read(queue->done_fd, &wakes, sizeof(wakes)) < 0 && errno != EAGAIN)
		return NULL;
	pthread_mutex_lock(&queue->lock);
	jobs = queue->done;
	queue->done = NULL;
	pthread_mutex_unlock(&queue->lock);
	return jobs;
}
