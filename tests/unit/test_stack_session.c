/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The file of stacks (pipeline/count/stack_file.h): dumped, renewed, removed, closed. */
#include "tests/unit/cmocka_all.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libop/session/contents.h"
#include "libop/session/stack_ends.h"
#include "libop/session/sum.h"
#include "libop/stacks/read.h"
#include "pipeline/count/session_files.h"
#include "pipeline/count/stack_file.h"
#include "pipeline/ledger/recover.h"
#include "tests/unit/pipeline.h"

#define APP   "/bin/a"
#define OTHER "/lib/b"

static struct opd_pipeline pipeline;
static struct op_event events[] = {
	{ .name = "TIMER", .count = 1000000 },
	{ .name = OP_STACKS_NAME, .count = 10101010, .role = OP_EVENT_STACKS },
};
static char dir[BOX_PATH_BYTES];

static int stacks_setup(void **state OP_UNUSED)
{
	memset(&pipeline, 0, sizeof(pipeline));
	if (pipeline_begin(&pipeline, dir))
		return -1;
	pipeline.count.events = events;
	pipeline.count.nr_events = op_array_size(events);
	pipeline.count.now_ns = 1;
	return 0;
}

static int stacks_teardown(void **state OP_UNUSED)
{
	return pipeline_end(&pipeline, dir);
}

static uint64_t cookie_of(const char *path)
{
	struct op_image_id id = { .name = { .kind = OP_IMAGE_FILE, .name = path }, .inode = 1 + (uint64_t)strlen(path) };

	return op_dcookie_get(pipeline.count.table, &id);
}

/* One stack of two frames; `value` makes it another one. */
static int add_ended(uint64_t value, enum op_stack_end end, bool *ret_has_room)
{
	struct op_stack_path path = { .event = 1, .app = cookie_of(APP), .comm = "a", .end = end };
	struct op_stack_frame frames[] = {
		{ .image = cookie_of(APP), .value = 1000 }, { .image = cookie_of(OTHER), .value = value }
	};

	return opd_count_stack(&pipeline.count, &path, frames, op_array_size(frames), 1, ret_has_room);
}

static int add(uint64_t value, bool *ret_has_room)
{
	return add_ended(value, OP_STACK_END_complete, ret_has_room);
}

static void add_good(uint64_t value)
{
	bool has_room = false;

	assert_int_equal(add(value, &has_room), 0);
	assert_true(has_room);
}

static uint64_t sum(void)
{
	struct op_stack_tree tree;
	uint64_t count = 0;

	assert_int_equal(op_stacks_read(pipeline.count.session_fd, OPD_STACKS_PATH, &tree), 0);
	for (uint32_t i = 0; i < tree.nr_nodes; i++)
		count += tree.nodes[i].count;
	op_stack_tree_free(&tree);
	return count;
}

static ino_t inode(void)
{
	struct stat st;

	return fstatat(pipeline.count.session_fd, OPD_STACKS_PATH, &st, 0) < 0 ? 0 : st.st_ino;
}

/* Whether a dump would write the file. */
static bool take_changed(void)
{
	char **paths;
	size_t nr;
	bool has_stacks;

	assert_int_equal(opd_count_take_changed(&pipeline.count, &paths, &nr), 0);
	has_stacks = nr && !strcmp(paths[nr - 1], OPD_STACKS_PATH);
	for (size_t i = 0; i < nr; i++)
		free(paths[i]);
	free(paths);
	return has_stacks;
}

static void test_images_are_named(void **state OP_UNUSED)
{
	add_good(1);
	assert_non_null(op_dcookie_row(pipeline.count.table, cookie_of(APP))->name);
	assert_non_null(op_dcookie_row(pipeline.count.table, cookie_of(OTHER))->name);
	assert_int_equal(sum(), 1);
}

static void test_too_many_images(void **state OP_UNUSED)
{
	uint64_t overflow = pipeline.resolver.pseudo[OPD_PSEUDO_TOO_MANY_IMAGES];
	struct op_stack_tree tree;

	op_dcookie_limit(pipeline.count.table, 1000, 1, overflow);
	add_good(1);
	add_good(2);
	assert_int_equal(op_stacks_read(pipeline.count.session_fd, OPD_STACKS_PATH, &tree), 0);
	assert_int_equal(tree.nodes[tree.nr_nodes - 1].image, overflow);
	assert_int_equal(tree.nodes[tree.nr_nodes - 1].value, 0);
	assert_int_equal(tree.nodes[tree.nr_nodes - 1].count, 2);
	op_stack_tree_free(&tree);
}

