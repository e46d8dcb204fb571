/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pipeline/stacks/disk.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "libop/base/sys.h"
#include "pipeline/stacks/cache.h"

enum { IDLE, SUBMITTED, DONE };

struct opd_disk {
	struct opd_cache cache; /* the thread's */
	char *path;
	uint64_t max_use;
	pthread_t thread;
	bool has_thread;
	int done_fd;
	/* under the lock */
	pthread_mutex_t lock;
	pthread_cond_t wake;
	int state;
	bool quit;
	struct opd_disk_job job;
};

/* ---- the thread ---- */

static void add(struct opd_disk *disk, struct opd_disk_job *job)
{
	void *map;
	int err = op_sys_mmap(NULL, job->nr_bytes, PROT_READ, MAP_SHARED, job->table_fd, 0, &map);

	job->fd = err;
	if (!err) {
		job->fd = job->id.nr_bytes ? opd_cache_add(&disk->cache, &job->id, job->users[0], map, job->nr_bytes)
					   : opd_cache_add_unnamed(&disk->cache, map, job->nr_bytes);
		munmap(map, job->nr_bytes);
	}
	close(job->table_fd);
}

static void find(struct opd_disk *disk, struct opd_disk_job *job)
{
	job->fd = -ENOENT;
	for (size_t i = 0; i < job->nr_users && job->fd < 0; i++)
		job->fd = opd_cache_find(&disk->cache, &job->id, job->users[i], &job->nr_bytes);
}

static void *run(void *arg)
{
	const uint64_t one = 1;
	struct opd_disk *disk = arg;

	pthread_setname_np(pthread_self(), "opd-tables");
	opd_cache_open(&disk->cache, disk->path, disk->max_use);
	pthread_mutex_lock(&disk->lock);
	for (;;) {
		struct opd_disk_job job;

		while (disk->state != SUBMITTED && !disk->quit)
			pthread_cond_wait(&disk->wake, &disk->lock);
		if (disk->state != SUBMITTED)
			break;
		job = disk->job;
		pthread_mutex_unlock(&disk->lock);
		if (job.is_add)
			add(disk, &job);
		else
			find(disk, &job);
		pthread_mutex_lock(&disk->lock);
		disk->job = job;
		disk->state = DONE;
		(void)!op_sys_write(disk->done_fd, &one, sizeof(one));
	}
	pthread_mutex_unlock(&disk->lock);
	opd_cache_close(&disk->cache);
	return NULL;
}

/* ---- its owner ---- */

int opd_disk_new(const char *path, uint64_t max_use, struct opd_disk **ret_disk)
{
	struct opd_disk *disk = calloc(1, sizeof(*disk));
	int err = 0;

	if (!disk)
		return -ENOMEM;
	disk->done_fd = -1;
	disk->max_use = max_use;
	disk->cache.dir_fd = -1;
	pthread_mutex_init(&disk->lock, NULL);
	pthread_cond_init(&disk->wake, NULL);
	if (path) {
		disk->path = strdup(path);
		disk->done_fd = disk->path ? op_sys_eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) : -ENOMEM;
		err = disk->done_fd < 0 ? disk->done_fd : -pthread_create(&disk->thread, NULL, run, disk);
		disk->has_thread = !err;
	}
	if (err)
		opd_disk_free(disk);
	else
		*ret_disk = disk;
	return err;
}

void opd_disk_free(struct opd_disk *disk)
{
	if (!disk)
		return;
	if (disk->has_thread) {
		pthread_mutex_lock(&disk->lock);
		disk->quit = true;
		pthread_cond_signal(&disk->wake);
		pthread_mutex_unlock(&disk->lock);
		pthread_join(disk->thread, NULL);
	}
	if (disk->state == DONE && disk->job.fd >= 0)
		close(disk->job.fd);
	if (disk->done_fd >= 0)
		close(disk->done_fd);
	pthread_mutex_destroy(&disk->lock);
	pthread_cond_destroy(&disk->wake);
	free(disk->path);
	free(disk);
}

bool opd_disk_submit(struct opd_disk *disk, const struct opd_disk_job *job)
{
	bool is_free;

	if (!disk->has_thread)
		return false;
	pthread_mutex_lock(&disk->lock);
	is_free = disk->state == IDLE;
	if (is_free) {
		disk->job = *job;
		disk->state = SUBMITTED;
		pthread_cond_signal(&disk->wake);
	}
	pthread_mutex_unlock(&disk->lock);
	return is_free;
}

bool opd_disk_take(struct opd_disk *disk, struct opd_disk_job *ret_job)
{
	uint64_t number;
	bool is_done;

	if (!disk->has_thread)
		return false;
	pthread_mutex_lock(&disk->lock);
	is_done = disk->state == DONE;
	if (is_done) {
		*ret_job = disk->job;
		disk->state = IDLE;
		(void)!op_sys_read(disk->done_fd, &number, sizeof(number));
	}
	pthread_mutex_unlock(&disk->lock);
	return is_done;
}

int opd_disk_fd(const struct opd_disk *disk)
{
	return disk->done_fd;
}
