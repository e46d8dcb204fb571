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
struct question {
	int maps_fd; /* the querying side closes it */
	uint64_t address;
	int err;
	uint64_t device, inode;
	struct op_build_id id;
};

/* The thread, and what it shares with the sync thread. */
struct asker {
	pthread_t thread;
	pthread_mutex_t lock; /* protects all fields below */
	pthread_cond_t changed;
	bool is_asked;           /* the thread has the query; else the answer is here */
	bool is_over, is_orphan; /* quit; is_orphan: the thread frees the struct */
	struct question question;
};

struct opd_build_ids {
	bool is_unknown;      /* the kernel does not know PROCMAP_QUERY */
	struct asker *asker;  /* NULL: not started yet */
	uint64_t credit_ns;   /* time that may still be spent waiting */
	uint64_t credited_ns; /* when credit was last added */
};

static void ask(struct question *question)
{
	struct map_query query = {
		.bytes = sizeof(query),
		.address = question->address,
		.build_id_bytes = sizeof(question->id.bytes),
		.build_id = (uintptr_t)question->id.bytes,
	};

	question->err = op_sys_ioctl(question->maps_fd, MAP_QUERY, &query);
	close(question->maps_fd);
	question->maps_fd = -1;
	if (question->err < 0)
		return;
	question->device = makedev(query.maj, query.min);
	question->inode = query.inode;
	question->id.nr_bytes = (uint8_t)op_min_u64(query.build_id_bytes, sizeof(question->id.bytes));
}

/* ---- the thread ---- */

static void free_asker(struct asker *asker)
{
	if (asker->question.maps_fd >= 0)
		close(asker->question.maps_fd);
	pthread_cond_destroy(&asker->changed);
	pthread_mutex_destroy(&asker->lock);
	free(asker);
}

/* Waits for a query. False: quit. */
static bool take(struct asker *asker, struct question *ret_question)
{
	bool is_over;

	pthread_mutex_lock(&asker->lock);
	while (!asker->is_asked && !asker->is_over)
		pthread_cond_wait(&asker->changed, &asker->lock);
	is_over = asker->is_over;
	if (!is_over) {
		*ret_question = asker->question;
		asker->question.maps_fd = -1;
	}
	pthread_mutex_unlock(&asker->lock);
	return !is_over;
}

static void give(struct asker *asker, const struct question *question)
{
	pthread_mutex_lock(&asker->lock);
	asker->question = *question;
	asker->is_asked = false;
	pthread_cond_broadcast(&asker->changed);
	pthread_mutex_unlock(&asker->lock);
}

static void *run(void *arg)
{
	struct asker *asker = arg;
	struct question question;
	bool is_orphan;

	pthread_setname_np(pthread_self(), "opd-build-ids");
	while (take(asker, &question)) {
		ask(&question);
		give(asker, &question);
	}
	pthread_mutex_lock(&asker->lock);
	is_orphan = asker->is_orphan;
	pthread_mutex_unlock(&asker->lock);
	if (is_orphan)
		free_asker(asker);
	return NULL;
}

/*
 * The thread may start before the daemon has blocked its signals. Signals that stop the daemon must
 * not reach this thread, which would die of them.
 */
static int start_thread(struct asker *asker)
{
	sigset_t set, before;
	int err;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	pthread_sigmask(SIG_BLOCK, &set, &before);
	err = pthread_create(&asker->thread, NULL, run, asker);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return err;
}

static int start(struct asker **ret_asker)
{
	struct asker *asker = calloc(1, sizeof(*asker));
	pthread_condattr_t monotonic;
	int err;

	if (!asker)
		return -ENOMEM;
	asker->question.maps_fd = -1;
	pthread_mutex_init(&asker->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&asker->changed, &monotonic);
	pthread_condattr_destroy(&monotonic);
	err = start_thread(asker);
	if (err) {
		free_asker(asker);
		return -err;
	}
	*ret_asker = asker;
	return 0;
}

/* ---- who has the questions ---- */

static struct timespec in_so_long(uint64_t wait_ns)
{
	uint64_t until_ns = op_clock_ns(CLOCK_MONOTONIC) + wait_ns;

	return (struct timespec){ .tv_sec = (time_t)(until_ns / OP_NS_PER_S), .tv_nsec = (long)(until_ns % OP_NS_PER_S) };
}

/*
 * Takes over the query's descriptor. The answer may not come in time, or the thread may still hang
 * in an earlier query.
 */
static void hand_over(struct asker *asker, struct question *question, uint64_t wait_ns)
{
	struct timespec until = in_so_long(wait_ns);
	int err = 0;

	pthread_mutex_lock(&asker->lock);
	if (asker->is_asked) {
		close(question->maps_fd);
		question->err = -EBUSY;
		pthread_mutex_unlock(&asker->lock);
		return;
	}
	asker->question = *question;
	asker->is_asked = true;
	pthread_cond_broadcast(&asker->changed);
	while (asker->is_asked && !err)
		err = pthread_cond_timedwait(&asker->changed, &asker->lock, &until);
	if (asker->is_asked)
		question->err = -ETIMEDOUT;
	else
		*question = asker->question;
	pthread_mutex_unlock(&asker->lock);
}

static void ask_by_thread(struct opd_build_ids *ids, struct question *question)
{
	uint64_t begin_ns = op_now_ns(), spent_ns;

	ids->credit_ns = op_min_u64(ids->credit_ns + (begin_ns - ids->credited_ns) / WAIT_SHARE, WAIT_NS);
	ids->credited_ns = begin_ns;
	question->err = ids->credit_ns >= WAIT_MIN_NS ? 0 : -EBUSY;
	if (!question->err && !ids->asker)
		question->err = start(&ids->asker);
	if (question->err) {
		close(question->maps_fd);
		return;
	}
	hand_over(ids->asker, question, ids->credit_ns);
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
static bool is_that_file(const struct opd_mapped_file *file, const struct question *question)
{
	return question->inode &&
	       ((question->inode == file->inode && question->device == file->device) || question->inode == file->seen_inode);
}

int opd_build_ids_ask(struct opd_build_ids *ids, const struct opd_mapped_file *file, struct op_build_id *ret_id)
{
	struct question question = { .address = file->address };
	char path[64];

	if (ids->is_unknown)
		return -ENOTTY;
	snprintf(path, sizeof(path), "/proc/%u/maps", file->pid);
	question.maps_fd = op_sys_openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
	if (question.maps_fd < 0)
		return question.maps_fd;
	/* Network file systems, FUSE without a block device, and overlays have major number 0. */
	if (major(file->device))
		ask(&question);
	else
		ask_by_thread(ids, &question);
	if (question.err == -ENOTTY)
		ids->is_unknown = true;
	if (question.err < 0)
		return question.err;
	if (!is_that_file(file, &question))
		return -ESTALE;
	*ret_id = question.id;
	return 0;
}

/* A thread that hangs is left behind; it ends with the process. */
static void end(struct asker *asker)
{
	bool hangs;

	pthread_mutex_lock(&asker->lock);
	asker->is_over = true;
	asker->is_orphan = hangs = asker->is_asked;
	if (hangs)
		pthread_detach(asker->thread);
	pthread_cond_broadcast(&asker->changed);
	pthread_mutex_unlock(&asker->lock);
	if (hangs)
		return;
	pthread_join(asker->thread, NULL);
	free_asker(asker);
}

void opd_build_ids_free(struct opd_build_ids *ids)
{
	if (!ids)
		return;
	if (ids->asker)
		end(ids->asker);
	free(ids);
}
