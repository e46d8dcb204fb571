/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The kept list of a session: it is believed while nothing was changed, never longer, and it is not
 * kept where that could not be seen.
 */
#include <dirent.h>
#include <ftw.h>

#include "tests/unit/cmocka_all.h"

#include "libop/base/sys.h"
#include "libop/base/text.h"
#include "tests/unit/sample_writer.h"
#include "tools/profile/session_listing.h"

#define EVENT      "/TIMER.0.0.all.all.all"
#define NR_APPS    100 /* of three directories each */
#define LATER_NS   10000000000u
#define NR_DAMAGES 200

static char directory[] = "/tmp/opd-test-listing-XXXXXX";
static char cache_dir[sizeof(directory) + 16];
static int fd;

/* How much later than it is the list is made: inode times are the kernel's to set. */
static uint64_t later_ns;
static size_t nr_reads;

uint64_t __real_op_sys_wall_ns(void);
uint64_t __wrap_op_sys_wall_ns(void);
ssize_t __real_op_sys_getdents(int dir_fd, void *buffer, size_t nr_bytes);
ssize_t __wrap_op_sys_getdents(int dir_fd, void *buffer, size_t nr_bytes);

uint64_t __wrap_op_sys_wall_ns(void)
{
	return __real_op_sys_wall_ns() + later_ns;
}

ssize_t __wrap_op_sys_getdents(int dir_fd, void *buffer, size_t nr_bytes)
{
	__atomic_fetch_add(&nr_reads, 1, __ATOMIC_RELAXED);
	return __real_op_sys_getdents(dir_fd, buffer, nr_bytes);
}

static void touch(const char *path)
{
	sample_write_bytes(fd, path, "", 0);
}

static int set_up(void **state OP_UNUSED)
{
	char path[sizeof(directory) + 16];

	snprintf(directory, sizeof(directory), "/tmp/opd-test-listing-XXXXXX");
	if (!mkdtemp(directory))
		return -1;
	snprintf(cache_dir, sizeof(cache_dir), "%s/cache", directory);
	snprintf(path, sizeof(path), "%s/session", directory);
	if (mkdir(path, 0755) < 0 || setenv("OPD_CACHE_DIR", cache_dir, 1) < 0)
		return -1;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (int i = 0; i < NR_APPS; i++) {
		char name[64];

		snprintf(name, sizeof(name), "{root}/bin/app%d/{dep}/{root}/x" EVENT, i);
		touch(name);
	}
	later_ns = LATER_NS;
	return fd < 0 ? -1 : 0;
}

static int remove_one(const char *path, const struct stat *st OP_UNUSED, int type OP_UNUSED, struct FTW *ftw OP_UNUSED)
{
	return remove(path);
}

