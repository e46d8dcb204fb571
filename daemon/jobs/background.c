/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "daemon/jobs/background.h"

#include <errno.h>
#include <stdlib.h>

struct task {
	struct opd_background *background;
	const char *name;
	opd_background_work work;
	void *context, *arg;
};

void opd_background_init(struct opd_background *background)
{
	*background = (struct opd_background){ .nr_running = 0 };
	pthread_mutex_init(&background->lock, NULL);
	pthread_cond_init(&background->ended, NULL);
}

void opd_background_free(struct opd_background *background)
{
	pthread_mutex_destroy(&background->lock);
	pthread_cond_destroy(&background->ended);
}

static void add_running(struct opd_background *background, int nr)
{
	pthread_mutex_lock(&background->lock);
	background->nr_running += (unsigned int)nr;
	pthread_cond_broadcast(&background->ended);
	pthread_mutex_unlock(&background->lock);
}

static void *run(void *arg)
{
	struct task task = *(struct task *)arg;

	free(arg);
	pthread_setname_np(pthread_self(), task.name);
	task.work(task.context, task.arg);
	add_running(task.background, -1);
	return NULL;
}

static int start_detached(struct task *task)
{
	pthread_attr_t attr;
	pthread_t thread;
	int err = pthread_attr_init(&attr);

	if (err)
		return -err;
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	err = pthread_create(&thread, &attr, run, task);
	pthread_attr_destroy(&attr);
	return -err;
}

int opd_background_start(struct opd_background *background, const char *name, opd_background_work work, void *context,
			 void *arg)
{
	struct task *task = malloc(sizeof(*task));
	int err;

	if (!task)
		return -ENOMEM;
	*task = (struct task){ background, name, work, context, arg };
	add_running(background, 1);
	err = start_detached(task);
	if (err) {
		add_running(background, -1);
		free(task);
	}
	return err;
}

void opd_background_wait(struct opd_background *background)
{
	pthread_mutex_lock(&background->lock);
	while (background->nr_running)
		pthread_cond_wait(&background->ended, &background->lock);
	pthread_mutex_unlock(&background->lock);
}
