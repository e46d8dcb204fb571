/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Build-ids of files that this process has mapped: what opd asks the kernel, and how often.
 */
#include "tests/unit/cmocka_all.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/ioctl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "libop/base/clock.h"
#include "pipeline/files/build_ids.h"
#include "pipeline/resolve/image.h"
#include "pipeline/resolve/stat_cache.h"
#include "tests/unit/test_box.h"

#define BYTES    4096
#define NO_PID   0x7fffffffu
#define FILES    3
#define DISK     makedev(8, 1) /* as if */

/* As struct procmap_query in include/uapi/linux/fs.h. */
struct query {
	uint64_t size, query_flags, query_addr, vma_start, vma_end, vma_flags, vma_page_size, vma_offset, inode;
	uint32_t dev_major, dev_minor, vma_name_size, build_id_size;
	uint64_t vma_name_addr, build_id_addr;
};

/* A kernel that gives the answers of the test, and that the test can stop. */
static struct {
	bool is_real;
	int err;
	uint64_t device, inode;
	struct op_build_id id;
	unsigned int nr_asked;
} kernel;

static struct opd_build_ids known, *ids = &known;
static struct opd_mount_views views;
static char directory[BOX_PATH_BYTES], paths[FILES][128];
static void *memory[FILES];

int __real_op_sys_ioctl(int fd, unsigned long request, void *arg);
int __wrap_op_sys_ioctl(int fd, unsigned long request, void *arg);

static int answer(unsigned long request, struct query *query)
{
	assert_int_equal(request, _IOWR('f', 17, struct query));
	assert_int_equal(query->size, sizeof(*query));
	assert_int_equal(query->build_id_size, OP_BUILD_ID_BYTES_MAX);
	if (kernel.err)
		return kernel.err;
	query->dev_major = major(kernel.device);
	query->dev_minor = minor(kernel.device);
	query->inode = kernel.inode;
	query->build_id_size = kernel.id.nr_bytes;
	memcpy((void *)(uintptr_t)query->build_id_addr, kernel.id.bytes, kernel.id.nr_bytes); // NOLINT(performance-no-int-to-ptr)
	return 0;
}

int __wrap_op_sys_ioctl(int fd, unsigned long request, void *arg)
{
	if (kernel.is_real)
		return __real_op_sys_ioctl(fd, request, arg);
	kernel.nr_asked++;
	return answer(request, arg);
}

static int set_up(void **state OP_UNUSED)
{
	memset(&kernel, 0, sizeof(kernel));
	kernel.device = DISK;
	kernel.inode = 7;
	kernel.id = (struct op_build_id){ .bytes = { 0xab, 0xcd }, .nr_bytes = 20 };
	known = (struct opd_build_ids){ 0 };
	return box_make(directory);
}

static int tear_down(void **state OP_UNUSED)
{
	for (size_t i = 0; i < FILES; i++) {
		if (memory[i])
			munmap(memory[i], BYTES);
		memory[i] = NULL;
		unlink(paths[i]);
		paths[i][0] = '\0';
	}
	opd_mount_views_free(&views);
	return rmdir(directory);
}

static struct opd_mapped file_on(uint64_t device)
{
	return (struct opd_mapped){ .pid = (uint32_t)getpid(), .start = (uintptr_t)set_up, .device = device, .inode = 7 };
}

/* Without a fake answer: the linker gave the file of this program its build-id. */
static void what_the_real_kernel_says(void **state OP_UNUSED)
{
	struct opd_mapped file = { .pid = (uint32_t)getpid(), .start = (uintptr_t)set_up };
	char digits[OP_BUILD_ID_DIGITS] = "", said[64] = "", command[128];
	struct op_build_id id;
	struct stat st;
	FILE *stream;
	int err;

	kernel.is_real = true;
	assert_int_equal(stat("/proc/self/exe", &st), 0);
	file.device = st.st_dev;
	file.inode = st.st_ino;
	err = opd_build_ids_ask(ids, &file, NULL, &id);
	if (err == -ENOTTY)
		skip(); /* before Linux 6.11 */
	assert_int_equal(err, 0);
	for (size_t i = 0; i < id.nr_bytes; i++)
		snprintf(digits + 2 * i, 3, "%02x", id.bytes[i]);
	snprintf(command, sizeof(command), "readelf -n /proc/%d/exe | sed -n 's/.*Build ID: //p'", (int)getpid());
	stream = popen(command, "re");
	assert_non_null(stream);
	assert_non_null(fgets(said, sizeof(said), stream));
	assert_int_equal(pclose(stream), 0);
	said[strcspn(said, "\n")] = '\0';
	assert_string_equal(digits, said);
}

