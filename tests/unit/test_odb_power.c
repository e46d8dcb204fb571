/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Power cuts. A writer counts, grows its file, dumps and syncs, until the power fails at a random
 * moment. The disk then has each sector of a file as it was at some moment since the last sync, or
 * zeros if there was none, and all changes of directories, in order. After the recovery a reader
 * must accept the file; no count may be larger than what was counted, or smaller than at the last
 * dump.
 */
#define BOX_IN_MEMORY
#include "tests/unit/cmocka_all.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libop/odb/odb.h"
#include "libop/odb/read.h"
#include "libop/odb/recover.h"
#include "libop/odb/repair.h"
#include "libop/base/sys.h"
#include "tests/unit/sample_writer.h"
#include "tests/unit/disk.h"
#include "tests/unit/test_box.h"

#define DIGITS       "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789"
#define LONG_PATH    "/" DIGITS DIGITS "/" DIGITS DIGITS "/" DIGITS DIGITS "/x/"
#define PATH         "samples/current/{root}" LONG_PATH "{dep}/{root}" LONG_PATH "TIMER.0.0.all.all.all"
#define TMP          "tmp/sample"
#define SECTOR_BYTES 512u
#define NR_KEYS      700u
#define NR_FILES     64u
#define NR_STATES    24u
#define NR_CUTS      (getenv("OPD_QUICK") ? 30u : 300u)
#define FULL_SECTORS 16 /* one of so many cuts loses nothing, like a kill */

/* A file and the contents that the disk may have for it. */
struct disk_file {
	uint64_t inode;
	size_t nr_bytes;
	uint8_t *states[NR_STATES];
	size_t nr_states;
	int fd; /* keeps the inode in use */
};

static struct disk_file disk[NR_FILES];
static size_t nr_disk;
static int dir_fd;
static uint64_t counted[NR_KEYS], promised[NR_KEYS];
static bool is_promised;
static unsigned int seed;

static const struct op_odb_moves no_moves = { .from = "samples/current" };
static size_t link_bytes_max; /* of the text of a symbolic link */

int __real_op_sys_symlinkat(const char *text, int fd, const char *path);
int __wrap_op_sys_symlinkat(const char *text, int fd, const char *path);

int __wrap_op_sys_symlinkat(const char *text, int fd, const char *path)
{
	return strlen(text) > link_bytes_max ? -ENAMETOOLONG : __real_op_sys_symlinkat(text, fd, path);
}

static bool is_sealed(const char *path OP_UNUSED)
{
	return false;
}

static uint32_t any(uint32_t limit)
{
	return (uint32_t)rand_r(&seed) % limit;
}

static struct disk_file *find_file(int fd, const struct stat *st)
{
	for (size_t i = 0; i < nr_disk; i++)
		if (disk[i].inode == st->st_ino)
			return &disk[i];
	assert_true(nr_disk < NR_FILES);
	disk[nr_disk] = (struct disk_file){ .inode = st->st_ino, .nr_bytes = (size_t)st->st_size, .nr_states = 1 };
	disk[nr_disk].fd = dup(fd);
	disk[nr_disk].states[0] = calloc(1, (size_t)st->st_size);
	return &disk[nr_disk++];
}

static void forget_states(struct disk_file *file)
{
	while (file->nr_states)
		free(file->states[--file->nr_states]);
}

/* From now on the disk may have the present contents, too. */
static void note_state(int fd, bool synced)
{
	struct disk_file *file;
	struct stat st;
	uint8_t *bytes;

	assert_int_equal(fstat(fd, &st), 0);
	file = find_file(fd, &st);
	bytes = malloc(file->nr_bytes);
	assert_int_equal(pread(fd, bytes, file->nr_bytes, 0), file->nr_bytes);
	if (synced)
		forget_states(file);
	if (file->nr_states == NR_STATES)
		free(file->states[--file->nr_states]);
	file->states[file->nr_states++] = bytes;
}

static int note_fsync(const struct disk_call *call)
{
	if (call->kind != DISK_fsync)
		return 0;
	note_state(call->fd, true);
	return DISK_IS_DONE;
}

