/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "daemon/resolve/build_ids.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/ioctl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "libop/base/clock.h"
#include "libop/base/sys.h"

#define WAIT_NS     (250u * OP_NS_PER_MS) /* the longest wait, and the largest credit for waiting */
#define WAIT_SHARE  10u                   /* credit grows with this part of the time */
#define WAIT_MIN_NS (10u * OP_NS_PER_MS)  /* a shorter wait fails on a busy machine */

/*
 * The argument of PROCMAP_QUERY; older headers do not have it. The kernel describes the mapping at
 * an address.
 */
struct map_query {
	uint64_t bytes, flags, address;
	uint64_t start, end, rights, page_bytes, offset, inode;
	uint32_t maj, min;
	/* sizes of the two buffers; the second becomes the length */
	uint32_t name_bytes, build_id_bytes;
	uint64_t name, build_id; /* pointers */
};

#define MAP_QUERY _IOWR('f', 17, struct map_query)

static_assert(sizeof(struct map_query) == 104, "struct procmap_query");

/* A query with its answer. */
struct query {
	int maps_fd; /* the querying side closes it */
	uint64_t address;
	int err;
	uint64_t device, inode;
	struct op_build_id id;
};

/* The thread, and what it shares with the sync thread. */
struct worker {
	pthread_t thread;
	pthread_mutex_t lock; /* protects all fields below */
	pthread_cond_t changed;
	bool has_query;       /* the thread has the query; else the answer is here */
	bool quit, is_orphan; /* quit; is_orphan: the thread frees the struct */
	struct query query;
};

struct opd_build_ids {
	bool is_unknown;          /* the kernel does not know PROCMAP_QUERY */
	struct worker *worker;    /* NULL: not started yet */
	uint64_t credit_ns;       /* time that may still be spent waiting */
	uint64_t credit_added_ns; /* when credit was last added */
};

static void run_query(struct query *query)
{
	struct map_query argument = {
		.bytes = sizeof(argument),
		.address = query->address,
		.build_id_bytes = sizeof(query->id.bytes),
		.build_id = (uintptr_t)query->id.bytes,
	};

	query->err = op_sys_ioctl(query->maps_fd, MAP_QUERY, &argument);
	close(query->maps_fd);
	query->maps_fd = -1;
	if (query->err < 0)
		return;
	query->device = makedev(argument.maj, argument.min);
	query->inode = argument.inode;
	query->id.nr_bytes = (uint8_t)op_min_u64(argument.build_id_bytes, sizeof(query->id.bytes));
}

/* ---- the thread ---- */

static void free_worker(struct worker *worker)
{
	if (worker->query.maps_fd >= 0)
		close(worker->query.maps_fd);
	pthread_cond_destroy(&worker->changed);
	pthread_mutex_destroy(&worker->lock);
	free(worker);
}

static void *run(void *arg)
{
	struct worker *worker = arg;
	struct query query;
	bool is_orphan;

	pthread_setname_np(pthread_self(), "opd-build-ids");
	pthread_mutex_lock(&worker->lock);
	while (!worker->quit) {
		if (!worker->has_query) {
			pthread_cond_wait(&worker->changed, &worker->lock);
			continue;
		}
		query = worker->query;
		worker->query.maps_fd = -1;
		pthread_mutex_unlock(&worker->lock);
		run_query(&query);
		pthread_mutex_lock(&worker->lock);
		worker->query = query;
		worker->has_query = false;
		pthread_cond_broadcast(&worker->changed);
	}
	is_orphan = worker->is_orphan;
	pthread_mutex_unlock(&worker->lock);
	if (is_orphan)
		free_worker(worker);
	return NULL;
}

/*
 * The thread may start before the daemon has blocked its signals. Signals that stop the daemon must
 * not reach this thread, which would die of them.
 */
static int start_thread(struct worker *worker)
{
	sigset_t set, before;
	int err;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	pthread_sigmask(SIG_BLOCK, &set, &before);
	err = pthread_create(&worker->thread, NULL, run, worker);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return err;
}

static int start_worker(struct worker **ret_worker)
{
	struct worker *worker = calloc(1, sizeof(*worker));
	pthread_condattr_t monotonic;
	int err;

	if (!worker)
		return -ENOMEM;
	worker->query.maps_fd = -1;
	pthread_mutex_init(&worker->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&worker->changed, &monotonic);
	pthread_condattr_destroy(&monotonic);
	err = start_thread(worker);
	if (err) {
		free_worker(worker);
		return -err;
	}
	*ret_worker = worker;
	return 0;
}

