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
#include "tests/unit/disk.h"
#include "tests/unit/test_box.h"

#define PATH "samples/current/{root}/bin/x/{dep}/{root}/bin/x/TIMER.0.0.all.all.all"
#define TMP  "tmp/sample"

static int dir_fd;
static char dir_path[BOX_PATH_BYTES];
static unsigned int nr_fallocates, nr_fsyncs;


static inline int count_calls(const struct disk_call *call)
{
	nr_fallocates += call->kind == DISK_fallocate;
	nr_fsyncs += call->kind == DISK_fsync;
	return call->kind == DISK_fsync ? DISK_IS_DONE : 0;
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
	dir_fd = box_make_open(dir_path);
	memset(&disk_fails, 0, sizeof(disk_fails));
	disk_watch = count_calls;
	nr_fallocates = nr_fsyncs = 0;
	return mkdirat(dir_fd, "tmp", 0755);
}

static inline int odb_teardown(void **state OP_UNUSED)
{
	close(dir_fd);
	return box_remove(dir_path);
}

static inline struct op_odb *open_odb(void)
{
	struct op_odb *odb;

	assert_int_equal(op_odb_open(dir_fd, PATH, TMP, &odb_header, &odb), 0);
	return odb;
}

#define odb_test(function) cmocka_unit_test_setup_teardown(function, odb_setup, odb_teardown)

#endif
