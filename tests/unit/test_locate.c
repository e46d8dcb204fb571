/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Files that this process has mapped: present, removed, with names that look removed; and what opd
 * knows after a process is gone.
 */
#include "tests/unit/cmocka_all.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libop/base/clock.h"
#include "pipeline/files/locate.h"
#include "pipeline/resolve/image.h"
#include "pipeline/resolve/stat_cache.h"
#include "tests/unit/test_box.h"

#define BYTES	 4096
#define NO_PID	 0x7fffffffu

static struct opd_mount_views views;
static char directory[BOX_PATH_BYTES], path[256];
static void *memory;

static int set_up(void **state)
{
	(void)state;
	return box_make(directory);
}

static int tear_down(void **state)
{
	(void)state;
	if (memory)
		munmap(memory, BYTES);
	memory = NULL;
	unlink(path);
	opd_mount_views_free(&views);
	return rmdir(directory);
}

static struct opd_mapped make_file(const char *name)
{
	struct stat st;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0700);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, BYTES), 0);
	assert_int_equal(fstat(fd, &st), 0);
	memory = mmap(NULL, BYTES, PROT_READ, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(memory, MAP_FAILED);
	close(fd);
	return (struct opd_mapped){
		.pid = (uint32_t)getpid(),
		.start = (uintptr_t)memory,
		.end = (uintptr_t)memory + BYTES,
		.name = path,
		.device = st.st_dev,
		.inode = st.st_ino,
		.mount_views = &views,
	};
}

static void assert_found(const struct opd_mapped *wanted, bool seen, bool on_host)
{
	struct opd_located located;

	assert_int_equal(opd_locate(wanted, &located), 0);
	assert_string_equal(op_text_get(&located.path), path);
	assert_int_equal(located.seen, seen);
	assert_int_equal(located.on_host, on_host);
	assert_int_equal(located.host_has_another, !on_host && !access(path, F_OK));
	if (seen && wanted->inode)
		assert_int_equal(located.stat.stx_ino, wanted->inode);
	op_text_free(&located.path);
}

/*
 * The check that a mapping leads to its file needs CAP_CHECKPOINT_RESTORE; a name alone is no
 * proof.
 */
static bool leads_to_file(void)
{
	return geteuid() == 0;
}

static void there(void **state OP_UNUSED)
{
	struct opd_mapped wanted = make_file("plain");

	assert_found(&wanted, leads_to_file(), true);
}

static void removed(void **state OP_UNUSED)
{
	struct opd_mapped wanted = make_file("gone");

	unlink(path);
	assert_found(&wanted, leads_to_file(), false);
}

static void called_removed(void **state OP_UNUSED)
{
	struct opd_mapped wanted = make_file("x (deleted)");

	assert_found(&wanted, leads_to_file(), true);
}

static void newline(void **state OP_UNUSED)
{
	struct opd_mapped wanted = make_file("two\nlines");

	assert_found(&wanted, leads_to_file(), true);
}

static void process_is_gone(void **state OP_UNUSED)
{
	struct opd_mapped wanted = make_file("short-lived");
	int fd;

	wanted.pid = NO_PID;
	assert_found(&wanted, true, true);
	wanted.inode++;
	assert_found(&wanted, false, false);
	wanted.inode--;
	fd = open(path, O_PATH | O_CLOEXEC);
	wanted.inode_generation = opd_generation_of(fd, wanted.inode);
	close(fd);
	assert_found(&wanted, true, true);
	wanted.inode_generation++;
	/* 0: this file system tells none */
	assert_found(&wanted, wanted.inode_generation == 1, wanted.inode_generation == 1);
	wanted.inode_generation = 0;
	wanted.device++; /* of a file system whose inodes anybody may choose */
	assert_found(&wanted, false, false);
	wanted.device--;
	wanted.inode = 0;
	assert_found(&wanted, false, false);
}

/*
 * The number of a process was used again, and another program is at the same addresses, or the
 * process put another file there, which may have the same name.
 */
static void another_is_there(void **state OP_UNUSED)
{
	struct opd_mapped wanted = make_file("second");
	uint64_t inode = wanted.inode;
	struct opd_located located;
	char names[2][300];

	snprintf(names[0], sizeof(names[0]), "%s/first", directory);
	snprintf(names[1], sizeof(names[1]), "%s/elsewhere/second", directory);
	wanted.name = names[0];
	assert_found(&wanted, leads_to_file(), leads_to_file()); /* by its inode: it was renamed */
	for (int i = 0; i < 4; i++) {
		wanted.name = names[i / 2];
		wanted.inode = i % 2 ? inode + 1 : 0;
		assert_int_equal(opd_locate(&wanted, &located), 0);
		assert_string_equal(op_text_get(&located.path), wanted.name);
		assert_false(located.seen);
		assert_false(located.on_host);
		op_text_free(&located.path);
	}
}

