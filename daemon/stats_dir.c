/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "daemon/stats_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "daemon/sync.h"
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

int opd_stats_dir_write(struct opd_stats *stats, const struct opd_capture *capture, int session_fd, bool hides_kernel)
{
	uint64_t totals[OPD_STATS_NR] = { 0 }, nr_throttles = 0;
	int err;

	for (size_t i = 0; i < capture->nr_events; i++) {
		struct op_ledger_event sum;

		opd_sync_sum_event(capture, i, &sum);
		totals[OPD_STATS_TOTAL] += sum.received + sum.lost_kernel;
		totals[OPD_STATS_LOST_BY_KERNEL] += sum.lost_kernel;
		totals[OPD_STATS_LOST_SAMPLEFILE] += op_ledger_lost(&sum);
		nr_throttles += sum.nr_throttles;
	}
	for (size_t i = 0; i < OPD_STATS_NR && !stats->base_known; i++)
		stats->base[i] = read_number(session_fd, names[i]);
	stats->base_known = true;
	err = make_directory(session_fd, OP_SESSION_CURRENT);
	if (!err)
		err = make_directory(session_fd, STATS_DIR);
	for (size_t i = 0; i < OPD_STATS_NR && !err; i++)
		err = write_number(session_fd, names[i], stats->base[i] + totals[i]);
	if (!err && hides_kernel)
		err = make_directory(session_fd, STATS_DIR "/" OP_STATS_KERNEL_HIDDEN);
	if (!err && nr_throttles)
		err = make_directory(session_fd, STATS_DIR "/throttled");
	return err;
}

int opd_stats_dir_clear_session(struct opd_stats *stats, int session_fd)
{
	int fd = op_sys_openat(session_fd, OP_SESSION_CURRENT, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
	int err;

	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	err = op_session_clear(fd);
	close(fd);
	*stats = (struct opd_stats){ .base_known = true };
	return err;
}
