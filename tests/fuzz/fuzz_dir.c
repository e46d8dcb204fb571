/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/fuzz/fuzz_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libop/file.h"

void fuzz_check(bool holds)
{
	if (!holds)
		abort();
}

static void remove_directory(void)
{
	static char command[64];

	snprintf(command, sizeof(command), "rm -rf /dev/shm/opd-fuzz.%d", (int)getpid());
	if (system(command))
		_exit(1);
}

int fuzz_dir_open(void)
{
	static int dir_fd = -1;
	char path[64];

	if (dir_fd >= 0)
		return dir_fd;
	snprintf(path, sizeof(path), "/dev/shm/opd-fuzz.%d", (int)getpid());
	fuzz_check(!mkdir(path, 0700) || errno == EEXIST);
	dir_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	fuzz_check(dir_fd >= 0);
	atexit(remove_directory);
	return dir_fd;
}

bool fuzz_dir_write(const char *path, const void *bytes, size_t nr_bytes)
{
	int fd = op_file_open_below(fuzz_dir_open(), path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	if (fd < 0)
		return false;
	fuzz_check(write(fd, bytes, nr_bytes) == (ssize_t)nr_bytes);
	close(fd);
	return true;
}
