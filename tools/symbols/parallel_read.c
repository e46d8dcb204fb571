/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/symbols/parallel_read.h"

#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include "libop/base/atomic.h"
#include "libop/base/threads.h"
#include "tools/common/child.h"
#include "tools/common/log.h"
#include "tools/symbols/cache.h"
#include "tools/symbols/packed_file.h"
#include "tools/symbols/read.h"

#define JOBS_OF_THREAD 16 /* fewer than that are not worth one */
#define BEGUN          1  /* in the place of an error: the next one that is worked on */

/* What a child writes for each job: that it begins, then the result with the bytes behind it. */
struct record {
	uint64_t job;
	int64_t err;
	uint64_t nr_bytes;
};

/* What is done by one child: of those that are open the first that no other one has taken, until there is none. */
struct share {
	struct opr_symbol_job *jobs;
	size_t nr_jobs;
	uint64_t *next; /* of all children together */
	struct opr_symbol_cache *cache;
	pthread_mutex_t *lock; /* of the cache */
	struct opr_child child;
	pthread_t thread;
	bool has_thread;
	int err;
};

/* ---- in the child ---- */

static int write_record(FILE *out, size_t job, int err, const struct opr_symbols_bytes *bytes)
{
	const struct record record = { job, err, bytes ? bytes->nr_head_bytes + bytes->strings.length : 0 };

	fwrite(&record, sizeof(record), 1, out);
	if (bytes) {
		fwrite(bytes->head, 1, bytes->nr_head_bytes, out);
		fwrite(bytes->strings.data, 1, bytes->strings.length, out);
	}
	return fflush(out) == EOF ? -EIO : 0;
}

static int read_one(FILE *out, struct opr_symbol_job *job, size_t index, struct opr_symbols_bytes *bytes)
{
	struct opr_symbols symbols = { 0 };
	int err = opr_symbols_read_bfd(&symbols, job->path, job->name, &job->options);

	if (!err)
		err = opr_symbols_file_make(bytes, &symbols);
	err = write_record(out, index, err, err ? NULL : bytes);
	opr_symbols_free(&symbols);
	return err;
}

static int work(FILE *out, void *arg)
{
	struct share *share = arg;
	struct opr_symbols_bytes bytes = { 0 };
	size_t i;
	int err = 0;

	while (!err && (i = op_fetch_add_relaxed(share->next, 1)) < share->nr_jobs) {
		if (share->jobs[i].done)
			continue;
		opr_child_begin_step();
		err = write_record(out, i, BEGUN, NULL);
		if (!err)
			err = read_one(out, &share->jobs[i], i, &bytes);
	}
	opr_symbols_bytes_free(&bytes);
	return err;
}

/* ---- in the parent ---- */

static int take_result(const struct share *share, struct opr_symbol_job *job, const struct record *record, const char *bytes)
{
	job->done = true;
	job->err = (int)record->err;
	if (job->err)
		return 0;
	job->err = opr_symbols_file_read(job->symbols, bytes, record->nr_bytes, job->path);
	if (job->err) {
		opr_symbols_free(job->symbols);
	} else if (!job->symbols->is_damaged) { /* the sound file has the same build-id, and may have the same size */
		pthread_mutex_lock(share->lock);
		opr_symbol_cache_put(share->cache, job->path, &job->options, bytes, record->nr_bytes);
		pthread_mutex_unlock(share->lock);
	}
	return job->err == -ENOMEM ? -ENOMEM : 0;
}

/* Of a child that did not come to its end, the job that it was at last is to blame. */
static int take_results(const struct share *share, const struct opr_child_result *result)
{
	struct opr_symbol_job *last = NULL;
	struct record record;
	int err = 0;

	for (size_t at = 0; !err && result->nr_bytes - at >= sizeof(record); at += record.nr_bytes) {
		memcpy(&record, result->bytes + at, sizeof(record));
		at += sizeof(record);
		if (record.job >= share->nr_jobs || record.nr_bytes > result->nr_bytes - at)
			break;
		last = &share->jobs[record.job];
		if (record.err != BEGUN && !last->done)
			err = take_result(share, last, &record, result->bytes + at);
	}
	if (!err && result->err && last && !last->done) {
		last->done = true;
		last->err = result->err;
		opr_symbols_free(last->symbols);
	}
	return !err && result->err && !last ? result->err : err;
}

