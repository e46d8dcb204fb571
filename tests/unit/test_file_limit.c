/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Too many sample files, and more cgroups than slots: every sample is in a file, and samples that
 * are kept less apart are counted.
 */
#include "tests/unit/cmocka_all.h"

#include "libop/odb/odb.h"
#include "libop/odb/read.h"
#include "libop/session/contents.h"
#include "libop/session/layout.h"
#include "libop/session/list.h"
#include "pipeline/capture/cpu_rings.h"
#include "tests/unit/pipeline.h"

#define MAX        80u
#define MAX_CLASS  60u
#define BESIDE     16u /* blocks kept for files beside the sample files */
#define MAX_CGROUP 70u
#define NR_DIRS    9u /* samples/current, seven below it, and those of too-many-images */
#define NR_SLOTS   64u
#define NR_CGROUPS (3 * NR_SLOTS)

static struct opd_pipeline pipeline;
static struct opd_event account;
static struct op_event event;
static struct opd_cgroups cgroups;
static char dir[BOX_PATH_BYTES];
static uint64_t nr_taken;

static int file_limit_setup(void **state OP_UNUSED)
{
	pipeline = (struct opd_pipeline){ 0 };
	event = (struct op_event){ .name = "TIMER", .count = 1000 };
	account = (struct opd_event){ 0 };
	nr_taken = 0;
	pipeline.capture.events = &event;
	if (pipeline_begin(&pipeline, dir))
		return -1;
	op_dcookie_limit(pipeline.resolver.table, SIZE_MAX, SIZE_MAX, pipeline.resolver.pseudo[OPD_PSEUDO_TOO_MANY_IMAGES]);
	pipeline.count.separate_thread = true;
	pipeline.count.limit.max = MAX;
	pipeline.count.max_open = 10;
	pipeline.count.max_closed = 1000;
	return opd_cgroups_init(&cgroups, "/dev/null");
}

static int file_limit_teardown(void **state OP_UNUSED)
{
	int result = pipeline_end(&pipeline, dir);

	opd_cgroups_free(&cgroups);
	return result;
}

static void take_at(uint32_t image, uint32_t tid, uint64_t cgroup_id, uint64_t offset)
{
	char name[32];
	struct op_image_id id = { .name = { .kind = OP_IMAGE_FILE, .name = name }, .inode = 1 + image };
	struct opd_resolved resolved = { 0 };
	struct opd_counted counted = {
		.resolved = &resolved, .account = &account, .amount = 1, .pid = tid, .tid = tid, .cgroup_id = cgroup_id
	};

	snprintf(name, sizeof(name), "/bin/image-%u", image);
	resolved.location = (struct op_location){ op_dcookie_get(pipeline.resolver.table, &id), offset };
	pipeline.count.now_ns++;
	opd_count_sample(&pipeline.count, &counted);
	nr_taken++;
}

static void take(uint32_t image, uint32_t tid, uint64_t cgroup_id)
{
	take_at(image, tid, cgroup_id, 0x10);
}

/*
 * Samples of the ordinary files, and of these the samples without a thread and in too-many-images.
 */
struct sums {
	uint64_t all, merged, last, nr_files;
};

static struct sums sum_files(const char *session)
{
	struct sums sums = { 0 };
	struct op_session_list list;
	int fd = openat(pipeline.count.session_fd, session, O_RDONLY | O_DIRECTORY);

	opd_count_flush(&pipeline.count);
	assert_true(fd >= 0);
	assert_int_equal(op_session_list(fd, &list, NULL), 0);
	sums.nr_files = list.nr_files;
	for (size_t i = 0; i < list.nr_files; i++) {
		struct op_odb_samples samples;

		assert_int_equal(op_odb_read(fd, list.files[i].path, &samples, NULL), 0);
		for (uint32_t j = 0; j < samples.nr_nodes; j++) {
			sums.all += samples.nodes[j].value;
			if (!strcmp(list.files[i].name.image.name, "too-many-images"))
				sums.last += samples.nodes[j].value;
			else if (list.files[i].name.tid == OP_CLASS_ALL)
				sums.merged += samples.nodes[j].value;
		}
		op_odb_samples_free(&samples);
	}
	op_session_list_free(&list);
	close(fd);
	return sums;
}

static void check(uint64_t nr_merged, uint64_t nr_last, uint64_t nr_files)
{
	const struct opd_file_limit *limit = &pipeline.count.limit;
	struct opd_file_limit counted = { 0 };
	struct sums sums = sum_files(OP_SESSION_CURRENT);

	assert_int_equal(account.stored, nr_taken);
	assert_int_equal(sums.all, nr_taken);
	assert_int_equal(sums.merged, nr_merged);
	assert_int_equal(sums.last, nr_last);
	assert_int_equal(limit->nr_samples[OPD_FILE_OF_CLASS], nr_merged);
	assert_int_equal(limit->nr_samples[OPD_FILE_OF_IMAGE], nr_last);
	assert_int_equal(limit->nr, nr_files);
	assert_int_equal(opd_file_limit_recount(&counted, pipeline.count.session_fd), 0);
	assert_int_equal(counted.nr, nr_files);
}

