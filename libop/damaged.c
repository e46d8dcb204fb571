/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/damaged.h"

#include <errno.h>
#include <time.h>

#include "libop/sys.h"

#define DAMAGED_DIR "damaged"

int op_damaged_put_aside(int session_fd, const char *path, char aside[OP_DAMAGED_NAME_BYTES])
{
	static uint64_t nr_aside;
	int err = op_sys_mkdirat(session_fd, DAMAGED_DIR, 0755);

	if (err && err != -EEXIST)
		return err;
	do {
		snprintf(aside, OP_DAMAGED_NAME_BYTES, DAMAGED_DIR "/%llu-%llu", (unsigned long long)time(NULL),
			 (unsigned long long)nr_aside++);
		err = op_sys_rename_new(session_fd, path, session_fd, aside);
	} while (err == -EEXIST);
	return err;
}