static void answers(void **state OP_UNUSED)
{
	struct opd_mapped file = file_on(DISK);
	const struct opd_located located = { .mapped_device = DISK, .mapped_inode = 8 };
	struct op_build_id id = { .nr_bytes = 99 };

	assert_int_equal(opd_build_ids_ask(ids, &file, NULL, &id), 0);
	assert_int_equal(id.nr_bytes, 20);
	assert_int_equal(id.bytes[0], 0xab);
	kernel.id.nr_bytes = 0;
	assert_int_equal(opd_build_ids_ask(ids, &file, NULL, &id), 0);
	assert_int_equal(id.nr_bytes, 0);
	kernel.inode = 8; /* by now another program runs there */
	assert_int_equal(opd_build_ids_ask(ids, &file, NULL, &id), -ESTALE);
	/* the same by another number */
	assert_int_equal(opd_build_ids_ask(ids, &file, &located, &id), 0);
	kernel.device = makedev(0, 99); /* of a user's file system, which has any inodes */
	assert_int_equal(opd_build_ids_ask(ids, &file, &located, &id), -ESTALE);
	kernel.inode = 7;
	kernel.device = makedev(8, 2);
	assert_int_equal(opd_build_ids_ask(ids, &file, NULL, &id), -ESTALE);
	kernel.inode = 0; /* memory */
	assert_int_equal(opd_build_ids_ask(ids, &file, NULL, &id), -ESTALE);
	kernel.err = -ESRCH;
	assert_int_equal(opd_build_ids_ask(ids, &file, NULL, &id), -ESRCH);
	file.pid = NO_PID;
	assert_int_equal(opd_build_ids_ask(ids, &file, NULL, &id), -ENOENT);
}

/* A kernel that does not know the request is asked once. */
static void an_older_kernel(void **state OP_UNUSED)
{
	struct opd_mapped file = file_on(DISK);
	struct op_build_id id;

	kernel.err = -ENOTTY;
	assert_int_equal(opd_build_ids_ask(ids, &file, NULL, &id), -ENOTTY);
	kernel.err = 0;
	assert_int_equal(opd_build_ids_ask(ids, &file, NULL, &id), -ENOTTY);
	assert_int_equal(kernel.nr_asked, 1);
}

/* ---- images ---- */

static struct opd_mapped map_file(size_t i, const char *name)
{
	struct stat st;
	int fd;

	snprintf(paths[i], sizeof(paths[i]), "%s/%s", directory, name);
	fd = open(paths[i], O_RDWR | O_CREAT | O_CLOEXEC, 0700);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, BYTES), 0);
	assert_int_equal(fstat(fd, &st), 0);
	memory[i] = mmap(NULL, BYTES, PROT_READ, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(memory[i], MAP_FAILED);
	close(fd);
	kernel.device = st.st_dev;
	kernel.inode = st.st_ino;
	return (struct opd_mapped){
		.pid = (uint32_t)getpid(),
		.start = (uintptr_t)memory[i],
		.end = (uintptr_t)memory[i] + BYTES,
		.name = paths[i],
		.device = st.st_dev,
		.inode = st.st_ino,
		.mount_views = &views,
		.build_ids = ids,
	};
}

static uint64_t cookie_of(struct op_dcookie_table *table, struct opd_mapped mapped, struct opd_stat_cache *cache)
{
	bool is_file;
	uint64_t cookie;

	mapped.stat_cache = cache;
	if (cache)
		mapped.time_ns = op_now_ns();
	cookie = opd_image_of_mapping(table, &mapped, &is_file);
	assert_int_not_equal(cookie, OP_DCOOKIE_NONE);
	return cookie;
}

static void each_file_is_asked_for_once(void **state OP_UNUSED)
{
	struct op_dcookie_table *table = op_dcookie_table_new();
	struct opd_mapped mapped = map_file(0, "app"), bare;
	uint64_t cookie = cookie_of(table, mapped, NULL);

	assert_int_equal(op_dcookie_row(table, cookie)->id.build_id_bytes, 20);
	assert_int_equal(op_dcookie_row(table, cookie)->id.build_id[1], 0xcd);
	for (int i = 0; i < 3; i++)
		assert_int_equal(cookie_of(table, mapped, NULL), cookie);
	assert_int_equal(kernel.nr_asked, 1);
	bare = map_file(1, "bare");
	kernel.id.nr_bytes = 0;
	cookie = cookie_of(table, bare, NULL);
	assert_int_equal(op_dcookie_row(table, cookie)->id.build_id_bytes, 0);
	assert_int_equal(cookie_of(table, bare, NULL), cookie);
	assert_int_equal(kernel.nr_asked, 2);
	mapped.build_ids = NULL;
	op_dcookie_table_free(table);
	table = op_dcookie_table_new();
	assert_int_equal(op_dcookie_row(table, cookie_of(table, mapped, NULL))->id.build_id_bytes, 0);
	assert_int_equal(kernel.nr_asked, 2);
	op_dcookie_table_free(table);
}

