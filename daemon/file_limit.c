/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "daemon/file_limit.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "daemon/log.h"
#include "libop/session.h"
#include "libop/sys.h"

static const struct {
	uint64_t eighths; /* of the limit */
	const char *what; /* becomes of the samples */
} kinds[OPD_NR_FILE_KINDS] = {
	[OPD_FILE_OF_IMAGE] = { 8, "images in applications that have none are filed under too-many-images" },
	[OPD_FILE_OF_CGROUP] = { 7, "what is new in a cgroup is not kept by cgroup" },
	[OPD_FILE_OF_CLASS] = { 6, "new threads, processes and CPUs are not kept apart" },
};

static uint64_t part_of(uint64_t whole, enum opd_file_kind kind)
{
	return whole - whole / 8 * (8 - kinds[kind].eighths);
}

uint64_t opd_file_limit_bytes(const struct opd_file_limit *limit)
{
	return limit->weighed_bytes + (limit->nr - op_min_u64(limit->nr, limit->weighed_nr)) * OPD_FILE_BYTES;
}

static bool has_bytes(const struct opd_file_limit *limit, enum opd_file_kind kind)
{
	return !limit->max_bytes || opd_file_limit_bytes(limit) < part_of(limit->max_bytes, kind);
}

bool opd_file_limit_allows(const struct opd_file_limit *limit, enum opd_file_kind kind)
{
	if (kind == OPD_FILE_OF_LAST)
		return true;
	if (!has_bytes(limit, kind))
		return false;
	return !limit->max || limit->nr < part_of(limit->max, kind);
}

void opd_file_limit_tell(struct opd_file_limit *limit, enum opd_file_kind kind)
{
	if (limit->told[kind])
		return;
	limit->told[kind] = true;
	opd_log(SD_WARNING, "the session has %llu sample files (%s): from now on %s", (unsigned long long)limit->nr,
		has_bytes(limit, kind) ? "MaxSampleFiles" : "as large as SessionMaxUse allows", kinds[kind].what);
}

void opd_file_limit_begin(struct opd_file_limit *limit)
{
	limit->nr = 0;
	limit->nr_begun++;
	limit->strangers = false;
	limit->weighed_bytes = limit->weighed_nr = 0;
	memset(limit->told, 0, sizeof(limit->told));
}

int opd_file_limit_recount(struct opd_file_limit *limit, int session_fd)
{
	int fd = op_sys_openat(session_fd, OP_SESSION_CURRENT, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0), err;
	uint64_t nr = 0;

	if (fd < 0 && fd != -ENOENT)
		return fd;
	err = fd < 0 ? 0 : op_session_count_files(fd, &nr);
	if (fd >= 0)
		close(fd);
	if (err)
		return err;
	limit->nr = nr;
	limit->strangers = nr > 0;
	return 0;
}
