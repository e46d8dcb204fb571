/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Runs the work of the sync thread in the thread of the test, between two turns, with clocks and a
 * disk that the test controls.
 */
#ifndef ROTATION_H
#define ROTATION_H

#include "tests/unit/cmocka_all.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>

#include "daemon/jobs/rotate.h"
#include "libop/base/clock.h"
#include "libop/session/directory.h"
#include "libop/session/layout.h"
#include "libop/session/sum.h"
#include "libop/base/sys.h"
#include "tests/unit/pipeline.h"
#include "tests/unit/disk.h"

#define SECOND ((uint64_t)OP_NS_PER_S)
#define HOUR   (3600 * SECOND)
#define MINUTE (60 * SECOND)
#define BEGIN  (1795226400 * SECOND + 17 * MINUTE) /* 2026-11-21 02:17:00 UTC */

/* ---- clocks and faults ---- */

static uint64_t wall_ns, boot_ns;
/* Every held_up_every-th reading of the wall clock takes half a second. */
static unsigned int held_up_every, nr_wall_looks;
static uint64_t rename_takes_ns;
static int nr_calls_to_kill; /* 0: never */
static struct {
	int rename_new, exchange, remove;
	bool mkdir_fills; /* from then on the disk is full */
} fault;
static ino_t synced[256];
static size_t nr_synced;

uint64_t __wrap_op_sys_wall_ns(void);
uint64_t __wrap_op_sys_boot_ns(void);
int __real_op_sys_rename_new(int old_fd, const char *old_path, int new_fd, const char *new_path);
int __wrap_op_sys_rename_new(int old_fd, const char *old_path, int new_fd, const char *new_path);
int __real_op_sys_rename_exchange(int dir_fd, const char *path, int other_dir_fd, const char *other_path);
int __wrap_op_sys_rename_exchange(int dir_fd, const char *path, int other_dir_fd, const char *other_path);
int __real_op_sys_pwrite_all(int fd, const void *buffer, size_t nr_bytes, off_t offset);
int __wrap_op_sys_pwrite_all(int fd, const void *buffer, size_t nr_bytes, off_t offset);

uint64_t __wrap_op_sys_wall_ns(void)
{
	if (held_up_every && ++nr_wall_looks % held_up_every == 0) {
		boot_ns += SECOND / 2;
		wall_ns += SECOND / 2;
	}
	return wall_ns;
}

uint64_t __wrap_op_sys_boot_ns(void)
{
	return boot_ns;
}

static inline void maybe_kill(void)
{
	if (nr_calls_to_kill && !--nr_calls_to_kill)
		_exit(9);
}

int __wrap_op_sys_rename_new(int old_fd, const char *old_path, int new_fd, const char *new_path)
{
	maybe_kill();
	wall_ns += rename_takes_ns;
	boot_ns += rename_takes_ns;
	return fault.rename_new ? fault.rename_new : __real_op_sys_rename_new(old_fd, old_path, new_fd, new_path);
}

int __wrap_op_sys_rename_exchange(int dir_fd, const char *path, int other_dir_fd, const char *other_path)
{
	maybe_kill();
	return fault.exchange ? fault.exchange : __real_op_sys_rename_exchange(dir_fd, path, other_dir_fd, other_path);
}

/* The disk is slow where a closed session gets its table. */
static pthread_mutex_t hold_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t hold_changed = PTHREAD_COND_INITIALIZER;
static bool held;
static unsigned int nr_held;

static inline void hold_renames(bool yes)
{
	pthread_mutex_lock(&hold_lock);
	held = yes;
	pthread_cond_broadcast(&hold_changed);
	pthread_mutex_unlock(&hold_lock);
}

static inline void wait_for_held(unsigned int nr)
{
	pthread_mutex_lock(&hold_lock);
	while (nr_held < nr)
		pthread_cond_wait(&hold_changed, &hold_lock);
	pthread_mutex_unlock(&hold_lock);
}

static inline void maybe_hold(const char *path)
{
	static const char name[] = OP_SESSION_CLOSED_COOKIES;
	const char *in_tmp = name + strlen(OP_SESSION_TMP "/");

	if (strncmp(path, in_tmp, strlen(in_tmp)) != 0)
		return;
	pthread_mutex_lock(&hold_lock);
	nr_held += held;
	pthread_cond_broadcast(&hold_changed);
	while (held)
		pthread_cond_wait(&hold_changed, &hold_lock);
	pthread_mutex_unlock(&hold_lock);
}

