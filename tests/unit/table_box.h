/* SPDX-License-Identifier: GPL-3.0-or-later */
/* opd's row tables without opd: a nursery, lookers, a table of images, and a cache in a box. */
#ifndef TABLE_BOX_H
#define TABLE_BOX_H

#include "tests/unit/cmocka_all.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "libop/base/clock.h"
#include "libop/process/pass.h"
#include "pipeline/files/lookers.h"
#include "pipeline/files/pass_file.h"
#include "pipeline/stacks/helper_kinds.h"
#include "pipeline/stacks/tables.h"
#include "tests/unit/test_box.h"

/* In the looker: what happens before the question number `swap_at` for a file, from 1. */
static struct {
	size_t swap_at;
	const char *from, *to; /* one file takes the place of the other */
	const char *liar;      /* this file is passed instead of the wanted one */
} trick;

static inline int look(const char *question, size_t nr_bytes, int fd, struct op_text *answer)
{
	struct iovec part = { (char[]){ 0 }, 1 };
	static size_t nr_passed;
	uint32_t number;
	int other;

	memcpy(&number, question, sizeof(number));
	if (number == OPD_LOOK_PASS && ++nr_passed == trick.swap_at)
		assert_int_equal(rename(trick.from, trick.to), 0);
	if (number != OPD_LOOK_PASS || !trick.liar)
		return opd_look_answer(question, nr_bytes, fd, answer);
	other = open(trick.liar, O_RDONLY | O_CLOEXEC);
	return op_pass_send(fd, &part, 1, other, 0) == 1 ? close(other) : -EIO;
}

static struct op_helper_kind kinds[] = OPD_HELPER_KINDS("opd-test", NULL, opd_tabler_begin);

static char built_program[PATH_MAX]; /* opd-tables of this build */
static struct op_nursery *nursery;
static struct opd_lookers *lookers;
static struct op_dcookie_table *images;
static struct opd_tables *tables;
#define HOUR_NS (3600ull * OP_NS_PER_S)

static uint64_t wait_ns, unused_ns; /* 0: as opd */

static inline void start_with_cache(const char *program, bool with_lookers, const char *cache_dir, uint64_t max_use)
{
	struct opd_tables_config config = { .cache_dir = cache_dir, .max_use = max_use };

	config.wait_ns = wait_ns;
	config.unused_ns = unused_ns;
	setenv(OPD_TABLES_ENV, program, 1);
	opd_tabler_find_program();
	kinds[OPD_HELPER_LOOKER].answer = look;
	assert_int_equal(op_nursery_start(kinds, op_array_size(kinds), &nursery), 0);
	lookers = NULL;
	if (with_lookers)
		assert_int_equal(opd_lookers_new(nursery, OPD_HELPER_LOOKER, &lookers), 0);
	images = op_dcookie_table_new();
	assert_non_null(images);
	config.nursery = nursery;
	config.lookers = lookers;
	assert_int_equal(opd_tables_new(&config, &tables), 0);
	opd_tables_set_images(tables, images);
}

static inline void start(const char *program, bool with_lookers)
{
	start_with_cache(program, with_lookers, NULL, 0);
}

static inline void stop(void)
{
	opd_tables_free(tables);
	op_dcookie_table_free(images);
	opd_lookers_free(lookers);
	op_nursery_stop(nursery);
}

/* An image as opd knows it when `path` was mapped; mtime_ns 0: that of the file. */
static inline uint64_t cookie_of_file(const char *name, const char *path, uint64_t mtime_ns)
{
	struct op_image_id id = { .name = { .kind = OP_IMAGE_FILE, .name = name }, .user = OP_USER_NONE };
	struct opd_file_identity found = { .inode = 1 };
	int fd = open(path, O_PATH | O_CLOEXEC);
	struct op_image_file file;
	uint64_t cookie;

	assert_true(fd < 0 || !opd_file_identify(fd, &found));
	if (fd >= 0)
		close(fd);
	file = (struct op_image_file){
		.device = found.device,
		.inode = found.inode,
		.inode_generation = found.generation,
		.mtime_ns = mtime_ns ? mtime_ns : found.mtime_ns,
		.ctime_ns = found.ctime_ns,
		.bytes = found.nr_bytes,
		.uid = found.uid,
		.is_owners = opd_file_is_owners(&found),
	};
	id.inode = file.inode;
	id.mtime_ns = file.mtime_ns;
	cookie = op_dcookie_get(images, &id);
	assert_int_not_equal(cookie, OP_DCOOKIE_NONE);
	assert_int_equal(op_dcookie_set_file(images, cookie, &file), 0);
	return cookie;
}

