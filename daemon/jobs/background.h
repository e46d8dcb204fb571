/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Detached threads for work that waits for the disk. The daemon waits for them before it ends. */
#ifndef OPD_BACKGROUND_H
#define OPD_BACKGROUND_H

#include <pthread.h>

#include "libop/base/compiler.h"

typedef void (*opd_background_work)(void *context, void *arg);

struct opd_background {
	pthread_mutex_t lock; /* protects nr_running */
	pthread_cond_t ended;
	unsigned int nr_running;
};

void opd_background_init(struct opd_background *background) OP_NONNULL;
void opd_background_free(struct opd_background *background) OP_NONNULL;

/* Starts a thread that calls work(context, arg). `name` has at most 15 characters. 0 or -errno. */
int opd_background_start(struct opd_background *background, const char *name, opd_background_work work, void *context,
			 void *arg) OP_NONNULL_ARGS(1, 2, 3) OP_MUST_CHECK;

/* Waits until no thread runs. */
void opd_background_wait(struct opd_background *background) OP_NONNULL;

#endif
