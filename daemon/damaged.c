/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "daemon/damaged.h"

#include <errno.h>
#include <time.h>

#include "libop/sys.h"

#define DAMAGED_DIR "damaged"

int opd_damaged_put_aside(int session_fd, const char *path, char aside[OPD_DAMAGED_NAME_BYTES])
{
	static uint64_t nr_aside;
	int err = op_sys_mkdirat(session_fd, DAMAGED_DIR, 0755);

	if (err && err != -EEXIST)
		return err;
	snprintf(aside, OPD_DAMAGED_NAME_BYTES, DAMAGED_DIR "/%llu-%llu", (unsigned long long)time(NULL),
		 (unsigned long long)nr_aside++);
	return op_sys_renameat(session_fd, path, session_fd, aside);
}
