/* SPDX-License-Identifier: GPL-3.0-or-later */
/* One number per identity, stable, never reused; two identities of one name are two images. */
#include "tests/unit/cmocka_all.h"

#include <errno.h>
#include <stdio.h>

#include "libop/session/dcookie_table.h"

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
	struct op_image_id region = { .name = {
					      .kind = OP_IMAGE_ANON, .name = "anon", .tgid = 5, .start = 0x1000, .end = 0x2000 } };
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

static uint64_t counted(struct op_dcookie_table *table, const struct op_image_id *id)
{
	uint64_t cookie = op_dcookie_get(table, id);

	assert_int_equal(op_dcookie_count_in(table, cookie, 10), 0);
	return cookie;
}

static void assert_name(const struct op_dcookie_table *table, uint64_t cookie, const char *name)
{
	const struct op_dcookie_row *row = op_dcookie_row(table, cookie);
	const struct op_image_name whole = op_dcookie_name(row);

	assert_string_equal(row->name, name);
	assert_int_equal(op_dcookie_by_name(table, &whole), cookie);
}

static void names_are_given_with_the_first_sample(void **state OP_UNUSED)
{
	struct op_dcookie_table *table = op_dcookie_table_new();
	struct op_image_id unseen = file_id("/bin/a", 1), first = file_id("/bin/a", 2), second = file_id("/bin/a", 3);
	struct op_image_id in_place = file_id("/bin/a", 3), by_build_id = file_id("/bin/a", 4);
	uint64_t cookie_unseen = op_dcookie_get(table, &unseen), cookie;
	char name[64];

	in_place.mtime_ns = 5;
	by_build_id.build_id_bytes = 20;
	by_build_id.build_id[0] = 0xab;
	assert_name(table, counted(table, &first), "/bin/a");
	assert_name(table, counted(table, &second), "/bin/a (inode 3)");
	cookie = counted(table, &in_place);
	snprintf(name, sizeof(name), "/bin/a (inode 3 #%u)", (unsigned int)cookie);
	assert_name(table, cookie, name);
	assert_name(table, counted(table, &by_build_id), "/bin/a (build-id ab0000000000)");
	assert_null(op_dcookie_row(table, cookie_unseen)->name);
	assert_int_equal(op_dcookie_nr_counted(table), 4);
	assert_int_equal(op_dcookie_count_in(table, cookie, 99), 0);
	assert_int_equal(op_dcookie_row(table, cookie)->first_seen, 10);
	op_dcookie_uncount_all(table);
	assert_int_equal(op_dcookie_nr_counted(table), 0);
	assert_name(table, counted(table, &unseen), "/bin/a");
	op_dcookie_table_free(table);
}

static void a_foreign_file_has_the_plain_name(void **state OP_UNUSED)
{
	struct op_dcookie_table *table = op_dcookie_table_new();
	struct op_image_id id = file_id("/bin/a", 2), other = file_id("/bin/a", 3);
	uint64_t cookie = counted(table, &id);

	assert_int_equal(op_dcookie_make_distinct(table, cookie), 0);
	assert_name(table, cookie, "/bin/a (inode 2)");
	assert_int_equal(op_dcookie_make_distinct(table, cookie), 0);
	assert_name(table, cookie, "/bin/a (inode 2)");
	assert_name(table, counted(table, &other), "/bin/a");
	op_dcookie_table_free(table);
}

/* A file that is not at its path on the host leaves the plain name to the one that is. */
static void the_plain_name_is_for_the_host_s_file(void **state OP_UNUSED)
{
	struct op_dcookie_table *table = op_dcookie_table_new();
	struct op_image_id inside = file_id("/bin/a", 2), hosts = file_id("/bin/a", 3);
	uint64_t cookie = op_dcookie_get(table, &inside);

	op_dcookie_row(table, cookie)->host_has_another = true;
	assert_name(table, counted(table, &inside), "/bin/a (inode 2)");
	assert_name(table, counted(table, &hosts), "/bin/a");
	op_dcookie_uncount_all(table);
	assert_name(table, counted(table, &inside), "/bin/a (inode 2)");
	op_dcookie_table_free(table);
}

