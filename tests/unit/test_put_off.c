/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Images whose symbols a report has no time to read. */
#include "tests/unit/test_box.h"

#include "libop/process/threads.h"
#include "libop/session/contents.h"
#include "libop/session/directory.h"
#include "libop/session/layout.h"
#include "tests/unit/sample_writer.h"
#include "tools/profile/image_list.h"
#include "tools/profile/selection.h"
#include "tools/symbols/symbol_sources.h"

#define NR_PUT_OFF 2

static char directory[BOX_PATH_BYTES];

static void put(int session_fd, const char *image, uint32_t value)
{
	const struct sample sample = { 0x1000, value };
	struct op_odb_header header = sample_header();
	char path[512];

	snprintf(path, sizeof(path), "{root}%s/{dep}/{root}%s/TIMER.0.0.all.all.all", image, image);
	sample_write(session_fd, path, &header, &sample, 1);
}

static void name_image(char name[BOX_PATH_BYTES + 32], size_t i)
{
	snprintf(name, BOX_PATH_BYTES + 32, "%s/image%zu", directory, i);
}

/* The first ones are read in any case: those with most samples, one for each CPU. */
static void check_images(struct opr_image_cache *cache, size_t nr_images)
{
	size_t nr_read = nr_images - NR_PUT_OFF;
	char name[BOX_PATH_BYTES + 32];

	assert_int_equal(cache->nr_put_off, NR_PUT_OFF);
	for (size_t i = 0; i < nr_images; i++) {
		struct opr_image *image;

		name_image(name, i);
		image = opr_image_cache_find(cache, name);
		assert_non_null(image);
		assert_int_equal(opr_image_load(cache, image), 0);
		assert_int_equal(image->is_put_off, i >= nr_read);
		assert_int_equal(image->is_object, i < nr_read);
		assert_int_equal(image->symbols.nr_symbols > 0, i < nr_read);
	}
}

static void test_images_are_put_off(void **state OP_UNUSED)
{
	const struct opr_words none = { 0 };
	const struct opr_query query = { .session_dir = directory,
					 .merge.merge.lib = true,
					 .naming = { .demangle = true, .sources = OPR_FROM_ALL } };
	size_t nr_images = op_nr_cpus() + NR_PUT_OFF;
	struct opr_selection selection = { 0 };
	struct opr_image_cache cache = { 0 };
	char name[BOX_PATH_BYTES + 32];
	int dir_fd = op_session_open(directory), session_fd = openat(dir_fd, OP_SESSION_CURRENT, O_RDONLY | O_DIRECTORY);

	assert_true(session_fd >= 0);
	for (size_t i = 0; i < nr_images; i++) {
		name_image(name, i);
		assert_int_equal(symlink("/proc/self/exe", name), 0);
		put(session_fd, name, (uint32_t)(nr_images - i));
	}
	assert_int_equal(opr_selection_open(&selection, &query, &none), 0);
	assert_int_equal(opr_selection_read(&selection), 0);
	assert_int_equal(opr_image_cache_init(&cache, &selection.profile, &selection.finder, &query.naming), 0);
	cache.names_end_ns = 1; /* long ago */
	assert_int_equal(opr_image_cache_read(&cache), 0);
	check_images(&cache, nr_images);
	opr_image_cache_free(&cache);
	opr_selection_free(&selection);
	assert_int_equal(op_session_clear(session_fd, NULL), 0);
	close(session_fd);
	close(dir_fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_images_are_put_off) };
	int failed;

	assert(!box_make(directory));
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	return box_remove(directory) || failed;
}