/* A process that maps two files in turn at one place, until it is killed. */
static pid_t start_remapping(const int fds[2])
{
	pid_t pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (size_t i = 0; mmap(memory, BYTES, PROT_READ, MAP_SHARED | MAP_FIXED, fds[i % 2], 0) == memory; i++)
		continue;
	_exit(1);
}

/*
 * A process replaces a library by another one of that name while opd looks. Name, inode and size
 * are of one file.
 */
static void replaced_during_the_look(void **state OP_UNUSED)
{
	struct opd_mapped wanted = make_file("library");
	char other[80], other_path[100];
	ino_t inodes[2];
	struct stat st;
	int fds[2];
	size_t nr_seen[2] = { 0 };

	if (!leads_to_file())
		skip();
	snprintf(other, sizeof(other), "%s/other", directory);
	snprintf(other_path, sizeof(other_path), "%s/library", other);
	assert_int_equal(mkdir(other, 0700), 0);
	fds[0] = open(path, O_RDONLY | O_CLOEXEC);
	fds[1] = open(other_path, O_RDWR | O_CREAT | O_CLOEXEC, 0700);
	assert_true(fds[0] >= 0 && fds[1] >= 0);
	assert_int_equal(ftruncate(fds[1], 2 * BYTES), 0);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(fstat(fds[i], &st), 0);
		inodes[i] = st.st_ino;
	}
	wanted.pid = (uint32_t)start_remapping(fds);
	for (size_t i = 0; i < 20000; i++) {
		struct opd_located located;
		size_t which;

		wanted.inode = inodes[i % 2];
		assert_int_equal(opd_locate(&wanted, &located), 0);
		which = !strcmp(op_text_get(&located.path), other_path);
		if (located.seen) {
			assert_int_equal(located.stat.stx_ino, inodes[which]);
			assert_int_equal(located.stat.stx_size, (which + 1) * BYTES);
			nr_seen[which]++;
		}
		op_text_free(&located.path);
	}
	kill((pid_t)wanted.pid, SIGKILL);
	waitpid((pid_t)wanted.pid, NULL, 0);
	assert_true(nr_seen[0] && nr_seen[1]);
	close(fds[0]);
	close(fds[1]);
	unlink(other_path);
	rmdir(other);
}

/*
 * A process that has another directory at a path of the host, and a file in it. Returns its number;
 * inode 0: this host does not allow it.
 */
static pid_t start_elsewhere(struct stat *ret_stat)
{
	int ends[2];
	pid_t pid;

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	pid = fork();
	if (!pid) {
		struct stat st = { 0 };

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (!unshare(CLONE_NEWNS) && !mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) &&
		    !mount("opd-test", directory, "tmpfs", 0, NULL) && !mknod(path, S_IFREG | 0755, 0))
			stat(path, &st);
		if (write(ends[1], &st, sizeof(st)) == sizeof(st))
			pause();
		_exit(1);
	}
	assert_int_equal(read(ends[0], ret_stat, sizeof(*ret_stat)), sizeof(*ret_stat));
	close(ends[0]);
	close(ends[1]);
	return pid;
}

/*
 * A process is gone, and the host has no such file: a living process of the same mount view has it.
 */
