/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * kill -9 at 200 random moments of a process that appends minutes, closes sessions, merges minutes
 * into hours and removes sessions. A moment lies before, behind or in the middle of a system call
 * that changes the disk, so it does not depend on the speed of the machine. After each kill every
 * closed minute is there once. OPD_SEED repeats a run.
 */
#define BOX_IN_MEMORY
#include "tests/unit/cmocka_all.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/jobs/retain.h"
#include "libop/base/clock.h"
#include "libop/base/file.h"
#include "libop/base/log.h"
#include "libop/base/sys.h"
#include "libop/session/close.h"
#include "libop/session/directory.h"
#include "libop/session/layout.h"
#include "libop/session/ledger_file.h"
#include "libop/session/walk.h"
#include "libop/timeline/append.h"
#include "libop/timeline/read.h"
#include "tests/unit/sample_writer.h"
#include "tests/unit/test_box.h"

#define NR_KILLS      200
#define STEPS_MAX     300 /* a session of SESSION minutes takes about 200 */
#define MINUTE        (60 * (uint64_t)OP_NS_PER_S)
#define SESSION       30u
#define BEGIN_NS      (1795219200 * (uint64_t)OP_NS_PER_S) /* 2026-11-21 00:00 UTC */
#define SAMPLE_BYTES  20000u
#define TIMER         "TIMER:1000000:0x0"
#define SESSIONS_MAX  64

static const struct op_config config = { .session_max_use = 400000, .timeline_keep_us = 90 * 60 * 1000000ull };
static const struct op_encode_limits no_limits;
static char dir[BOX_PATH_BYTES];
static long steps; /* until the process kills itself; 0: never */

/* What survives the child. */
static struct {
	uint64_t next;    /* minute */
	uint64_t first;   /* minute of the current session */
	uint64_t written; /* minutes of which the writer said so */
	uint64_t nr_cut, nr_closed;
} *shared;

/* ---- the moments ---- */

static void step(void)
{
	if (steps && !--steps)
		kill(getpid(), SIGKILL);
}

#define STEPPED(type, name, parameters, arguments)  \
	type __real_##name parameters;              \
	type __wrap_##name parameters;              \
	type __wrap_##name parameters               \
	{                                           \
		type result;                        \
                                                    \
		step();                             \
		result = __real_##name arguments;   \
		step();                             \
		return result;                      \
	}

STEPPED(int, op_sys_mkdirat, (int dir_fd, const char *path, mode_t mode), (dir_fd, path, mode))
STEPPED(int, op_sys_renameat, (int old_fd, const char *path, int fd, const char *to), (old_fd, path, fd, to))
STEPPED(int, op_sys_rename_exchange, (int fd, const char *path, int other_fd, const char *other), (fd, path, other_fd, other))
STEPPED(int, op_sys_unlinkat, (int dir_fd, const char *path, int flags), (dir_fd, path, flags))
STEPPED(int, op_sys_ftruncate, (int fd, off_t nr_bytes), (fd, nr_bytes))
STEPPED(int, op_sys_fsync, (int fd), (fd))

int __real_op_sys_pwrite_all(int fd, const void *buffer, size_t nr_bytes, off_t offset);
int __wrap_op_sys_pwrite_all(int fd, const void *buffer, size_t nr_bytes, off_t offset);

/* In three pieces: a kill may leave a part of what is written. */
int __wrap_op_sys_pwrite_all(int fd, const void *buffer, size_t nr_bytes, off_t offset)
{
	const char *bytes = buffer;

	for (size_t i = 0; i < 3; i++) {
		size_t from = nr_bytes * i / 3, to = nr_bytes * (i + 1) / 3;
		int err = __real_op_sys_pwrite_all(fd, bytes + from, to - from, offset + (off_t)from);

		if (err)
			return err;
		step();
	}
	return 0;
}

/* Each removed session has its line. */
void __wrap_op_log(const char *priority, const char *format, ...);

void __wrap_op_log(const char *priority OP_UNUSED, const char *format OP_UNUSED, ...)
{
}

/* ---- clocks ---- */

uint64_t __wrap_op_sys_wall_ns(void);
uint64_t __wrap_op_sys_boot_ns(void);

uint64_t __wrap_op_sys_wall_ns(void)
{
	return BEGIN_NS + shared->next * MINUTE;
}

uint64_t __wrap_op_sys_boot_ns(void)
{
	return BEGIN_NS + shared->next * MINUTE;
}

/* ---- the process that is killed ---- */

static uint64_t weight_of(uint64_t from, uint64_t to)
{
	uint64_t sum = 0;

	for (uint64_t i = from; i < to; i++)
		sum += 1 + i * 7 % 50;
	return sum;
}

static struct op_timeline_clocks clocks_of(uint64_t i)
{
	uint64_t ns = BEGIN_NS + i * MINUTE;

	return (struct op_timeline_clocks){ ns, ns, ns };
}

static struct op_timeline_writer *open_writer(int session_fd)
{
	struct op_timeline_writer *writer;
	uint64_t nr_cut;
	int fd = op_session_open_current(session_fd), err = fd < 0 ? fd : op_timeline_append_open(fd, "timeline", &writer, &nr_cut);