static void threads_share_a_file(void **state OP_UNUSED)
{
	for (int round = 0; round < 2; round++)
		for (uint32_t tid = 1; tid <= 100; tid++)
			take(0, tid, 0);
	check(2 * (100 - MAX_CLASS), 0, MAX_CLASS + 1);
	assert_int_equal(pipeline.count.nr_forgotten, 0);
}

static void images_share_the_last_file(void **state OP_UNUSED)
{
	pipeline.count.separate_thread = false;
	for (int round = 0; round < 3; round++)
		for (uint32_t image = 0; image < 2 * MAX; image++)
			take(image, 1, 0);
	opd_count_flush(&pipeline.count);
	assert_int_equal(account.stored, nr_taken);
	assert_int_equal(account.unattributed, 3 * MAX);
	assert_int_equal(sum_files(OP_SESSION_CURRENT).last, 3 * MAX);
	assert_int_equal(pipeline.count.limit.nr_samples[OPD_FILE_OF_IMAGE], 3 * MAX);
	assert_int_equal(pipeline.count.nr_too_many, 0);
	assert_int_equal(pipeline.count.limit.nr, MAX + 1);
}

/* Forgotten files and files of an earlier daemon still exist and count. */
static void files_that_are_there_are_found(void **state OP_UNUSED)
{
	for (uint32_t tid = 1; tid <= MAX_CLASS; tid++)
		take(0, tid, 0);
	opd_count_close_files(&pipeline.count);
	assert_int_equal(pipeline.count.limit.nr, 0);
	assert_int_equal(opd_file_limit_recount(&pipeline.count.limit, pipeline.count.session_fd), 0);
	for (uint32_t tid = 1; tid <= MAX_CLASS + 5; tid++)
		take(0, tid, 0);
	check(5, 0, MAX_CLASS + 1);
	pipeline.count.max_closed = 3;
	for (uint32_t tid = MAX_CLASS + 10; tid; tid--)
		take(0, tid, 0);
	check(15, 0, MAX_CLASS + 1);
	assert_true(pipeline.count.nr_forgotten > 0);
}

static void room_that_is_made_is_used(void **state OP_UNUSED)
{
	char command[BOX_PATH_BYTES + 64];

	for (uint32_t tid = 1; tid <= 100; tid++)
		take(0, tid, 0);
	opd_count_flush(&pipeline.count);
	snprintf(command, sizeof(command), "rm -rf %s/" OP_SESSION_CURRENT "/*", dir);
	assert_int_equal(system(command), 0);
	opd_count_forget_missing(&pipeline.count);
	assert_int_equal(pipeline.count.limit.nr, 0);
	account.stored = nr_taken = 0;
	pipeline.count.limit.nr_samples[OPD_FILE_OF_CLASS] = 0;
	for (uint32_t tid = 100; tid; tid--)
		take(0, tid, 0);
	check(100 - MAX_CLASS, 0, MAX_CLASS + 1);
}

/* SIGHUP with a larger limit. */
static void a_larger_limit_is_used(void **state OP_UNUSED)
{
	for (uint32_t tid = 1; tid <= 100; tid++)
		take(0, tid, 0);
	check(100 - MAX_CLASS, 0, MAX_CLASS + 1);
	pipeline.count.limit.max = 0;
	opd_count_release_files(&pipeline.count);
	for (uint32_t tid = 1; tid <= 100; tid++)
		take(0, tid, 0);
	check(100 - MAX_CLASS, 0, 100 + 1);
}

/* The limit on bytes: the same steps. */
static void bytes_have_the_same_steps(void **state OP_UNUSED)
{
	struct opd_file_limit *limit = &pipeline.count.limit;

	limit->max = 0;
	limit->space.max_bytes = 2 * MAX * OP_ODB_BLOCK_BYTES;
	opd_file_limit_weigh(limit, (MAX - NR_DIRS - BESIDE) * OP_ODB_BLOCK_BYTES, 0);
	for (uint32_t tid = 1; tid <= 100; tid++)
		take(0, tid, 0);
	check(100 - MAX / 2, 0, MAX / 2 + 1);
	assert_int_equal(opd_file_limit_bytes(limit), (MAX + MAX / 2 + 1 - BESIDE) * OP_ODB_BLOCK_BYTES);
	opd_file_limit_weigh(limit, limit->space.max_bytes, opd_file_limit_bytes(limit));
	take(1, 1, 0);
	check(100 - MAX / 2, 1, MAX / 2 + 2);
}

