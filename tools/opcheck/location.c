/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/opcheck/location.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libop/session/directory.h"
#include "libop/session/layout.h"
#include "libop/session/close.h"
#include "libop/session/leftovers.h"
#include "libop/base/sys.h"

/* Whether two paths lead to one directory. */
static bool is_same(int fd, const char *path, int other_fd, const char *other_path)
{
	struct stat st, other;

	return !fstatat(fd, path, &st, 0) && !fstatat(other_fd, other_path, &other, 0) && st.st_dev == other.st_dev &&
	       st.st_ino == other.st_ino;
}

int opk_location_find(int dir_fd, struct opk_location *ret_location)
{
	struct opk_location location = { .lock_fd = -1 };

	location.top_fd = op_sys_openat(dir_fd, "../..", O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
	if (location.top_fd < 0)
		return location.top_fd;
	if (!is_same(dir_fd, "..", location.top_fd, "samples")) {
		close(location.top_fd);
		location.top_fd = -1;
	} else {
		location.is_current = is_same(dir_fd, ".", location.top_fd, OP_SESSION_CURRENT);
		location.is_written = location.is_current || !faccessat(dir_fd, OP_SESSION_CLOSING, F_OK, AT_SYMLINK_NOFOLLOW);
	}
	*ret_location = location;
	return 0;
}

bool opk_location_is_live(const struct opk_location *location)
{
	return location->is_written && op_session_is_locked_at(location->top_fd);
}

bool opk_location_is_unclean(const struct opk_location *location)
{
	return location->is_written && op_session_is_unclean_at(location->top_fd);
}

int opk_location_begin_repair(struct opk_location *location, uint64_t *ret_nr_put_back)
{
	uint64_t nr_put_back = 0;
	int fd = location->top_fd < 0 ? -EBUSY : op_session_lock(location->top_fd), err;

	if (fd == -EBUSY && !location->is_written) {
		*ret_nr_put_back = 0;
		return 0;
	}
	if (fd < 0)
		return fd;
	err = op_session_recover_pending(location->top_fd, &nr_put_back);
	if (err) {
		op_session_unlock(location->top_fd, fd);
		return err;
	}
	location->lock_fd = fd;
	*ret_nr_put_back = nr_put_back;
	return 0;
}

void opk_location_free(const struct opk_location *location)
{
	if (location->lock_fd >= 0)
		op_session_unlock(location->top_fd, location->lock_fd);
	if (location->top_fd >= 0)
		close(location->top_fd);
}
