/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <sys/resource.h>

#include <cmocka.h>

#include "libop/session/contents.h"
#include "libop/session/directory.h"
#include "libop/session/layout.h"
#include "libop/session/list.h"
#include "libop/session/walk.h"
#include "tests/unit/sample_writer.h"
#include "tests/unit/disk.h"
#include "tests/unit/test_box.h"

#define APP   "{root}/usr/bin/app/{dep}/"
#define EVENT "/TIMER.0.0.all.all.all"

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define LITTLE_ENDIAN_TEXT "1"
#else
#define LITTLE_ENDIAN_TEXT "0"
#endif

#define WALK_DEPTH   40
#define WALK_BREADTH 1000

static char directory[BOX_PATH_BYTES];
static char session_dir[sizeof(directory) + 16];
static int fd;

/* The allocation that fails, counted from 1; 0: none. */
static int failing_allocation;

void *__real_calloc(size_t nr_items, size_t item_bytes);
void *__wrap_calloc(size_t nr_items, size_t item_bytes);

void *__wrap_calloc(size_t nr_items, size_t item_bytes)
{
	return failing_allocation && !--failing_allocation ? NULL : __real_calloc(nr_items, item_bytes);
}

/* The number of CPUs that the test pretends; 0: the real number. */
static size_t nr_cpus;

size_t __real_op_nr_cpus(void);
size_t __wrap_op_nr_cpus(void);

size_t __wrap_op_nr_cpus(void)
{
	return nr_cpus ? nr_cpus : __real_op_nr_cpus();
}

/* The system call that fails with -EIO, counted from 1; 0: none. */
static int failing_call;

int __real_op_sys_openat(int dir_fd, const char *path, int flags, mode_t mode);
int __wrap_op_sys_openat(int dir_fd, const char *path, int flags, mode_t mode);

static bool fails(void)
{
	return failing_call && !--failing_call;
}

/* Before this directory is opened, its parent is replaced by a link to `outside`. NULL: none. */
static const char *turning;

static void turn(const char *path)
{
	const char *slash = strrchr(path, '/');

	if (!turning || strcmp(slash ? slash + 1 : path, turning))
		return;
	turning = NULL;
	assert_int_equal(renameat(fd, "{root}/top/middle", fd, "moved"), 0);
	assert_int_equal(symlinkat("../../outside", fd, "{root}/top/middle"), 0);
}

int __wrap_op_sys_openat(int dir_fd, const char *path, int flags, mode_t mode)
{
	turn(path);
	return fails() ? -EIO : __real_op_sys_openat(dir_fd, path, flags, mode);
}

static int watch_disk(const struct disk_call *call)
{
	return (call->kind == DISK_mkdirat || call->kind == DISK_fsync || call->kind == DISK_renameat) && fails() ? -EIO : 0;
}

static int directory_setup(void **state OP_UNUSED)
{
	disk_watch = watch_disk;
	if (box_make(directory))
		return -1;
	snprintf(session_dir, sizeof(session_dir), "%s/a/b", directory);
	return 0;
}

static int directory_teardown(void **state OP_UNUSED)
{
	static const char *const rest[] = { "a/b/samples/current", "a/b/samples", "a/b/tmp", "a/b", "a" };
	int dir_fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC), err = 0;

	unlinkat(dir_fd, "a/b/abi", 0);
	for (size_t i = 0; i < op_array_size(rest); i++)
		err |= unlinkat(dir_fd, rest[i], AT_REMOVEDIR);
	close(dir_fd);
	return err | rmdir(directory);
}