/* A session that grows while it is weighed weighs something between. */
static void a_weight_corrects_the_bytes(void **state OP_UNUSED)
{
	struct opd_file_limit *limit = &pipeline.count.limit;

	limit->space.taken_bytes = 1000;
	for (uint64_t weight = 600; weight <= 1000; weight += 100) {
		opd_file_limit_weigh(limit, weight, 600);
		assert_int_equal(opd_file_limit_bytes(limit), 1000);
	}
	opd_file_limit_weigh(limit, 590, 600);
	assert_int_equal(opd_file_limit_bytes(limit), 990);
	opd_file_limit_weigh(limit, 1000, 600);
	assert_int_equal(opd_file_limit_bytes(limit), 1000);
	opd_file_limit_weigh(limit, 0, 1200); /* it became smaller while it was weighed */
	assert_int_equal(opd_file_limit_bytes(limit), 0);
}

static uint64_t weigh(void)
{
	uint64_t nr_bytes;

	assert_int_equal(op_session_disk_bytes(pipeline.count.session_fd, OP_SESSION_CURRENT, &nr_bytes), 0);
	return nr_bytes;
}

/*
 * A full file keeps counting its known addresses. Samples at new addresses go where the samples of
 * a new file would go. The count of bytes agrees with the disk.
 */
static void files_grow_as_far_as_there_is_room(void **state OP_UNUSED)
{
	struct opd_file_limit *limit = &pipeline.count.limit;
	uint64_t nr_moved;

	limit->max = 0;
	limit->nr_last_max = 1;
	limit->space.max_bytes = (MAX + BESIDE) * OP_ODB_BLOCK_BYTES;
	pipeline.count.separate_thread = false;
	for (uint64_t address = 0; address < 40000; address++)
		take_at(0, 1, 0, 16 * address);
	opd_count_flush(&pipeline.count);
	nr_moved = limit->nr_samples[OPD_FILE_OF_IMAGE];
	/* larger than a file of 8,192 nodes, but not by one more step */
	assert_in_range(nr_moved, 40000 - 16384, 40000 - 8192);
	assert_int_equal(account.stored, nr_taken);
	assert_int_equal(sum_files(OP_SESSION_CURRENT).all, nr_taken);
	assert_int_equal(sum_files(OP_SESSION_CURRENT).last, nr_moved);
	assert_true(weigh() <= limit->space.max_bytes);
	assert_true(weigh() <= opd_file_limit_bytes(limit));
	assert_true(weigh() > limit->space.max_bytes / 4 * 3);
	for (uint64_t address = 0; address < 1000; address++)
		take_at(0, 1, 0, 16 * address);
	assert_int_equal(sum_files(OP_SESSION_CURRENT).last, nr_moved);
	limit->space.max_bytes = 0;
	take_at(0, 1, 0, 16 * 39999);
	assert_int_equal(sum_files(OP_SESSION_CURRENT).last, nr_moved);
}

/*
 * The samples of a thread go to the file of all threads, and on from there when that file is full.
 */
static void threads_that_may_not_grow_share(void **state OP_UNUSED)
{
	struct opd_file_limit *limit = &pipeline.count.limit;

	limit->max = 0;
	limit->nr_last_max = 1;
	take(0, 1, 0);
	take(0, OP_CLASS_ALL, 0);
	opd_count_flush(&pipeline.count);
	limit->space.max_bytes = opd_file_limit_bytes(limit) + limit->space.kept_bytes + 3 * OP_ODB_BLOCK_BYTES;
	for (uint64_t address = 0; address < 1000; address++)
		take_at(0, 1, 0, 16 * address);
	opd_count_flush(&pipeline.count);
	assert_int_equal(account.stored, nr_taken);
	assert_int_equal(sum_files(OP_SESSION_CURRENT).all, nr_taken);
	assert_in_range(limit->nr_samples[OPD_FILE_OF_CLASS], 120, 128);
	assert_in_range(limit->nr_samples[OPD_FILE_OF_IMAGE], 1000 - 512 - 128, 1000 - 512 - 120);
	assert_true(weigh() <= limit->space.max_bytes);
}

/* The last file for such samples fits in the limit. */
static void the_last_file_has_its_place(void **state OP_UNUSED)
{
	pipeline.count.separate_thread = false;
	pipeline.count.limit.nr_last_max = 1;
	for (uint32_t image = 0; image < 2 * MAX; image++)
		take(image, 1, 0);
	assert_int_equal(sum_files(OP_SESSION_CURRENT).nr_files, MAX);
	assert_int_equal(sum_files(OP_SESSION_CURRENT).last, 2 * MAX - (MAX - 1));
	assert_int_equal(account.stored, nr_taken);
}

