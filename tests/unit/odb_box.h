/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A sample file in its own directory, on a disk that a test can make fail. The functions odb_setup
 * and odb_teardown are cmocka fixtures.
 */
#ifndef ODB_BOX_H
#define ODB_BOX_H

#include "tests/unit/cmocka_all.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libop/odb/odb.h"
#include "libop/base/sys.h"

#define PATH "samples/current/{root}/bin/x/{dep}/{root}/bin/x/TIMER.0.0.all.all.all"
#define TMP  "tmp/sample"

static int dir_fd;
static char dir_path[32];
static int fail_fallocate, fail_rename; /* errno to return; 0: no error */
static unsigned int nr_fallocates;

int __real_op_sys_fallocate(int fd, int mode, off_t offset, off_t nr_bytes);
int __wrap_op_sys_fallocate(int fd, int mode, off_t offset, off_t nr_bytes);
int __real_op_sys_renameat(int old_dir_fd, const char *old_path, int new_dir_fd, const char *new_path);
int __wrap_op_sys_renameat(int old_dir_fd, const char *old_path, int new_dir_fd, const char *new_path);

int __wrap_op_sys_fallocate(int fd, int mode, off_t offset, off_t nr_bytes)
{
	nr_fallocates++;
	return fail_fallocate ? -fail_fallocate : __real_op_sys_fallocate(fd, mode, offset, nr_bytes);
}

int __wrap_op_sys_renameat(int old_dir_fd, const char *old_path, int new_dir_fd, const char *new_path)
{
	return fail_rename ? -fail_rename : __real_op_sys_renameat(old_dir_fd, old_path, new_dir_fd, new_path);
}

static const struct op_odb_header odb_header = {
	.magic = { 'D', 'A', 'E', '\n' },
	.version = OP_ODB_VERSION,
	.cpu_type = OP_CPU_TYPE_TIMER,
	.cpu_speed_mhz = 2000.0,
	.mtime = 1700000000,
};

static inline int odb_setup(void **state OP_UNUSED)
{
	snprintf(dir_path, sizeof(dir_path), "/tmp/test_odb.XXXXXX");
	if (!mkdtemp(dir_path))
		return -1;
	dir_fd = open(dir_path, O_RDONLY | O_DIRECTORY);
	fail_fallocate = fail_rename = 0;
	nr_fallocates = 0;
	return mkdirat(dir_fd, "tmp", 0755);
}

static inline int odb_teardown(void **state OP_UNUSED)
{
	char command[64];

	close(dir_fd);
	snprintf(command, sizeof(command), "rm -rf %s", dir_path);
	return system(command);
}

static inline struct op_odb *open_odb(void)
{
	struct op_odb *odb;

	assert_int_equal(op_odb_open(dir_fd, PATH, TMP, &odb_header, &odb), 0);
	return odb;
}

#define odb_test(function) cmocka_unit_test_setup_teardown(function, odb_setup, odb_teardown)

#endif
