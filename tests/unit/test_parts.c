/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The table of the parts of a session: what each row promises holds for its file or directory. */
#include <fcntl.h>
#include <sys/stat.h>

#include "libop/base/file.h"
#include "libop/session/contents.h"
#include "libop/session/ledger_file.h"
#include "libop/session/parts.h"
#include "libop/session/sum.h"
#include "libop/stacks/store.h"
#include "libop/timeline/append.h"
#include "tests/unit/sample_writer.h"
#include "tests/unit/test_box.h"

#define SAMPLE_FILE "usr/bin/app/{dep}/{root}/usr/bin/app/TIMER.0.0.all.all.all"
#define TMP_PATH    "part.tmp"

/* Makes the part, of any contents: a file, or a directory with one file. */
static void make(int dir_fd, const struct op_session_part *part)
{
	char path[256];

	snprintf(path, sizeof(path), "%s%s", part->name,
		 part->kind == OP_PART_FILE ? "" : part->kind == OP_PART_DIR ? "/number" : "/" SAMPLE_FILE);
	sample_write_bytes(dir_fd, path, "contents", 8);
}

static bool is_there(int dir_fd, const char *path)
{
	return !faccessat(dir_fd, path, F_OK, AT_SYMLINK_NOFOLLOW);
}

/* A reader has words for its messages; a name is one component, and no other part's. */
static void rows_are_complete(void **state OP_UNUSED)
{
	for (const struct op_session_part *part = op_session_parts; part->name; part++) {
		assert_null(strchr(part->name, '/'));
		assert_non_null(part->noun);
		assert_true(!part->read || (part->kind == OP_PART_FILE && part->record));
		assert_true(!part->recover || part->read);
		assert_true(!(part->is_published || part->is_dumped) || part->kind == OP_PART_FILE);
		assert_true(part->archiving != OP_ARCHIVE_SELECTED || part->kind == OP_PART_SAMPLES);
		assert_true((part->archiving != OP_ARCHIVE_FIRST && part->archiving != OP_ARCHIVE_LAST) ||
			    part->kind == OP_PART_FILE);
		for (const struct op_session_part *other = op_session_parts; other < part; other++)
			assert_string_not_equal(other->name, part->name);
	}
}

static void paths_have_parts(void **state OP_UNUSED)
{
	char path[64];

	for (const struct op_session_part *part = op_session_parts; part->name; part++) {
		assert_ptr_equal(op_session_part_of(part->name), part);
		snprintf(path, sizeof(path), "%s/below", part->name);
		assert_ptr_equal(op_session_part_of(path), part);
		snprintf(path, sizeof(path), "%sx", part->name);
		assert_null(op_session_part_of(path));
		snprintf(path, sizeof(path), "%.*s", (int)strlen(part->name) - 1, part->name);
		assert_null(op_session_part_of(path));
	}
	assert_null(op_session_part_of(""));
	assert_null(op_session_part_of("notes"));
}

/* Each alone makes a directory a session, has a weight, and is removed; other files stay. */
static void each_is_found_weighed_and_removed(void **state)
{
	const struct box *box = *state;

	sample_write_bytes(box->fd, "notes", "mine", 4);
	for (const struct op_session_part *part = op_session_parts; part->name; part++) {
		uint64_t without, with;

		assert_false(op_session_has_parts(box->fd));
		assert_int_equal(op_session_disk_bytes(box->fd, ".", &without), 0);
		make(box->fd, part);
		assert_true(op_session_has_parts(box->fd));
		assert_int_equal(op_session_disk_bytes(box->fd, ".", &with), 0);
		assert_true(with > without);
		op_session_compact(box->fd);
		assert_true(is_there(box->fd, part->name));
		assert_int_equal(op_session_clear(box->fd, NULL), 0);
		assert_false(is_there(box->fd, part->name));
		assert_true(is_there(box->fd, "notes"));
	}
}

/* The sample files of a session are those below its parts of this kind. */
static void sample_files_are_counted(void **state)
{
	const struct box *box = *state;
	uint64_t nr_files, nr_trees = 0;

	for (const struct op_session_part *part = op_session_parts; part->name; part++) {
		make(box->fd, part);
		nr_trees += part->kind == OP_PART_SAMPLES;
	}
	assert_int_equal(op_session_count_files(box->fd, &nr_files), 0);
	assert_int_equal(nr_files, nr_trees);
}

