/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "daemon/jobs/unwritten.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "daemon/jobs/write_out.h"
#include "libop/base/clock.h"
#include "libop/base/log.h"
#include "libop/base/sys.h"

#define RETRY_NS     (5 * (uint64_t)OP_NS_PER_S)
#define RETRY_MAX_NS (600 * (uint64_t)OP_NS_PER_S)
#define KEPT_MAX     64 /* each has a descriptor */

void opd_unwritten_init(struct opd_unwritten *unwritten, struct opd_background *background)
{
	*unwritten = (struct opd_unwritten){ .background = background };
	pthread_mutex_init(&unwritten->lock, NULL);
}

void opd_unwritten_free(struct opd_unwritten *unwritten)
{
	struct opd_write_out *next;

	for (struct opd_write_out *out = unwritten->waiting; out; out = next) {
		next = out->next;
		opd_write_out_free(out);
	}
	unwritten->waiting = NULL;
	pthread_mutex_destroy(&unwritten->lock);
}

static uint64_t delay_ns(unsigned int nr_tries)
{
	return nr_tries < 16 ? op_min_u64(RETRY_NS << nr_tries, RETRY_MAX_NS) : RETRY_MAX_NS;
}

bool opd_unwritten_keep(struct opd_unwritten *unwritten, struct opd_write_out *out)
{
	bool keep;

	pthread_mutex_lock(&unwritten->lock);
	keep = out->current_fd >= 0 && (out->nr_tries || unwritten->nr < KEPT_MAX);
	if (keep) {
		unwritten->nr += !out->nr_tries;
		out->retry_ns = 0;
		out->nr_tries++;
		out->next = unwritten->waiting;
		unwritten->waiting = out;
	}
	pthread_mutex_unlock(&unwritten->lock);
	return keep;
}

/* The delay of a new one begins when the sync thread first sees it. */
static bool is_due(struct opd_write_out *out, uint64_t now_ns)
{
	if (!out->retry_ns)
		out->retry_ns = now_ns + delay_ns(out->nr_tries - 1);
	return now_ns >= out->retry_ns;
}

static struct opd_write_out *take_due(struct opd_unwritten *unwritten, uint64_t now_ns)
{
	struct opd_write_out **link = &unwritten->waiting, *out;

	pthread_mutex_lock(&unwritten->lock);
	while (*link && !is_due(*link, now_ns))
		link = &(*link)->next;
	out = *link;
	if (out)
		*link = out->next;
	pthread_mutex_unlock(&unwritten->lock);
	return out;
}

uint64_t opd_unwritten_count(struct opd_unwritten *unwritten)
{
	uint64_t nr;

	pthread_mutex_lock(&unwritten->lock);
	nr = unwritten->nr;
	pthread_mutex_unlock(&unwritten->lock);
	return nr;
}

/* Retention or a user has removed the session. */
static bool is_removed(const struct opd_write_out *out)
{
	struct stat st;

	return !op_sys_fstat(out->current_fd, &st) && !st.st_nlink;
}

static int write_again(struct opd_write_out *out)
{
	const char *failed = "";
	int err = opd_write_out_write_again(out, &failed);

	if (is_removed(out))
		return 0;
	if (err)
		op_log(OP_LOG_WARNING, "cannot write %s of a closed session to the disk, attempt %u: %s; opd tries again", failed,
		       out->nr_tries + 1, strerror(-err));
	else
		op_log(OP_LOG_NOTICE, "the closed session that could not be written is on the disk");
	return err;
}

static void drop(struct opd_unwritten *unwritten, struct opd_write_out *out)
{
	opd_write_out_free(out);
	pthread_mutex_lock(&unwritten->lock);
	unwritten->nr--;
	pthread_mutex_unlock(&unwritten->lock);
}

static void run(void *context, void *arg)
{
	if (!write_again(arg) || !opd_unwritten_keep(context, arg))
		drop(context, arg);
}

void opd_unwritten_retry(struct opd_unwritten *unwritten, uint64_t now_ns)
{
	struct opd_write_out *out;

	while ((out = take_due(unwritten, now_ns)))
		if (opd_background_start(unwritten->background, "opd-unwritten", run, unwritten, out) &&
		    !opd_unwritten_keep(unwritten, out))
			drop(unwritten, out);
}
