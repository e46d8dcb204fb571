/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/session/damaged.h"

#include <errno.h>
#include <time.h>
#include <unistd.h>

#include "libop/base/file.h"
#include "libop/base/sys.h"

#define DAMAGED_DIR "damaged"
#define DIR_MODE    0755

static int move_new(int parent_fd, const char *name, int session_fd, const char *aside)
{
	const char *aside_name;
	int aside_fd, err = op_file_make_dir_below(session_fd, DAMAGED_DIR, DIR_MODE);

	if (err && err != -EEXIST)
		return err;
	aside_fd = op_file_open_parent(session_fd, aside, false, &aside_name);
	if (aside_fd < 0)
		return aside_fd;
	err = op_sys_rename_new(parent_fd, name, aside_fd, aside_name);
	close(aside_fd);
	return err;
}

int op_damaged_put_aside(int session_fd, const char *path, char aside[OP_DAMAGED_NAME_BYTES])
{
	static uint64_t nr_aside;
	const char *name;
	int parent_fd = op_file_open_parent(session_fd, path, false, &name), err;

	if (parent_fd < 0)
		return parent_fd;
	do {
		snprintf(aside, OP_DAMAGED_NAME_BYTES, DAMAGED_DIR "/%llu-%llu", (unsigned long long)time(NULL),
			 (unsigned long long)nr_aside++);
		err = move_new(parent_fd, name, session_fd, aside);
	} while (err == -EEXIST);
	close(parent_fd);
	return err;
}