/* The fingerprint of a ledger changes with those parts that the ledger covers, and only those. */
static void the_fingerprint_covers_its_parts(void **state)
{
	const struct box *box = *state;
	struct op_session_files before = { 0 }, files;

	for (const struct op_session_part *part = op_session_parts; part->name; part++) {
		make(box->fd, part);
		assert_int_equal(op_session_files_look(box->fd, &files), 0);
		assert_int_equal(files.nr != before.nr, part->is_in_ledger);
		before = files;
	}
}

/* Foreign contents are no part, for the reader and for the recovery. A missing file stays so. */
static void readers_tell_what_is_no_part(void **state)
{
	const struct box *box = *state;
	uint64_t nr_dropped;
	size_t nr_readers = 0;

	for (const struct op_session_part *part = op_session_parts; part->name; part++) {
		struct op_session_ledger sums = { 0 };
		struct op_part_reading reading = { .sums = &sums };

		if (!part->read)
			continue;
		nr_readers++;
		assert_int_equal(part->read(box->fd, part->name, &reading), -ENOENT);
		if (part->recover)
			assert_int_equal(part->recover(box->fd, part->name, TMP_PATH, &nr_dropped), -ENOENT);
		assert_false(is_there(box->fd, part->name));
		make(box->fd, part);
		assert_int_equal(part->read(box->fd, part->name, &reading), -EBADMSG);
		if (part->recover)
			assert_int_equal(part->recover(box->fd, part->name, TMP_PATH, &nr_dropped), -EBADMSG);
		assert_int_equal(sums.nr_events, 0);
		assert_int_equal(op_session_clear(box->fd, NULL), 0);
	}
	assert_true(nr_readers >= 1);
}

static void count_image(uint64_t cookie, void *arg)
{
	*(uint64_t *)arg += cookie;
}

/* A cut file of stacks: read tells what is lost, and recover drops just that. */
static void stacks_are_read_and_recovered(void **state)
{
	const struct box *box = *state;
	const char *const events[] = { "STACKS:1000:0x0" };
	const struct op_stacks_setup setup = { .events = events, .nr_events = 1, .max_bytes = UINT64_MAX };
	const struct op_stack_path path = { .app = 7 };
	const struct op_stack_frame frames[] = { { .image = 7, .value = 16 }, { .image = 8, .value = 32 } };
	const struct op_session_part *part = op_session_part_of("stacks");
	struct op_session_ledger sums = { 0 };
	uint64_t cookies = 0, nr_dropped;
	struct op_part_reading reading = { .sums = &sums, .see_image = count_image, .arg = &cookies };
	struct op_stack_node torn = { .parent = UINT32_MAX };
	struct op_stacks *stacks;
	int fd;

	assert_int_equal(op_stacks_open(box->fd, part->name, TMP_PATH, &setup, &stacks), 0);
	assert_int_equal(op_stacks_add(stacks, &path, frames, op_array_size(frames), 3), 0);
	op_stacks_close(stacks);
	assert_int_equal(part->read(box->fd, part->name, &reading), 0);
	assert_int_equal(reading.nr_damaged, 0);
	assert_int_equal(cookies, 7 + 7 + 8);
	assert_int_equal(sums.nr_events, 1);
	assert_int_equal(sums.events[0].stored, 3);
	op_session_ledger_free(&sums);

	fd = openat(box->fd, part->name, O_WRONLY | O_CLOEXEC);
	assert_int_equal(pwrite(fd, &torn, sizeof(torn), (off_t)op_stacks_file_bytes((uint32_t)reading.nr_whole - 1)),
			 sizeof(torn));
	close(fd);
	reading = (struct op_part_reading){ 0 };
	assert_int_equal(part->read(box->fd, part->name, &reading), 0);
	assert_int_equal(reading.nr_damaged, 1);
	assert_int_equal(reading.damaged_offset, op_stacks_file_bytes((uint32_t)reading.nr_whole));
	assert_int_equal(part->recover(box->fd, part->name, TMP_PATH, &nr_dropped), 0);
	assert_int_equal(nr_dropped, 1);
	reading = (struct op_part_reading){ 0 };
	assert_int_equal(part->read(box->fd, part->name, &reading), 0);
	assert_int_equal(reading.nr_damaged, 0);
}

