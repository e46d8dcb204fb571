/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A file that is gone when opd looks, and that is seen earlier or later, is one image. */
#include "tests/unit/test_box.h"

#include <string.h>

#include "libop/session/dcookie.h"
#include "libop/base/sys.h"

static struct op_image_id unseen_id(const char *path, uint64_t inode)
{
	return (struct op_image_id){
		.name = { .kind = OP_IMAGE_FILE, .name = path }, .device = 1, .inode = inode, .inode_generation = 7
	};
}

static struct op_image_id seen_id(const char *path, uint64_t inode, uint64_t mtime_ns)
{
	struct op_image_id id = unseen_id(path, inode);

	id.mtime_ns = mtime_ns;
	id.bytes = 4096;
	return id;
}

static void a_file_is_seen_later(void **state OP_UNUSED)
{
	struct op_dcookie_table *table = op_dcookie_table_new();
	struct op_image_id unseen = unseen_id("/app", 9), seen = seen_id("/app", 9, 5000), anew = seen_id("/app", 9, 6000);
	uint64_t cookie = op_dcookie_get(table, &unseen);
	const struct op_dcookie_row *row = op_dcookie_row(table, cookie);

	assert_int_equal(op_dcookie_get_seen(table, &seen), cookie);
	assert_int_equal(row->id.mtime_ns, 5000);
	assert_int_equal(row->id.bytes, 4096);
	assert_int_equal(op_dcookie_get_seen(table, &seen), cookie);
	assert_int_equal(op_dcookie_get(table, &unseen), cookie);
	/* Written anew in place. */
	assert_int_not_equal(op_dcookie_get_seen(table, &anew), cookie);
	assert_int_equal(op_dcookie_get_seen(table, &seen), cookie);
	assert_int_equal(row->id.mtime_ns, 5000);
	assert_int_equal(op_dcookie_count(table), 2);
	op_dcookie_table_free(table);
}

/* A file that opd could not look at is taken for the last file with its inode. */
static void a_file_was_seen_before(void **state OP_UNUSED)
{
	struct op_dcookie_table *table = op_dcookie_table_new();
	struct op_image_id unseen = unseen_id("/app", 9), seen = seen_id("/app", 9, 5000), anew = seen_id("/app", 9, 6000);
	uint64_t cookie = op_dcookie_get_seen(table, &seen), cookie_anew;

	assert_int_equal(op_dcookie_get(table, &unseen), cookie);
	cookie_anew = op_dcookie_get_seen(table, &anew);
	assert_int_not_equal(cookie_anew, cookie);
	assert_int_equal(op_dcookie_get(table, &unseen), cookie_anew);
	assert_int_equal(op_dcookie_count(table), 2);
	op_dcookie_table_free(table);
}

/* Another inode, generation, device or name, and an unknown generation. */
static void what_may_be_another_file_is_one(void **state OP_UNUSED)
{
	struct op_dcookie_table *table = op_dcookie_table_new();
	struct op_image_id unseen = unseen_id("/app", 9), seen[4];

	for (size_t i = 0; i < op_array_size(seen); i++)
		seen[i] = seen_id(i == 3 ? "/other" : "/app", 9, 5000);
	seen[0].inode++;
	seen[1].inode_generation++;
	seen[2].device++;
	for (size_t i = 0; i < op_array_size(seen); i++)
		assert_int_not_equal(op_dcookie_get_seen(table, &seen[i]), op_dcookie_get(table, &unseen));
	unseen.inode_generation = 0;
	seen[0] = unseen;
	seen[0].mtime_ns = 5000;
	assert_int_not_equal(op_dcookie_get_seen(table, &seen[0]), op_dcookie_get(table, &unseen));
	assert_int_equal(op_dcookie_count(table), 7);
	op_dcookie_table_free(table);
}

/*
 * The headers of its sample files say that there is no time. It has a time from the next session
 * on.
 */
static void a_counted_row_keeps_its_time(void **state OP_UNUSED)
{
	struct op_dcookie_table *table = op_dcookie_table_new();
	struct op_image_id unseen = unseen_id("/app", 9), seen = seen_id("/app", 9, 5000);
	uint64_t cookie = op_dcookie_get(table, &unseen);
	const struct op_dcookie_row *row = op_dcookie_row(table, cookie);

	assert_int_equal(op_dcookie_count_in(table, cookie, 1000), 0);
	op_dcookie_all_written(table);
	assert_int_equal(op_dcookie_get_seen(table, &seen), cookie);
	assert_int_equal(op_dcookie_nr_unwritten(table), 1);
	assert_int_equal(row->id.bytes, 4096);
	assert_int_equal(row->id.mtime_ns, 0);
	seen.mtime_ns = 6000; /* of the same size */
	assert_int_not_equal(op_dcookie_get_seen(table, &seen), cookie);
	op_dcookie_uncount_all(table);
	assert_int_equal(row->id.mtime_ns, 5000);
	op_dcookie_table_free(table);
}

/*
 * Two files at one path, of two containers for example: the second leads to the image of the first,
 * whether opd looked at it or not.
 */
