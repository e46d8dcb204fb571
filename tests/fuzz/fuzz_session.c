/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Fuzz target of what reads a session: the name of a sample file, and the file. Input: length of the name (2 bytes), the name, the file. The
 * name is taken apart and a file of that name is listed; the file is read, repaired, and opened for counting. What was repaired can be
 * read, and has nothing that was not there.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libop/file.h"
#include "libop/odb.h"
#include "libop/session.h"
#include "libop/text.h"

#define FILE_NAME "{root}/f/{dep}/{root}/f/TIMER.1.0.all.all.all"
#define TMP_NAME  "tmp/sample"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t nr_bytes);

static void check(bool holds)
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

static int open_directory(void)
{
	static int dir_fd = -1;
	char path[64];

	if (dir_fd >= 0)
		return dir_fd;
	snprintf(path, sizeof(path), "/dev/shm/opd-fuzz.%d", (int)getpid());
	check(!mkdir(path, 0700) || errno == EEXIST);
	dir_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	check(dir_fd >= 0);
	atexit(remove_directory);
	return dir_fd;
}

/* False when no file can have this name. */
static bool write_file(int dir_fd, const char *path, const void *bytes, size_t nr_bytes)
{
	const char *name;
	int parent = op_file_open_parent(dir_fd, path, true, &name), fd;

	if (parent < 0)
		return false;
	fd = openat(parent, name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	close(parent);
	if (fd < 0)
		return false;
	check(write(fd, bytes, nr_bytes) == (ssize_t)nr_bytes);
	close(fd);
	return true;
}

static uint64_t sum_of(const struct op_odb_samples *samples)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < samples->nr_nodes; i++)
		sum += samples->nodes[i].value;
	return sum;
}

static bool read_sum(int dir_fd, uint64_t *ret_sum)
{
	struct op_odb_samples samples;
	struct op_odb_fault fault = { 0 };
	int err = op_odb_read(dir_fd, FILE_NAME, &samples, &fault);

	check(!err || (err == -EBADMSG && fault.why));
	if (err)
		return false;
	*ret_sum = sum_of(&samples);
	op_odb_samples_free(&samples);
	return true;
}

static void count_in(int dir_fd)
{
	struct op_odb_header header = { .version = OP_ODB_VERSION };
	uint64_t before, after;
	struct op_odb *odb;

	check(read_sum(dir_fd, &before));
	check(!op_odb_open(dir_fd, FILE_NAME, TMP_NAME, &header, &odb));
	for (uint64_t key = 0; key < 200; key++)
		check(!op_odb_add(odb, key, 1));
	op_odb_close(odb);
	check(read_sum(dir_fd, &after) && after == before + 200);
}

static void check_file(int dir_fd, const uint8_t *bytes, size_t nr_bytes)
{
	struct op_odb_pending *pending = NULL;
	struct op_odb_recovery recovery;
	uint64_t before = 0, after = 0;
	uint32_t dropped = 0;
	bool was_readable;

	check(write_file(dir_fd, FILE_NAME, bytes, nr_bytes));
	was_readable = read_sum(dir_fd, &before);
	if (op_odb_repair(dir_fd, FILE_NAME, TMP_NAME, &dropped, &pending))
		return;
	check(read_sum(dir_fd, &after));
	check(!was_readable || after <= before);
	op_odb_pending_free(pending);
	check(!op_odb_recover(dir_fd, TMP_NAME, &recovery));
	check(read_sum(dir_fd, &before) && before == after);
	count_in(dir_fd);
	check(!op_odb_recover(dir_fd, TMP_NAME, &recovery));
}

static void check_name(int dir_fd, const char *name)
{
	struct op_session_list list;
	struct op_sample_name parsed;
	char *storage, *bad_path = NULL;
	int err = op_unmangle(name, &parsed, &storage, NULL);

	if (!err)
		free(storage);
	if (!write_file(dir_fd, name, "", 0))
		return;
	if (!op_session_list(dir_fd, &list, &bad_path))
		op_session_list_free(&list);
	free(bad_path);
}

/* Names lie below the directory's own one, where they cannot disturb each other. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t nr_bytes)
{
	int dir_fd = open_directory();
	size_t name_bytes = nr_bytes < 2 ? 0 : op_min_u64(bytes[0] | (size_t)bytes[1] << 8, nr_bytes - 2);
	char *name = nr_bytes < 2 ? NULL : strndup((const char *)bytes + 2, name_bytes);

	if (!name)
		return 0;
	check_file(dir_fd, bytes + 2 + name_bytes, nr_bytes - 2 - name_bytes);
	if (!strncmp(name, "{root}/", 7) || !strncmp(name, "{kern}/", 7))
		check_name(dir_fd, name);
	check(!op_session_clear(dir_fd));
	free(name);
	return 0;
}