/* op_unmangle gives them with the braces that op_mangle writes. */
static void names_are_those_of_paths(void **state OP_UNUSED)
{
	struct op_dcookie_table *table = op_dcookie_table_new();
	struct op_image_id special = file_id("/bin/{dep}/a", 2), other = file_id("/bin/{{dep}}/a", 3);
	uint64_t cookie = counted(table, &special), found;
	struct op_sample_name name = { .app = op_dcookie_name(op_dcookie_row(table, cookie)), .event = "T" }, again;
	struct op_text path = { 0 };
	char *storage;

	assert_name(table, cookie, "/bin/{{dep}}/a");
	name.image = name.app;
	op_mangle(&name, &path);
	assert_int_equal(op_unmangle(op_text_get(&path), &again, &storage, NULL), 0);
	found = op_dcookie_by_name(table, &again.image);
	assert_int_equal(found, cookie);
	assert_name(table, counted(table, &other), "/bin/{{dep}}/a (inode 3)");
	assert_int_equal(op_dcookie_make_distinct(table, cookie), 0);
	assert_name(table, cookie, "/bin/{{dep}}/a (inode 2)");
	free(storage);
	op_text_free(&path);
	op_dcookie_table_free(table);
}

static void long_names_leave_room_for_paths(void **state OP_UNUSED)
{
	struct op_dcookie_table *table = op_dcookie_table_new();
	char component[256], path[3000] = "/";
	struct op_image_id id = file_id(path, 1), other = file_id(path, 2);

	memset(component, 'x', 255);
	component[255] = '\0';
	memcpy(path + 1, component, 256);
	assert_name(table, counted(table, &id), path);
	/* With its identity appended, the last component is longer than the kernel allows. */
	assert_int_equal(strlen(op_dcookie_row(table, counted(table, &other))->name), 30 + 128 + strlen(" (inode 2)"));
	memset(path + 1, 'x', 2000);
	memcpy(path + 2000, "/end", 5);
	assert_true(strlen(op_dcookie_row(table, counted(table, &id))->name) == 30 + strlen("end"));
	op_dcookie_table_free(table);
}

static size_t fill_with_long_names(struct op_dcookie_table *table, uint64_t overflow, bool counted)
{
	char name[4000];
	size_t nr = 0;

	memset(name, 'x', sizeof(name) - 1);
	name[0] = '/';
	name[sizeof(name) - 1] = '\0';
	for (uint64_t i = 1; i < 100; i++) {
		struct op_image_id file = file_id(name, i);
		uint64_t cookie = op_dcookie_get(table, &file);

		if (cookie == overflow || (counted && op_dcookie_count_in(table, cookie, 0) == -EDQUOT))
			break;
		nr++;
	}
	return nr;
}

static void names_have_so_much_room(void **state OP_UNUSED)
{
	struct op_dcookie_table *table = op_dcookie_table_new();
	struct op_image_id pseudo = { .name = { .kind = OP_IMAGE_KERNEL, .name = "too-many-images" }, .is_pseudo = true };
	struct op_image_id other = file_id("/other", 1000), one = file_id("/one", 1001);
	uint64_t overflow = op_dcookie_get(table, &pseudo), cookie;
	size_t nr_bytes = table->nr_bytes;

	op_dcookie_limit(table, 1000, 1000, overflow);
	op_dcookie_limit_bytes(table, 100000, 50000);
	cookie = op_dcookie_get(table, &one);
	assert_in_range(fill_with_long_names(table, overflow, false), 20, 25);
	assert_int_equal(op_dcookie_get(table, &other), overflow);
	assert_int_equal(op_dcookie_alias(table, &other, cookie), 0);
	assert_int_equal(op_dcookie_find(table, &other), OP_DCOOKIE_NONE);
	assert_int_equal(op_dcookie_nr_refused(table), 3);
	/* A forgotten image makes room, to the last byte. */
	op_dcookie_mark_begin(table);
	op_dcookie_sweep(table);
	assert_int_equal(table->nr_bytes, nr_bytes);
	/* Images with samples stay, and new images have half of the memory. */
	assert_in_range(fill_with_long_names(table, overflow, true), 10, 13);
	cookie = op_dcookie_get(table, &other);
	assert_int_not_equal(cookie, overflow);
	assert_int_equal(op_dcookie_set_place(table, cookie, "/somewhere/else", "mnt:[1]"), 0);
	assert_int_equal(op_dcookie_set_place(table, cookie, NULL, "mnt:[2]"), 0);
	assert_int_equal(op_dcookie_count_in(table, cookie, 0), -EDQUOT);
	op_dcookie_uncount_all(table);
	op_dcookie_mark_begin(table);
	op_dcookie_sweep(table);
	assert_int_equal(table->nr_bytes, nr_bytes);
	op_dcookie_table_free(table);
}