/* A file that is written anew in place is another image, unless its build-id is the same. */
static void what_is_written_anew_is_asked_for_again(void **state OP_UNUSED)
{
	struct timespec times[2] = { { .tv_sec = 1 }, { .tv_sec = 1 } };
	struct op_dcookie_table *table = op_dcookie_table_new();
	struct opd_mapped mapped = map_file(0, "app");
	uint64_t first = cookie_of(table, mapped, NULL), second;

	assert_int_equal(utimensat(AT_FDCWD, paths[0], times, 0), 0);
	assert_int_equal(cookie_of(table, mapped, NULL), first);
	times[1].tv_sec = 2;
	assert_int_equal(utimensat(AT_FDCWD, paths[0], times, 0), 0);
	kernel.id.bytes[0]++;
	second = cookie_of(table, mapped, NULL);
	assert_int_not_equal(second, first);
	assert_int_equal(op_dcookie_row(table, second)->id.build_id[0], 0xac);
	assert_int_equal(op_dcookie_row(table, first)->id.build_id[0], 0xab);
	assert_int_equal(kernel.nr_asked, 3);
	op_dcookie_table_free(table);
}

/*
 * The first process is gone. The next process gives the build-id, also when its mapping is older
 * than the failed look.
 */
static void a_process_that_is_gone_is_no_answer(void **state OP_UNUSED)
{
	struct op_dcookie_table *table = op_dcookie_table_new();
	struct opd_mapped mapped = map_file(0, "app"), gone = mapped;
	struct opd_stat_cache cache = { 0 };
	bool is_file;
	uint64_t cookie;

	gone.pid = NO_PID;
	mapped.stat_cache = &cache;
	mapped.time_ns = op_now_ns();
	cookie = cookie_of(table, gone, &cache);
	assert_int_equal(op_dcookie_row(table, cookie)->id.inode, mapped.inode);
	assert_int_equal(op_dcookie_row(table, cookie)->id.build_id_bytes, 0);
	assert_int_equal(kernel.nr_asked, 0);
	assert_int_equal(opd_image_of_mapping(table, &mapped, &is_file), cookie);
	assert_int_equal(op_dcookie_row(table, cookie)->id.build_id_bytes, 20);
	assert_int_equal(opd_image_of_mapping(table, &mapped, &is_file), cookie);
	assert_int_equal(kernel.nr_asked, 1);
	opd_stat_cache_clear(&cache);
	op_dcookie_table_free(table);
}

/*
 * A copy that its process sees under the same name is the same image every time, without another
 * request.
 */
static void a_copy_is_the_same_image(void **state OP_UNUSED)
{
	struct op_dcookie_table *table = op_dcookie_table_new();
	struct opd_mapped mapped = map_file(0, "one"), copy;
	uint64_t cookie = cookie_of(table, mapped, NULL);

	copy = map_file(1, "two");
	copy.name = mapped.name; /* is_mapped_yet: the inode says that it is */
	assert_int_equal(cookie_of(table, copy, NULL), cookie);
	assert_int_equal(cookie_of(table, copy, NULL), cookie);
	assert_int_equal(kernel.nr_asked, 2);
	copy = map_file(2, "three");
	copy.name = mapped.name;
	kernel.id.bytes[0]++;
	assert_int_not_equal(cookie_of(table, copy, NULL), cookie);
	op_dcookie_table_free(table);
}

/*
 * Anybody can give a file any build-id. It makes no copy of a file of another owner, nor of one
 * that others may write.
 */
static void a_strangers_file_is_no_copy(void **state OP_UNUSED)
{
	struct op_dcookie_table *table = op_dcookie_table_new();
	struct opd_mapped mapped = map_file(0, "one"), copy;
	uint64_t cookie = cookie_of(table, mapped, NULL);

	copy = map_file(1, "two");
	copy.name = mapped.name;
	assert_int_equal(chmod(paths[1], 0720), 0);
	assert_int_not_equal(cookie_of(table, copy, NULL), cookie);
	if (!geteuid()) {
		copy = map_file(2, "three");
		copy.name = mapped.name;
		assert_int_equal(chown(paths[2], 1, -1), 0);
		assert_int_not_equal(cookie_of(table, copy, NULL), cookie);
	}
	op_dcookie_table_free(table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_the_real_kernel_says, set_up, tear_down),
		cmocka_unit_test_setup_teardown(answers, set_up, tear_down),
		cmocka_unit_test_setup_teardown(an_older_kernel, set_up, tear_down),
		cmocka_unit_test_setup_teardown(each_file_is_asked_for_once, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_is_written_anew_is_asked_for_again, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_process_that_is_gone_is_no_answer, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_copy_is_the_same_image, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_strangers_file_is_no_copy, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