static void cgroups_leave_room(void **state OP_UNUSED)
{
	char path[32];

	pipeline.count.cgroups = &cgroups;
	for (uint32_t i = 1; i <= 100; i++) {
		snprintf(path, sizeof(path), "/storm-%u", i);
		assert_int_equal(opd_cgroups_add(&cgroups, i, path), 0);
		take(0, 1, i);
	}
	opd_count_flush(&pipeline.count);
	assert_int_equal(account.stored, 100);
	assert_int_equal(pipeline.count.limit.nr, MAX_CGROUP);
	assert_int_equal(cgroups.not_split, 100 - (MAX_CGROUP - 1));
	take(1, 1, 1);
	opd_count_flush(&pipeline.count);
	assert_int_equal(account.stored, 101);
	assert_int_equal(sum_files(OP_SESSION_CURRENT).all, 101);
	assert_int_equal(sum_files(OP_SESSION_CURRENT "/cgroup/storm-1").all, 1);
}

static void samples_of_unknown_cgroups_are_counted(void **state OP_UNUSED)
{
	pipeline.count.cgroups = &cgroups;
	assert_int_equal(opd_cgroups_add(&cgroups, 1, "/known"), 0);
	take(0, 1, 1);
	take(0, 1, 4711);
	take(1, 1, 4712);
	opd_count_flush(&pipeline.count);
	assert_int_equal(account.stored, 3);
	assert_int_equal(cgroups.not_split, 0);
	assert_int_equal(cgroups.of_unknown, 2);
	assert_int_equal(sum_files(OP_SESSION_CURRENT "/cgroup/(unknown cgroup)").all, 2);
}

/*
 * More cgroups than slots, in a storm and once more: the samples of each cgroup are in its own
 * file.
 */
static void slots_come_round(void **state OP_UNUSED)
{
	char path[64];

	pipeline.count.separate_thread = false;
	pipeline.count.limit.max = 0;
	pipeline.count.max_closed = 100;
	pipeline.count.cgroups = &cgroups;
	cgroups.max_slots = NR_SLOTS;
	for (uint32_t round = 0; round < 2; round++) {
		for (uint32_t i = 1; i <= NR_CGROUPS; i++) {
			snprintf(path, sizeof(path), "/storm-%u", i);
			assert_int_equal(opd_cgroups_add(&cgroups, i, path), 0);
			take(0, 1, i);
		}
	}
	opd_count_flush(&pipeline.count);
	assert_int_equal(account.stored, 2 * NR_CGROUPS);
	assert_int_equal(cgroups.not_split, 0);
	assert_true(cgroups.nr_taken_back >= NR_CGROUPS);
	assert_true(cgroups.nr_slots <= NR_SLOTS);
	for (uint32_t i = 1; i <= NR_CGROUPS; i++) {
		snprintf(path, sizeof(path), OP_SESSION_CURRENT "/cgroup/storm-%u", i);
		assert_int_equal(sum_files(path).all, 2);
	}
	assert_int_equal(pipeline.count.limit.nr, NR_CGROUPS + 1);
}

/* The slot of the last sample's cgroup goes to the next cgroup: the two are not mixed. */
static void a_slot_is_given_again_at_once(void **state OP_UNUSED)
{
	char path[64];

	pipeline.count.separate_thread = false;
	pipeline.count.limit.max = 0;
	pipeline.count.cgroups = &cgroups;
	cgroups.max_slots = 4;
	for (uint32_t i = 1; i <= 5; i++) {
		snprintf(path, sizeof(path), "/storm-%u", i);
		assert_int_equal(opd_cgroups_add(&cgroups, i, path), 0);
	}
	for (uint32_t i = 1; i <= 4; i++)
		take(0, 1, i);
	take(0, 1, 1);
	take(0, 1, 5);
	assert_int_equal(cgroups.nr_taken_back, 1);
	opd_count_flush(&pipeline.count);
	assert_int_equal(account.stored, 6);
	assert_int_equal(sum_files(OP_SESSION_CURRENT "/cgroup/storm-1").all, 2);
	assert_int_equal(sum_files(OP_SESSION_CURRENT "/cgroup/storm-5").all, 1);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, file_limit_setup, file_limit_teardown)
	const struct CMUnitTest tests[] = {
		T(threads_share_a_file),      T(images_share_the_last_file), T(files_that_are_there_are_found),
		T(room_that_is_made_is_used), T(a_larger_limit_is_used),     T(bytes_have_the_same_steps),
		T(cgroups_leave_room),        T(samples_of_unknown_cgroups_are_counted),
		T(slots_come_round),
		T(a_slot_is_given_again_at_once),
		T(a_weight_corrects_the_bytes),
		T(files_grow_as_far_as_there_is_room),
		T(threads_that_may_not_grow_share),
		T(the_last_file_has_its_place),
	};

	return cmocka_run_group_tests_name("file_limit", tests, NULL, NULL);
}
