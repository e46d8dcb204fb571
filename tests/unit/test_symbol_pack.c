/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A file of the cache of symbols: entries old and new, and every bit of it damaged. */
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/unit/cmocka_all.h"

#include "libop/process/guard.h"
#include "tools/symbols/pack.h"

static void assert_entry(const struct opr_pack *pack, const char *name, const char *wanted)
{
	const struct opr_pack_row *row = opr_pack_find(pack, name);
	const char *bytes;

	assert_non_null(row);
	assert_int_equal(row->nr_bytes, strlen(wanted));
	assert_int_equal(opr_pack_get(pack, row, &bytes), 0);
	assert_memory_equal(bytes, wanted, row->nr_bytes);
}

static int new_file(void)
{
	int fd = memfd_create("pack", MFD_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

/* A pack of names and what is in their entries, after which what is in `taken` comes. */
static int write_pack(const char *const (*entries)[2], size_t nr_entries, const struct opr_pack *taken)
{
	struct opr_pack_writer writer;
	int fd = new_file();

	opr_pack_writer_begin(&writer, dup(fd));
	for (size_t i = 0; i < nr_entries; i++)
		assert_int_equal(opr_pack_writer_add(&writer, entries[i][0], entries[i][1], strlen(entries[i][1])), 0);
	if (taken)
		assert_int_equal(opr_pack_writer_merge(&writer, taken), 0);
	assert_int_equal(opr_pack_writer_end(&writer, 0), 0);
	return fd;
}

static const char *const old_entries[][2] = { { "b", "old b" }, { "a", "old a" }, { "damaged", "old" } };
static const char *const new_entries[][2] = { { "c", "first c" }, { "b", "new b" }, { "c", "" } };

static void test_pack(void **state)
{
	struct opr_pack old, new;
	int fd = write_pack(old_entries, op_array_size(old_entries), NULL);

	(void)state;
	assert_int_equal(pwrite(fd, "O", 1, 10), 1);
	assert_int_equal(opr_pack_open(&old, fd), 0);
	assert_entry(&old, "a", "old a");
	assert_null(opr_pack_find(&old, "c"));
	assert_int_equal(opr_pack_open(&new, write_pack(new_entries, op_array_size(new_entries), &old)), 0);
	assert_int_equal(new.nr_rows, 3);
	assert_entry(&new, "a", "old a");
	assert_entry(&new, "b", "new b");
	assert_entry(&new, "c", "");
	opr_pack_close(&old);
	opr_pack_close(&new);
}

/* What a pack with these bytes gives is what was put in, or nothing. */
static void check_damaged(const char *bytes, size_t nr_bytes)
{
	const char *entry;
	struct opr_pack pack;
	size_t nr_sound = 0;
	int fd = new_file();

	assert_int_equal(write(fd, bytes, nr_bytes), nr_bytes);
	if (opr_pack_open(&pack, fd))
		return;
	for (size_t i = 0; i < op_array_size(old_entries); i++) {
		const struct opr_pack_row *row = opr_pack_find(&pack, old_entries[i][0]);

		assert_non_null(row);
		if (opr_pack_get(&pack, row, &entry))
			continue;
		assert_memory_equal(entry, old_entries[i][1], row->nr_bytes);
		nr_sound++;
	}
	assert_int_equal(nr_sound, op_array_size(old_entries) - 1);
	opr_pack_close(&pack);
}

static void test_damaged_pack(void **state)
{
	int fd = write_pack(old_entries, op_array_size(old_entries), NULL);
	char pack_bytes[4096];
	ssize_t nr_bytes = pread(fd, pack_bytes, sizeof(pack_bytes), 0);

	(void)state;
	close(fd);
	assert_in_range(nr_bytes, 100, sizeof(pack_bytes) - 1);
	for (ssize_t i = 0; i < nr_bytes; i++) {
		for (unsigned int bit = 0; bit < 8; bit++) {
			pack_bytes[i] = (char)(pack_bytes[i] ^ 1 << bit);
			check_damaged(pack_bytes, (size_t)nr_bytes);
			pack_bytes[i] = (char)(pack_bytes[i] ^ 1 << bit);
		}
		check_damaged(pack_bytes, (size_t)i);
	}
}

/* Pages that are gone are noticed, and end nobody. */
static void test_shortened_pack(void **state)
{
	int fd = write_pack(old_entries, op_array_size(old_entries), NULL), copy = dup(fd);
	const struct opr_pack_row *row;
	struct opr_pack pack;
	const char *bytes;

	(void)state;
	assert_int_equal(op_guard_install(), 0);
	assert_int_equal(opr_pack_open(&pack, fd), 0);
	row = opr_pack_find(&pack, "a");
	assert_non_null(row);
	assert_int_equal(opr_pack_get(&pack, row, &bytes), 0);
	assert_false(opr_pack_is_broken(&pack));
	assert_int_equal(ftruncate(copy, 0), 0);
	assert_int_equal(opr_pack_get(&pack, row, &bytes), -EBADMSG);
	assert_true(opr_pack_is_broken(&pack));
	close(copy);
	opr_pack_close(&pack);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_pack), cmocka_unit_test(test_damaged_pack),
					    cmocka_unit_test(test_shortened_pack) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