static void note_path(const char *path)
{
	int fd = openat(dir_fd, path, O_RDONLY | O_NOFOLLOW);

	if (fd < 0)
		return; /* a symbolic link */
	note_state(fd, false);
	close(fd);
}

/* The sample file, and old ones in tmp/. */
static void for_all_files(void (*action)(const char *path))
{
	DIR *dir = fdopendir(openat(dir_fd, "tmp", O_RDONLY | O_DIRECTORY));
	char path[300];

	assert_non_null(dir);
	for (struct dirent *entry = readdir(dir); entry; entry = readdir(dir)) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "tmp/%s", entry->d_name);
		action(path);
	}
	closedir(dir);
	action(PATH);
}

static void cut_file(const char *path)
{
	struct disk_file *file;
	struct stat st;
	int fd = openat(dir_fd, path, O_RDWR | O_NOFOLLOW);

	if (fd < 0)
		return;
	assert_int_equal(fstat(fd, &st), 0);
	file = find_file(fd, &st);
	for (size_t at = 0; at < file->nr_bytes; at += SECTOR_BYTES) {
		size_t nr = file->nr_bytes - at < SECTOR_BYTES ? file->nr_bytes - at : SECTOR_BYTES;

		assert_int_equal(pwrite(fd, file->states[any((uint32_t)file->nr_states)] + at, nr, (off_t)at), nr);
	}
	close(fd);
}

static void dump(struct op_odb *odb)
{
	int fd;

	op_odb_mark_dumped(odb);
	fd = openat(dir_fd, PATH, O_RDONLY);
	assert_int_equal(op_sys_fsync(fd), 0);
	close(fd);
	memcpy(promised, counted, sizeof(promised));
	is_promised = true;
}

/* Replacements, to be synced later, in their order. */
struct queue {
	struct op_odb_pending *first;
};

static void put(struct queue *queue, struct op_odb_pending *pending)
{
	struct op_odb_pending **last = &queue->first;

	while (*last)
		last = &(*last)->next;
	*last = pending;
}

static void sync_one(struct queue *queue)
{
	struct op_odb_pending *pending = queue->first;

	if (!pending)
		return;
	queue->first = pending->next;
	pending->next = NULL;
	assert_int_equal(op_odb_sync_pending(dir_fd, pending), 0);
}

/* Key 0 matters: a sector of zeros looks like it. */
static void count_some(struct op_odb *odb, struct queue *queue)
{
	uint32_t nr = any(900);

	for (uint32_t i = 0; i < nr; i++) {
		uint32_t key = any(40) ? any(NR_KEYS) : 0, count = 1 + any(3);

		assert_int_equal(op_odb_add(odb, key * 0x101ull, count), 0);
		counted[key] += count;
		put(queue, op_odb_take_pending(odb));
		if (!any(30))
			for_all_files(note_path);
		if (!any(150))
			dump(odb);
		if (!any(120))
			sync_one(queue);
	}
	for_all_files(note_path);
}

static struct op_odb *open_odb(void)
{
	struct op_odb_header header = sample_header();
	struct op_odb *odb;

	assert_int_equal(op_odb_open(dir_fd, PATH, TMP, &header, &odb), 0);
	return odb;
}

static void check_counts(void)
{
	uint64_t found[NR_KEYS] = { 0 };
	struct op_odb_samples samples;

	assert_int_equal(op_odb_read(dir_fd, PATH, &samples, NULL), 0);
	for (uint32_t i = 0; i < samples.nr_nodes; i++) {
		assert_int_equal(samples.nodes[i].key % 0x101, 0);
		assert_true(samples.nodes[i].key / 0x101 < NR_KEYS);
		found[samples.nodes[i].key / 0x101] += samples.nodes[i].value;
	}
	op_odb_samples_free(&samples);
	for (size_t i = 0; i < NR_KEYS; i++) {
		assert_true(found[i] <= counted[i]);
		if (is_promised)
			assert_true(found[i] >= promised[i]);
	}
}

