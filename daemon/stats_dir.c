/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "daemon/stats_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "libop/parse.h"
#include "libop/session.h"
#include "libop/sys.h"
#include "libop/text.h"

#define STATS_DIR OP_SESSION_CURRENT "/stats"
#define TMP_PATH  OP_SESSION_TMP "/stats"

/* The names that opreport reads. */
static const char *const names[OPD_STATS_NR] = {
	[OPD_STATS_TOTAL] = "total_samples",
	[OPD_STATS_LOST_BY_KERNEL] = "lost_records_by_kernel",
	[OPD_STATS_LOST_SAMPLEFILE] = "lost_samplefile",
};

static uint64_t read_number(int session_fd, const char *name)
{
	char path[128], text[32];
	uint64_t value = 0;
	ssize_t nr;
	int fd;

	snprintf(path, sizeof(path), STATS_DIR "/%s", name);
	fd = op_sys_openat(session_fd, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0);
	if (fd < 0)
		return 0;
	nr = op_sys_read(fd, text, sizeof(text) - 1);
	close(fd);
	if (nr <= 0)
		return 0;
	text[nr] = '\0';
	text[strcspn(text, "\n")] = '\0';
	return op_parse_u64(text, 0, UINT64_MAX, &value) ? 0 : value;
}

static int write_number(int session_fd, const char *name, uint64_t value)
{
	char path[128], text[32];
	int fd, err;

	snprintf(path, sizeof(path), STATS_DIR "/%s", name);
	fd = op_sys_openat(session_fd, TMP_PATH, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (fd < 0)
		return fd;
	snprintf(text, sizeof(text), "%llu\n", (unsigned long long)value);
	err = op_sys_write_all(fd, text, strlen(text));
	close(fd);
	if (!err)
		err = op_sys_renameat(session_fd, TMP_PATH, session_fd, path);
	if (err)
		op_sys_unlinkat(session_fd, TMP_PATH, 0);
	return err;
}

static int make_directory(int session_fd, const char *path)
{
	int err = op_sys_mkdirat(session_fd, path, 0755);

	return err == -EEXIST ? 0 : err;
}

void opd_stats_dir_read(int session_fd, uint64_t ret_numbers[OPD_STATS_NR])
{
	for (size_t i = 0; i < OPD_STATS_NR; i++)
		ret_numbers[i] = read_number(session_fd, names[i]);
}

int opd_stats_dir_write(int session_fd, const uint64_t numbers[OPD_STATS_NR], bool throttled, bool hides_kernel)
{
	int err = make_directory(session_fd, OP_SESSION_CURRENT);

	if (!err)
		err = make_directory(session_fd, STATS_DIR);
	for (size_t i = 0; i < OPD_STATS_NR && !err; i++)
		err = write_number(session_fd, names[i], numbers[i]);
	if (!err && hides_kernel)
		err = make_directory(session_fd, STATS_DIR "/" OP_STATS_KERNEL_HIDDEN);
	if (!err && throttled)
		err = make_directory(session_fd, STATS_DIR "/throttled");
	return err;
}

int opd_stats_dir_clear_session(int session_fd)
{
	int fd = op_sys_openat(session_fd, OP_SESSION_CURRENT, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
	int err;

	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	err = op_session_clear(fd);
	close(fd);
	return err;
}