static void a_copy_leads_to_a_row(void **state OP_UNUSED)
{
	struct op_dcookie_table *table = op_dcookie_table_new();
	struct op_image_id seen = seen_id("/app", 9, 5000), copy = seen_id("/app", 10, 5000), unseen = unseen_id("/app", 10);
	uint64_t cookie = op_dcookie_get_seen(table, &seen), other;

	assert_int_equal(op_dcookie_find_seen(table, &seen), cookie);
	assert_int_equal(op_dcookie_find_seen(table, &copy), OP_DCOOKIE_NONE);
	assert_int_equal(op_dcookie_alias_seen(table, &copy, cookie), 0);
	assert_int_equal(op_dcookie_find_seen(table, &copy), cookie);
	assert_int_equal(op_dcookie_get_seen(table, &copy), cookie);
	assert_int_equal(op_dcookie_get(table, &unseen), cookie);
	assert_int_equal(op_dcookie_count(table), 1);
	/* An image with a row of its own keeps that row. */
	copy.inode = 11;
	other = op_dcookie_get_seen(table, &copy);
	assert_int_equal(op_dcookie_alias_seen(table, &copy, cookie), 0);
	assert_int_equal(op_dcookie_find_seen(table, &copy), other);
	/* An image that was not seen yet is found as its later row. */
	unseen.inode = copy.inode = 12;
	cookie = op_dcookie_get(table, &unseen);
	assert_int_equal(op_dcookie_find_seen(table, &copy), cookie);
	assert_int_equal(op_dcookie_row(table, cookie)->id.mtime_ns, 0);
	op_dcookie_table_free(table);
}

/* Without room for the link the row itself is the image. */
static void there_is_no_room(void **state OP_UNUSED)
{
	struct op_dcookie_table *table = op_dcookie_table_new();
	struct op_image_id unseen = unseen_id("/app", 9), seen = seen_id("/app", 9, 5000), other = seen_id("/other", 3, 5000),
			   pseudo = { .name = { .kind = OP_IMAGE_KERNEL, .name = "too-many" }, .is_pseudo = true };
	uint64_t cookie = op_dcookie_get(table, &unseen), overflow = op_dcookie_get(table, &pseudo);

	op_dcookie_limit(table, 0, 0, overflow);
	op_dcookie_limit_bytes(table, 1, 1);
	assert_int_equal(op_dcookie_get_seen(table, &seen), cookie);
	assert_int_equal(op_dcookie_row(table, cookie)->id.mtime_ns, 5000);
	assert_int_equal(op_dcookie_get_seen(table, &other), overflow);
	op_dcookie_table_free(table);
}

/* Another daemon reads the rows of a session: rows that were seen before, in between and never. */
static struct op_dcookie_table *read_again(const struct box *box, const struct op_dcookie_table *table)
{
	struct op_dcookie_table *again = op_dcookie_table_new();
	struct op_dcookie_reading reading;
	struct op_text text = { 0 };
	int fd = openat(box->fd, OP_DCOOKIE_FILE, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

	op_dcookie_format_head(&text);
	op_dcookie_format_unwritten(table, &text);
	assert_int_equal(op_sys_write_all(fd, text.data, text.length), 0);
	close(fd);
	op_text_free(&text);
	assert_int_equal(op_dcookie_table_read(again, box->fd, OP_DCOOKIE_FILE, &reading), 0);
	assert_int_equal(reading.nr_bad, 0);
	return again;
}

static void it_is_one_image_after_a_restart(void **state)
{
	static const char *const paths[] = { "/before", "/between", "/never" };
	struct op_dcookie_table *table = op_dcookie_table_new(), *again;
	uint64_t cookies[3];

	for (size_t i = 0; i < op_array_size(paths); i++) {
		struct op_image_id unseen = unseen_id(paths[i], i + 1), seen = seen_id(paths[i], i + 1, 5000);

		cookies[i] = i ? op_dcookie_get(table, &unseen) : op_dcookie_get_seen(table, &seen);
		assert_int_equal(op_dcookie_count_in(table, cookies[i], 1000), 0);
		if (i == 1)
			assert_int_equal(op_dcookie_get_seen(table, &seen), cookies[i]);
	}
	again = read_again(*state, table);
	for (size_t i = 0; i < op_array_size(paths); i++) {
		struct op_image_id unseen = unseen_id(paths[i], i + 1), seen = seen_id(paths[i], i + 1, 5000), longer = seen;

		assert_int_equal(op_dcookie_get(again, &unseen), cookies[i]);
		longer.bytes += i < 2;
		longer.mtime_ns += i < 2;
		assert_int_equal(op_dcookie_get_seen(again, &seen), cookies[i]);
		assert_true((op_dcookie_get_seen(again, &longer) == cookies[i]) == (i == 2));
	}
	op_dcookie_table_free(again);
	op_dcookie_table_free(table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_is_seen_later),
		cmocka_unit_test(a_file_was_seen_before),
		cmocka_unit_test(what_may_be_another_file_is_one),
		cmocka_unit_test(a_counted_row_keeps_its_time),
		cmocka_unit_test(a_copy_leads_to_a_row),
		cmocka_unit_test(there_is_no_room),
		box_test(it_is_one_image_after_a_restart),
	};

	return cmocka_run_group_tests_name("dcookie_seen", tests, NULL, NULL);
}
