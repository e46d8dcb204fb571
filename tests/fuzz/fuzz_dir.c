/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/fuzz/fuzz_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libop/base/file.h"

void fuzz_check(bool holds)
{
	if (!holds)
		abort();
}

void fuzz_dir_path(char ret_path[FUZZ_PATH_BYTES], const char *name)
{
	int length = snprintf(ret_path, FUZZ_PATH_BYTES, "/dev/shm/opd-fuzz.%d%s%s", (int)getpid(), *name ? "/" : "", name);

	fuzz_check(length > 0 && length < FUZZ_PATH_BYTES);
}

bool fuzz_split(const uint8_t *bytes, size_t nr_bytes, struct fuzz_part ret_parts[2])
{
	size_t nr_first;

	if (nr_bytes < 2)
		return false;
	nr_first = op_min_u64(bytes[0] | (size_t)bytes[1] << 8, nr_bytes - 2);
	ret_parts[0] = (struct fuzz_part){ bytes + 2, nr_first };
	ret_parts[1] = (struct fuzz_part){ bytes + 2 + nr_first, nr_bytes - 2 - nr_first };
	return true;
}

static void remove_directory(void)
{
	char path[FUZZ_PATH_BYTES], command[FUZZ_PATH_BYTES + 8];

	fuzz_dir_path(path, "");
	snprintf(command, sizeof(command), "rm -rf %s", path);
	if (system(command))
		_exit(1);
}

int fuzz_dir_open(void)
{
	static int dir_fd = -1;
	char path[FUZZ_PATH_BYTES];

	if (dir_fd >= 0)
		return dir_fd;
	fuzz_dir_path(path, "");
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