static inline int watch_disk(const struct disk_call *call)
{
	struct stat st;

	if (call->kind != DISK_fallocate && call->kind != DISK_ftruncate)
		maybe_kill();
	if (call->kind == DISK_mkdirat && fault.mkdir_fills && disk_fails.mkdirat)
		disk_fails.write_all = disk_fails.mkdirat;
	if (call->kind == DISK_renameat) {
		maybe_hold(call->path);
		if (fault.remove && !strncmp(call->new_path, OP_SESSION_REMOVED, strlen(OP_SESSION_REMOVED)))
			return fault.remove;
	}
	if (call->kind == DISK_fsync && !fstat(call->fd, &st)) {
		/* write-outs may run at the same time */
		size_t at = __atomic_fetch_add(&nr_synced, 1, __ATOMIC_RELAXED);

		if (at < op_array_size(synced))
			synced[at] = st.st_ino;
	}
	return 0;
}

static unsigned int nr_written_anew;

int __wrap_op_sys_pwrite_all(int fd, const void *buffer, size_t nr_bytes, off_t offset)
{
	nr_written_anew++;
	return __real_op_sys_pwrite_all(fd, buffer, nr_bytes, offset);
}

/* ---- a daemon's life ---- */

static struct op_config config;
static struct opd_pipeline pipeline;
static struct opd_job_queue queue;
static struct opd_background background;
static struct opd_recording recording;
static struct opd_retention retention;
static struct opd_rotation rotation;
static struct op_event kind;
static struct opd_event event;
static struct opd_cpu cpu;
static char dir[BOX_PATH_BYTES];
static int session_fd;
static uint64_t now_ns, nr_taken;

/* The work of a daemon before its first turn. */
static inline void start_after(bool was_unclean)
{
	assert_int_equal(opd_job_queue_open(&queue), 0);
	opd_background_init(&background);
	recording = (struct opd_recording){ .pipeline = &pipeline, .visits = { .pipeline = &pipeline }, .running_since_ns = 1 };
	opd_dumps_init(&recording.dumps, &pipeline, &background, &queue);
	opd_retention_init(&retention, session_fd, &config, &pipeline.count.limit, &background);
	rotation = (struct opd_rotation){ .recording = &recording, .retention = &retention, .config = &config };
	memset(&event, 0, sizeof(event));
	event.fd = -1;
	assert_int_equal(opd_resolver_init(&pipeline.resolver, op_dcookie_table_new(), 1000, NULL), 0);
	assert_int_equal(opd_cookie_file_open(&pipeline.cookie_file, session_fd, pipeline.resolver.table), 0);
	pipeline.count = (struct opd_count){ .session_fd = session_fd,
					     .table = pipeline.resolver.table,
					     .events = &kind,
					     .nr_events = 1,
					     .cookie_file = &pipeline.cookie_file,
					     .separate_lib = true,
					     .max_open = 100,
					     .max_closed = 100 };
	opd_file_sinks_open(&pipeline.count);
	assert_int_equal(opd_file_limit_recount(&pipeline.count.limit, session_fd), 0);
	assert_int_equal(opd_ledger_open(&pipeline.ledger, session_fd, &pipeline.capture, was_unclean), 0);
	opd_ledger_begin(&pipeline.ledger);
	opd_recording_write_ledger(&recording, OP_SESSION_open, false);
}

static inline void start(void)
{
	start_after(false);
}

static inline void wait_for_threads(void)
{
	opd_background_wait(&background);
}

/* Ends the daemon: in order, or as a crash. */
static inline void end(bool in_order)
{
	wait_for_threads();
	if (in_order)
		opd_recording_write_ledger(&recording, OP_SESSION_stopped, false);
	opd_count_close_files(&pipeline.count);
	opd_dumps_free(&recording.dumps);
	opd_retention_free(&retention);
	opd_cookie_file_close(&pipeline.cookie_file);
	opd_ledger_close(&pipeline.ledger);
	op_dcookie_table_free(pipeline.resolver.table);
	opd_resolver_free(&pipeline.resolver);
	opd_job_queue_close(&queue);
	opd_background_free(&background);
}

static inline void take(unsigned int nr_samples)
{
	for (unsigned int i = 0; i < nr_samples; i++) {
		struct op_image_id id = { .name = { .kind = OP_IMAGE_FILE, .name = i % 2 ? "/bin/a" : "/bin/b" },
					  .inode = 5 + i % 2 };
		struct opd_resolved resolved = { .location = { op_dcookie_get(pipeline.resolver.table, &id), 16 * i } };
		struct opd_counted counted = { .resolved = &resolved, .account = &event, .amount = 1 };

		event.received++;
		opd_count_sample(&pipeline.count, &counted);
	}
	opd_count_flush(&pipeline.count);
	nr_taken += nr_samples;
}

