/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "libop/base/file.h"
#include "libop/base/file_path.h"
#include "libop/session/contents.h"
#include "libop/base/sys.h"
#include "tests/unit/test_box.h"
#include "tests/unit/disk.h"

static bool old_kernel; /* without openat2 */
static unsigned int nr_steps; /* directories opened one by one */

int __real_op_sys_open_dir_below(int dir_fd, const char *path);
int __wrap_op_sys_open_dir_below(int dir_fd, const char *path);
int __real_op_sys_openat(int dir_fd, const char *path, int flags, mode_t mode);
int __wrap_op_sys_openat(int dir_fd, const char *path, int flags, mode_t mode);

int __wrap_op_sys_open_dir_below(int dir_fd, const char *path)
{
	return old_kernel ? -ENOSYS : __real_op_sys_open_dir_below(dir_fd, path);
}

int __wrap_op_sys_openat(int dir_fd, const char *path, int flags, mode_t mode)
{
	nr_steps += flags & O_PATH ? 1 : 0;
	return __real_op_sys_openat(dir_fd, path, flags, mode);
}

static void test_publish_and_read(void **state)
{
	struct box *box = *state;
	char *text = NULL;

	assert_int_equal(op_file_publish(box->fd, "a", "one\n", 0644), 0);
	assert_int_equal(op_file_publish(box->fd, "a", "two\n", 0644), 0);
	assert_int_equal(op_file_read(box->fd, "a", 4, &text), 0);
	assert_string_equal(text, "two\n");
	free(text);
	text = NULL;
	assert_int_equal(op_file_read(box->fd, "a", 3, &text), -EFBIG);
	assert_int_equal(op_file_read(box->fd, "b", 3, &text), -ENOENT);
	assert_int_equal(op_file_read(box->fd, ".", 3, &text), -EISDIR);
	assert_null(text);
}

/* Nobody ever writes to it, so a reader that waits would wait for ever. */
static void test_fifo_is_refused(void **state)
{
	struct box *box = *state;
	char *text = NULL;

	assert_int_equal(mkfifoat(box->fd, "f", 0600), 0);
	alarm(60);
	assert_int_equal(op_file_read(box->fd, "f", 100, &text), -ENOTSUP);
	alarm(0);
	assert_null(text);
}

static void test_nul_is_refused(void **state)
{
	struct box *box = *state;
	int fd = openat(box->fd, "n", O_WRONLY | O_CREAT, 0600);
	char *text = NULL;

	assert_int_equal(write(fd, "a\0b", 3), 3);
	close(fd);
	assert_int_equal(op_file_read(box->fd, "n", 100, &text), -EINVAL);
	assert_null(text);
}

static void test_failure_leaves_the_old(void **state)
{
	static const struct {
		int *call, err;
	} cases[] = { { &disk_fails.write_all, -ENOSPC }, { &disk_fails.fsync, -EIO }, { &disk_fails.renameat, -EROFS } };
	struct box *box = *state;

	assert_int_equal(op_file_publish(box->fd, "a", "old", 0644), 0);
	for (size_t i = 0; i < op_array_size(cases); i++) {
		char *text = NULL;

		*cases[i].call = cases[i].err;
		assert_int_equal(op_file_publish(box->fd, "a", "new", 0644), cases[i].err);
		*cases[i].call = 0;
		assert_int_equal(op_file_read(box->fd, "a", 100, &text), 0);
		assert_string_equal(text, "old");
		assert_int_equal(faccessat(box->fd, "a.tmp", F_OK, 0), -1);
		free(text);
	}
}

static void test_make_dirs(void **state)
{
	struct box *box = *state;
	char path[64];

	snprintf(path, sizeof(path), "%s/d", box->path);
	assert_int_equal(op_file_make_dirs(path), 0);
	assert_int_equal(op_file_make_dirs(path), 0);
	snprintf(path, sizeof(path), "%s/d//e/", box->path);
	assert_int_equal(op_file_make_dirs(path), 0);
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(op_file_publish(box->fd, "f", "", 0644), 0);
	snprintf(path, sizeof(path), "%s/f", box->path);
	assert_int_equal(op_file_make_dirs(path), -ENOTDIR);
	snprintf(path, sizeof(path), "%s/f/g", box->path);
	assert_int_equal(op_file_make_dirs(path), -ENOTDIR);
}