static inline uint64_t cookie_of(enum op_image_kind kind, const char *name, uint64_t mtime_ns)
{
	const struct op_image_id id = { .name = { .kind = kind, .name = name }, .mtime_ns = mtime_ns, .user = OP_USER_NONE };
	uint64_t cookie = kind == OP_IMAGE_FILE ? cookie_of_file(name, name, mtime_ns) : op_dcookie_get(images, &id);

	assert_int_not_equal(cookie, OP_DCOOKIE_NONE);
	return cookie;
}

static const struct opd_table_source nowhere;

static inline void turn(void)
{
	if (!opd_tables_turn(tables))
		poll(&(struct pollfd){ .fd = opd_tables_fd(tables), .events = POLLIN }, 1, opd_tables_is_busy(tables) ? 1000 : 10);
}

/* Asks until the table is there, or not pending any more. */
static inline enum opd_walk_code await(uint64_t cookie, const struct opd_table_source *source,
				       const struct op_row_table **ret_table)
{
	enum opd_walk_code code;

	while ((code = opd_tables_find(tables, cookie, source, ret_table)) == OPD_CODE_PENDING)
		turn();
	return code;
}

/* A busy disk may not answer a looker in time. Then opd asks again after a second or more. */
static inline void await_table(uint64_t cookie, const struct opd_table_source *source, const struct op_row_table **ret_table)
{
	for (uint64_t end_ns = op_now_ns() + 240u * OP_NS_PER_S; await(cookie, source, ret_table) != OPD_CODE_TABLE; turn())
		assert_true(lookers && opd_lookers_nr_unanswered(lookers) && op_now_ns() < end_ns);
}

/* Until a new table is on the disk. */
static inline void await_disk(void)
{
	while (opd_tables_is_busy(tables))
		turn();
}

/* ---- the cache ---- */

/* The directories of a cache, too. */
static inline int remove_cache(void **state)
{
	struct box *box = *state;
	char command[64];

	snprintf(command, sizeof(command), "rm -rf %s/*", box->path);
	return system(command) || box_teardown(state);
}

#define cache_test(function) cmocka_unit_test_setup_teardown(function, box_setup, remove_cache)

static inline struct opd_tables_counts counts_of_one(const char *program, const char *cache_dir, uint64_t max_use,
						     const char *image)
{
	const struct op_row_table *table = NULL;
	struct opd_tables_counts counts;

	start_with_cache(program, true, cache_dir, max_use);
	await_table(cookie_of(OP_IMAGE_FILE, image, 0), &nowhere, &table);
	assert_non_null(op_row_table_find(table, le32toh(table->starts[table->nr_rows / 2])));
	await_disk();
	assert_int_equal(opd_tables_find(tables, cookie_of(OP_IMAGE_FILE, image, 0), &nowhere, &table), OPD_CODE_TABLE);
	assert_non_null(op_row_table_find(table, le32toh(table->starts[table->nr_rows / 2])));
	opd_tables_get_counts(tables, &counts);
	stop();
	return counts;
}

/* The build-id of the image is not known before its table is there, so the name tells it. */
static inline void find_kept(const char *cache_dir, char path[PATH_MAX])
{
	FILE *found;
	char command[PATH_MAX + 32];

	snprintf(command, sizeof(command), "find %s -type f", cache_dir);
	found = popen(command, "re");
	assert_non_null(found);
	path[0] = '\0';
	if (fgets(path, PATH_MAX, found))
		path[strcspn(path, "\n")] = '\0';
	assert_int_equal(pclose(found), 0);
}

/* As the kernel would have told it with the mapping. */
static inline void set_build_id(uint64_t cookie, const char *path)
{
	const char *digits = strrchr(path, '/') + 1;
	uint8_t id[OP_BUILD_ID_BYTES_MAX];
	uint8_t nr = 0;

	for (; nr < sizeof(id) && sscanf(digits + 2 * nr, "%2hhx", &id[nr]) == 1; nr++)
		continue;
	assert_int_equal(op_dcookie_set_build_id(images, cookie, id, nr), 0);
}

#endif
