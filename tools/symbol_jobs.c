/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/symbol_jobs.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "libop/atomic.h"
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

/* What is done by one child: of those that are open the first that no other one has taken, until there is none. */
struct share {
	struct opr_symbol_job *jobs;
	size_t nr_jobs;
	uint64_t *next; /* of all children together */
	struct opr_child child;
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

static int take_result(struct opr_symbol_cache *cache, struct opr_symbol_job *job, const struct record *record, const char *bytes)
{
	job->done = true;
	job->err = (int)record->err;
	if (job->err)
		return 0;
	job->err = opr_symbols_file_read(job->symbols, bytes, record->nr_bytes, job->path);
	if (!job->err)
		opr_symbol_cache_put(cache, job->path, &job->options, bytes, record->nr_bytes);
	else
		opr_symbols_free(job->symbols);
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
		if (record.err != BEGUN && !last->done)
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
	opr_child_result_free(&result);
	return err;
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
	struct share shares[CHILDREN_MAX], common = { .jobs = jobs, .nr_jobs = nr_jobs };
	long nr_cpus = sysconf(_SC_NPROCESSORS_ONLN);
	size_t wanted = nr_cpus > 0 ? (size_t)nr_cpus : 1, nr_started = 0;
	int err;

	common.next = mmap(NULL, sizeof(*common.next), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (common.next == MAP_FAILED)
		return -ENOMEM;
	wanted = op_min_u64(op_min_u64(wanted, CHILDREN_MAX), nr_open);
	err = start_children(shares, wanted, &common, &nr_started);
	for (size_t i = 0; i < nr_started; i++) {
		int one = finish(cache, &shares[i]);

		err = err ? err : one;
	}
	munmap(common.next, sizeof(*common.next));
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
	while (!err && (nr_open = count_open(jobs, nr_jobs))) {
		err = run_round(&cache, jobs, nr_jobs, nr_open);
		if (!err && count_open(jobs, nr_jobs) == nr_open)
			err = -EIO;
	}
	opr_symbol_cache_close(&cache);
	return err;
}