static int open_parent(const struct box *box, const char *path, bool make, const char *name)
{
	const char *found = NULL;
	int fd = op_file_open_parent(box->fd, path, make, &found);

	if (fd < 0) {
		assert_null(found);
		return fd;
	}
	assert_string_equal(found, name);
	close(fd);
	return 0;
}

/* Which paths are paths without links below a directory. */
static void check_parents(const struct box *box)
{
	char long_name[300];

	assert_int_equal(open_parent(box, "top/a/b/name", false, NULL), -ENOENT);
	assert_int_equal(open_parent(box, "top/a/b/name", true, "name"), 0);
	assert_int_equal(open_parent(box, "top/a/b/name", false, "name"), 0);
	assert_int_equal(open_parent(box, "/top//a/b/name", false, "name"), 0);
	assert_int_equal(open_parent(box, "name", false, "name"), 0);
	assert_int_equal(symlinkat("a", box->fd, "top/link"), 0);
	assert_int_equal(open_parent(box, "top/link/name", false, NULL), -ENOTDIR);
	assert_int_equal(open_parent(box, "top/link/b/name", true, NULL), -ENOTDIR);
	assert_int_equal(open_parent(box, "top/link", false, "link"), 0);
	assert_int_equal(open_parent(box, "top/a/../a/name", false, NULL), -EINVAL);
	assert_int_equal(open_parent(box, "../name", false, NULL), -EINVAL);
	assert_int_equal(open_parent(box, "top/a/..", false, ".."), 0);
	assert_int_equal(open_parent(box, "top/..a/a../...../name", true, "name"), 0);
	memset(long_name, 'x', sizeof(long_name) - 1);
	memcpy(long_name + sizeof(long_name) - 3, "/n", 3);
	assert_int_equal(open_parent(box, long_name, true, NULL), -ENAMETOOLONG);
	assert_int_equal(op_session_remove(box->fd, "top"), 0);
}

static void test_open_parent(void **state)
{
	const struct box *box = *state;

	check_parents(box);
	old_kernel = true;
	check_parents(box);
	old_kernel = false;
}

/* A sample file lies ten directories deep, and its directories are often missing. */
static void test_open_parent_in_one_step(void **state)
{
	const struct box *box = *state;

	assert_int_equal(open_parent(box, "top/a/b/c/d/e/f/name", true, "name"), 0);
	nr_steps = 0;
	assert_int_equal(open_parent(box, "top/a/b/c/d/e/f/name", true, "name"), 0);
	assert_int_equal(nr_steps, 0);
	assert_int_equal(open_parent(box, "top/a/b/c/d/e/g/h/name", true, "name"), 0);
	assert_int_equal(nr_steps, 2); /* the two new ones: each is opened after it is made */
	assert_int_equal(op_session_remove(box->fd, "top"), 0);
}

static void make_file(const struct box *box, const char *path)
{
	int fd = op_file_open_below(box->fd, path, O_WRONLY | O_CREAT | O_EXCL, 0644);

	assert_true(fd >= 0);
	close(fd);
}

static uint64_t disk_bytes_of(const struct box *box, const char *path)
{
	struct stat st;

	assert_int_equal(fstatat(box->fd, path, &st, AT_SYMLINK_NOFOLLOW), 0);
	return (uint64_t)st.st_blocks * 512;
}

