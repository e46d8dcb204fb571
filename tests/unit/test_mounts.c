/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Lines of mountinfo as the kernel writes them, and paths through them. */
#include "tests/unit/cmocka_all.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "pipeline/files/mounts.h"

#define MOUNTINFO                                                                                                                  \
	"27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard\n"                                                                  \
	"28 27 254:0 /srv/data /home/some\\040user rw shared:1 master:2 - ext4 /dev/vda rw\n"                                     \
	"29 27 0:30 / /mnt rw - tmpfs none rw\n"                                                                                   \
	"this is no line\n"                                                                                                        \
	"30 29 0:31 /sub /mnt rw - tmpfs none rw\n"                                                                                \
	"31 27 0:40 / /over rw - overlay overlay rw,lowerdir=/l/one:/l/t\\134:wo:/l/three,upperdir=/u/with\\054comma,workdir=/w\n" \
	"32 27 0:41 / /added rw - overlay overlay rw,lowerdir+=/a/one,lowerdir+=/a/two\n"

static struct opd_mounts mounts;

static int read_text(const char *text, struct opd_mounts *ret_mounts)
{
	char path[] = "/tmp/test_mounts.XXXXXX";
	int fd = mkostemp(path, O_CLOEXEC), err;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
	err = opd_mounts_read(path, ret_mounts);
	unlink(path);
	return err;
}

static int read_all(void **state)
{
	(void)state;
	return read_text(MOUNTINFO, &mounts);
}

static int free_all(void **state)
{
	(void)state;
	opd_mounts_free(&mounts);
	return mounts.rows != NULL;
}

static void lines(void **state)
{
	(void)state;
	assert_int_equal(mounts.nr_rows, 6);
	assert_string_equal(mounts.rows[1].point, "/home/some user");
	assert_string_equal(mounts.rows[1].root, "/srv/data");
	assert_int_equal(mounts.rows[1].device, makedev(254, 0));
	assert_false(opd_mount_is_overlay(&mounts.rows[1]));
	assert_true(opd_mount_is_overlay(&mounts.rows[4]));
}

static void by_id(void **state)
{
	(void)state;
	assert_ptr_equal(opd_mounts_by_id(&mounts, 31), &mounts.rows[4]);
	assert_null(opd_mounts_by_id(&mounts, 1)); /* a parent */
}

static void deepest_and_youngest(void **state)
{
	(void)state;
	assert_ptr_equal(opd_mounts_of(&mounts, "/usr/bin/app"), &mounts.rows[0]);
	assert_ptr_equal(opd_mounts_of(&mounts, "/home/some user/app"), &mounts.rows[1]);
	assert_ptr_equal(opd_mounts_of(&mounts, "/home/some users/app"), &mounts.rows[0]);
	assert_ptr_equal(opd_mounts_of(&mounts, "/mnt/app"), &mounts.rows[3]);
}

static void assert_inner(const struct opd_mount *mount, const char *path, const char *wanted)
{
	struct op_text inner = { 0 };

	opd_mount_inner_path(mount, path, &inner);
	assert_string_equal(op_text_get(&inner), wanted);
	op_text_free(&inner);
}

static void paths_inside(void **state)
{
	(void)state;
	assert_inner(&mounts.rows[0], "/usr/bin/app", "/usr/bin/app");
	assert_inner(&mounts.rows[0], "/", "/");
	assert_inner(&mounts.rows[1], "/home/some user/bin/app", "/srv/data/bin/app");
	assert_inner(&mounts.rows[1], "/home/some user", "/srv/data");
	assert_inner(&mounts.rows[2], "/mnt/app", "/app");
}

static void assert_outer(const struct opd_mount *mount, const char *inner, const char *wanted)
{
	struct op_text path = { 0 };

	assert_int_equal(opd_mount_outer_path(mount, inner, &path), wanted != NULL);
	assert_string_equal(op_text_get(&path), wanted ? wanted : "");
	op_text_free(&path);
}

static void paths_outside(void **state)
{
	(void)state;
	assert_outer(&mounts.rows[0], "/srv/data/app", "/srv/data/app");
	assert_outer(&mounts.rows[1], "/srv/data/app", "/home/some user/app");
	assert_outer(&mounts.rows[1], "/srv/database/app", NULL);
	assert_outer(&mounts.rows[2], "/app", "/mnt/app");
}

static void assert_layer(const struct opd_mount *mount, size_t index, const char *wanted)
{
	struct op_text directory = { 0 };

	assert_int_equal(opd_mount_layer(mount, index, &directory), wanted != NULL);
	assert_string_equal(op_text_get(&directory), wanted ? wanted : "");
	op_text_free(&directory);
}

static void layers(void **state)
{
	(void)state;
	assert_layer(&mounts.rows[4], 0, "/u/with,comma");
	assert_layer(&mounts.rows[4], 1, "/l/one");
	assert_layer(&mounts.rows[4], 2, "/l/t:wo");
	assert_layer(&mounts.rows[4], 3, "/l/three");
	assert_layer(&mounts.rows[4], 4, NULL);
	assert_layer(&mounts.rows[5], 0, "");
	assert_layer(&mounts.rows[5], 2, "/a/two");
	assert_layer(&mounts.rows[5], 3, NULL);
	assert_layer(&mounts.rows[0], 0, NULL);
}

static void below(void **state)
{
	(void)state;
	assert_string_equal(opd_path_below("/", "/a/b"), "/a/b");
	assert_string_equal(opd_path_below("/a", "/a/b"), "/b");
	assert_string_equal(opd_path_below("/a", "/a"), "");
	assert_null(opd_path_below("/a", "/ab"));
	assert_null(opd_path_below("/a/b", "/a"));
}

static void nothing(void **state)
{
	struct opd_mounts none;

	(void)state;
	assert_int_equal(read_text("", &none), 0);
	assert_int_equal(none.nr_rows, 0);
	assert_null(opd_mounts_of(&none, "/usr"));
	opd_mounts_free(&none);
	assert_true(opd_mounts_read("/no/such/file", &none) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines),	cmocka_unit_test(by_id),	 cmocka_unit_test(deepest_and_youngest),
		cmocka_unit_test(paths_inside), cmocka_unit_test(paths_outside), cmocka_unit_test(layers),
		cmocka_unit_test(below),	cmocka_unit_test(nothing),
	};

	return cmocka_run_group_tests_name("mounts", tests, read_all, free_all);
}