/* Moves the monotonic clock forward, and the wall clock too unless the test sets it. */
static inline void pass(uint64_t ns)
{
	boot_ns += ns;
	wall_ns += ns;
	now_ns += ns;
}

static inline void turn(void)
{
	pass(SECOND / 4);
	opd_rotate_if_due(&rotation, now_ns);
	opd_unwritten_retry(&recording.dumps.unwritten, now_ns);
	wait_for_threads();
}

/* Runs the thread of the retention when it is due, and takes its result. */
static inline void look_after(void)
{
	for (int i = 0; i < 2; i++) {
		opd_retain_if_due(&retention, now_ns);
		wait_for_threads();
	}
}

static inline int daemon_setup(void **state OP_UNUSED)
{
	memset(&fault, 0, sizeof(fault));
	memset(&disk_fails, 0, sizeof(disk_fails));
	disk_watch = watch_disk;
	wall_ns = BEGIN;
	boot_ns = 1000 * SECOND;
	held_up_every = nr_wall_looks = 0;
	now_ns = 500 * SECOND;
	nr_taken = nr_synced = 0;
	rename_takes_ns = 0;
	nr_written_anew = 0;
	config = (struct op_config){ .session_interval_us = HOUR / 1000 };
	kind = (struct op_event){ .name = "TIMER", .count = 1000 };
	cpu = (struct opd_cpu){ .events = &event };
	pipeline = (struct opd_pipeline){ .capture = { .events = &kind, .nr_events = 1, .cpus = &cpu, .nr_cpus = 1 } };
	if (box_make(dir))
		return -1;
	session_fd = op_session_open(dir);
	if (session_fd < 0)
		return -1;
	start();
	return 0;
}

static inline int daemon_teardown(void **state OP_UNUSED)
{
	end(false);
	close(session_fd);
	return box_remove(dir);
}

/* ---- what there is ---- */

static inline uint64_t stored(const struct op_session_ledger *ledger)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < ledger->nr_events; i++)
		sum += ledger->events[i].stored;
	return sum;
}

/*
 * The samples of a session by its files. The ledger must have the same number, unless the daemon
 * was killed.
 */
static inline uint64_t samples_of(const char *name)
{
	struct op_session_ledger ledger, files = { 0 };
	char path[300];
	uint64_t nr_bad, sum;
	int fd, err;

	snprintf(path, sizeof(path), "samples/%s", name);
	fd = openat(session_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(op_session_ledger_add_files(&files, fd, &nr_bad), 0);
	assert_int_equal(nr_bad, 0);
	sum = stored(&files);
	err = op_session_ledger_read(fd, &ledger, NULL);
	if (err)
		assert_true(err == -ENOENT && !sum);
	else if (ledger.ended != OP_SESSION_open)
		assert_int_equal(stored(&ledger), sum);
	if (!err)
		op_session_ledger_free(&ledger);
	op_session_ledger_free(&files);
	close(fd);
	return sum;
}

/*
 * The sorted names of all sessions but the current one, each with a blank behind it; *ret_sum: all
 * samples.
 */
static inline void look(char names[512], uint64_t *ret_sum)
{
	int fd = openat(session_fd, "samples", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct dirent **entries;
	int nr = scandirat(fd, ".", &entries, NULL, alphasort);

	*names = '\0';
	*ret_sum = 0;
	for (int i = 0; i < nr; i++) {
		if (entries[i]->d_name[0] != '.') {
			*ret_sum += samples_of(entries[i]->d_name);
			if (strcmp(entries[i]->d_name, "current"))
				snprintf(names + strlen(names), 512 - strlen(names), "%s ", entries[i]->d_name);
		}
		free(entries[i]);
	}
	free(entries);
	close(fd);
}

static inline void check(const char *expected)
{
	char names[512];
	uint64_t sum;

	opd_recording_write_ledger(&recording, OP_SESSION_open, false);
	look(names, &sum);
	assert_string_equal(names, expected);
	assert_int_equal(sum, nr_taken);
}

static inline void check_table(const char *name, bool has_late)
{
	char path[300], text[4096] = "";
	int fd;

	snprintf(path, sizeof(path), "samples/%s/dcookies", name);
	fd = openat(session_fd, path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_true(read(fd, text, sizeof(text) - 1) > 0);
	close(fd);
	assert_non_null(strstr(text, "/bin/a"));
	assert_int_equal(strstr(text, "/bin/late") != NULL, has_late);
}

#define rotate_test(name) cmocka_unit_test_setup_teardown(name, daemon_setup, daemon_teardown)

#endif