/* The place for a file is found, then somebody changes the tree, then the file is put there. */
static int publish_after(const struct box *box, void (*meddle)(const struct box *box), uint64_t *ret_dir_bytes)
{
	struct op_file_path place;
	int err;

	make_file(box, "new");
	assert_int_equal(op_file_path_find(box->fd, "top/a/b/c/name", &place), 0);
	assert_int_equal(op_file_path_open(&place, O_RDWR, 0), -ENOENT);
	meddle(box);
	err = op_file_path_publish(&place, box->fd, "new", ret_dir_bytes);
	op_file_path_close(&place);
	assert_int_equal(faccessat(box->fd, "new", F_OK, 0), err ? 0 : -1);
	assert_int_equal(faccessat(box->fd, "top/a/b/c/name", F_OK, AT_SYMLINK_NOFOLLOW), err ? -1 : 0);
	if (err)
		assert_int_equal(unlinkat(box->fd, "new", 0), 0);
	return err;
}

static void leave_alone(const struct box *box OP_UNUSED)
{
}

static void remove_all(const struct box *box)
{
	assert_int_equal(op_session_remove(box->fd, "top"), 0);
}

static void make_others(const struct box *box)
{
	make_file(box, "top/a/b/other");
}

static void make_link(const struct box *box)
{
	assert_int_equal(symlinkat("../../aside", box->fd, "top/a/b"), 0);
}

static void replace_by_link(const struct box *box)
{
	remove_all(box);
	assert_int_equal(symlinkat("aside", box->fd, "top"), 0);
}

static void replace_by_file(const struct box *box)
{
	remove_all(box);
	make_file(box, "top");
}

static void check_places(const struct box *box)
{
	static const struct {
		void (*meddle)(const struct box *box);
		int err;
		int nr_new; /* directories whose blocks are its own */
	} cases[] = {
		{ leave_alone, 0, 2 },
		{ make_others, 0, 1 },
		{ remove_all, 0, 4 },
		{ make_link, -ENOTDIR, 0 },
		{ replace_by_link, -ENOTDIR, 0 },
		{ replace_by_file, -ENOTDIR, 0 },
	};
	static const char *const made[] = { "top", "top/a", "top/a/b", "top/a/b/c" };
	uint64_t dir_bytes;

	make_file(box, "aside/a/b/c/other");
	for (size_t i = 0; i < op_array_size(cases); i++) {
		uint64_t wanted = 0;

		make_file(box, "top/a/first");
		assert_int_equal(publish_after(box, cases[i].meddle, &dir_bytes), cases[i].err);
		for (int dir = 4 - cases[i].nr_new; dir < 4; dir++)
			wanted += disk_bytes_of(box, made[dir]);
		if (cases[i].nr_new)
			assert_int_equal(dir_bytes, wanted);
		assert_int_equal(faccessat(box->fd, "aside/a/b/c/name", F_OK, 0), -1);
		if (unlinkat(box->fd, "top", 0))
			remove_all(box);
	}
	assert_int_equal(op_session_remove(box->fd, "aside"), 0);
}

static void test_place_with_somebody_beside(void **state)
{
	const struct box *box = *state;

	check_places(box);
	old_kernel = true;
	check_places(box);
	old_kernel = false;
}

#define LONG_BYTES 200000

static void make_long(const struct box *box, const char *name, char *bytes)
{
	int fd = openat(box->fd, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0640);

	for (size_t i = 0; i < LONG_BYTES; i++)
		bytes[i] = (char)(i % 251);
	assert_int_equal(op_sys_write_all(fd, bytes, LONG_BYTES), 0);
	close(fd);
}

static struct stat require_same(const struct box *box, const char *name, const char *bytes)
{
	int fd = openat(box->fd, name, O_RDONLY | O_CLOEXEC);
	char *found = malloc(LONG_BYTES + 1);
	size_t nr_read = 0;
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(op_file_read_at(fd, found, LONG_BYTES + 1, 0, &nr_read), 0);
	assert_int_equal(nr_read, LONG_BYTES);
	assert_memory_equal(found, bytes, LONG_BYTES);
	free(found);
	close(fd);
	return st;
}