static void what_is_beyond_a_limit_is_refused(void **state OP_UNUSED)
{
	struct op_dcookie_table *table = op_dcookie_table_new();
	struct op_image_id pseudo = { .name = { .kind = OP_IMAGE_KERNEL, .name = "too-many-images" }, .is_pseudo = true };
	struct op_image_id kernel = { .name = { .kind = OP_IMAGE_KERNEL, .name = "ext4" }, .is_kernel = true };
	struct op_image_id region = { .name = { .kind = OP_IMAGE_ANON, .name = "anon" } }, file;
	uint64_t overflow = op_dcookie_get(table, &pseudo), cookie;

	op_dcookie_limit(table, 4, 4, overflow);
	for (uint64_t i = 1; i <= 3; i++) {
		file = file_id("/bin/a", i);
		assert_int_not_equal(op_dcookie_get(table, &file), overflow);
	}
	file = file_id("/bin/a", 99);
	assert_int_equal(op_dcookie_get(table, &file), overflow);
	assert_int_equal(op_dcookie_nr_refused(table), 1);
	assert_int_equal(op_dcookie_alias(table, &file, overflow), 0);
	assert_int_equal(op_dcookie_find(table, &file), OP_DCOOKIE_NONE);
	assert_int_not_equal(op_dcookie_get(table, &kernel), overflow);
	/* Two regions and two files. */
	op_dcookie_limit(table, 1000, 4, overflow);
	for (uint64_t i = 1; i <= 3; i++) {
		region.name.start = i;
		cookie = op_dcookie_get(table, &region);
		assert_int_not_equal(cookie, overflow);
		assert_int_equal(op_dcookie_count_in(table, cookie, 0), i <= 2 ? 0 : -EDQUOT);
	}
	for (uint64_t i = 1; i <= 3; i++) {
		file = file_id("/bin/a", i);
		assert_int_equal(op_dcookie_count_in(table, op_dcookie_get(table, &file), 0), i <= 2 ? 0 : -EDQUOT);
	}
	assert_int_equal(op_dcookie_count_in(table, op_dcookie_get(table, &kernel), 0), 0);
	assert_int_equal(op_dcookie_count_in(table, overflow, 0), 0);
	op_dcookie_table_free(table);
}

