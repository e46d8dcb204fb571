/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "daemon/jobs/queue.h"

/* The number of the request that the job belongs to. */
static void ask(struct opd_job **waiting, enum opd_job_kind kind, size_t number)
{
	struct opd_job *job = calloc(1, sizeof(*job));
	size_t *own = malloc(sizeof(*own));

	assert_non_null(job);
	assert_non_null(own);
	*own = number;
	job->kind = kind;
	job->arg = own;
	opd_jobs_append(waiting, job);
}

static size_t number_of(const struct opd_job *job)
{
	return *(const size_t *)job->arg;
}

/* The next job is this one, and so many others share its answer, in the order of their requests. */
static void expect(struct opd_job **waiting, enum opd_job_kind kind, size_t number, size_t nr_sharers)
{
	struct opd_job *job = opd_jobs_take(waiting);
	size_t last = number, nr = 0;

	assert_non_null(job);
	assert_null(job->next);
	assert_int_equal(job->kind, kind);
	assert_int_equal(number_of(job), number);
	for (const struct opd_job *sharer = job->sharers; sharer; sharer = sharer->next) {
		assert_int_equal(sharer->kind, kind == OPD_JOB_QUIT ? OPD_JOB_DUMP : kind);
		assert_true(kind == OPD_JOB_QUIT || number_of(sharer) > last);
		last = number_of(sharer);
		nr++;
	}
	assert_int_equal(nr, nr_sharers);
	opd_jobs_free(job);
}

static void test_nothing_waits(void **state)
{
	struct opd_job *waiting = NULL;

	(void)state;
	assert_null(opd_jobs_take(&waiting));
}

/*
 * Any number of requests for dumps and the status becomes two jobs. The first request is done
 * first.
 */
static void test_share(void **state)
{
	struct opd_job *waiting = NULL;

	(void)state;
	for (size_t i = 0; i < 60; i += 3) {
		ask(&waiting, OPD_JOB_DUMP, i);
		ask(&waiting, OPD_JOB_STATUS, i + 1);
		ask(&waiting, OPD_JOB_DUMP, i + 2);
	}
	expect(&waiting, OPD_JOB_DUMP, 0, 39);
	ask(&waiting, OPD_JOB_DUMP, 60);
	expect(&waiting, OPD_JOB_STATUS, 1, 19);
	expect(&waiting, OPD_JOB_DUMP, 60, 0);
	assert_null(waiting);
}

/*
 * Requests of members delay neither the watchdog nor root. The requests of root keep their order.
 */
static void test_urgent_first(void **state)
{
	struct opd_job *waiting = NULL;

	(void)state;
	ask(&waiting, OPD_JOB_DUMP, 0);
	ask(&waiting, OPD_JOB_STATUS, 1);
	ask(&waiting, OPD_JOB_START, 2);
	ask(&waiting, OPD_JOB_RESET, 3);
	ask(&waiting, OPD_JOB_SAVE, 4);
	ask(&waiting, OPD_JOB_STOP, 5);
	ask(&waiting, OPD_JOB_RELOAD, 6);
	ask(&waiting, OPD_JOB_START, 7);
	ask(&waiting, OPD_JOB_PULSE, 8);
	ask(&waiting, OPD_JOB_DUMP, 9);
	expect(&waiting, OPD_JOB_PULSE, 8, 0);
	expect(&waiting, OPD_JOB_START, 2, 0);
	expect(&waiting, OPD_JOB_RESET, 3, 0);
	ask(&waiting, OPD_JOB_PULSE, 10);
	expect(&waiting, OPD_JOB_PULSE, 10, 0);
	expect(&waiting, OPD_JOB_SAVE, 4, 0);
	expect(&waiting, OPD_JOB_STOP, 5, 0);
	expect(&waiting, OPD_JOB_RELOAD, 6, 0);
	expect(&waiting, OPD_JOB_START, 7, 0);
	expect(&waiting, OPD_JOB_DUMP, 0, 1);
	expect(&waiting, OPD_JOB_STATUS, 1, 0);
	assert_null(waiting);
}

/* The end comes after the earlier requests of root, and every waiting client gets an answer. */
static void test_quit(void **state)
{
	struct opd_job *waiting = NULL;

	(void)state;
	ask(&waiting, OPD_JOB_DUMP, 0);
	ask(&waiting, OPD_JOB_STATUS, 1);
	ask(&waiting, OPD_JOB_SAVE, 2);
	ask(&waiting, OPD_JOB_DUMP, 3);
	ask(&waiting, OPD_JOB_QUIT, 4);
	expect(&waiting, OPD_JOB_SAVE, 2, 0);
	expect(&waiting, OPD_JOB_STATUS, 1, 0);
	expect(&waiting, OPD_JOB_QUIT, 4, 2);
	assert_null(waiting);
}

static void test_spread(void **state)
{
	struct opd_job *waiting = NULL, *job, *last;
	size_t nr = 0;

	(void)state;
	for (size_t i = 0; i < 3; i++)
		ask(&waiting, OPD_JOB_STATUS, i);
	job = opd_jobs_take(&waiting);
	assert_non_null(job);
	job->error = -ENOSPC;
	snprintf(job->message, sizeof(job->message), "full");
	job->payload = strdup("hello");
	job->payload_bytes = 6;
	last = opd_job_spread(job);
	assert_ptr_not_equal(last, job);
	for (const struct opd_job *done = last; done; done = done->next) {
		assert_null(done->sharers);
		assert_int_equal(done->error, -ENOSPC);
		assert_string_equal(done->message, "full");
		assert_int_equal(done->payload_bytes, 6);
		assert_string_equal(done->payload, "hello");
		assert_true(done->is_shared == (done != job));
		assert_true(done == job || done->payload != job->payload);
		assert_true((done == job) == !done->next);
		nr++;
	}
	assert_int_equal(nr, 3);
	opd_jobs_free(last);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_waits), cmocka_unit_test(test_share),  cmocka_unit_test(test_urgent_first),
		cmocka_unit_test(test_quit),          cmocka_unit_test(test_spread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
