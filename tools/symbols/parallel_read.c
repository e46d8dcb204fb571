/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/symbols/parallel_read.h"

#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include "libop/base/atomic.h"
#include "libop/process/threads.h"
#include "tools/common/child.h"
#include "tools/common/log.h"
#include "tools/symbols/cache.h"
#include "tools/symbols/serialize.h"
#include "tools/symbols/symbol_sources.h"

#define JOBS_OF_THREAD 16 /* a thread that looks into the cache has at least so many */
#define BEGUN          1  /* as the error of a record: the child begins this job */

/* A child writes two for each job: BEGUN, then the result and the serialized symbols. */
struct record {
	uint64_t job;
	int64_t err;
	uint64_t nr_bytes;
	struct opr_file_read file;
	uint64_t is_uncertain;
};

/* A child and the thread that reads from it. The children share `next`. */
struct share {
	struct opr_symbol_job *jobs;
	size_t nr_jobs;
	uint64_t *next; /* in shared memory */
	struct opr_symbol_cache *cache;
	pthread_mutex_t *lock; /* of the cache */
	struct opr_child child;
	pthread_t thread;
	bool has_thread;
	int err;
};

/* ---- in the child ---- */

static int write_record(FILE *out, size_t job, int err, const struct opr_symbols_bytes *bytes, const struct opr_symbols *symbols)
{
	const struct record record = { job, err, bytes ? bytes->nr_head_bytes + bytes->strings.length : 0, symbols->file,
				       symbols->is_uncertain };

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
	int err = job->options.is_kallsyms ? opr_symbols_read_kallsyms(&symbols, job->path, job->options.demangle) :
					     opr_symbols_read_bfd(&symbols, job->path, job->name, &job->options);

	if (!err)
		err = opr_symbols_serialize(bytes, &symbols);
	err = write_record(out, index, err, err ? NULL : bytes, &symbols);
	opr_symbols_free(&symbols);
	return err;
}

static int read_jobs(FILE *out, void *arg)
{
	struct share *share = arg;
	const struct opr_symbols none = { 0 };
	struct opr_symbols_bytes bytes = { 0 };
	size_t i;
	int err = 0;

	while (!err && (i = op_fetch_add_relaxed(share->next, 1)) < share->nr_jobs) {
		if (share->jobs[i].done)
			continue;
		opr_child_begin_step();
		err = write_record(out, i, BEGUN, NULL, &none);
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
	job->err = opr_symbols_deserialize(job->symbols, bytes, record->nr_bytes, job->path, true);
	if (job->err) {
		opr_symbols_free(job->symbols);
		return job->err == -ENOMEM ? -ENOMEM : 0;
	}
	job->symbols->file = record->file;
	/* the undamaged file may have the same key */
	if (!job->symbols->is_damaged && !record->is_uncertain) {
		pthread_mutex_lock(share->lock);
		opr_symbol_cache_put(share->cache, job->path, &job->options, &record->file, bytes, record->nr_bytes);
		pthread_mutex_unlock(share->lock);
	}
	return 0;
}

/* When a child failed, the job that it began last failed. */
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

/* Runs in a thread for each child, so that the results of several children are read at a time. */
static void *take_child(void *arg)
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
		err = opr_child_start(&shares[i].child, read_jobs, &shares[i]);
		*ret_nr_started += !err;
	}
	return err;
}

/* One child for each CPU. A child that fails leaves jobs open, for the next round. */
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
		shares[i].has_thread = !pthread_create(&shares[i].thread, NULL, take_child, &shares[i]);
	for (size_t i = 0; i < nr_started; i++) {
		if (shares[i].has_thread)
			pthread_join(shares[i].thread, NULL);
		else
			take_child(&shares[i]);
		err = err ? err : shares[i].err;
	}
	munmap(common.next, sizeof(*common.next));
	return err;
}

/* ---- the cache ---- */

/* Shared by the threads; each takes the job at `next`. */
struct lookup {
	struct opr_symbol_cache *cache;
	struct opr_symbol_job *jobs;
	size_t nr_jobs;
	uint64_t next, nr_failed;
};

static void get_cached(void *arg)
{
	struct lookup *lookup = arg;
	size_t i;

	while ((i = op_fetch_add_relaxed(&lookup->next, 1)) < lookup->nr_jobs) {
		struct opr_symbol_job *job = &lookup->jobs[i];
		int got = opr_symbol_cache_get(lookup->cache, job->path, job->name, &job->options, job->symbols);

		job->done = !got;
		job->err = 0;
		if (got == -ENOMEM)
			op_fetch_add_relaxed(&lookup->nr_failed, 1);
	}
}

int opr_symbol_jobs_run(struct opr_symbol_job *jobs, size_t nr_jobs)
{
	struct opr_symbol_cache cache;
	struct lookup lookup = { .cache = &cache, .jobs = jobs, .nr_jobs = nr_jobs };
	size_t nr_open;
	int err;

	if (!nr_jobs)
		return 0;
	opr_symbol_cache_open(&cache);
	op_run_threads(op_min_u64(op_nr_cpus(), nr_jobs / JOBS_OF_THREAD), get_cached, &lookup);
	err = lookup.nr_failed ? -ENOMEM : 0;
	while (!err && (nr_open = count_open(jobs, nr_jobs))) {
		err = run_round(&cache, jobs, nr_jobs, nr_open);
		if (!err && count_open(jobs, nr_jobs) == nr_open)
			err = -EIO;
	}
	opr_symbol_cache_close(&cache);
	return err;
}