static void what_nobody_needs_is_forgotten(void **state OP_UNUSED)
{
	struct op_dcookie_table *table = op_dcookie_table_new();
	struct op_image_id pseudo = { .name = { .kind = OP_IMAGE_KERNEL, .name = "no-process" }, .is_pseudo = true };
	struct op_image_id needed = file_id("/bin/a", 1), with_samples = file_id("/bin/a", 2), other = file_id("/bin/a", 3);
	struct op_image_id other_too = file_id("/bin/a", 4);
	uint64_t cookie_pseudo = op_dcookie_get(table, &pseudo), cookie_needed = op_dcookie_get(table, &needed);
	uint64_t cookie_counted = counted(table, &with_samples), cookie_other = op_dcookie_get(table, &other);

	assert_int_equal(op_dcookie_alias(table, &other_too, cookie_other), 0);
	op_dcookie_mark_begin(table);
	op_dcookie_mark(table, cookie_needed);
	op_dcookie_mark(table, 4711);
	assert_int_equal(op_dcookie_sweep(table), 1);
	assert_int_equal(op_dcookie_find(table, &other), OP_DCOOKIE_NONE);
	assert_int_equal(op_dcookie_find(table, &other_too), OP_DCOOKIE_NONE);
	assert_int_equal(op_dcookie_find(table, &pseudo), cookie_pseudo);
	assert_int_equal(op_dcookie_find(table, &needed), cookie_needed);
	assert_int_equal(op_dcookie_find(table, &with_samples), cookie_counted);
	assert_int_equal(op_dcookie_get(table, &other), cookie_other + 1);
	op_dcookie_table_free(table);
}

/* Samples may have a cookie that is in no row: they are refused and counted, and nothing ends. */
static void what_is_in_no_row(void **state OP_UNUSED)
{
	struct op_dcookie_table *table = op_dcookie_table_new();
	struct op_image_id id = { .name = { .kind = OP_IMAGE_FILE, .name = "/a" } }, seen = { .inode = 3, .name = id.name };
	const uint64_t cookies[] = { OP_DCOOKIE_NONE, 4711, UINT64_MAX };
	const uint8_t build_id[OP_BUILD_ID_BYTES_MAX + 1] = { 1 };
	uint64_t known;

	assert_non_null(table);
	known = op_dcookie_get(table, &id);
	for (size_t i = 0; i < op_array_size(cookies); i++) {
		struct op_dcookie_row *row = op_dcookie_row(table, cookies[i]);

		assert_true(row->id.is_pseudo && !row->name && !*row->id.name.name);
		assert_int_equal(row->cookie, OP_DCOOKIE_NONE);
		assert_int_equal(op_dcookie_count_in(table, cookies[i], 1), -EDQUOT);
		assert_int_equal(op_dcookie_nr_refused(table), i + 1);
		assert_int_equal(op_dcookie_alias(table, &seen, cookies[i]), 0);
		assert_int_equal(op_dcookie_set_place(table, cookies[i], "/b", "c"), 0);
		assert_int_equal(op_dcookie_set_build_id(table, cookies[i], build_id, 20), 0);
		assert_int_equal(op_dcookie_make_distinct(table, cookies[i]), 0);
	}
	assert_int_equal(op_dcookie_find(table, &seen), OP_DCOOKIE_NONE);
	assert_int_equal(op_dcookie_set_build_id(table, known, build_id, OP_BUILD_ID_BYTES_MAX + 1), 0);
	assert_int_equal(op_dcookie_row(table, known)->id.build_id_bytes, 0);
	assert_int_equal(op_dcookie_make_distinct(table, known), 0); /* it is not counted */
	op_dcookie_table_free(table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(same_identity_same_cookie),         cmocka_unit_test(what_replaces_a_file_is_another_image),
		cmocka_unit_test(an_alias_leads_to_the_same_row),    cmocka_unit_test(regions_differ_by_process_and_bounds),
		cmocka_unit_test(many_stay_what_they_are),           cmocka_unit_test(names_are_given_with_the_first_sample),
		cmocka_unit_test(a_foreign_file_has_the_plain_name),
		cmocka_unit_test(the_plain_name_is_for_the_host_s_file), cmocka_unit_test(long_names_leave_room_for_paths),
		cmocka_unit_test(names_are_those_of_paths),          cmocka_unit_test(what_is_beyond_a_limit_is_refused),
		cmocka_unit_test(names_have_so_much_room),           cmocka_unit_test(what_nobody_needs_is_forgotten),
		cmocka_unit_test(what_is_in_no_row),
	};

	return cmocka_run_group_tests_name("dcookie", tests, NULL, NULL);
}
