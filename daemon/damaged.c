/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "daemon/damaged.h"

#include <errno.h>
#include <time.h>

#include "daemon/log.h"
#include "libop/file.h"

#define DAMAGED_DIR "damaged"

int opd_damaged_put_aside(int session_fd, const char *path, char aside[OPD_DAMAGED_NAME_BYTES])
{
	static uint64_t nr_aside;

	snprintf(aside, OPD_DAMAGED_NAME_BYTES, DAMAGED_DIR "/%llu-%llu", (unsigned long long)time(NULL),
		 (unsigned long long)nr_aside++);
	return op_file_rename_below(session_fd, path, aside, true);
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
