/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/symbol_jobs.h"

#include <errno.h>
#include <unistd.h>

#include "tools/child.h"
#include "tools/report_log.h"
#include "tools/symbol_cache.h"
#include "tools/symbols_file.h"

#define CHILDREN_MAX 64
#define BEGUN        1 /* in the place of an error: the next one that is worked on */

/* What a child writes for each job: that it begins, then the result with the bytes behind it. */
struct record {
	uint64_t job;
	int64_t err;
	uint64_t nr_bytes;
};

/* Every nr_parts-th of those that are not done, from `part` on. */
struct share {
	struct opr_symbol_job *jobs;
	size_t nr_jobs, part, nr_parts;
	struct opr_child child;
};

/* ---- in the child ---- */

static int write_record(FILE *out, size_t job, int err, const char *bytes, size_t nr_bytes)
{
	const struct record record = { job, err, nr_bytes };

	fwrite(&record, sizeof(record), 1, out);
	if (nr_bytes)
		fwrite(bytes, 1, nr_bytes, out);
	return fflush(out) == EOF ? -EIO : 0;
}

static int read_one(FILE *out, struct opr_symbol_job *job, size_t index)
{
	struct opr_symbols symbols = { 0 };
	char *bytes = NULL;
	size_t nr_bytes = 0;
	FILE *stream = open_memstream(&bytes, &nr_bytes);
	int err = stream ? opr_symbols_read_bfd(&symbols, job->path, job->name, &job->options) : -ENOMEM;

	if (!err)
		err = opr_symbols_file_write(stream, &symbols);
	if (stream && fclose(stream) == EOF && !err)
		err = -ENOMEM;
	err = write_record(out, index, err, bytes, err ? 0 : nr_bytes);
	free(bytes);
	opr_symbols_free(&symbols);
	return err;
}

static int work(FILE *out, void *arg)
{
	struct share *share = arg;
	size_t nth = 0;
	int err = 0;

	for (size_t i = 0; i < share->nr_jobs && !err; i++) {
		struct opr_symbol_job *job = &share->jobs[i];

		if (job->done || nth++ % share->nr_parts != share->part)
			continue;
		opr_child_begin_step();
		err = write_record(out, i, BEGUN, NULL, 0);
		if (!err)
			err = read_one(out, job, i);
	}
	return err;
}

/* ---- in the parent ---- */

static int take_result(struct opr_symbol_cache *cache, struct opr_symbol_job *job, const struct record *record, const char *bytes)
{
	job->done = true;
	job->err = (int)record->err;
	if (job->err)
		return 0;
	job->err = opr_symbols_file_read(job->symbols, bytes, record->nr_bytes, job->path);
	if (job->err)
		opr_symbols_free(job->symbols);
	else if (!job->symbols->is_damaged) /* the sound file has the same build-id, and may have the same size */
		opr_symbol_cache_put(cache, job->path, &job->options, bytes, record->nr_bytes);
	return job->err == -ENOMEM ? -ENOMEM : 0;
}

/* Of a child that did not come to its end, the job that it was at last is to blame. */
static int take_results(struct opr_symbol_cache *cache, const struct share *share, const struct opr_child_result *result)
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
		if (record.err != BEGUN)
			err = take_result(cache, last, &record, result->bytes + at);
	}
	if (!err && result->err && last && !last->done) {
		last->done = true;
		last->err = result->err;
		opr_symbols_free(last->symbols);
	}
	return !err && result->err && !last ? result->err : err;
}

static int finish(struct opr_symbol_cache *cache, struct share *share)
{
	struct opr_child_result result = { 0 };
	int err = opr_child_wait(&share->child, &result);

	if (!err)
		err = take_results(cache, share, &result);
	free(result.bytes);
	return err;
}

static size_t count_open(const struct opr_symbol_job *jobs, size_t nr_jobs)
{
	size_t nr_open = 0;

	for (size_t i = 0; i < nr_jobs; i++)
		nr_open += !jobs[i].done;
	return nr_open;
}

/* One child for each CPU, over all jobs that are open. */
static int run_round(struct opr_symbol_cache *cache, struct opr_symbol_job *jobs, size_t nr_jobs, size_t nr_open)
{
	struct share shares[CHILDREN_MAX];
	long nr_cpus = sysconf(_SC_NPROCESSORS_ONLN);
	size_t wanted = nr_cpus > 0 ? (size_t)nr_cpus : 1, nr_started = 0;
	int err = 0;

	wanted = op_min_u64(op_min_u64(wanted, CHILDREN_MAX), nr_open);
	for (; nr_started < wanted; nr_started++) {
		struct share *share = &shares[nr_started];

		*share = (struct share){ .jobs = jobs, .nr_jobs = nr_jobs, .part = nr_started, .nr_parts = wanted };
		err = opr_child_start(&share->child, work, share);
		if (err)
			break;
	}
	for (size_t i = 0; i < nr_started; i++) {
		int one = finish(cache, &shares[i]);

		err = err && nr_started ? err : one;
	}
	return err;
}

int opr_symbol_jobs_run(struct opr_symbol_job *jobs, size_t nr_jobs)
{
	struct opr_symbol_cache cache;
	size_t nr_open;
	int err = 0;

	if (!nr_jobs)
		return 0;
	opr_symbol_cache_open(&cache);
	for (size_t i = 0; i < nr_jobs && !err; i++) {
		int got = opr_symbol_cache_get(&cache, jobs[i].path, &jobs[i].options, jobs[i].symbols);

		jobs[i].done = !got;
		jobs[i].err = 0;
		err = got == -ENOMEM ? got : 0;
	}
	while (!err && (nr_open = count_open(jobs, nr_jobs)))
		err = run_round(&cache, jobs, nr_jobs, nr_open);
	opr_symbol_cache_close(&cache);
	return err;
}