/* A thread for each child: what one has read is taken while the other one's is. */
static void *finish(void *arg)
{
	struct share *share = arg;
	struct opr_child_result result = { 0 };

	share->err = opr_child_wait(&share->child, &result);
	if (!share->err)
		share->err = take_results(share, &result);
	opr_child_result_free(&result);
	return NULL;
}

static size_t count_open(const struct opr_symbol_job *jobs, size_t nr_jobs)
{
	size_t nr_open = 0;

	for (size_t i = 0; i < nr_jobs; i++)
		nr_open += !jobs[i].done;
	return nr_open;
}

static int start_children(struct share *shares, size_t nr_wanted, const struct share *common, size_t *ret_nr_started)
{
	int err = 0;

	for (size_t i = 0; i < nr_wanted && !err; i++) {
		shares[i] = *common;
		err = opr_child_start(&shares[i].child, work, &shares[i]);
		*ret_nr_started += !err;
	}
	return err;
}

/* One child for each CPU, over all jobs that are open. */
static int run_round(struct opr_symbol_cache *cache, struct opr_symbol_job *jobs, size_t nr_jobs, size_t nr_open)
{
	pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	struct share shares[OP_THREADS_MAX], common = { .jobs = jobs, .nr_jobs = nr_jobs, .cache = cache, .lock = &lock };
	size_t nr_started = 0;
	int err;

	common.next = mmap(NULL, sizeof(*common.next), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (common.next == MAP_FAILED)
		return -ENOMEM;
	err = start_children(shares, op_min_u64(op_nr_cpus(), nr_open), &common, &nr_started);
	for (size_t i = 1; i < nr_started; i++)
		shares[i].has_thread = !pthread_create(&shares[i].thread, NULL, finish, &shares[i]);
	for (size_t i = 0; i < nr_started; i++) {
		if (shares[i].has_thread)
			pthread_join(shares[i].thread, NULL);
		else
			finish(&shares[i]);
		err = err ? err : shares[i].err;
	}
	munmap(common.next, sizeof(*common.next));
	return err;
}

/* ---- what was kept ---- */

/* Of many threads, each of which takes the next job that no other one has. */
struct getting {
	struct opr_symbol_cache *cache;
	struct opr_symbol_job *jobs;
	size_t nr_jobs;
	uint64_t next, nr_failed;
};

static void get_kept(void *arg)
{
	struct getting *getting = arg;
	size_t i;

	while ((i = op_fetch_add_relaxed(&getting->next, 1)) < getting->nr_jobs) {
		struct opr_symbol_job *job = &getting->jobs[i];
		int got = opr_symbol_cache_get(getting->cache, job->path, &job->options, job->symbols);

		job->done = !got;
		job->err = 0;
		if (got == -ENOMEM)
			op_fetch_add_relaxed(&getting->nr_failed, 1);
	}
}

static int get_all(struct opr_symbol_cache *cache, struct opr_symbol_job *jobs, size_t nr_jobs)
{
	struct getting getting = { .cache = cache, .jobs = jobs, .nr_jobs = nr_jobs };

	op_run_threads(op_min_u64(op_nr_cpus(), nr_jobs / JOBS_OF_THREAD), get_kept, &getting);
	return getting.nr_failed ? -ENOMEM : 0;
}

int opr_symbol_jobs_run(struct opr_symbol_job *jobs, size_t nr_jobs)
{
	struct opr_symbol_cache cache;
	size_t nr_open;
	int err;

	if (!nr_jobs)
		return 0;
	opr_symbol_cache_open(&cache);
	err = get_all(&cache, jobs, nr_jobs);
	while (!err && (nr_open = count_open(jobs, nr_jobs))) {
		err = run_round(&cache, jobs, nr_jobs, nr_open);
		if (!err && count_open(jobs, nr_jobs) == nr_open)
			err = -EIO;
	}
	opr_symbol_cache_close(&cache);
	return err;
}
