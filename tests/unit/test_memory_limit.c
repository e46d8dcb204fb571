/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The memory view has a limited number of nodes. Each is counted once, whatever happens to its
 * file.
 */
#include "tests/unit/cmocka_all.h"

#include "libop/session/layout.h"
#include "libop/session/memory_view.h"
#include "pipeline/count/memory_limit.h"
#include "tests/unit/pipeline.h"

#define NR_IMAGES  12u
#define NR_PLACES  3u
#define NR_FACTS   2u /* of each place */
#define NR_NODES   (NR_IMAGES * NR_PLACES * NR_FACTS)
#define OF_AN_IMAGE (NR_PLACES * NR_FACTS)

static struct opd_pipeline pipeline;
static struct opd_event account;
static struct op_event event;
static char dir[BOX_PATH_BYTES];

static int memory_limit_setup(void **state OP_UNUSED)
{
	pipeline = (struct opd_pipeline){ 0 };
	account = (struct opd_event){ 0 };
	event = (struct op_event){ .name = "IBS_OP_MEMORY", .count = 1000, .role = OP_EVENT_MEMORY };
	pipeline.capture.events = &event;
	if (pipeline_begin(&pipeline, dir))
		return -1;
	pipeline.count.max_open = 2;
	pipeline.count.max_closed = 1000;
	return 0;
}

static int memory_limit_teardown(void **state OP_UNUSED)
{
	return pipeline_end(&pipeline, dir);
}

static void take(unsigned int image, uint64_t offset, uint8_t fact)
{
	char name[32];
	struct op_image_id id = { .name = { .kind = OP_IMAGE_FILE, .name = name }, .inode = 1 + image };
	struct opd_resolved resolved = { 0 };
	struct opd_counted counted = { .resolved = &resolved, .account = &account, .amount = 1 };

	snprintf(name, sizeof(name), "/bin/image-%u", image);
	resolved.location = (struct op_location){ op_dcookie_get(pipeline.resolver.table, &id), op_memory_view_key(offset, fact) };
	pipeline.count.now_ns++;
	opd_count_sample(&pipeline.count, &counted);
}

static void take_image(unsigned int image)
{
	for (uint64_t place = 0; place < NR_PLACES; place++)
		for (unsigned int fact = 0; fact < NR_FACTS; fact++)
			take(image, 16 * place, (uint8_t)fact);
}

static void take_all(void)
{
	for (unsigned int image = 0; image < NR_IMAGES; image++)
		take_image(image);
	opd_count_flush(&pipeline.count);
}

static void remove_files(const char *what)
{
	char command[BOX_PATH_BYTES + 128];

	snprintf(command, sizeof(command), "rm -r %s/" OP_SESSION_CURRENT "/%s", dir, what);
	assert_int_equal(system(command), 0);
}

/* The count of a daemon that begins with the session as it is. */
static uint64_t recount(void)
{
	struct opd_count other = { .session_fd = pipeline.count.session_fd };

	assert_int_equal(opd_memory_recount(&other), 0);
	return other.nr_memory_nodes;
}

static void check(uint64_t nr_nodes)
{
	assert_int_equal(pipeline.count.nr_memory_nodes, nr_nodes);
	assert_int_equal(recount(), nr_nodes);
}

static void closed_files_are_counted_once(void **state OP_UNUSED)
{
	assert_int_equal(recount(), 0);
	for (int round = 0; round < 5; round++)
		take_all();
	check(NR_NODES);
	opd_count_release_files(&pipeline.count);
	take_all();
	check(NR_NODES);
	assert_int_equal(opd_count_renew(&pipeline.count), 0);
	take_all();
	check(NR_NODES);
	take(0, 16 * NR_PLACES, 0);
	opd_count_flush(&pipeline.count);
	check(NR_NODES + 1);
}

static void forgotten_files_are_counted_once(void **state OP_UNUSED)
{
	pipeline.count.max_closed = 3;
	for (int round = 0; round < 5; round++)
		take_all();
	assert_true(pipeline.count.nr_forgotten > 0);
	check(NR_NODES);
}