static void test_dump(void **state OP_UNUSED)
{
	assert_false(take_changed());
	add_good(1);
	assert_true(take_changed());
	assert_false(take_changed());
	opd_count_mark_changed(&pipeline.count);
	assert_true(take_changed());
	opd_count_release_files(&pipeline.count);
	assert_null(pipeline.count.stacks.store);
	add_good(1);
	assert_true(take_changed());
	assert_int_equal(sum(), 2);
	assert_false(opd_count_check_files(&pipeline.count, true));
}

static void test_renew(void **state OP_UNUSED)
{
	ino_t before;

	assert_int_equal(opd_count_renew(&pipeline.count), 0);
	add_good(1);
	before = inode();
	assert_true(take_changed());
	assert_int_equal(opd_count_renew(&pipeline.count), 0);
	assert_true(inode() != before);
	assert_true(take_changed());
	add_good(1);
	assert_int_equal(sum(), 2);
}

static void test_removed(void **state OP_UNUSED)
{
	add_good(1);
	assert_int_equal(unlinkat(pipeline.count.session_fd, OPD_STACKS_PATH, 0), 0);
	assert_true(opd_count_check_files(&pipeline.count, true));
	assert_false(opd_count_check_files(&pipeline.count, true));
	add_good(1);
	assert_int_equal(sum(), 1);
	opd_count_release_files(&pipeline.count);
	assert_int_equal(unlinkat(pipeline.count.session_fd, OPD_STACKS_PATH, 0), 0);
	assert_true(opd_count_forget_missing(&pipeline.count));
	assert_false(take_changed());
}

static void test_damaged(void **state OP_UNUSED)
{
	int fd;

	add_good(1);
	opd_count_release_files(&pipeline.count);
	fd = openat(pipeline.count.session_fd, OPD_STACKS_PATH, O_WRONLY);
	assert_int_equal(pwrite(fd, "other", 5, 0), 5);
	close(fd);
	add_good(2);
	assert_int_equal(sum(), 1);
	assert_int_equal(pipeline.count.nr_damaged, 1);
	assert_int_equal(faccessat(pipeline.count.session_fd, "damaged", F_OK, 0), 0);
}

/* Stacks leave three quarters of the session's bytes to sample files. */
static void test_share(void **state OP_UNUSED)
{
	uint64_t most = 1u << 20, nr_refused = 0;
	struct stat st;

	opd_file_limit_give(&pipeline.count.limit, most);
	for (uint64_t i = 0; i < 20000; i++) {
		bool has_room = true;

		assert_int_equal(add(i, &has_room), 0);
		nr_refused += !has_room;
	}
	assert_true(nr_refused);
	assert_int_equal(sum(), 20000);
	assert_int_equal(fstatat(pipeline.count.session_fd, OPD_STACKS_PATH, &st, 0), 0);
	assert_in_range(st.st_size, most / 4 - 4096, most / 4);
	assert_in_range(pipeline.count.limit.space.taken_bytes, most / 4 - 4096, most / 4 + 10 * 4096);
}

static void test_next_session(void **state OP_UNUSED)
{
	int fd;

	add_good(1);
	opd_count_close_files(&pipeline.count);
	assert_int_equal(renameat(pipeline.count.session_fd, OP_SESSION_CURRENT, pipeline.count.session_fd, "samples/old"), 0);
	op_dcookie_uncount_all(pipeline.count.table);
	add_good(1);
	assert_non_null(op_dcookie_row(pipeline.count.table, cookie_of(OTHER))->name);
	assert_int_equal(sum(), 1);
	/* A reset removes it. */
	opd_count_close_files(&pipeline.count);
	fd = openat(pipeline.count.session_fd, OP_SESSION_CURRENT, O_RDONLY | O_DIRECTORY);
	assert_true(op_session_has_parts(fd));
	assert_int_equal(op_session_clear(fd, NULL), 0);
	assert_false(op_session_has_parts(fd));
	close(fd);
	assert_int_equal(inode(), 0);
}

/* ---- the ledger follows the file ---- */

static void sum_ledger(struct op_session_ledger *ledger)
{
	int fd = openat(pipeline.count.session_fd, OP_SESSION_CURRENT, O_RDONLY | O_DIRECTORY);
	uint64_t nr_bad;

	assert_int_equal(op_session_ledger_add_files(ledger, fd, &nr_bad), 0);
	assert_int_equal(nr_bad, 0);
	close(fd);
}

