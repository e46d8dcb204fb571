/* SPDX-License-Identifier: GPL-3.0-or-later */
/* One number per identity, stable, never reused; two identities of one name are two images. */
#include "tests/unit/cmocka_all.h"

#include <errno.h>
#include <stdio.h>

#include "libop/dcookie.h"

static struct op_image_id file_id(const char *path, uint64_t inode)
{
	return (struct op_image_id){ .name = { .kind = OP_IMAGE_FILE, .name = path }, .device = 1, .inode = inode };
}

static void same_identity_same_cookie(void **state OP_UNUSED)
{
	struct op_dcookie_table *table = op_dcookie_table_new();
	struct op_image_id a = file_id("/bin/a", 1), b = file_id("/bin/b", 2);
	uint64_t cookie_a = op_dcookie_get(table, &a), cookie_b = op_dcookie_get(table, &b);

	assert_int_not_equal(cookie_a, OP_DCOOKIE_NONE);
	assert_int_not_equal(cookie_a, cookie_b);
	assert_int_equal(op_dcookie_get(table, &a), cookie_a);
	assert_int_equal(op_dcookie_find(table, &b), cookie_b);
	assert_string_equal(op_dcookie_row(table, cookie_a)->id.name.name, "/bin/a");
	assert_int_equal(op_dcookie_count(table), 2);
	op_dcookie_table_free(table);
}

static void what_replaces_a_file_is_another_image(void **state OP_UNUSED)
{
	struct op_dcookie_table *table = op_dcookie_table_new();
	struct op_image_id old = file_id("/bin/a", 1), new = file_id("/bin/a", 2);
	uint64_t cookie_old = op_dcookie_get(table, &old), cookie_new = op_dcookie_get(table, &new);

	assert_int_not_equal(cookie_old, cookie_new);
	op_dcookie_table_free(table);
}

static void an_alias_leads_to_the_same_row(void **state OP_UNUSED)
{
	struct op_dcookie_table *table = op_dcookie_table_new();
	struct op_image_id by_inode = file_id("/bin/a", 1), by_build_id = file_id("/bin/a", 0), other = file_id("/bin/b", 7);
	uint64_t cookie = op_dcookie_get(table, &by_inode), cookie_other = op_dcookie_get(table, &other);

	by_build_id.build_id_bytes = 20;
	by_build_id.build_id[3] = 9;
	assert_int_equal(op_dcookie_find(table, &by_build_id), OP_DCOOKIE_NONE);
	assert_int_equal(op_dcookie_alias(table, &by_build_id, cookie), 0);
	assert_int_equal(op_dcookie_get(table, &by_build_id), cookie);
	assert_int_equal(op_dcookie_alias(table, &by_build_id, cookie), 0);
	assert_int_equal(op_dcookie_alias(table, &by_build_id, cookie_other), -EEXIST);
	assert_int_equal(op_dcookie_count(table), 2);
	op_dcookie_table_free(table);
}

static void regions_differ_by_process_and_bounds(void **state OP_UNUSED)
{
	struct op_dcookie_table *table = op_dcookie_table_new();
	struct op_image_id region = { .name = { .kind = OP_IMAGE_ANON, .name = "anon", .tgid = 5, .start = 0x1000, .end = 0x2000 } };
	uint64_t first = op_dcookie_get(table, &region);

	region.name.tgid = 6;
	assert_int_not_equal(op_dcookie_get(table, &region), first);
	region.name.tgid = 5;
	region.name.end = 0x3000;
	assert_int_not_equal(op_dcookie_get(table, &region), first);
	region.name.end = 0x2000;
	assert_int_equal(op_dcookie_get(table, &region), first);
	op_dcookie_table_free(table);
}

static void many_stay_what_they_are(void **state OP_UNUSED)
{
	struct op_dcookie_table *table = op_dcookie_table_new();
	char path[32];

	for (uint64_t i = 0; i < 5000; i++) {
		struct op_image_id id = file_id(path, i);

		snprintf(path, sizeof(path), "/bin/%u", (unsigned int)i);
		assert_int_equal(op_dcookie_get(table, &id), i + 1);
	}
	for (uint64_t i = 0; i < 5000; i++) {
		struct op_image_id id = file_id(path, i);

		snprintf(path, sizeof(path), "/bin/%u", (unsigned int)i);
		assert_int_equal(op_dcookie_find(table, &id), i + 1);
		assert_string_equal(op_dcookie_row(table, i + 1)->id.name.name, path);
	}
	op_dcookie_table_free(table);
	op_dcookie_table_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(same_identity_same_cookie), cmocka_unit_test(what_replaces_a_file_is_another_image),
		cmocka_unit_test(an_alias_leads_to_the_same_row), cmocka_unit_test(regions_differ_by_process_and_bounds),
		cmocka_unit_test(many_stay_what_they_are),
	};

	return cmocka_run_group_tests_name("dcookie", tests, NULL, NULL);
}