/* The same fact comes several times before it is in its file, and there is room for one node. */
static void what_repeats_is_one_node(void **state OP_UNUSED)
{
	pipeline.count.nr_memory_nodes = OPD_MEMORY_NODES_MAX - NR_PLACES;
	for (int round = 0; round < 5; round++)
		for (uint64_t place = 0; place < NR_PLACES; place++)
			take(0, 16 * place, 0);
	opd_count_flush(&pipeline.count);
	assert_int_equal(pipeline.count.nr_memory_dropped, 0);
	assert_int_equal(pipeline.count.nr_memory_nodes, OPD_MEMORY_NODES_MAX);
	assert_int_equal(recount(), NR_PLACES);
}

static void the_limit_is_reached_and_not_passed(void **state OP_UNUSED)
{
	const uint64_t nr_others = OPD_MEMORY_NODES_MAX - NR_NODES - 10;

	pipeline.count.nr_memory_nodes = nr_others;
	for (int round = 0; round < 5; round++)
		take_all();
	assert_int_equal(pipeline.count.nr_memory_nodes, nr_others + NR_NODES);
	for (int round = 0; round < 2; round++) {
		for (uint64_t place = 0; place < 30; place++)
			take(0, 0x1000 + 16 * place, 0);
		opd_count_flush(&pipeline.count);
		assert_int_equal(pipeline.count.nr_memory_nodes, OPD_MEMORY_NODES_MAX);
		assert_int_equal(pipeline.count.nr_memory_dropped, (round + 1) * 20);
	}
	take_all();
	assert_int_equal(pipeline.count.nr_memory_dropped, 40);
	assert_int_equal(recount(), NR_NODES + 10);
}

static void what_was_removed_makes_room(void **state OP_UNUSED)
{
	take_all();
	remove_files(OP_MEM_DIR "/{root}/bin/image-3");
	remove_files(OP_MEM_DIR "/{root}/bin/image-11"); /* which is open */
	assert_true(opd_count_check_files(&pipeline.count, false));
	check(NR_NODES - 2 * OF_AN_IMAGE);
	opd_count_forget_missing(&pipeline.count);
	check(NR_NODES - 2 * OF_AN_IMAGE);
	take_all();
	check(NR_NODES);
	remove_files(OP_MEM_DIR);
	opd_count_forget_missing(&pipeline.count);
	check(0);
	take_all();
	check(NR_NODES);
}

static void another_session_begins_with_nothing(void **state OP_UNUSED)
{
	take_all();
	opd_count_close_files(&pipeline.count);
	remove_files(OP_MEM_DIR);
	check(0);
	take_all();
	check(NR_NODES);
}

/* The nodes of an earlier daemon count from the start. */
static void a_session_goes_on(void **state OP_UNUSED)
{
	take_all();
	opd_count_close_files(&pipeline.count);
	assert_int_equal(opd_file_limit_recount(&pipeline.count.limit, pipeline.count.session_fd), 0);
	assert_int_equal(pipeline.count.limit.nr, NR_IMAGES);
	assert_int_equal(opd_memory_recount(&pipeline.count), 0);
	check(NR_NODES);
	take_image(5);
	take(6, 0x1000, 0);
	opd_count_flush(&pipeline.count);
	check(NR_NODES + 1);
	assert_false(opd_count_check_files(&pipeline.count, true));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(closed_files_are_counted_once, memory_limit_setup, memory_limit_teardown),
		cmocka_unit_test_setup_teardown(forgotten_files_are_counted_once, memory_limit_setup, memory_limit_teardown),
		cmocka_unit_test_setup_teardown(what_repeats_is_one_node, memory_limit_setup, memory_limit_teardown),
		cmocka_unit_test_setup_teardown(the_limit_is_reached_and_not_passed, memory_limit_setup, memory_limit_teardown),
		cmocka_unit_test_setup_teardown(what_was_removed_makes_room, memory_limit_setup, memory_limit_teardown),
		cmocka_unit_test_setup_teardown(another_session_begins_with_nothing, memory_limit_setup, memory_limit_teardown),
		cmocka_unit_test_setup_teardown(a_session_goes_on, memory_limit_setup, memory_limit_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