	if (err)
		die("timeline", err);
	close(fd);
	shared->nr_cut += nr_cut > 0;
	return writer;
}

static void write_minute(struct op_timeline_writer *writer, uint64_t i)
{
	struct op_minute_step steps_to[] = { { OP_MINUTE_SAMPLES, 0, 0 }, { OP_MINUTE_APP, 0, 1 + i % 3 },
					     { OP_MINUTE_FUNCTION, 64 * (i % 10), 1 + i % 3 } };
	struct op_minute minute;
	uint32_t event;
	int err = op_minute_init(&minute, 0);

	if (!err)
		err = op_minute_event(&minute, TIMER, OP_UNIT_SAMPLES, 0, &event);
	if (!err)
		err = op_minute_add_row(&minute, 0, "before", (int64_t)weight_of(shared->first, i));
	if (!err)
		err = op_minute_add_row(&minute, 0, "stored", (int64_t)weight_of(i, i + 1));
	if (!err) {
		op_minute_add(&minute, steps_to, op_array_size(steps_to), weight_of(i, i + 1));
		minute.begin = clocks_of(i);
		minute.end = clocks_of(i + 1);
		minute.gap = i == shared->first ? OP_GAP_FIRST : OP_GAP_NONE;
		err = op_timeline_append(writer, &minute, &no_limits);
	}
	if (err)
		die("minute", err);
	shared->written = shared->next = i + 1;
	op_minute_free(&minute);
}

static void close_session(int session_fd)
{
	struct op_session_ledger ledger = {
		.ended = OP_SESSION_rotated,
		.begin_ns = BEGIN_NS + shared->first * MINUTE,
		.end_ns = BEGIN_NS + shared->next * MINUTE,
	};
	int fd = op_session_open_current(session_fd), err;
	char name[OP_SESSION_NAME_BYTES];
	struct op_text text = { 0 };

	op_session_ledger_format(&ledger, &text);
	sample_write_bytes(session_fd, OP_SESSION_CURRENT "/ledger", text.data, text.length);
	op_text_free(&text);
	op_session_time_name(ledger.begin_ns, false, name);
	err = op_session_close_timed(session_fd, name);
	if (err)
		die("close", err);
	shared->first = shared->next;
	shared->nr_closed++;
	op_session_mark_whole(fd);
	close(fd);
}

static void retain(struct opd_retention *retention, int session_fd)
{
	struct stat st;

	if (!fstatat(session_fd, OP_SESSION_CURRENT, &st, AT_SYMLINK_NOFOLLOW))
		retention->sizes.current.inode = st.st_ino;
	if (opd_retain(retention, &config))
		die("retain", -EIO);
}

static int mark_whole(const char *name, void *arg)
{
	int fd = openat(*(int *)arg, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd >= 0 && strcmp(name, "current"))
		op_session_mark_whole(fd);
	close(fd);
	return 0;
}

/* As a daemon that starts after a kill, and then goes on without end. */
static void work(void)
{
	int session_fd = op_session_open(dir), samples_fd = openat(session_fd, "samples", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct opd_retention retention = { .sizes.session_fd = session_fd };
	struct op_timeline_writer *writer = NULL;
	char bytes[SAMPLE_BYTES] = "";

	if (op_session_visit_dir(samples_fd, ".", mark_whole, &samples_fd))
		die("samples", -EIO);
	for (;;) {
		if (shared->next > shared->first && shared->next % SESSION == 0) {
			op_timeline_append_close(writer);
			writer = NULL;
			close_session(session_fd);
			retain(&retention, session_fd);
		}
		if (!writer) {
			sample_write_bytes(session_fd, OP_SESSION_CURRENT "/{root}/a/{dep}/{root}/a/file", bytes, sizeof(bytes));
			writer = open_writer(session_fd);
		}
		write_minute(writer, shared->next);
	}
}

static void run_and_kill(long nr_steps)
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		steps = nr_steps;
		work();
		_exit(1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGKILL);
}

/* ---- what is left ---- */

struct seen {
	char names[SESSIONS_MAX][OP_SESSION_NAME_BYTES];
	size_t nr_sessions;
	uint64_t begin, end; /* the minutes that are there */
	uint64_t first;      /* of the session that was looked at last; UINT64_MAX: it has none */
	uint64_t nr_torn, nr_hours;
};

static int note_session(const char *name, void *arg)
{
	struct seen *seen = arg;

	if (strcmp(name, "current")) {
		assert_in_range(seen->nr_sessions, 0, SESSIONS_MAX - 1);
		snprintf(seen->names[seen->nr_sessions++], OP_SESSION_NAME_BYTES, "%s", name);
	}
	return 0;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(a, b);
}

static int64_t row(const struct op_minute *minute, const char *name)
{
	for (uint32_t i = 0; i < minute->nr_rows; i++)
		if (!strcmp(minute->texts[minute->rows[i].text], name))
			return minute->rows[i].amount;
	return 0;
}

