/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/session_stats.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <unistd.h>

#include "libop/session.h"
#include "libop/session_stats.h"
#include "tools/report_log.h"

#define LOSS_PREFIX    "lost_"
#define TOLERATED_PART 10000 /* one in so many */

/* Sums the files of a directory whose names begin so. */
static uint64_t sum_files(int dir_fd, const char *prefix, const char *below)
{
	int copy = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = copy >= 0 ? fdopendir(copy) : NULL;
	struct dirent *entry;
	uint64_t sum = 0;

	if (!dir && copy >= 0)
		close(copy);
	while (dir && (entry = readdir(dir))) {
		struct op_text path = { 0 };
		uint64_t value;

		if (strncmp(entry->d_name, prefix, strlen(prefix)))
			continue;
		op_text_printf(&path, "%s%s", entry->d_name, below);
		if (!op_stats_read(dir_fd, op_text_get(&path), &value))
			sum += value;
		op_text_free(&path);
	}
	if (dir)
		closedir(dir);
	return sum;
}

static void check_overflow(int stats_fd, const char *path)
{
	uint64_t overflows;

	if (op_stats_read(stats_fd, "event_lost_overflow", &overflows))
		return;
	if (!overflows)
		overflows = sum_files(stats_fd, "cpu", "/sample_lost_overflow");
	if (overflows)
		opr_warn("%s/stats: the kernel's sample buffers overflowed: the profile is incomplete.", path);
}

static void check_losses(int stats_fd, const char *path)
{
	uint64_t total, lost;

	if (op_stats_read(stats_fd, "total_samples", &total))
		return;
	lost = sum_files(stats_fd, LOSS_PREFIX, "");
	if (lost > total / TOLERATED_PART)
		opr_warn("Lost samples detected! %" PRIu64 " of %" PRIu64 ", see %s/stats for details.", lost, total, path);
}

static void check_session(const struct opr_session *session)
{
	int fd = openat(session->dir_fd, "stats", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return;
	check_overflow(fd, session->path);
	check_losses(fd, session->path);
	if (!faccessat(fd, OP_STATS_KERNEL_HIDDEN, F_OK, 0))
		opr_warn("kernel samples of %s have no symbols: the kernel's addresses were hidden (kernel.kptr_restrict) when they were taken.", session->path);
	if (!faccessat(fd, "throttled", F_OK, 0))
		opr_warn("Some of the events were throttled: %s/stats/throttled says which. Use a longer period.", session->path);
	close(fd);
}

void opr_session_stats_check(const struct opr_profile *profile)
{
	size_t checked = SIZE_MAX;

	/* The parts of a session follow it. */
	for (size_t i = 0; i < profile->nr_sessions; i++) {
		size_t parent = profile->sessions[i].parent;

		if (!profile->sessions[i].list.nr_files || parent == checked)
			continue;
		check_session(&profile->sessions[parent]);
		checked = parent;
	}
}