/* A timeline: a torn end and a damaged block are dropped, and counted; its images are seen. */
static void timelines_are_read_and_recovered(void **state)
{
	const struct box *box = *state;
	const struct op_session_part *part = op_session_part_of("timeline");
	const struct op_minute_step steps[] = {
		{ OP_MINUTE_SAMPLES, 0, 0 }, { OP_MINUTE_APP, 0, 7 }, { OP_MINUTE_FUNCTION, 16, 8 }
	};
	const struct op_encode_limits no_limits = { 0 };
	struct op_session_ledger sums = { 0 };
	uint64_t cookies = 0, nr_dropped, nr_bytes;
	struct op_part_reading reading = { .sums = &sums, .see_image = count_image, .arg = &cookies };
	struct op_timeline_writer *writer;
	struct op_minute minute;
	uint32_t event;
	int fd;

	assert_int_equal(op_timeline_append_open(box->fd, part->name, &writer, NULL), 0);
	assert_int_equal(op_minute_init(&minute, 0), 0);
	assert_int_equal(op_minute_event(&minute, "TIMER:1000:0x0", OP_UNIT_SAMPLES, 0, &event), 0);
	assert_true(op_minute_add(&minute, steps, op_array_size(steps), 3));
	for (int i = 0; i < 5; i++)
		assert_int_equal(op_timeline_append(writer, &minute, &no_limits), 0);
	nr_bytes = op_timeline_append_bytes(writer);
	op_timeline_append_close(writer);
	op_minute_free(&minute);
	assert_int_equal(part->read(box->fd, part->name, &reading), 0);
	assert_int_equal(reading.nr_whole, 5);
	assert_int_equal(reading.nr_damaged, 0);
	assert_int_equal(cookies, 5 * (7 + 8));
	assert_int_equal(sums.nr_events, 0);

	fd = openat(box->fd, part->name, O_WRONLY | O_CLOEXEC);
	assert_int_equal(ftruncate(fd, (off_t)nr_bytes - 1), 0);
	close(fd);
	assert_int_equal(part->recover(box->fd, part->name, TMP_PATH, &nr_dropped), 0);
	assert_int_equal(nr_dropped, 1);
	assert_int_equal(part->recover(box->fd, part->name, TMP_PATH, &nr_dropped), 0);
	assert_int_equal(nr_dropped, 0);

	fd = openat(box->fd, part->name, O_WRONLY | O_CLOEXEC);
	assert_int_equal(pwrite(fd, "damage", 6, 16 + 10), 6);
	close(fd);
	reading = (struct op_part_reading){ 0 };
	assert_int_equal(part->read(box->fd, part->name, &reading), 0);
	assert_int_equal(reading.nr_whole, 3);
	assert_int_equal(reading.nr_damaged, 1);
	assert_int_equal(reading.damaged_offset, 16);
	assert_int_equal(part->recover(box->fd, part->name, TMP_PATH, &nr_dropped), 0);
	assert_int_equal(nr_dropped, 1);
	reading = (struct op_part_reading){ 0 };
	assert_int_equal(part->read(box->fd, part->name, &reading), 0);
	assert_int_equal(reading.nr_whole, 3);
	assert_int_equal(reading.nr_damaged, 0);
}

/* doc/format.md lists the parts. */
static void the_document_names_each(void **state OP_UNUSED)
{
	const char *srcdir = getenv("srcdir");
	char path[4096], name[64], *text;

	snprintf(path, sizeof(path), "%s/doc/format.md", srcdir ? srcdir : ".");
	assert_int_equal(op_file_read(AT_FDCWD, path, OP_FILE_MAX_BYTES, &text), 0);
	for (const struct op_session_part *part = op_session_parts; part->name; part++) {
		snprintf(name, sizeof(name), "`%s%s", part->name, part->kind == OP_PART_FILE ? "`" : "/");
		assert_non_null(strstr(text, name));
	}
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_are_complete),
		cmocka_unit_test(paths_have_parts),
		box_test(each_is_found_weighed_and_removed),
		box_test(sample_files_are_counted),
		box_test(the_fingerprint_covers_its_parts),
		box_test(readers_tell_what_is_no_part),
		box_test(stacks_are_read_and_recovered),
		box_test(timelines_are_read_and_recovered),
		cmocka_unit_test(the_document_names_each),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