/* Each block goes on where the one before ended, also from session to session. */
static void check_block(struct seen *seen, const struct op_minute *minute)
{
	uint64_t begin = (minute->begin.mono_ns - BEGIN_NS) / MINUTE, end = (minute->end.mono_ns - BEGIN_NS) / MINUTE, total;

	if (seen->first == UINT64_MAX)
		seen->first = begin;
	if (seen->begin == UINT64_MAX)
		seen->begin = seen->end = begin;
	assert_int_equal(begin, seen->end);
	assert_int_equal(op_minute_total(minute, OP_MINUTE_SAMPLES, 0, &total), 0);
	assert_int_equal(total, weight_of(begin, end));
	assert_int_equal(row(minute, "stored"), total);
	assert_int_equal(row(minute, "before"), weight_of(seen->first, begin));
	seen->end = end;
	seen->nr_hours += minute->flags & OP_TIMELINE_IS_MERGED ? 1 : 0;
}

static void check_session(struct seen *seen, int samples_fd, const char *name)
{
	char path[OP_SESSION_NAME_BYTES + 16];
	uint64_t offset, end = sizeof(struct op_timeline_header);
	struct op_timeline *timeline;
	struct op_block block;
	struct op_minute minute;
	int err;

	seen->first = UINT64_MAX;
	snprintf(path, sizeof(path), "%.200s/timeline", name);
	err = op_timeline_open(samples_fd, path, &timeline);
	/* an empty directory is no session (close.h) */
	if (err == -ENOENT && strcmp(name, "current"))
		assert_int_equal(unlinkat(samples_fd, name, AT_REMOVEDIR), 0);
	if (err == -ENOENT)
		return;
	assert_int_equal(err, 0);
	assert_int_equal(op_timeline_select(timeline, 0, UINT64_MAX), 0);
	assert_int_equal(op_minute_init(&minute, 0), 0);
	while (!(err = op_timeline_next(timeline, &minute)))
		check_block(seen, &minute);
	assert_int_equal(err, -ENODATA);
	assert_int_equal(op_timeline_nr_damaged(timeline, &offset), 0);
	if (op_timeline_nr_selected(timeline)) {
		assert_int_equal(op_timeline_block(timeline, op_timeline_nr_selected(timeline) - 1, &block), 0);
		end = block.end;
	}
	seen->nr_torn += op_timeline_bytes(timeline) > end;
	op_minute_free(&minute);
	op_timeline_close(timeline);
}

static struct seen look(void)
{
	int samples_fd = openat(AT_FDCWD, dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), fd;
	struct seen seen = { .begin = UINT64_MAX };

	fd = openat(samples_fd, "samples", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	close(samples_fd);
	assert_int_equal(op_session_visit_dir(fd, ".", note_session, &seen), 0);
	qsort(seen.names, seen.nr_sessions, OP_SESSION_NAME_BYTES, compare_names);
	for (size_t i = 0; i < seen.nr_sessions; i++)
		check_session(&seen, fd, seen.names[i]);
	check_session(&seen, fd, "current");
	close(fd);
	return seen;
}

/* ---- the test ---- */

static void killed_everywhere(void **state OP_UNUSED)
{
	const char *wanted = getenv("OPD_SEED");
	unsigned int seed = wanted ? (unsigned int)strtoul(wanted, NULL, 10) : (unsigned int)op_now_ns();
	uint64_t nr_torn = 0, nr_hours = 0, nr_removed = 0;

	print_message("OPD_SEED=%u\n", seed);
	srandom(seed);
	for (int i = 0; i < NR_KILLS; i++) {
		struct seen seen;

		run_and_kill(1 + random() % STEPS_MAX);
		seen = look();
		if (seen.begin == UINT64_MAX)
			seen.begin = seen.end = 0;
		/* whole sessions go, the oldest first; the last minute may be there or not */
		assert_int_equal(seen.begin % SESSION, 0);
		assert_in_range(seen.end, shared->written, shared->written + 1);
		shared->next = shared->written = seen.end;
		shared->first = seen.first == UINT64_MAX ? seen.end : seen.first;
		nr_removed = seen.begin / SESSION;
		nr_torn += seen.nr_torn;
		nr_hours += seen.nr_hours;
	}
	print_message("%llu minutes, %llu sessions closed, %llu removed, %llu torn ends, %llu cut\n",
		      (unsigned long long)shared->written, (unsigned long long)shared->nr_closed,
		      (unsigned long long)nr_removed, (unsigned long long)nr_torn, (unsigned long long)shared->nr_cut);
	assert_true(nr_torn > 0 && nr_hours > 0 && nr_removed > 10);
	/* each was cut when the file was opened; some were killed before that */
	assert_in_range(shared->nr_cut, 1, nr_torn);
}

static int setup(void **state OP_UNUSED)
{
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return shared == MAP_FAILED || box_make(dir) ? -1 : 0;
}

static int teardown(void **state OP_UNUSED)
{
	munmap(shared, sizeof(*shared));
	return box_remove(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test_setup_teardown(killed_everywhere, setup, teardown) };

	return cmocka_run_group_tests_name("timeline_kill", tests, NULL, NULL);
}
