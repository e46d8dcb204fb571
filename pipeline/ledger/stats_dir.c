/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pipeline/ledger/stats_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "libop/base/file.h"
#include "libop/base/sys.h"
#include "libop/base/text.h"

/* Opens the directory, which must not be a link. A descriptor or -errno. */
static int open_stats(int session_fd, bool make)
{
	const char *name;
	int parent = op_file_open_parent(session_fd, OPD_STATS_DIR "/total_samples", make, &name), fd;

	if (parent < 0)
		return parent;
	fd = op_sys_openat(parent, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	close(parent);
	return fd;
}

static int write_number(int session_fd, int stats_fd, const char *name, uint64_t value)
{
	const char *tmp_name;
	char text[32];
	int tmp_fd = op_file_open_parent(session_fd, OPD_STATS_TMP, true, &tmp_name), fd, err;

	if (tmp_fd < 0)
		return tmp_fd;
	snprintf(text, sizeof(text), "%llu\n", (unsigned long long)value);
	fd = op_sys_openat(tmp_fd, tmp_name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0644);
	err = fd < 0 ? fd : op_sys_write_all(fd, text, strlen(text));
	if (fd >= 0)
		close(fd);
	if (!err)
		err = op_sys_renameat(tmp_fd, tmp_name, stats_fd, name);
	if (err && fd >= 0)
		op_sys_unlinkat(tmp_fd, tmp_name, 0);
	close(tmp_fd);
	return err;
}

static int make_directory(int dir_fd, const char *path)
{
	int err = op_sys_mkdirat(dir_fd, path, 0755);

	return err == -EEXIST ? 0 : err;
}

void opd_stats_dir_read(int session_fd, uint64_t ret_numbers[OP_STATS_NR])
{
	int stats_fd = open_stats(session_fd, false);

	for (size_t i = 0; i < OP_STATS_NR; i++)
		if (stats_fd < 0 || op_stats_read(stats_fd, op_stats_name((enum op_stats_number)i), &ret_numbers[i]) < 0)
			ret_numbers[i] = 0;
	if (stats_fd >= 0)
		close(stats_fd);
}

int opd_stats_dir_write(int session_fd, const uint64_t numbers[OP_STATS_NR], bool throttled, bool hides_kernel)
{
	int stats_fd = open_stats(session_fd, true), err = 0;

	if (stats_fd < 0)
		return stats_fd;
	for (size_t i = 0; i < OP_STATS_NR && !err; i++)
		err = write_number(session_fd, stats_fd, op_stats_name((enum op_stats_number)i), numbers[i]);
	if (!err && hides_kernel)
		err = make_directory(stats_fd, OP_STATS_KERNEL_HIDDEN);
	if (!err && throttled)
		err = make_directory(stats_fd, "throttled");
	close(stats_fd);
	return err;
}

static int sync_number(int stats_fd, const char *name)
{
	int fd = op_sys_openat(stats_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0), err;

	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	err = op_sys_fsync(fd);
	close(fd);
	return err;
}

int opd_stats_dir_sync(int current_fd)
{
	int stats_fd = op_stats_open(current_fd, false), err = 0;

	if (stats_fd < 0)
		return stats_fd == -ENOENT ? 0 : stats_fd;
	for (size_t i = 0; i < OP_STATS_NR && !err; i++)
		err = sync_number(stats_fd, op_stats_name((enum op_stats_number)i));
	if (!err)
		err = op_sys_fsync(stats_fd);
	close(stats_fd);
	return err;
}