static int tear_down(void **state OP_UNUSED)
{
	close(fd);
	return nftw(directory, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void note_misfit(const char *path, int why, void *arg)
{
	op_text_printf(arg, "%s %d\n", path, why);
}

/* What is changed after this has another time: the clock is made to look later than it is. */
static void await_tick(void)
{
	struct timespec before, now;

	clock_gettime(CLOCK_REALTIME_COARSE, &before);
	do
		clock_gettime(CLOCK_REALTIME_COARSE, &now);
	while (now.tv_sec == before.tv_sec && now.tv_nsec == before.tv_nsec);
}

/*
 * Lists the session as it is kept, and as it is: the same. True when no directory was read for it.
 */
static bool list_twice(size_t nr_files)
{
	struct op_text told = { 0 }, told_anew = { 0 };
	const struct op_session_misfits misfits = { note_misfit, &told }, misfits_anew = { note_misfit, &told_anew };
	struct op_session_list list, anew;
	bool was_kept;

	nr_reads = 0;
	assert_int_equal(opr_session_list(fd, &list, &misfits), 0);
	was_kept = !nr_reads;
	assert_int_equal(op_session_list_sound(fd, &anew, &misfits_anew), 0);
	assert_int_equal(list.nr_files, nr_files);
	assert_int_equal(anew.nr_files, nr_files);
	for (size_t i = 0; i < nr_files; i++) {
		assert_string_equal(list.files[i].path, anew.files[i].path);
		assert_string_equal(list.files[i].name.app.name, anew.files[i].name.app.name);
		assert_string_equal(list.files[i].name.event, anew.files[i].name.event);
	}
	assert_string_equal(op_text_get(&told), op_text_get(&told_anew));
	op_session_list_free(&list);
	op_session_list_free(&anew);
	op_text_free(&told);
	op_text_free(&told_anew);
	await_tick();
	return was_kept;
}

static void test_kept(void **state OP_UNUSED)
{
	assert_false(list_twice(NR_APPS));
	assert_true(list_twice(NR_APPS));
	assert_true(list_twice(NR_APPS));
}

/* Each of them is seen, and after it the list is kept anew. */
static void test_changes(void **state OP_UNUSED)
{
	assert_false(list_twice(NR_APPS));
	touch("{root}/bin/app7/{dep}/{root}/x/OTHER.0.0.all.all.all");
	assert_false(list_twice(NR_APPS + 1));
	assert_true(list_twice(NR_APPS + 1));
	assert_int_equal(unlinkat(fd, "{root}/bin/app7/{dep}/{root}/x/OTHER.0.0.all.all.all", 0), 0);
	assert_false(list_twice(NR_APPS));
	touch("{root}/bin/app7/{dep}/{root}/y" EVENT);
	assert_false(list_twice(NR_APPS + 1));
	assert_int_equal(renameat(fd, "{root}/bin/app7", fd, "{root}/bin/app0/{dep}/{root}/app7"), 0);
	assert_int_equal(renameat(fd, "{root}/bin/app0/{dep}/{root}/app7", fd, "{root}/bin/app1000"), 0);
	assert_false(list_twice(NR_APPS + 1));
	assert_true(list_twice(NR_APPS + 1));
	touch("{kern}/vmlinux/{dep}/{kern}/vmlinux" EVENT);
	assert_false(list_twice(NR_APPS + 2));
	assert_true(list_twice(NR_APPS + 2));
}

/* The times of a directory that somebody sets back are not the inode's own. */
static void test_time_that_is_set_back(void **state OP_UNUSED)
{
	static const char *const there = "{root}/bin/app9/{dep}/{root}/x",
				 *const file = "{root}/bin/app9/{dep}/{root}/x/OTHER.0.0.all.all.all";
	struct timespec times[2] = { { .tv_nsec = UTIME_OMIT } };
	struct stat st;

	assert_false(list_twice(NR_APPS));
	assert_int_equal(fstatat(fd, there, &st, 0), 0);
	touch(file);
	times[1] = st.st_mtim;
	assert_int_equal(utimensat(fd, there, times, 0), 0);
	assert_false(list_twice(NR_APPS + 1));
}

/* It may be changed again in the same moment. */
static void test_fresh_directories(void **state OP_UNUSED)
{
	later_ns = 0;
	touch("{root}/bin/app5/{dep}/{root}/fresh" EVENT);
	later_ns = (uint64_t)-LATER_NS; /* as by a clock that was set back */
	assert_false(list_twice(NR_APPS + 1));
	assert_false(list_twice(NR_APPS + 1));
}

static void test_what_cannot_be_read(void **state OP_UNUSED)
{
	touch("{root}/bin/app5/foo.txt");
	assert_false(list_twice(NR_APPS));
	assert_false(list_twice(NR_APPS));
	assert_int_equal(unlinkat(fd, "{root}/bin/app5/foo.txt", 0), 0);
	assert_int_equal(symlinkat("TIMER.0.0.all.all.all", fd, "{root}/bin/app5/{dep}/{root}/x/LINK.0.0.all.all.all"), 0);
	assert_false(list_twice(NR_APPS + 1));
	assert_false(list_twice(NR_APPS + 1));
	assert_int_equal(unlinkat(fd, "{root}/bin/app5/{dep}/{root}/x" EVENT, 0), 0);
	assert_false(list_twice(NR_APPS - 1));
}

static void test_no_cache(void **state OP_UNUSED)
{
	assert_int_equal(setenv("OPD_CACHE_DIR", "", 1), 0);
	assert_false(list_twice(NR_APPS));
	assert_false(list_twice(NR_APPS));
	assert_int_equal(access(cache_dir, F_OK), -1);
}

/* The one file of the cache. */
static int open_kept(void)
{
	char path[sizeof(cache_dir) + 288];
	struct dirent *entry;
	DIR *dir;
	int kept = -1;

	snprintf(path, sizeof(path), "%s/sessions", cache_dir);
	dir = opendir(path);
	assert_non_null(dir);
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		assert_int_equal(kept, -1);
		kept = openat(dirfd(dir), entry->d_name, O_RDWR | O_CLOEXEC);
		assert_true(kept >= 0);
	}
	closedir(dir);
	assert_true(kept >= 0);
	return kept;
}

static void test_damage(void **state OP_UNUSED)
{
	struct stat st;
	int kept;

	assert_false(list_twice(NR_APPS));
	for (int i = 0; i < NR_DAMAGES; i++) {
		uint8_t byte;
		off_t at;

		kept = open_kept();
		assert_int_equal(fstat(kept, &st), 0);
		at = i < (int)sizeof(struct opr_listing_header) ? i : i * (st.st_size / NR_DAMAGES);
		assert_int_equal(pread(kept, &byte, 1, at), 1);
		byte ^= (uint8_t)(1u << i % 8);
		assert_int_equal(pwrite(kept, &byte, 1, at), 1);
		close(kept);
		assert_false(list_twice(NR_APPS));
	}
	kept = open_kept();
	assert_int_equal(ftruncate(kept, st.st_size / 2), 0);
	close(kept);
	assert_false(list_twice(NR_APPS));
	assert_true(list_twice(NR_APPS));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_kept, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_changes, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_time_that_is_set_back, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_fresh_directories, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_what_cannot_be_read, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_no_cache, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_damage, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
