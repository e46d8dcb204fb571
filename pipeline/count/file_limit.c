/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pipeline/count/file_limit.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libop/base/log.h"
#include "libop/odb/odb.h"
#include "libop/session/contents.h"
#include "libop/session/directory.h"
#include "libop/session/layout.h"
#include "libop/base/sys.h"

#define LAST_DIRS 5 /* directories that lead to the files of too-many-images */
/* a file, its directories, and those above, which grow */
#define NEW_BYTES ((1 + 2 * LAST_DIRS) * OP_ODB_BLOCK_BYTES)
/* for files beside the sample files (ledger, statistics, images), and one part in so many */
#define BESIDE_BYTES (16 * OP_ODB_BLOCK_BYTES)
#define BESIDE       256

static const struct {
	uint64_t eighths; /* of the limit */
	const char *effect; /* the effect on samples, for the log */
} kinds[OPD_NR_FILE_KINDS] = {
	[OPD_FILE_OF_IMAGE] = { 8, "images in applications that have none are filed under too-many-images" },
	[OPD_FILE_OF_CGROUP] = { 7, "what is new in a cgroup is not kept by cgroup" },
	[OPD_FILE_OF_CLASS] = { 6, "new threads, processes, process names, users and CPUs are not kept apart" },
	[OPD_FILE_OF_CALLS] = { 5, "calls between images that have no file yet are not kept" },
};

static uint64_t part_of(uint64_t whole, enum opd_file_kind kind)
{
	return whole - whole / 8 * (8 - kinds[kind].eighths);
}

static uint64_t nr_kept(const struct opd_file_limit *limit)
{
	return limit->nr_last_max - op_min_u64(limit->nr_last, limit->nr_last_max);
}

static void keep_room_for_last(struct opd_file_limit *limit)
{
	uint64_t nr = nr_kept(limit), beside = limit->space.max_bytes / BESIDE + BESIDE_BYTES;

	limit->space.kept_bytes = beside + (nr ? (nr + LAST_DIRS) * OP_ODB_BLOCK_BYTES : 0);
}

bool opd_file_limit_may_grow(const struct opd_file_limit *limit, enum opd_file_kind kind)
{
	const struct op_odb_space *space = &limit->space;

	return !space->max_bytes || space->taken_bytes + space->kept_bytes < part_of(space->max_bytes, kind);
}

static bool has_bytes(const struct opd_file_limit *limit, enum opd_file_kind kind)
{
	const struct op_odb_space *space = &limit->space;

	return !space->max_bytes || (opd_file_limit_may_grow(limit, kind) &&
				     space->taken_bytes + space->kept_bytes + NEW_BYTES <= space->max_bytes);
}

void opd_file_limit_give(struct opd_file_limit *limit, uint64_t max_bytes)
{
	limit->space.max_bytes = max_bytes;
	keep_room_for_last(limit);
}

void opd_file_limit_weigh(struct opd_file_limit *limit, uint64_t weighed_bytes, uint64_t taken_bytes)
{
	uint64_t *bytes = &limit->space.taken_bytes;
	uint64_t least = op_min_u64(taken_bytes, *bytes), most = op_max_u64(taken_bytes, *bytes);

	if (weighed_bytes < least)
		*bytes -= least - weighed_bytes;
	else if (weighed_bytes > most)
		*bytes += weighed_bytes - most;
	limit->weighed_bytes = *bytes;
}

void opd_file_limit_note(struct opd_file_limit *limit, enum opd_file_kind kind, bool is_new)
{
	limit->nr += is_new;
	limit->nr_last += kind == OPD_FILE_OF_LAST;
	keep_room_for_last(limit);
}

static bool has_files(const struct opd_file_limit *limit, enum opd_file_kind kind)
{
	return !limit->max || limit->nr + nr_kept(limit) < part_of(limit->max, kind);
}

bool opd_file_limit_allows(const struct opd_file_limit *limit, enum opd_file_kind kind)
{
	return kind == OPD_FILE_OF_LAST || (has_bytes(limit, kind) && has_files(limit, kind));
}

void opd_file_limit_report(struct opd_file_limit *limit, enum opd_file_kind kind)
{
	if (limit->is_reported[kind])
		return;
	limit->is_reported[kind] = true;
	if (has_files(limit, kind))
		op_log(OP_LOG_WARNING, "the session has %llu sample files (as large as %s allows): from now on %s",
			(unsigned long long)limit->nr, limit->bytes_of ? limit->bytes_of : "SessionMaxUse", kinds[kind].effect);
	else
		op_log(OP_LOG_WARNING, "the session has %llu sample files (MaxSampleFiles): from now on %s",
			(unsigned long long)limit->nr, kinds[kind].effect);
}

void opd_file_limit_begin(struct opd_file_limit *limit)
{
	limit->nr = limit->nr_last = 0;
	limit->nr_begun++;
	limit->strangers = false;
	limit->dir_inode = 0;
	limit->weighed_bytes = limit->space.taken_bytes = 0;
	keep_room_for_last(limit);
	memset(limit->is_reported, 0, sizeof(limit->is_reported));
}

/* An inode may be used again, so the time of its making counts, too. */
static int identify(int fd, uint64_t *ret_inode, uint64_t *ret_made_ns)
{
	struct op_sys_times times;
	struct stat st;
	int err = op_sys_fstat(fd, &st);

	if (!err)
		err = op_sys_times(fd, &times);
	if (err)
		return err;
	*ret_inode = st.st_ino;
	*ret_made_ns = times.made_ns;
	return 0;
}

static bool is_other_dir(const struct opd_file_limit *limit, int fd)
{
	uint64_t inode, made_ns;

	return limit->dir_inode && !identify(fd, &inode, &made_ns) && (inode != limit->dir_inode || made_ns != limit->dir_made_ns);
}

bool opd_file_limit_misses(const struct opd_file_limit *limit, int session_fd, bool thorough)
{
	uint64_t nr = limit->nr;
	int fd;

	if (!limit->strangers)
		return false;
	fd = op_session_open_current(session_fd);
	if (fd < 0)
		return fd == -ENOENT;
	if (is_other_dir(limit, fd))
		nr = 0;
	else if (thorough && op_session_count_files(fd, &nr))
		nr = limit->nr;
	close(fd);
	return nr < limit->nr;
}

int opd_file_limit_recount(struct opd_file_limit *limit, int session_fd)
{
	int fd = op_session_open_current(session_fd), err;
	uint64_t nr = 0, nr_bytes = 0, inode = 0, made_ns = 0;

	if (fd < 0 && fd != -ENOENT)
		return fd;
	err = fd < 0 ? 0 : op_session_count_files(fd, &nr);
	if (!err && fd >= 0)
		err = identify(fd, &inode, &made_ns);
	if (fd >= 0)
		close(fd);
	if (!err && fd >= 0)
		err = op_session_disk_bytes(session_fd, OP_SESSION_CURRENT, &nr_bytes);
	if (err)
		return err;
	limit->nr = nr;
	limit->dir_inode = inode;
	limit->dir_made_ns = made_ns;
	limit->nr_last = 0;
	limit->weighed_bytes = limit->space.taken_bytes = nr_bytes;
	keep_room_for_last(limit);
	limit->strangers = nr > 0;
	return 0;
}
