/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/common/standard_output.h"

#include <errno.h>
#include <unistd.h>

#include "tools/common/log.h"

static bool is_told;
static int exit_failed; /* 0: exit(3) does not flush yet */

int opr_stdout_flush(void)
{
	bool failed = ferror(stdout);

	errno = 0;
	failed |= fflush(stdout) == EOF;
	if (!failed)
		return 0;
	if (!is_told)
		opr_error(-EIO, "cannot write to the standard output: %s", strerror(errno ? errno : EIO));
	is_told = true;
	return -EIO;
}

/* A tool that has told the user chooses its exit status itself. */
static void check_at_exit(void)
{
	if (!is_told && opr_stdout_flush())
		_exit(exit_failed);
}

int opr_stdout_guard(int failed)
{
	if (!exit_failed && atexit(check_at_exit))
		return opr_no_memory();
	exit_failed = failed;
	return 0;
}