/* ---- the sync thread ---- */

/*
 * Takes over the query's descriptor. The answer may not come in time, or the thread may still hang
 * in an earlier query.
 */
static void query_and_wait(struct worker *worker, struct query *query, uint64_t wait_ns)
{
	uint64_t until_ns = op_clock_ns(CLOCK_MONOTONIC) + wait_ns;
	struct timespec until = { .tv_sec = (time_t)(until_ns / OP_NS_PER_S), .tv_nsec = (long)(until_ns % OP_NS_PER_S) };
	int err = 0;

	pthread_mutex_lock(&worker->lock);
	if (worker->has_query) {
		close(query->maps_fd);
		query->err = -EBUSY;
		pthread_mutex_unlock(&worker->lock);
		return;
	}
	worker->query = *query;
	worker->has_query = true;
	pthread_cond_broadcast(&worker->changed);
	while (worker->has_query && !err)
		err = pthread_cond_timedwait(&worker->changed, &worker->lock, &until);
	if (worker->has_query)
		query->err = -ETIMEDOUT;
	else
		*query = worker->query;
	pthread_mutex_unlock(&worker->lock);
}

static void query_by_worker(struct opd_build_ids *ids, struct query *query)
{
	uint64_t begin_ns = op_now_ns(), spent_ns;

	ids->credit_ns = op_min_u64(ids->credit_ns + (begin_ns - ids->credit_added_ns) / WAIT_SHARE, WAIT_NS);
	ids->credit_added_ns = begin_ns;
	query->err = ids->credit_ns >= WAIT_MIN_NS ? 0 : -EBUSY;
	if (!query->err && !ids->worker)
		query->err = start_worker(&ids->worker);
	if (query->err) {
		close(query->maps_fd);
		return;
	}
	query_and_wait(ids->worker, query, ids->credit_ns);
	spent_ns = op_now_ns() - begin_ns;
	ids->credit_ns -= op_min_u64(ids->credit_ns, spent_ns);
}

int opd_build_ids_new(struct opd_build_ids **ret_ids)
{
	struct opd_build_ids *ids = calloc(1, sizeof(*ids));

	if (!ids)
		return -ENOMEM;
	*ret_ids = ids;
	return 0;
}

/* On an overlay, device and inode of a file depend on the interface and on the kernel version. */
static bool is_answer_for(const struct opd_mapped *mapped, uint64_t seen_inode, const struct query *query)
{
	return query->inode && ((query->inode == mapped->inode && query->device == mapped->device) || query->inode == seen_inode);
}

int opd_build_ids_ask(struct opd_build_ids *ids, const struct opd_mapped *mapped, uint64_t seen_inode, struct op_build_id *ret_id)
{
	struct query query = { .address = mapped->start };
	char path[64];

	if (ids->is_unknown)
		return -ENOTTY;
	snprintf(path, sizeof(path), "/proc/%u/maps", mapped->pid);
	query.maps_fd = op_sys_openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
	if (query.maps_fd < 0)
		return query.maps_fd;
	/* Network file systems, FUSE without a block device, and overlays have major number 0. */
	if (major(mapped->device))
		run_query(&query);
	else
		query_by_worker(ids, &query);
	if (query.err == -ENOTTY)
		ids->is_unknown = true;
	if (query.err < 0)
		return query.err;
	if (!is_answer_for(mapped, seen_inode, &query))
		return -ESTALE;
	*ret_id = query.id;
	return 0;
}

/* A thread that hangs is left behind; it ends with the process. */
static void stop_worker(struct worker *worker)
{
	bool hangs;

	pthread_mutex_lock(&worker->lock);
	worker->quit = true;
	worker->is_orphan = hangs = worker->has_query;
	if (hangs)
		pthread_detach(worker->thread);
	pthread_cond_broadcast(&worker->changed);
	pthread_mutex_unlock(&worker->lock);
	if (hangs)
		return;
	pthread_join(worker->thread, NULL);
	free_worker(worker);
}

void opd_build_ids_free(struct opd_build_ids *ids)
{
	if (!ids)
		return;
	if (ids->worker)
		stop_worker(ids->worker);
	free(ids);
}