static void test_sums(void **state OP_UNUSED)
{
	struct op_session_ledger sums = { 0 };
	struct op_ledger_event *row;
	bool has_room = false;

	for (uint64_t i = 0; i < 60; i++)
		assert_int_equal(add_ended(i, i % 3 ? OP_STACK_END_complete : OP_STACK_END_no_row, &has_room), 0);
	opd_count_release_files(&pipeline.count);
	pipeline.count.stacks.max_bytes = 1;
	assert_int_equal(add(1000, &has_room), 0);
	assert_false(has_room);
	sum_ledger(&sums);
	assert_int_equal(sums.nr_events, 1);
	row = &sums.events[0];
	assert_string_equal(row->name, OP_STACKS_NAME);
	assert_int_equal(row->count, events[1].count);
	assert_int_equal(row->role, OP_EVENT_STACKS);
	assert_int_equal(row->stored, 61);
	assert_int_equal(row->ends[OP_STACK_END_complete], 40);
	assert_int_equal(row->ends[OP_STACK_END_no_row], 20);
	assert_int_equal(row->ends[OP_STACK_END_no_room], 1);
	op_session_ledger_free(&sums);
}

/* A power cut took the end of the file. */
static void test_correction(void **state OP_UNUSED)
{
	struct op_session_ledger ledger = { 0 }, sums = { 0 };
	struct op_ledger_event *row;
	struct stat st;
	int fd;

	for (uint64_t i = 0; i < 50; i++)
		add_good(i);
	sum_ledger(&ledger);
	row = &ledger.events[0];
	row->received = row->stored;
	opd_count_close_files(&pipeline.count);
	fd = openat(pipeline.count.session_fd, OPD_STACKS_PATH, O_RDWR);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(ftruncate(fd, st.st_size - 10 * (off_t)sizeof(struct op_stack_node)), 0);
	close(fd);
	opd_recover(pipeline.count.session_fd, true);
	sum_ledger(&sums);
	assert_int_equal(sums.events[0].stored, 40);
	assert_int_equal(op_session_ledger_correct(&ledger, &sums), 0);
	assert_int_equal(row->stored, 40);
	assert_int_equal(row->lost[OP_LOSS_io_error], 10);
	assert_int_equal(row->ends[OP_STACK_END_complete], 40);
	assert_true(op_ledger_adds_up(row));
	op_session_ledger_free(&ledger);
	op_session_ledger_free(&sums);
	assert_int_equal(sum(), 40);
	add_good(1);
	assert_int_equal(pipeline.count.dropped_nodes, 0); /* the recovery dropped them */
}

static void test_recovery_puts_aside(void **state OP_UNUSED)
{
	add_good(1);
	opd_count_close_files(&pipeline.count);
	assert_int_equal(unlinkat(pipeline.count.session_fd, OPD_STACKS_PATH, 0), 0);
	assert_int_equal(mkfifoat(pipeline.count.session_fd, OPD_STACKS_PATH, 0600), 0);
	opd_recover(pipeline.count.session_fd, true);
	assert_int_equal(inode(), 0);
	assert_int_equal(faccessat(pipeline.count.session_fd, "damaged", F_OK, 0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_images_are_named, stacks_setup, stacks_teardown),
		cmocka_unit_test_setup_teardown(test_too_many_images, stacks_setup, stacks_teardown),
		cmocka_unit_test_setup_teardown(test_dump, stacks_setup, stacks_teardown),
		cmocka_unit_test_setup_teardown(test_renew, stacks_setup, stacks_teardown),
		cmocka_unit_test_setup_teardown(test_removed, stacks_setup, stacks_teardown),
		cmocka_unit_test_setup_teardown(test_damaged, stacks_setup, stacks_teardown),
		cmocka_unit_test_setup_teardown(test_share, stacks_setup, stacks_teardown),
		cmocka_unit_test_setup_teardown(test_next_session, stacks_setup, stacks_teardown),
		cmocka_unit_test_setup_teardown(test_sums, stacks_setup, stacks_teardown),
		cmocka_unit_test_setup_teardown(test_correction, stacks_setup, stacks_teardown),
		cmocka_unit_test_setup_teardown(test_recovery_puts_aside, stacks_setup, stacks_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
