/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pipeline/capture/swappers.h"

#include <errno.h>
#include <pthread.h>

struct opd_swappers {
	unsigned int max_helpers;
	unsigned int nr_helpers; /* started threads; used by the caller alone, as `helpers` */
	pthread_t helpers[OPD_SWAPPERS_MAX - 1];
	pthread_cond_t has_work, is_done;
	pthread_mutex_t lock; /* protects swaps, nr_swaps, next, nr_done and quit */
	struct opd_swap *swaps;
	size_t nr_swaps;
	size_t next;    /* index of the next pair to be taken */
	size_t nr_done; /* pairs that were swapped and given back */
	bool quit;
};

/* Swaps pairs until all are taken. The caller holds the lock; it is released during each swap. */
static void swap_what_is_left(struct opd_swappers *swappers)
{
	while (swappers->next < swappers->nr_swaps) {
		struct opd_swap *swap = &swappers->swaps[swappers->next++];

		pthread_mutex_unlock(&swappers->lock);
		swap->err = op_ring_pair_swap(swap->pair);
		pthread_mutex_lock(&swappers->lock);
		if (++swappers->nr_done == swappers->nr_swaps)
			pthread_cond_signal(&swappers->is_done);
	}
}

static void *help(void *arg)
{
	struct opd_swappers *swappers = arg;

	pthread_setname_np(pthread_self(), "opd-swap");
	pthread_mutex_lock(&swappers->lock);
	while (!swappers->quit) {
		swap_what_is_left(swappers);
		pthread_cond_wait(&swappers->has_work, &swappers->lock);
	}
	pthread_mutex_unlock(&swappers->lock);
	return NULL;
}

int opd_swappers_new(unsigned int nr_threads, struct opd_swappers **ret_swappers)
{
	struct opd_swappers *swappers = calloc(1, sizeof(*swappers));

	assert(nr_threads <= OPD_SWAPPERS_MAX);
	if (!swappers)
		return -ENOMEM;
	swappers->max_helpers = nr_threads ? nr_threads - 1 : 0;
	pthread_mutex_init(&swappers->lock, NULL);
	pthread_cond_init(&swappers->has_work, NULL);
	pthread_cond_init(&swappers->is_done, NULL);
	*ret_swappers = swappers;
	return 0;
}

static void start_helpers(struct opd_swappers *swappers, size_t nr_wanted)
{
	while (swappers->nr_helpers < swappers->max_helpers && swappers->nr_helpers < nr_wanted) {
		if (pthread_create(&swappers->helpers[swappers->nr_helpers], NULL, help, swappers))
			return;
		swappers->nr_helpers++;
	}
}

void opd_swappers_swap(struct opd_swappers *swappers, struct opd_swap *swaps, size_t nr_swaps)
{
	if (!nr_swaps)
		return;
	start_helpers(swappers, nr_swaps - 1);
	pthread_mutex_lock(&swappers->lock);
	swappers->swaps = swaps;
	swappers->nr_swaps = nr_swaps;
	swappers->next = swappers->nr_done = 0;
	for (size_t i = 0; i < swappers->nr_helpers && i + 1 < nr_swaps; i++)
		pthread_cond_signal(&swappers->has_work);
	swap_what_is_left(swappers);
	while (swappers->nr_done < swappers->nr_swaps)
		pthread_cond_wait(&swappers->is_done, &swappers->lock);
	swappers->nr_swaps = swappers->next = 0;
	pthread_mutex_unlock(&swappers->lock);
}

void opd_swappers_free(struct opd_swappers *swappers)
{
	if (!swappers)
		return;
	pthread_mutex_lock(&swappers->lock);
	swappers->quit = true;
	pthread_cond_broadcast(&swappers->has_work);
	pthread_mutex_unlock(&swappers->lock);
	for (size_t i = 0; i < swappers->nr_helpers; i++)
		pthread_join(swappers->helpers[i], NULL);
	pthread_mutex_destroy(&swappers->lock);
	pthread_cond_destroy(&swappers->has_work);
	pthread_cond_destroy(&swappers->is_done);
	free(swappers);
}
