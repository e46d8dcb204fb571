/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "daemon/damaged.h"

#include <errno.h>
#include <time.h>
#include <unistd.h>

#include "daemon/log.h"
#include "libop/file.h"
#include "libop/sys.h"

#define DAMAGED_DIR "damaged"

/* Neither path leads elsewhere, whatever links there are. */
static int move(int session_fd, const char *path, const char *aside)
{
	const char *name, *aside_name;
	int aside_parent = op_file_open_parent(session_fd, aside, true, &aside_name), parent, err;

	if (aside_parent < 0)
		return aside_parent;
	parent = op_file_open_parent(session_fd, path, false, &name);
	err = parent < 0 ? parent : op_sys_renameat(parent, name, aside_parent, aside_name);
	if (parent >= 0)
		close(parent);
	close(aside_parent);
	return err;
}

int opd_damaged_put_aside(int session_fd, const char *path, char aside[OPD_DAMAGED_NAME_BYTES])
{
	static uint64_t nr_aside;

	snprintf(aside, OPD_DAMAGED_NAME_BYTES, DAMAGED_DIR "/%llu-%llu", (unsigned long long)time(NULL),
		 (unsigned long long)nr_aside++);
	return move(session_fd, path, aside);
}

int opd_damaged_sample_file(int session_fd, const char *path)
{
	char aside[OPD_DAMAGED_NAME_BYTES];
	int err = opd_damaged_put_aside(session_fd, path, aside);

	if (!err)
		opd_log(SD_WARNING, "%s is not a sample file: kept as %s in the session directory, counting goes on in a new one",
			path, aside);
	return err;
}

bool opd_is_damage(int err)
{
	return err == -EBADMSG || err == -EISDIR || err == -ELOOP;
}
