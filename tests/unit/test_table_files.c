/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Row tables, when users have put their files in the place of root's: which file is read. */
#include "tests/unit/table_box.h"

#include <sys/mman.h>

struct pair {
	char root[PATH_MAX], user[PATH_MAX], cache[PATH_MAX]; /* files of root and of user 1000 */
	uint32_t nr_rows; /* of root's */
};

/* Two programs with the same length and time, which any user can give a file. */
static struct pair make_pair(const struct box *box)
{
	const struct op_row_table *table = NULL;
	char command[2 * PATH_MAX];
	struct pair pair;

	snprintf(pair.root, sizeof(pair.root), "%s/program", box->path);
	snprintf(pair.user, sizeof(pair.user), "%s/image", box->path);
	snprintf(pair.cache, sizeof(pair.cache), "%s/cache", box->path);
	snprintf(command, sizeof(command), "cd %s && rm -rf cache program image && cp /bin/sh program && cp /bin/ls image && "
		 "truncate -s 1M program image && touch -d @1000000000 program image && chown 1000 image", box->path);
	assert_int_equal(system(command), 0);
	start(built_program, true);
	await_table(cookie_of(OP_IMAGE_FILE, pair.root, 0), &nowhere, &table);
	pair.nr_rows = table->nr_rows;
	stop();
	return pair;
}

/* No table in the cache is that of the user's file, unless in the user's name. */
static void check_cache(const struct pair *pair)
{
	const struct op_row_table *table = NULL;
	char path[PATH_MAX];

	find_kept(pair->cache, path);
	if (!*path)
		return;
	assert_null(strchr(strrchr(path, '/'), '.'));
	start_with_cache(built_program, true, pair->cache, 0);
	await_table(cookie_of(OP_IMAGE_FILE, pair->root, 0), &nowhere, &table);
	assert_int_equal(table->nr_rows, pair->nr_rows);
	stop();
}

/* As a process that has mapped the user's file where it had root's. */
static struct opd_table_source map_users(const struct pair *pair)
{
	int fd = open(pair->user, O_RDONLY | O_CLOEXEC);
	void *map = mmap(NULL, 1u << 20, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);

	assert_ptr_not_equal(map, MAP_FAILED);
	close(fd);
	return (struct opd_table_source){ .pid = (uint32_t)getpid(), .start = (uintptr_t)map, .end = (uintptr_t)map + (1u << 20) };
}

static void a_mapping_of_another_file_is_not_read(void **state)
{
	const struct op_row_table *table = NULL;
	struct opd_table_source source;
	struct pair pair;
	uint64_t cookie;

	if (geteuid())
		skip();
	pair = make_pair(*state);
	source = map_users(&pair);
	start_with_cache(built_program, true, pair.cache, 0);
	await_table(cookie_of(OP_IMAGE_FILE, pair.root, 0), &source, &table);
	assert_int_equal(table->nr_rows, pair.nr_rows);
	await_disk();
	stop();
	check_cache(&pair);
	start(built_program, true);
	cookie = cookie_of(OP_IMAGE_FILE, pair.root, 0);
	assert_int_equal(unlink(pair.root), 0);
	assert_int_equal(await(cookie, &source, &table), OPD_CODE_NO_TABLE);
	stop();
}

/* The user's table of the same build-id is not for root's file, whatever a process has mapped. */
static void a_table_in_a_users_name_is_not_for_roots_file(void **state)
{
	const struct op_row_table *table = NULL;
	struct opd_table_source source;
	struct opd_tables_counts counts;
	char kept[PATH_MAX];
	struct pair pair;
	uint64_t cookie;

	if (geteuid())
		skip();
	pair = make_pair(*state);
	counts_of_one(built_program, pair.cache, 0, pair.user);
	find_kept(pair.cache, kept);
	source = map_users(&pair);
	start_with_cache(built_program, true, pair.cache, 0);
	cookie = cookie_of(OP_IMAGE_FILE, pair.root, 0);
	set_build_id(cookie, kept);
	/* root's file has another build-id */
	assert_int_equal(await(cookie, &source, &table), OPD_CODE_NO_TABLE);
	opd_tables_get_counts(tables, &counts);
	assert_int_equal(counts.from_cache, 0);
	stop();
}

/* Before each look of opd in turn, the user's file takes the place of root's. */
static void a_file_that_is_swapped_between_looks_is_not_read(void **state)
{
	struct pair pair;

	if (geteuid())
		skip();
	for (size_t i = 1; i <= 3; i++) {
		const struct op_row_table *table = NULL;

		pair = make_pair(*state);
		trick.swap_at = i;
		trick.from = pair.user;
		trick.to = pair.root;
		start_with_cache(built_program, true, pair.cache, 0);
		if (await(cookie_of(OP_IMAGE_FILE, pair.root, 0), &nowhere, &table) == OPD_CODE_TABLE)
			assert_int_equal(table->nr_rows, pair.nr_rows);
		await_disk();
		stop();
		trick.swap_at = 0;
		check_cache(&pair);
	}
}

/* What a looker says of a file counts for nothing: the descriptor that is read says which it is. */
static void a_looker_that_lies_is_not_believed(void **state)
{
	const struct op_row_table *table = NULL;
	struct pair pair;
	char path[PATH_MAX];

	if (geteuid())
		skip();
	pair = make_pair(*state);
	trick.liar = pair.user;
	start_with_cache(built_program, true, pair.cache, 0);
	assert_int_equal(await(cookie_of(OP_IMAGE_FILE, pair.root, 0), &nowhere, &table), OPD_CODE_NO_TABLE);
	await_disk();
	stop();
	trick.liar = NULL;
	find_kept(pair.cache, path);
	assert_string_equal(path, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cache_test(a_mapping_of_another_file_is_not_read),
		cache_test(a_table_in_a_users_name_is_not_for_roots_file),
		cache_test(a_file_that_is_swapped_between_looks_is_not_read),
		cache_test(a_looker_that_lies_is_not_believed),
	};

	if (!realpath("tools/opd-tables/opd-tables", built_program))
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
