/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A file that has grown and cannot be written, while its session is closed. */
#include "tests/unit/cmocka_all.h"

#include <pthread.h>

#include "daemon/jobs/syncer.h"
#include "tests/unit/sample_writer.h"
#include "libop/odb/odb.h"
#include "libop/odb/replace.h"
#include "tests/unit/disk.h"
#include "tests/unit/test_box.h"

#define PATH "samples/current/sample"
#define TMP  "tmp/sample"

static char dir_path[BOX_PATH_BYTES];
static int dir_fd;
static struct op_odb *odb;
static uint64_t next_key;

/* A disk that blocks each sync until let_go, and then returns `answer`. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool is_held, is_waiting;
static int answer;

static int hold_fsync(const struct disk_call *call)
{
	int err;

	if (call->kind != DISK_fsync)
		return 0;
	pthread_mutex_lock(&lock);
	is_waiting = true;
	pthread_cond_broadcast(&changed);
	while (is_held)
		pthread_cond_wait(&changed, &lock);
	is_waiting = false;
	err = answer;
	pthread_mutex_unlock(&lock);
	return err ? err : DISK_IS_DONE;
}

static void hold(int err)
{
	pthread_mutex_lock(&lock);
	is_held = true;
	answer = err;
	pthread_mutex_unlock(&lock);
}

static void await_held(void)
{
	pthread_mutex_lock(&lock);
	while (!is_waiting)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
}

static void let_go(void)
{
	pthread_mutex_lock(&lock);
	is_held = false;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

static void open_session(void)
{
	struct op_odb_header header = sample_header();

	assert_int_equal(mkdirat(dir_fd, "samples/current", 0755), 0);
	assert_int_equal(op_odb_open(dir_fd, PATH, TMP, &header, &odb), 0);
	op_odb_mark_dumped(odb);
	next_key = 0;
}

static void close_session(const char *name)
{
	op_odb_close(odb);
	assert_int_equal(renameat(dir_fd, "samples/current", dir_fd, name), 0);
}

static struct op_odb_pending *grow(void)
{
	struct op_odb_pending *pending;

	do
		assert_int_equal(op_odb_add(odb, next_key++, 1), 0);
	while (!(pending = op_odb_take_pending(odb)));
	return pending;
}

static int disk_setup(void **state OP_UNUSED)
{
	disk_watch = hold_fsync;
	dir_fd = box_make_open(dir_path);
	return mkdirat(dir_fd, "tmp", 0755) || mkdirat(dir_fd, "samples", 0755);
}

static int disk_teardown(void **state OP_UNUSED)
{
	close(dir_fd);
	return box_remove(dir_path);
}

static unsigned int free_all(struct op_odb_pending *pending)
{
	unsigned int nr = 0;

	for (struct op_odb_pending *here = pending; here; here = here->next)
		nr++;
	op_odb_free_pending(pending);
	return nr;
}

/*
 * The file grows again while the first replacement is being written. When that fails, its file is
 * not at the path any more.
 */
static void what_grew_twice_is_of_its_session(void **state OP_UNUSED)
{
	struct opd_syncer *syncer;
	uint64_t session, next;

	open_session();
	hold(-EIO);
	assert_int_equal(opd_syncer_new(dir_fd, &syncer), 0);
	opd_syncer_add(syncer, grow());
	await_held();
	opd_syncer_add(syncer, grow());
	opd_syncer_add(syncer, grow());
	assert_int_equal(free_all(opd_syncer_take(syncer, &session)), 2);
	close_session("samples/closed");
	open_session();
	let_go();
	assert_int_equal(opd_syncer_nr_failed(syncer, true), 1);
	opd_syncer_add(syncer, grow());
	while (opd_syncer_nr_failed(syncer, true) < 2)
		usleep(1000);
	assert_int_equal(free_all(opd_syncer_take_failed(syncer, session)), 1);
	assert_null(opd_syncer_take_failed(syncer, session));
	assert_true(opd_syncer_has_failed(syncer));
	assert_null(opd_syncer_take(syncer, &next));
	close_session("samples/closed-too");
	assert_int_equal(free_all(opd_syncer_take_failed(syncer, next)), 1);
	assert_false(opd_syncer_has_failed(syncer));
	opd_syncer_free(syncer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_grew_twice_is_of_its_session, disk_setup, disk_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
