/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/operf/attach.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>

#include "libop/base/grow.h"
#include "libop/perf/record.h"
#include "tools/common/log.h"
#include "tools/events/user_events.h"

#define PASSES_MAX 100 /* a process that starts threads all the time is not followed for ever */

struct threads {
	pid_t *tids;
	size_t nr, capacity;
};

static int list(pid_t pid, struct threads *ret_threads)
{
	char path[64];
	struct threads threads = { .tids = NULL };
	struct dirent *entry;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	dir = opendir(path);
	if (!dir)
		return errno == ENOENT ? -ESRCH : -errno;
	while ((entry = readdir(dir))) {
		if (!isdigit((unsigned char)*entry->d_name))
			continue;
		if (!op_grow(&threads.tids, &threads.capacity, threads.nr + 1)) {
			closedir(dir);
			free(threads.tids);
			return -ENOMEM;
		}
		threads.tids[threads.nr++] = (pid_t)strtol(entry->d_name, NULL, 10);
	}
	closedir(dir);
	*ret_threads = threads;
	return threads.nr ? 0 : -ESRCH;
}

size_t opf_count_threads(pid_t pid)
{
	struct threads threads = { .tids = NULL };
	size_t nr = list(pid, &threads) ? 0 : threads.nr;

	free(threads.tids);
	return nr;
}

/* Looks for the record of a thread's begin, and leaves the ring as it was. */
static bool reports_begin(struct op_ring *ring, pid_t tid)
{
	const struct perf_event_header *header;
	struct op_task_record record;
	uint64_t tail = ring->tail;
	bool found = false;

	op_ring_begin(ring);
	while (!found && (header = op_ring_next(ring)))
		found = header->type == PERF_RECORD_FORK && !op_record_task(header, &record) && record.tid == (uint32_t)tid;
	ring->tail = tail;
	return found;
}

/*
 * A thread with such a record has inherited the events of the thread that began it. When it began
 * between the opening of the other's side band and of its samples, it has not inherited all of
 * them: that window is some microseconds wide.
 */
static bool has_inherited(struct opd_capture *capture, pid_t tid)
{
	bool found = false;

	for (size_t c = 0; c < capture->nr_cpus && !found; c++)
		found = reports_begin(&capture->cpus[c].sideband, tid);
	return found;
}

static bool is_known(const struct threads *known, pid_t tid)
{
	for (size_t i = 0; i < known->nr; i++)
		if (known->tids[i] == tid)
			return true;
	return false;
}

static int add(struct opd_capture *capture, const struct opd_task_options *options, pid_t tid)
{
	char *why = NULL;
	int err = opd_capture_add_task(capture, options, tid, &why);

	if (err == -ESRCH)
		return 0;
	if (opr_event_is_refusal(err))
		opr_error(err, "--pid=%d: not permitted: the process is of another user, or it runs a set-user-ID program",
			  (int)tid);
	else if (err == -EMFILE)
		opr_error(err, "--pid: too many threads for the limit on file descriptors: raise ulimit -n");
	else
		return opr_error_why(err, why);
	free(why);
	return err;
}

/* Adds the threads that are new in a list. *ret_nr_new: how many. */
static int add_new(struct opd_capture *capture, const struct opd_task_options *options, const struct threads *now,
		   struct threads *known, size_t *ret_nr_new)
{
	int err = 0;

	*ret_nr_new = 0;
	for (size_t i = 0; i < now->nr && !err; i++) {
		if (is_known(known, now->tids[i]))
			continue;
		if (!op_grow(&known->tids, &known->capacity, known->nr + 1))
			return opr_no_memory();
		if (!has_inherited(capture, now->tids[i]))
			err = add(capture, options, now->tids[i]);
		known->tids[known->nr++] = now->tids[i];
		++*ret_nr_new;
	}
	return err;
}

int opf_attach(struct opd_capture *capture, const struct opd_task_options *options, pid_t pid)
{
	struct threads known = { .tids = NULL };
	size_t nr_new = 1;
	int err = 0;

	for (size_t pass = 0; nr_new && !err && pass < PASSES_MAX; pass++) {
		struct threads now = { .tids = NULL };

		err = list(pid, &now);
		if (err)
			opr_error(err, "--pid=%d: %s", (int)pid, err == -ESRCH ? "there is no such process" : strerror(-err));
		else
			err = add_new(capture, options, &now, &known, &nr_new);
		free(now.tids);
	}
	free(known.tids);
	return err;
}