static void require_empty(const char *path)
{
	DIR *dir = fdopendir(openat(dir_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	struct dirent *entry;

	assert_non_null(dir);
	while ((entry = readdir(dir)))
		if (*entry->d_name != '.')
			fail_msg("%s/%s is left", path, entry->d_name);
	closedir(dir);
}

static void check_after_cut(uint64_t *nr_put_back)
{
	struct op_odb_pending *pending = NULL;
	uint64_t nr = 0;
	uint32_t dropped;
	struct op_odb *odb;
	int err;

	assert_int_equal(op_odb_recover(dir_fd, TMP, &no_moves, is_sealed, &nr), 0);
	*nr_put_back += nr;
	require_empty("tmp");
	err = op_odb_repair(dir_fd, PATH, TMP, &dropped, &pending);
	op_odb_free_pending(pending);
	if (err == -EBADMSG) {
		assert_false(is_promised); /* a new file that never was on the disk */
		return;
	}
	assert_int_equal(err, 0);
	check_counts();
	odb = open_odb();
	assert_int_equal(op_odb_add(odb, 0, 1), 0);
	counted[0]++;
	op_odb_close(odb);
	check_counts();
}

static void run_once(unsigned int number, uint64_t *nr_put_back)
{
	char path[BOX_PATH_BYTES], command[64];
	struct queue queue = { NULL };
	struct op_odb *odb;

	dir_fd = box_make_open(path);
	assert_int_equal(mkdirat(dir_fd, "tmp", 0755), 0);
	memset(counted, 0, sizeof(counted));
	is_promised = false;
	seed = number;
	for (uint32_t daemons = 1 + any(3); daemons; daemons--) {
		odb = open_odb();
		count_some(odb, &queue);
		op_odb_close(odb);
	}
	if (any(FULL_SECTORS))
		for_all_files(cut_file);
	op_odb_free_pending(queue.first);
	check_after_cut(nr_put_back);
	while (nr_disk) {
		forget_states(&disk[--nr_disk]);
		close(disk[nr_disk].fd);
	}
	close(dir_fd);
	snprintf(command, sizeof(command), "rm -rf %s", path);
	assert_int_equal(system(command), 0);
}

static void cut_often(unsigned int nr_cuts)
{
	uint64_t nr_put_back = 0;

	for (unsigned int i = 1; i <= nr_cuts; i++)
		run_once(i, &nr_put_back);
	print_message("%u power cuts, %llu files put back\n", nr_cuts, (unsigned long long)nr_put_back);
	assert_true(nr_put_back > 0);
}

static void nothing_is_made_up_and_nothing_promised_is_lost(void **state OP_UNUSED)
{
	link_bytes_max = PATH_MAX - 1;
	cut_often(NR_CUTS);
}

static void so_it_is_where_links_are_short(void **state OP_UNUSED)
{
	link_bytes_max = 1023; /* as on XFS */
	assert_true(strlen(PATH) > link_bytes_max);
	cut_often(NR_CUTS / 2);
}

/* A kill may leave parts without the link that has their number. */
static void parts_of_a_path_do_not_stay(void **state OP_UNUSED)
{
	char path[BOX_PATH_BYTES];
	uint64_t nr_put_back;

	dir_fd = box_make_open(path);
	assert_int_equal(mkdirat(dir_fd, "tmp", 0755), 0);
	assert_int_equal(symlinkat("samples/current/x", dir_fd, TMP ".for-1a.1"), 0);
	assert_int_equal(symlinkat("y", dir_fd, TMP ".for-1a.2"), 0);
	assert_int_equal(symlinkat("/2", dir_fd, TMP ".for-2b"), 0);
	assert_int_equal(symlinkat("z", dir_fd, TMP ".for-2b.2"), 0);
	assert_int_equal(op_odb_recover(dir_fd, TMP, &no_moves, is_sealed, &nr_put_back), 0);
	require_empty("tmp");
	assert_int_equal(unlinkat(dir_fd, "tmp", AT_REMOVEDIR), 0);
	close(dir_fd);
	assert_int_equal(rmdir(path), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_made_up_and_nothing_promised_is_lost),
		cmocka_unit_test(parts_of_a_path_do_not_stay),
		cmocka_unit_test(so_it_is_where_links_are_short),
	};

	disk_watch = note_fsync;
	return cmocka_run_group_tests_name("odb_power", tests, NULL, NULL);
}