static void test_copied_file_is_another_with_the_same_bytes(void **state)
{
	struct box *box = *state;
	char *bytes = malloc(LONG_BYTES);
	struct stat before, after;

	make_long(box, "old", bytes);
	before = require_same(box, "old", bytes);
	disk_fails.write_all = -ENOSPC;
	assert_int_equal(op_file_copy_below(box->fd, "old", "new"), -ENOSPC);
	assert_int_equal(faccessat(box->fd, "new", F_OK, 0), -1);
	disk_fails.write_all = 0;
	assert_int_equal(op_file_copy_below(box->fd, "old", "new"), 0);
	assert_int_equal(require_same(box, "old", bytes).st_ino, before.st_ino);
	after = require_same(box, "new", bytes);
	assert_int_not_equal(after.st_ino, before.st_ino);
	assert_int_equal(after.st_mode, before.st_mode);
	assert_int_equal(unlinkat(box->fd, "new", 0), 0);
	assert_int_equal(op_file_copy_below(box->fd, ".", "new"), -EBADMSG);
	assert_int_equal(op_file_copy_below(box->fd, "none", "new"), -ENOENT);
	assert_int_equal(op_file_copy_below(box->fd, "old/below", "new"), -ENOTDIR);
	assert_int_equal(faccessat(box->fd, "new", F_OK, 0), -1);
	free(bytes);
}

/* The name of a file in the making may be a link to another file: that file stays as it is. */
static void test_file_in_the_making_is_new(void **state)
{
	struct box *box = *state;
	char *bytes = malloc(LONG_BYTES);
	int fd;

	make_long(box, "old", bytes);
	assert_int_equal(linkat(box->fd, "old", box->fd, "new", 0), 0);
	fd = op_file_create_below(box->fd, "new", 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "x", 1), 1);
	close(fd);
	require_same(box, "old", bytes);
	assert_int_equal(unlinkat(box->fd, "new", 0), 0);
	make_file(box, "short");
	assert_int_equal(linkat(box->fd, "old", box->fd, "new", 0), 0);
	assert_int_equal(op_file_copy_below(box->fd, "short", "new"), 0);
	require_same(box, "old", bytes);
	assert_int_equal(unlinkat(box->fd, "new", 0), 0);
	assert_int_equal(mkdirat(box->fd, "new", 0755), 0);
	assert_int_equal(op_file_create_below(box->fd, "new", 0600), -EISDIR);
	free(bytes);
}

/*
 * Files that root makes get the owner of their directory. The owner of the top directory owns all
 * of them.
 */
static void test_make_dirs_alike(void **state)
{
	struct box *box = *state;
	char path[64];
	struct stat st;

	if (geteuid())
		skip();
	assert_int_equal(mkdirat(box->fd, "theirs", 0755), 0);
	assert_int_equal(fchownat(box->fd, "theirs", 54320, 54321, 0), 0);
	snprintf(path, sizeof(path), "%s/theirs/a/b", box->path);
	assert_int_equal(op_file_make_dirs(path), 0);
	assert_int_equal(fstatat(box->fd, "theirs/a/b", &st, 0), 0);
	assert_int_equal(st.st_uid, 54320);
	assert_int_equal(st.st_gid, 54321);
	assert_int_equal(fchownat(box->fd, "theirs/a", 0, 0, 0), 0);
	assert_int_equal(op_file_make_dirs(path), 0);
	assert_int_equal(fstatat(box->fd, "theirs/a", &st, 0), 0);
	assert_int_equal(st.st_uid, 0);
	assert_int_equal(unlinkat(box->fd, "theirs/a/b", AT_REMOVEDIR), 0);
	assert_int_equal(unlinkat(box->fd, "theirs/a", AT_REMOVEDIR), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		box_test(test_publish_and_read),
		box_test(test_fifo_is_refused),
		box_test(test_nul_is_refused),
		box_test(test_failure_leaves_the_old),
		box_test(test_make_dirs),
		box_test(test_make_dirs_alike),
		box_test(test_open_parent),
		box_test(test_open_parent_in_one_step),
		box_test(test_place_with_somebody_beside),
		box_test(test_copied_file_is_another_with_the_same_bytes),
		box_test(test_file_in_the_making_is_new),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
