/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/opcheck/session_place.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libop/session/directory.h"
#include "libop/session/layout.h"
#include "libop/session/close.h"
#include "libop/session/pending.h"
#include "libop/base/sys.h"

/* Whether two paths lead to one directory. */
static bool is_same(int fd, const char *path, int other_fd, const char *other_path)
{
	struct stat st, other;

	return !fstatat(fd, path, &st, 0) && !fstatat(other_fd, other_path, &other, 0) && st.st_dev == other.st_dev &&
	       st.st_ino == other.st_ino;
}

int opk_place_find(int dir_fd, struct opk_place *ret_place)
{
	struct opk_place place = { .lock_fd = -1 };

	place.top_fd = op_sys_openat(dir_fd, "../..", O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
	if (place.top_fd < 0)
		return place.top_fd;
	if (!is_same(dir_fd, "..", place.top_fd, "samples")) {
		close(place.top_fd);
		place.top_fd = -1;
	} else {
		place.is_current = is_same(dir_fd, ".", place.top_fd, OP_SESSION_CURRENT);
		place.is_written = place.is_current || !faccessat(dir_fd, OP_SESSION_CLOSING, F_OK, AT_SYMLINK_NOFOLLOW);
	}
	*ret_place = place;
	return 0;
}

bool opk_place_is_live(const struct opk_place *place)
{
	return place->is_written && op_session_is_locked_at(place->top_fd);
}

bool opk_place_is_unclean(const struct opk_place *place)
{
	return place->is_written && op_session_is_unclean_at(place->top_fd);
}

int opk_place_begin_repair(struct opk_place *place, uint64_t *ret_nr_put_back)
{
	uint64_t nr_put_back = 0;
	int fd = place->top_fd < 0 ? -EBUSY : op_session_lock(place->top_fd), err;

	if (fd == -EBUSY && !place->is_written) {
		*ret_nr_put_back = 0;
		return 0;
	}
	if (fd < 0)
		return fd;
	err = op_session_recover_pending(place->top_fd, &nr_put_back);
	if (err) {
		op_session_unlock(place->top_fd, fd);
		return err;
	}
	place->lock_fd = fd;
	*ret_nr_put_back = nr_put_back;
	return 0;
}

void opk_place_free(const struct opk_place *place)
{
	if (place->lock_fd >= 0)
		op_session_unlock(place->top_fd, place->lock_fd);
	if (place->top_fd >= 0)
		close(place->top_fd);
}