static int open_session(void **state OP_UNUSED)
{
	int dir_fd = op_session_open(session_dir);

	fd = openat(dir_fd, OP_SESSION_CURRENT, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	close(dir_fd);
	return fd < 0 ? -1 : 0;
}

static int clear_session(void **state OP_UNUSED)
{
	int err = op_session_clear(fd, NULL);

	close(fd);
	return err;
}

static void touch(const char *path)
{
	sample_write_bytes(fd, path, "x", 1);
}

static void test_open(void **state OP_UNUSED)
{
	static const char *const dirs[] = { "", "samples", "samples/current", "tmp" };
	mode_t mask = umask(077);
	int dir_fd = op_session_open(session_dir);
	struct stat st;
	char abi[2048];
	ssize_t got;
	int abi_fd;

	assert_int_equal(umask(mask), 027);
	assert_true(dir_fd >= 0);
	for (size_t i = 0; i < op_array_size(dirs); i++) {
		assert_int_equal(fstatat(dir_fd, dirs[i], &st, AT_EMPTY_PATH), 0);
		assert_int_equal(st.st_mode, S_IFDIR | 0750);
	}
	abi_fd = openat(dir_fd, "abi", O_RDONLY | O_CLOEXEC);
	assert_true(abi_fd >= 0);
	got = read(abi_fd, abi, sizeof(abi) - 1);
	assert_true(got > 0);
	abi[got] = '\0';
	assert_string_equal(abi, "sizeof_double 8\nsizeof_u64 8\nsizeof_u8 1\nsizeof_u32 4\nsizeof_int 4\nsizeof_unsigned_int 4\n"
				 "sizeof_odb_key_t 8\nsizeof_odb_index_t 4\nsizeof_odb_value_t 4\nsizeof_odb_node_nr_t 4\n"
				 "sizeof_odb_descr_t 32\nsizeof_odb_node_t 16\nsizeof_struct_opd_header 72\n"
				 "offsetof_node_key 0\noffsetof_node_value 8\noffsetof_node_next 12\n"
				 "offsetof_descr_size 0\noffsetof_descr_current_size 4\n"
				 "offsetof_header_magic 0\noffsetof_header_version 4\noffsetof_header_cpu_type 8\n"
				 "offsetof_header_ctr_event 12\noffsetof_header_ctr_um 16\noffsetof_header_ctr_count 20\n"
				 "offsetof_header_is_kernel 24\noffsetof_header_cpu_speed 32\noffsetof_header_mtime 40\n"
				 "offsetof_header_cg_to_is_kernel 48\noffsetof_header_anon_start 56\n"
				 "offsetof_header_cg_to_anon_start 64\nlittle_endian " LITTLE_ENDIAN_TEXT "\n");
	assert_int_equal(faccessat(dir_fd, "tmp/abi", F_OK, 0), -1);
	close(abi_fd);
	close(dir_fd);
	dir_fd = op_session_open(session_dir);
	assert_true(dir_fd >= 0);
	close(dir_fd);
	assert_int_equal(op_session_open("/proc/nothing/can/be/made/here"), -ENOENT);
}

/* Each call that can fail fails in turn: its error is returned, and nothing half-written stays. */
static void test_open_with_failing_calls(void **state OP_UNUSED)
{
	int nr_failed = 0, dir_fd = -1;

	while (dir_fd < 0) {
		failing_call = ++nr_failed;
		dir_fd = op_session_open(session_dir);
		if (dir_fd < 0)
			assert_int_equal(dir_fd, -EIO);
		assert_true(nr_failed < 100);
	}
	failing_call = 0;
	assert_true(nr_failed > 10); /* directories, the abi file: opened, synced, renamed */
	assert_int_equal(faccessat(dir_fd, "abi", F_OK, 0), 0);
	assert_int_equal(faccessat(dir_fd, "abi.tmp", F_OK, 0), -1);
	assert_int_equal(faccessat(dir_fd, "tmp/abi", F_OK, 0), -1);
	close(dir_fd);
}

static void test_list_with_a_failing_call(void **state OP_UNUSED)
{
	struct op_session_list list;
	char *bad_path = NULL;

	touch(APP "{root}/usr/bin/app" EVENT);
	failing_call = 2; /* the second directory */
	assert_int_equal(op_session_list(fd, &list, &bad_path), -EIO);
	failing_call = 0;
	assert_string_equal(bad_path, "{root}/usr");
	free(bad_path);
}

static void test_list(void **state OP_UNUSED)
{
	static const char *const expected[] = {
		"{kern}/no-vmlinux/{dep}/{kern}/no-vmlinux" EVENT,
		APP "{anon:[vdso]}/12.0x1000.0x2000" EVENT,
		APP "{kern}/no-vmlinux" EVENT,
		APP "{root}/usr/bin/app" EVENT,
		APP "{root}/usr/bin/linked" EVENT,
	};
	struct op_session_list list;

	for (size_t i = op_array_size(expected) - 1; i > 0; i--)
		touch(expected[i - 1]);
	sample_make_dirs(fd, expected[4]);
	assert_int_equal(symlinkat("../app/TIMER.0.0.all.all.all", fd, expected[4]), 0);
	touch(APP "{anon:[vdso]}/12.jo");
	touch("stats/total_samples");
	touch("meta.json");
	touch("{other}/x");
	sample_make_dirs(fd, "{root}/empty/directory/");
	assert_int_equal(symlinkat("nowhere", fd, "{root}/dangling"), 0);
	assert_int_equal(symlinkat(".", fd, "{root}/loop"), 0);
	assert_int_equal(op_session_list(fd, &list, NULL), 0);
	assert_int_equal(list.nr_files, op_array_size(expected));
	for (size_t i = 0; i < list.nr_files; i++)
		assert_string_equal(list.files[i].path, expected[i]);
	assert_string_equal(list.files[3].name.app.name, "/usr/bin/app");
	op_session_list_free(&list);
	assert_int_equal(list.nr_files, 0);
	assert_int_equal(unlinkat(fd, "meta.json", 0), 0);
	assert_int_equal(unlinkat(fd, "{other}/x", 0), 0);
	assert_int_equal(unlinkat(fd, "{other}", AT_REMOVEDIR), 0);
}

static void test_list_of_nothing(void **state OP_UNUSED)
{
	struct op_session_list list;

	assert_int_equal(op_session_list(fd, &list, NULL), 0);
	assert_int_equal(list.nr_files, 0);
	op_session_list_free(&list);
	op_session_list_free(NULL);
}

static void test_foreign_file(void **state OP_UNUSED)
{
	static const char *const foreign[] = { "{root}/foo.txt", "{kern}/.swp", APP "{root}/usr/bin/app/core" };

	for (size_t i = 0; i < op_array_size(foreign); i++) {
		struct op_session_list list = { .nr_files = 77 };
		char *bad_path = NULL;

		touch(APP "{root}/usr/bin/app" EVENT);
		touch(foreign[i]);
		assert_int_equal(op_session_list(fd, &list, &bad_path), -EBADMSG);
		assert_string_equal(bad_path, foreign[i]);
		assert_int_equal(list.nr_files, 77);
		free(bad_path);
		assert_int_equal(op_session_list(fd, &list, NULL), -EBADMSG);
		assert_int_equal(unlinkat(fd, foreign[i], 0), 0);
	}
}

static void note_bad_name(const char *path, int why, void *arg)
{
	assert_int_equal(why, -EBADMSG);
	op_text_printf(arg, "%s\n", path);
}

/* A reader shows the samples that it can find. */
static void test_sound_files_beside_foreign_ones(void **state OP_UNUSED)
{
	static const char *const foreign[] = { "{root}/foo.txt", "{root}/{dep}/{root}" EVENT };
	struct op_session_list list;
	struct op_text passed_over = { 0 };
	const struct op_session_bad_paths bad_paths = { note_bad_name, &passed_over };

	touch(APP "{root}/usr/bin/app" EVENT);
	for (size_t i = 0; i < op_array_size(foreign); i++)
		touch(foreign[i]);
	assert_int_equal(op_session_list_skip_bad(fd, &list, &bad_paths), 0);
	assert_int_equal(list.nr_files, 1);
	assert_string_equal(list.files[0].path, APP "{root}/usr/bin/app" EVENT);
	for (size_t i = 0; i < op_array_size(foreign); i++)
		assert_non_null(strstr(op_text_get(&passed_over), foreign[i]));
	op_session_list_free(&list);
	op_text_free(&passed_over);
}

static void test_unreadable_directory(void **state OP_UNUSED)
{
	struct op_session_list list;
	char *bad_path = NULL;

	assert_int_equal(symlinkat("elsewhere", fd, "{root}"), 0);
	assert_true(op_session_list(fd, &list, &bad_path) < 0);
	assert_non_null(bad_path);
	assert_string_equal(bad_path, "{root}");
	free(bad_path);
}

static void note_bad_path(const char *path, int why, void *arg)
{
	struct op_text *told = arg;

	op_text_printf(told, "%s %d\n", path, why);
}

static void test_bad_paths(void **state OP_UNUSED)
{
	struct op_text told = { 0 };
	const struct op_session_bad_paths bad_paths = { note_bad_path, &told };
	struct op_session_list list;

	touch(APP "{root}/usr/bin/app" EVENT);
	touch("{root}/usr/bin/foo.txt");
	sample_make_dirs(fd, "{root}/x/{dep}/{root}/x" EVENT "/");
	sample_make_dirs(fd, "{root}/y/{dep}/{root}/y" EVENT EVENT);
	touch("{root}/y/{dep}/{root}/y" EVENT EVENT);
	assert_int_equal(symlinkat("nowhere", fd, "{root}/x/dangling"), 0);
	assert_int_equal(symlinkat("loop", fd, "{root}/x/{dep}/loop"), 0);
	assert_int_equal(symlinkat("{root}", fd, "{kern}"), 0);
	assert_int_equal(op_session_list_skip_bad(fd, &list, &bad_paths), 0);
	assert_int_equal(list.nr_files, 2);
	assert_string_equal(list.files[0].path, APP "{root}/usr/bin/app" EVENT);
	op_session_list_free(&list);
	assert_non_null(strstr(told.data, "{root}/usr/bin/foo.txt -74\n"));
	assert_non_null(strstr(told.data, "{root}/x/{dep}/{root}/x" EVENT " -21\n"));
	assert_non_null(strstr(told.data, "{root}/x/dangling -2\n"));
	assert_non_null(strstr(told.data, "{root}/x/{dep}/loop -40\n"));
	assert_true(strstr(told.data, "{kern} -40\n") || strstr(told.data, "{kern} -20\n"));
	assert_null(strstr(told.data, "{root}/y"));
	op_text_free(&told);
}

#define NR_APPS 150

/* Applications with many and with few images, and unreadable ones at every depth. */
static void make_forest(void)
{
	struct op_text path = { 0 };

	for (int i = 0; i < NR_APPS; i++) {
		const char *event = i % 7 == 3 ? "/foo.txt" : EVENT;

		for (int j = 0; j < (i % 50 ? 1 : 40); j++) {
			op_text_truncate(&path, 0);
			op_text_printf(&path, "{root}/usr/%d/app%d/{dep}/{root}/lib/%d%s", i % 3, i, j, event);
			touch(path.data);
		}
		op_text_truncate(&path, 0);
		op_text_printf(&path, "{root}/usr/%d/app%d/stray", i % 3, i);
		if (i % 11 == 5)
			assert_int_equal(symlinkat("nowhere", fd, path.data), 0);
		op_text_truncate(&path, 0);
		op_text_printf(&path, "{root}/usr/%d/app%d/{dep}/{root}/x" EVENT "/", i % 3, i);
		if (i % 13 == 6)
			sample_make_dirs(fd, path.data);
	}
	sample_make_dirs(fd, "{root}/y/{dep}/{root}/y" EVENT "/");
	touch("{root}/foo.txt");
	op_text_free(&path);
}

static void list_forest(size_t cpus, struct op_session_list *ret_list, struct op_text *told)
{
	const struct op_session_bad_paths bad_paths = { note_bad_path, told };

	nr_cpus = cpus;
	assert_int_equal(op_session_list_skip_bad(fd, ret_list, &bad_paths), 0);
	nr_cpus = 0;
}

static void test_threads_list_as_one(void **state OP_UNUSED)
{
	struct op_session_list alone;
	struct op_text told_alone = { 0 };

	make_forest();
	list_forest(1, &alone, &told_alone);
	assert_non_null(strstr(told_alone.data, "/stray -2\n"));
	assert_non_null(strstr(told_alone.data, "{root}/y/{dep}/{root}/y" EVENT " -21\n"));
	for (size_t cpus = 2; cpus < 10; cpus++) {
		struct op_session_list list;
		struct op_text told = { 0 };

		list_forest(cpus, &list, &told);
		assert_int_equal(list.nr_files, alone.nr_files);
		for (size_t i = 0; i < list.nr_files; i++)
			assert_string_equal(list.files[i].path, alone.files[i].path);
		assert_string_equal(told.data, told_alone.data);
		op_session_list_free(&list);
		op_text_free(&told);
	}
	op_session_list_free(&alone);
	op_text_free(&told_alone);
}

/*
 * The results of the threads count only when all have ended: they are reported once, by the walk
 * that needs fewer descriptors.
 */
static void test_threads_without_descriptors(void **state OP_UNUSED)
{
	struct rlimit before, few;
	struct op_session_list alone, list;
	struct op_text told_alone = { 0 }, told = { 0 };

	make_forest();
	list_forest(1, &alone, &told_alone);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	few = (struct rlimit){ (rlim_t)fd + 6, before.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	list_forest(16, &list, &told);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(list.nr_files, alone.nr_files);
	assert_string_equal(told.data, told_alone.data);
	op_session_list_free(&alone);
	op_session_list_free(&list);
	op_text_free(&told_alone);
	op_text_free(&told);
}

/* An error of the callback is not an error of the directory. */
static int fail_at_once(const char *path OP_UNUSED, unsigned char type OP_UNUSED, void *arg OP_UNUSED)
{
	return -ENOSPC;
}

static int tell_nobody(const char *path OP_UNUSED, unsigned char type OP_UNUSED, void *arg OP_UNUSED)
{
	return 0;
}

static void test_walk_past_bad_paths(void **state OP_UNUSED)
{
	struct op_text told = { 0 };
	const struct op_session_bad_paths bad_paths = { note_bad_path, &told };

	touch(APP "{root}/usr/bin/app" EVENT);
	assert_int_equal(op_session_walk_skip_bad(fd, ".", fail_at_once, NULL, &bad_paths), -ENOSPC);
	assert_int_equal(told.length, 0);
	failing_call = 2; /* the top takes one */
	assert_int_equal(op_session_walk_skip_bad(fd, "{root}", tell_nobody, NULL, &bad_paths), 0);
	failing_call = 0;
	assert_string_equal(told.data, "{root}/usr -5\n");
	op_text_free(&told);
}

static void test_fifo_with_a_sound_name(void **state OP_UNUSED)
{
	static const char path[] = "{kern}/x/{dep}/{kern}/x" EVENT;
	struct op_session_list list;
	char *bad_path = NULL;

	sample_make_dirs(fd, path);
	assert_int_equal(mkfifoat(fd, path, 0600), 0);
	assert_int_equal(op_session_list(fd, &list, &bad_path), -EBADMSG);
	assert_string_equal(bad_path, path);
	free(bad_path);
}

/* A directory on the way becomes a link while the tree is removed. */
static void test_clear_beside_links(void **state OP_UNUSED)
{
	char *path = NULL;

	touch("outside/deep/precious");
	touch("{root}/top/middle/deep/file");
	turning = "deep";
	assert_int_equal(op_session_clear(fd, &path), -ENOTDIR);
	assert_string_equal(path, "{root}/top/middle/deep");
	free(path);
	assert_null(turning);
	assert_int_equal(faccessat(fd, "outside/deep/precious", F_OK, 0), 0);
	assert_int_equal(op_session_clear(fd, NULL), 0);
	assert_int_equal(faccessat(fd, "{root}", F_OK, 0), -1);
	assert_int_equal(op_session_remove(fd, "moved"), 0);
	assert_int_equal(symlinkat("outside", fd, "way"), 0);
	assert_int_equal(op_session_remove(fd, "way/deep"), -ENOTDIR);
	assert_int_equal(unlinkat(fd, "way", 0), 0);
	assert_int_equal(faccessat(fd, "outside/deep/precious", F_OK, 0), 0);
	assert_int_equal(op_session_remove(fd, "outside"), 0);
}

static void test_clear(void **state OP_UNUSED)
{
	struct op_text deep = { 0 };

	touch("keep");
	op_text_add(&deep, "{root}");
	for (int i = 0; i < 1500; i++)
		op_text_add(&deep, "/d");
	op_text_add(&deep, "/f");
	touch(op_text_get(&deep));
	touch("stats/cpu0/x");
	sample_make_dirs(fd, "outside/x");
	touch("outside/precious");
	assert_int_equal(symlinkat("../outside", fd, "{root}/link"), 0);
	assert_int_equal(symlinkat("outside", fd, "{kern}"), 0);
	assert_int_equal(op_session_clear(fd, NULL), 0);
	assert_int_equal(faccessat(fd, "{root}", F_OK, 0), -1);
	assert_int_equal(faccessat(fd, "{kern}", F_OK, 0), -1);
	assert_int_equal(faccessat(fd, "stats", F_OK, 0), -1);
	assert_int_equal(unlinkat(fd, "keep", 0), 0);
	assert_int_equal(unlinkat(fd, "outside/precious", 0), 0);
	assert_int_equal(unlinkat(fd, "outside", AT_REMOVEDIR), 0);
	assert_int_equal(op_session_clear(fd, NULL), 0);
	op_text_free(&deep);
}

/* Files at many depths, and more in one directory than one read returns, with few descriptors. */
static void test_walk(void **state OP_UNUSED)
{
	struct rlimit before, few;
	struct op_text deep = { 0 };
	uint64_t nr_files = 0;

	op_text_add(&deep, "{root}");
	for (int i = 0; i < WALK_DEPTH; i++) {
		struct op_text path = { 0 };

		op_text_add(&deep, "/d");
		op_text_printf(&path, "%s/f", op_text_get(&deep));
		touch(op_text_get(&path));
		op_text_free(&path);
	}
	for (int i = 0; i < WALK_BREADTH; i++) {
		struct op_text path = { 0 };

		op_text_printf(&path, "{kern}/many/a file with a name of some length %d", i);
		touch(op_text_get(&path));
		op_text_free(&path);
	}
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	for (rlim_t nr = 3; nr < 8; nr++) {
		few = (struct rlimit){ (rlim_t)fd + nr, before.rlim_max };
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
		assert_int_equal(op_session_count_files(fd, &nr_files), 0);
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
		assert_int_equal(nr_files, WALK_DEPTH + WALK_BREADTH);
	}
	op_text_free(&deep);
}

/* A directory that is not found for want of memory stays; the rest is removed. */
static void test_clear_without_memory(void **state OP_UNUSED)
{
	for (int i = 0; i < 100; i++) {
		struct op_text path = { 0 };

		op_text_printf(&path, "{root}/d%d/x", i);
		touch(op_text_get(&path));
		op_text_free(&path);
	}
	touch("{kern}/x");
	failing_allocation = 20;
	assert_int_equal(op_session_clear(fd, NULL), -ENOMEM);
	assert_int_equal(failing_allocation, 0);
	assert_int_equal(faccessat(fd, "{kern}", F_OK, 0), -1);
	assert_int_equal(op_session_clear(fd, NULL), 0);
	assert_int_equal(faccessat(fd, "{root}", F_OK, 0), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_open),
		cmocka_unit_test(test_open_with_failing_calls),
		cmocka_unit_test_setup_teardown(test_list, open_session, clear_session),
		cmocka_unit_test_setup_teardown(test_list_of_nothing, open_session, clear_session),
		cmocka_unit_test_setup_teardown(test_foreign_file, open_session, clear_session),
		cmocka_unit_test_setup_teardown(test_sound_files_beside_foreign_ones, open_session, clear_session),
		cmocka_unit_test_setup_teardown(test_list_with_a_failing_call, open_session, clear_session),
		cmocka_unit_test_setup_teardown(test_unreadable_directory, open_session, clear_session),
		cmocka_unit_test_setup_teardown(test_bad_paths, open_session, clear_session),
		cmocka_unit_test_setup_teardown(test_threads_list_as_one, open_session, clear_session),
		cmocka_unit_test_setup_teardown(test_threads_without_descriptors, open_session, clear_session),
		cmocka_unit_test_setup_teardown(test_walk_past_bad_paths, open_session, clear_session),
		cmocka_unit_test_setup_teardown(test_fifo_with_a_sound_name, open_session, clear_session),
		cmocka_unit_test_setup_teardown(test_clear_beside_links, open_session, clear_session),
		cmocka_unit_test_setup_teardown(test_clear, open_session, clear_session),
		cmocka_unit_test_setup_teardown(test_walk, open_session, clear_session),
		cmocka_unit_test_setup_teardown(test_clear_without_memory, open_session, clear_session),
	};

	return cmocka_run_group_tests(tests, directory_setup, directory_teardown);
}