static void another_lives_there(void **state OP_UNUSED)
{
	struct opd_mapped wanted = { .pid = NO_PID, .name = path, .mount_views = &views };
	struct opd_mount_view *view = NULL;
	struct stat st;
	pid_t pid;

	snprintf(path, sizeof(path), "%s/app", directory);
	pid = start_elsewhere(&st);
	wanted.device = st.st_dev;
	wanted.inode = st.st_ino;
	if (wanted.inode) {
		assert_int_equal(opd_mount_view_update(&views, (uint32_t)pid, &view), 0);
		wanted.mount_view = view;
		assert_non_null(view);
		assert_found(&wanted, true, false);
		wanted.inode++;
		assert_found(&wanted, false, false);
		wanted.inode--;
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	if (wanted.inode)
		assert_found(&wanted, false, false);
	opd_mount_view_put(view);
	if (!wanted.inode)
		skip();
}

/* Mount namespaces without processes, each with a mount view of its own. */
static size_t enter_views(struct opd_mount_view *entered[], size_t max)
{
	size_t nr = 0;

	while (nr < max && !views.nr_dropped) {
		entered[nr] = NULL;
		assert_int_equal(opd_mount_view_enter(&views, nr + 1, 0, &entered[nr]), 0);
		nr++;
	}
	return nr;
}

static void leave_views(struct opd_mount_view *entered[], size_t nr)
{
	while (nr)
		opd_mount_view_put(entered[--nr]);
	assert_int_equal(views.nr_bytes, 0);
	assert_int_equal(views.nr_mount_bytes, 0);
	assert_null(views.with_mounts);
}

static void places_have_so_much_room(void **state)
{
	size_t max = OPD_MOUNT_VIEWS_BYTES_MAX / sizeof(struct opd_mount_view), nr;
	struct opd_mount_view **entered = calloc(max, sizeof(struct opd_mount_view *));

	(void)state;
	assert_non_null(entered);
	nr = enter_views(entered, max);
	assert_int_equal(views.nr_dropped, 1);
	assert_true(nr > 10000);
	assert_null(entered[nr - 1]);
	assert_in_range(views.nr_bytes, OPD_MOUNT_VIEWS_BYTES_MAX, OPD_MOUNT_VIEWS_BYTES_MAX + 1000);
	leave_views(entered, nr);
	free(entered);
}

/* The oldest mount views are dropped, and are read again when they are needed. */
static void mounts_have_so_much_room(void **state)
{
	struct opd_mount_view *entered[4];
	size_t nr = enter_views(entered, op_array_size(entered));
	uint32_t pid = (uint32_t)getpid();

	(void)state;
	for (size_t i = 0; i < nr; i++)
		assert_true(opd_mount_view_mounts(entered[i], pid, false)->nr_rows > 0);
	assert_int_equal(views.nr_dropped, 0);
	/* As if the second and the third had very many mounts. */
	entered[1]->mounts.nr_bytes += OPD_MOUNT_VIEWS_BYTES_MAX / 2;
	entered[2]->mounts.nr_bytes += OPD_MOUNT_VIEWS_BYTES_MAX / 2;
	views.nr_mount_bytes += OPD_MOUNT_VIEWS_BYTES_MAX;
	entered[0]->mounts_read_ns = 1; /* long ago */
	assert_true(opd_mount_view_mounts(entered[0], pid, true)->nr_rows > 0);
	assert_int_equal(views.nr_dropped, 1);
	assert_true(views.nr_mount_bytes <= OPD_MOUNT_VIEWS_BYTES_MAX);
	assert_int_equal(entered[1]->mounts.nr_rows, 0);
	assert_true(entered[2]->mounts.nr_rows > 0 && entered[3]->mounts.nr_rows > 0);
	assert_true(opd_mount_view_mounts(entered[1], pid, false)->nr_rows > 0);
	assert_int_equal(views.nr_dropped, 1);
	leave_views(entered, nr);
}

/* Handles as file systems make them. */
static void generations(void **state OP_UNUSED)
{
	static const uint8_t ext4[] = { 0x66, 0x26, 0xa7, 0, 0xf0, 0x96, 0xf8, 0xe1 };
	static const uint8_t shmem[] = { 0x4f, 0xf5, 0, 0x1d, 2, 0, 0, 0, 1, 0, 0, 0 };
	static const uint8_t generic[] = { 2, 0, 0, 0, 1, 0, 0, 0, 7, 0, 0, 0 };
	static const uint8_t btrfs[20] = { 2, [4] = 1, [8] = 5, [16] = 9 };

	assert_int_equal(opd_generation_in(1, ext4, sizeof(ext4), 0xa72666), 0xe1f896f0);
	assert_int_equal(opd_generation_in(1, ext4, sizeof(ext4), 0xa72667), 0);
	assert_int_equal(opd_generation_in(2, ext4, sizeof(ext4), 0xa72666), 0);
	assert_int_equal(opd_generation_in(1, ext4, sizeof(ext4) - 1, 0xa72666), 0);
	assert_int_equal(opd_generation_in(1, shmem, sizeof(shmem), 0x100000002), 0x1d00f54f);
	assert_int_equal(opd_generation_in(0x81, generic, sizeof(generic), 0x100000002), 7);
	assert_int_equal(opd_generation_in(0x4d, btrfs, sizeof(btrfs), 0x100000002), 9);
	assert_int_equal(opd_generation_of(-1, 1), 0);
}

static uint64_t cookie_of(struct op_dcookie_table *table, const struct opd_mapped *wanted, struct opd_stat_cache *cache,
			  uint64_t time_ns)
{
	struct opd_mapped mapped = *wanted;
	bool is_file;
	uint64_t cookie;

	mapped.time_ns = time_ns;
	mapped.stat_cache = cache;
	cookie = opd_image_of_mapping(table, &mapped, &is_file);
	assert_true(is_file);
	assert_int_not_equal(cookie, OP_DCOOKIE_NONE);
	return cookie;
}

/* A perf.data may have any generation; a name has room for the kernel's numbers. */
static void a_region_has_a_process_that_can_be_written(void **state OP_UNUSED)
{
	static const uint32_t pids[] = { 0, 1, INT32_MAX, UINT32_C(1) << 31, UINT32_MAX - 1, UINT32_MAX };
	struct op_dcookie_table *table = op_dcookie_table_new();
	struct opd_mapped mapped = { .name = "//anon", .mount_views = &views };
	uint64_t label;
	bool is_file;

	assert_non_null(table);
	label = opd_image_of_mapping(table, &mapped, &is_file);
	assert_false(is_file);
	for (size_t i = 0; i < op_array_size(pids); i++) {
		uint64_t cookie = opd_image_of_region(table, label, pids[i], 0x1000, 0x2000);

		assert_true(op_dcookie_row(table, cookie)->id.name.tgid >= 0);
	}
	op_dcookie_table_free(table);
}

/* A file that is written anew in place is another image for later mappings. */
static void a_look_is_good_for_what_was_before(void **state)
{
	struct timespec times[2] = { { .tv_sec = 1 }, { .tv_sec = 1 } };
	struct op_dcookie_table *table = op_dcookie_table_new();
	struct opd_mapped wanted = make_file("app");
	struct opd_stat_cache cache = { 0 };
	uint64_t first_ns = op_now_ns(), second_ns, first, second;

	(void)state;
	assert_non_null(table);
	first = cookie_of(table, &wanted, &cache, first_ns);
	assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
	assert_int_equal(cookie_of(table, &wanted, &cache, first_ns), first);
	second_ns = op_now_ns();
	second = cookie_of(table, &wanted, &cache, second_ns);
	assert_int_not_equal(second, first);
	assert_int_equal(cookie_of(table, &wanted, &cache, second_ns), second);
	/* Without the cache opd looks each time. */
	times[1].tv_sec = 2;
	assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
	assert_int_equal(cookie_of(table, &wanted, &cache, second_ns), second);
	assert_int_not_equal(cookie_of(table, &wanted, NULL, second_ns), second);
	opd_stat_cache_clear(&cache);
	assert_int_not_equal(cookie_of(table, &wanted, &cache, second_ns), second);
	opd_stat_cache_clear(&cache);
	op_dcookie_table_free(table);
}

/* What a user can give a file is not enough. */
static void a_file_is_known_by_its_identity(void **state OP_UNUSED)
{
	const struct opd_file_identity recorded = { 1, 2, 3, 4, 5, 6, 7, 0100755, false };
	struct opd_file_identity file = recorded, unknown = { 0 };

	assert_true(opd_file_is(&file, &recorded));
	assert_true(opd_file_is(&file, &unknown));
	file.ctime_ns++; /* it was renamed */
	assert_true(opd_file_is(&file, &recorded));
	file.generation = 0; /* or is it another file with the same inode? */
	assert_false(opd_file_is(&file, &recorded));
	for (size_t i = 0; i < 5; i++) {
		uint64_t *fields[] = { &file.device, &file.inode, &file.generation, &file.mtime_ns, &file.nr_bytes };

		file = recorded;
		++*fields[i];
		assert_false(opd_file_is(&file, &recorded));
	}
	file = recorded;
	assert_true(opd_file_is_owners(&file));
	file.mode = 0100775;
	assert_false(opd_file_is_owners(&file));
	file.mode = 0100757;
	assert_false(opd_file_is_owners(&file));
	file.mode = recorded.mode;
	file.is_served = true;
	assert_false(opd_file_is_owners(&file));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_is_known_by_its_identity),
		cmocka_unit_test_setup_teardown(there, set_up, tear_down),
		cmocka_unit_test_setup_teardown(removed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(called_removed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(newline, set_up, tear_down),
		cmocka_unit_test_setup_teardown(process_is_gone, set_up, tear_down),
		cmocka_unit_test_setup_teardown(replaced_during_the_look, set_up, tear_down),
		cmocka_unit_test_setup_teardown(another_is_there, set_up, tear_down),
		cmocka_unit_test_setup_teardown(another_lives_there, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_region_has_a_process_that_can_be_written, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_look_is_good_for_what_was_before, set_up, tear_down),
		cmocka_unit_test_setup_teardown(places_have_so_much_room, set_up, tear_down),
		cmocka_unit_test_setup_teardown(mounts_have_so_much_room, set_up, tear_down),
		cmocka_unit_test(generations),
	};

	return cmocka_run_group_tests_name("locate", tests, NULL, NULL);
}
