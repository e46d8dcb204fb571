/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "libop/odb/odb.h"
#include "libop/odb/read.h"
#include "libop/odb/repair.h"
#include "tests/unit/sample_writer.h"
#include "tests/unit/test_box.h"

static char directory[BOX_PATH_BYTES];
static int dir_fd;

/*
 * The fake pread: for `nagging`, every other call is interrupted or short; `failing` counts down to
 * the call that fails.
 */
static bool nagging, interrupted;
static int failing;

ssize_t __real_op_sys_pread(int fd, void *buffer, size_t nr_bytes, off_t offset);
ssize_t __wrap_op_sys_pread(int fd, void *buffer, size_t nr_bytes, off_t offset);
int __real_op_sys_fstat(int fd, struct stat *ret_stat);
int __wrap_op_sys_fstat(int fd, struct stat *ret_stat);

ssize_t __wrap_op_sys_pread(int fd, void *buffer, size_t nr_bytes, off_t offset)
{
	if (failing && !--failing)
		return -EIO;
	interrupted = nagging && !interrupted;
	if (interrupted)
		return -EINTR;
	return __real_op_sys_pread(fd, buffer, nagging && nr_bytes > 7 ? 7 : nr_bytes, offset);
}

int __wrap_op_sys_fstat(int fd, struct stat *ret_stat)
{
	return failing && !--failing ? -EIO : __real_op_sys_fstat(fd, ret_stat);
}

static int directory_setup(void **state OP_UNUSED)
{
	dir_fd = box_make_open(directory);
	return dir_fd < 0 ? -1 : 0;
}

static int directory_teardown(void **state OP_UNUSED)
{
	unlinkat(dir_fd, "f", 0);
	unlinkat(dir_fd, "d", AT_REMOVEDIR);
	close(dir_fd);
	return rmdir(directory);
}

static void test_whole_file(void **state OP_UNUSED)
{
	static const struct sample samples[] = { { 0x1139, 50 }, { 0x115d, 0 }, { 0x1139, UINT32_MAX } };
	struct op_odb_header header = sample_header();
	struct op_odb_samples read;

	header.mtime = 1700000000;
	header.anon_start = 0x7f0000000000;
	sample_write(dir_fd, "f", &header, samples, 3);
	assert_int_equal(op_odb_read(dir_fd, "f", &read, NULL), 0);
	assert_memory_equal(&read.header, &header, sizeof(header));
	assert_int_equal(read.nr_nodes, 3);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(read.nodes[i].key, samples[i].key);
		assert_int_equal(read.nodes[i].value, samples[i].value);
	}
	op_odb_samples_free(&read);
	assert_null(read.nodes);
}

static void test_grown_file(void **state OP_UNUSED)
{
	struct op_odb_header header = sample_header();
	struct op_odb_samples read;
	struct sample samples[1000];

	for (uint32_t i = 0; i < op_array_size(samples); i++)
		samples[i] = (struct sample){ i, i };
	sample_write(dir_fd, "f", &header, samples, op_array_size(samples));
	assert_int_equal(op_odb_read(dir_fd, "f", &read, NULL), 0);
	assert_int_equal(read.nr_nodes, 1000);
	assert_int_equal(read.nodes[999].key, 999);
	op_odb_samples_free(&read);
}

static void test_empty_profile(void **state OP_UNUSED)
{
	struct op_odb_header header = sample_header();
	struct op_odb_samples read;

	sample_write(dir_fd, "f", &header, NULL, 0);
	assert_int_equal(op_odb_read(dir_fd, "f", &read, NULL), 0);
	assert_int_equal(read.nr_nodes, 0);
	op_odb_samples_free(&read);
}

static void assert_refused(const char *expected_why, uint64_t expected_offset)
{
	struct op_odb_samples read = { .nr_nodes = 77 };
	struct op_odb_fault fault = { 0 };

	assert_int_equal(op_odb_read(dir_fd, "f", &read, &fault), -EBADMSG);
	assert_non_null(fault.why);
	assert_string_equal(fault.why, expected_why);
	assert_int_equal(fault.offset, expected_offset);
	assert_int_equal(read.nr_nodes, 77);
}

static void patch(off_t offset, uint32_t value)
{
	int fd = openat(dir_fd, "f", O_WRONLY | O_CLOEXEC);

	assert_int_equal(pwrite(fd, &value, sizeof(value), offset), sizeof(value));
	close(fd);
}

static void resize(off_t bytes)
{
	int fd = openat(dir_fd, "f", O_WRONLY | O_CLOEXEC);

	assert_int_equal(ftruncate(fd, bytes), 0);
	close(fd);
}

static void write_sound(void)
{
	static const struct sample sample = { 1, 1 };
	struct op_odb_header header = sample_header();

	sample_write(dir_fd, "f", &header, &sample, 1);
}

static void test_length(void **state OP_UNUSED)
{
	struct op_odb_samples read;

	for (off_t bytes = 0; bytes < 72; bytes++) {
		write_sound();
		resize(bytes);
		assert_refused("Can't read sample file header", 0);
	}
	for (off_t bytes = 72; bytes < 2664; bytes += 37) {
		write_sound();
		resize(bytes);
		assert_refused("Invalid argument", 72);
	}
	write_sound();
	resize(2664 + 19);
	assert_int_equal(op_odb_read(dir_fd, "f", &read, NULL), 0);
	op_odb_samples_free(&read);
	resize(2664 + 20);
	assert_refused("Invalid argument", 72);
}

static void put_u32(uint8_t *bytes, size_t offset, uint32_t value)
{
	memcpy(bytes + offset, &value, sizeof(value));
}

static void put_u64(uint8_t *bytes, size_t offset, uint64_t value)
{
	memcpy(bytes + offset, &value, sizeof(value));
}

/* A file as oprofile 0.9.9 wrote it: header of 88 bytes, two nodes. */
static void test_file_of_0_9(void **state OP_UNUSED)
{
	static const struct {
		uint32_t of_0_9, of_1;
	} cpu_types[] = {
		{ 0, 0 },   { 4, 4 },	{ 5, OP_CPU_TYPE_UNKNOWN }, { 6, 5 },	{ 8, OP_CPU_TYPE_UNKNOWN },  { 10, 6 },	 { 11, 7 },
		{ 15, OP_CPU_TYPE_UNKNOWN }, { 16, 8 }, { 17, 9 },  { 40, 32 }, { 43, OP_CPU_TYPE_UNKNOWN }, { 44, 35 }, { 46, 36 },
		{ 51, 40 }, { 54, 43 }, { 55, OP_CPU_TYPE_UNKNOWN }, { 59, 47 }, { 66, 54 }, { 81, 69 }, { 83, 71 },
		{ 84, OP_CPU_TYPE_UNKNOWN }, { UINT32_MAX, OP_CPU_TYPE_UNKNOWN },
	};
	static const uint64_t embedded_offset = UINT64_MAX, anon_start = 0x7f0000001000, mtime = 1400000000;
	uint8_t bytes[2680] = OP_ODB_MAGIC;
	struct op_odb_samples read;

	put_u32(bytes, 4, OP_ODB_VERSION_0_9);
	put_u32(bytes, 12, 0x76);
	put_u32(bytes, 16, 3);
	put_u32(bytes, 20, 100000);
	put_u32(bytes, 24, 1);
	memcpy(bytes + 40, &mtime, 8);
	memcpy(bytes + 56, &embedded_offset, 8);
	memcpy(bytes + 64, &anon_start, 8);
	put_u32(bytes, 88, 128);
	put_u32(bytes, 92, 3);
	put_u64(bytes, 120 + 16, 0x1139);
	put_u32(bytes, 120 + 24, 50);
	put_u64(bytes, 120 + 32, 0x115d);
	put_u32(bytes, 120 + 40, 10);
	for (size_t i = 0; i < op_array_size(cpu_types); i++) {
		put_u32(bytes, 8, cpu_types[i].of_0_9);
		sample_write_bytes(dir_fd, "f", bytes, sizeof(bytes));
		assert_int_equal(op_odb_read(dir_fd, "f", &read, NULL), 0);
		assert_int_equal(read.header.cpu_type, cpu_types[i].of_1);
		assert_int_equal(read.header.version, OP_ODB_VERSION_0_9);
		assert_int_equal(read.header.ctr_event, 0x76);
		assert_int_equal(read.header.ctr_um, 3);
		assert_int_equal(read.header.ctr_count, 100000);
		assert_int_equal(read.header.is_kernel, 1);
		assert_int_equal(read.header.mtime, mtime);
		assert_int_equal(read.header.anon_start, anon_start);
		assert_int_equal(read.header.cg_to_anon_start, 0);
		assert_int_equal(read.nr_nodes, 2);
		assert_int_equal(read.nodes[1].key, 0x115d);
		assert_int_equal(read.nodes[1].value, 10);
		op_odb_samples_free(&read);
	}
	for (off_t end = 72; end < 2680; end += 59) {
		resize(end);
		assert_refused(end < 88 ? "Can't read sample file header" : "Invalid argument", end < 88 ? 52 : 88);
		sample_write_bytes(dir_fd, "f", bytes, sizeof(bytes));
	}
}

static const struct {
	off_t offset;
	uint32_t value;
	const char *why;
	uint64_t fault_offset;
} damages[] = {
	{ 0, 0x12345678, "Invalid sample file, bad magic number", 0 },
	{ 4, 0x12, "Invalid argument", 88 }, /* then no part is in its place */
	{ 4, 0x14, "samples files version mismatch", 4 },
	{ 4, 0x13000000, OP_ODB_OTHER_ORDER, 4 },
	{ 4, 0x12000000, OP_ODB_OTHER_ORDER, 4 },
	{ 72, 0, "Invalid argument", 72 }, /* size */
	{ 72, 127, "Invalid argument", 72 },
	{ 72, 129, "Invalid argument", 72 },
	{ 72, UINT32_MAX, "Invalid argument", 72 },
	{ 76, 0, "Invalid argument", 72 }, /* current_size */
	{ 76, 129, "Invalid argument", 72 },
	{ 76, UINT32_MAX, "Invalid argument", 72 },
};

static void test_damaged_fields(void **state OP_UNUSED)
{
	for (size_t i = 0; i < op_array_size(damages); i++) {
		write_sound();
		patch(damages[i].offset, damages[i].value);
		assert_refused(damages[i].why, damages[i].fault_offset);
	}
}

static void test_garbage(void **state OP_UNUSED)
{
	unsigned int seed = 1;
	char bytes[4096];

	for (int round = 0; round < 200; round++) {
		struct op_odb_samples read;

		write_sound();
		for (size_t i = 0; i < sizeof(bytes); i++)
			bytes[i] = (char)rand_r(&seed);
		memcpy(bytes, OP_ODB_MAGIC "\x13\0\0", 8);
		sample_write_bytes(dir_fd, "f", bytes, (size_t)rand_r(&seed) % sizeof(bytes));
		if (!op_odb_read(dir_fd, "f", &read, NULL))
			op_odb_samples_free(&read);
	}
}

static void test_no_file(void **state OP_UNUSED)
{
	struct op_odb_samples read;
	struct op_odb_fault fault = { 0 };

	assert_int_equal(op_odb_read(dir_fd, "nothing", &read, &fault), -ENOENT);
	assert_null(fault.why);
	assert_int_equal(mkdirat(dir_fd, "d", 0755), 0);
	assert_int_equal(op_odb_read(dir_fd, "d", &read, &fault), -EBADMSG);
	assert_string_equal(fault.why, "Not a regular file");
	op_odb_samples_free(NULL);
}

static void test_signals_and_short_reads(void **state OP_UNUSED)
{
	static const struct sample samples[] = { { 0x1139, 50 }, { 0x115d, 3 } };
	struct op_odb_header header = sample_header();
	struct op_odb_samples read;

	sample_write(dir_fd, "f", &header, samples, 2);
	nagging = true;
	assert_int_equal(op_odb_read(dir_fd, "f", &read, NULL), 0);
	nagging = false;
	assert_int_equal(read.nr_nodes, 2);
	assert_int_equal(read.nodes[1].value, 3);
	op_odb_samples_free(&read);
}

static void test_failing_calls(void **state OP_UNUSED)
{
	struct op_odb_samples read;
	struct op_odb_fault fault = { 0 };
	int nr_failed = 0, err;

	write_sound();
	do {
		failing = ++nr_failed;
		err = op_odb_read(dir_fd, "f", &read, &fault);
		assert_true(!err || err == -EIO);
		assert_null(fault.why);
	} while (err && nr_failed < 100);
	failing = 0;
	/* twice the length, header, descriptor, nodes; then no call failed */
	assert_int_equal(nr_failed, 6);
	op_odb_samples_free(&read);
}

/* A full file of 128 nodes, with key 0 at the indices where it looks torn, as 0.9 may write it. */
static void write_full_of_0_9(uint64_t *ret_total, uint64_t *ret_of_zero)
{
	static const uint64_t embedded_offset = UINT64_MAX, mtime = 1400000000;
	uint8_t bytes[2680] = OP_ODB_MAGIC;
	uint64_t key;

	*ret_total = *ret_of_zero = 0;
	put_u32(bytes, 4, OP_ODB_VERSION_0_9);
	put_u32(bytes, 8, 55);
	memcpy(bytes + 40, &mtime, 8);
	memcpy(bytes + 56, &embedded_offset, 8);
	put_u32(bytes, 88, 128);
	put_u32(bytes, 92, 128);
	for (uint32_t i = 1; i < 128; i++) {
		key = i == 77 || op_odb_needs_filler(0, i) ? 0 : 0x1000 + i;
		memcpy(bytes + 120 + (size_t)16 * i, &key, 8);
		put_u32(bytes, 120 + (size_t)16 * i + 8, i);
		*ret_total += i;
		*ret_of_zero += key ? 0 : i;
	}
	sample_write_bytes(dir_fd, "f", bytes, sizeof(bytes));
}

static void check_taken_over(uint64_t total, uint64_t of_zero)
{
	struct op_odb_samples read;
	uint64_t sum = 0, sum_of_zero = 0;

	assert_int_equal(op_odb_read(dir_fd, "f", &read, NULL), 0);
	assert_int_equal(read.header.version, OP_ODB_VERSION);
	assert_int_equal(read.header.cpu_type, OP_CPU_TYPE_TIMER);
	assert_int_equal(read.header.mtime, 1400000000);
	assert_int_equal(read.header.anon_start, 0);
	for (uint32_t i = 0; i < read.nr_nodes; i++) {
		sum += read.nodes[i].value;
		sum_of_zero += read.nodes[i].key ? 0 : read.nodes[i].value;
		if (read.nodes[i].key && read.nodes[i].value)
			assert_int_equal(read.nodes[i].key, 0x1000 + read.nodes[i].value);
	}
	assert_int_equal(sum, total);
	assert_int_equal(sum_of_zero, of_zero);
	op_odb_samples_free(&read);
}

/*
 * Counting in a file of 0.9, or repairing it, converts it with all its nodes. A file that cannot
 * be read stays as it is.
 */
static void test_taking_over(void **state OP_UNUSED)
{
	static const struct op_odb_header header = { .magic = { 'D', 'A', 'E', '\n' }, .version = OP_ODB_VERSION };
	struct op_odb_pending *pending = NULL;
	struct op_odb_samples read;
	uint64_t total, of_zero;
	struct op_odb *odb;
	uint32_t dropped = 7;

	write_full_of_0_9(&total, &of_zero);
	assert_int_equal(op_odb_open(dir_fd, "f", "tmp-f", &header, &odb), 0);
	assert_false(op_odb_is_new(odb));
	assert_int_equal(op_odb_dropped(odb), 0);
	assert_int_equal(op_odb_total(odb), total);
	check_taken_over(total, of_zero);
	assert_int_equal(op_odb_add(odb, 0x1001, 5), 0);
	assert_int_equal(op_odb_add(odb, 0, 3), 0);
	assert_int_equal(op_odb_total(odb), total + 8);
	pending = op_odb_take_pending(odb);
	op_odb_close(odb);
	while (pending) {
		struct op_odb_pending *next = pending->next;

		assert_int_equal(op_odb_sync_pending(dir_fd, pending), 0);
		pending = next;
	}
	write_full_of_0_9(&total, &of_zero);
	assert_int_equal(op_odb_repair(dir_fd, "f", "tmp-f", &dropped, &pending), 0);
	assert_int_equal(dropped, 0);
	assert_non_null(pending);
	assert_int_equal(op_odb_sync_pending(dir_fd, pending), 0);
	check_taken_over(total, of_zero);
	write_full_of_0_9(&total, &of_zero);
	resize(1000);
	assert_int_equal(op_odb_open(dir_fd, "f", "tmp-f", &header, &odb), -EBADMSG);
	assert_int_equal(op_odb_repair(dir_fd, "f", "tmp-f", &dropped, &pending), -EBADMSG);
	resize(2680);
	assert_int_equal(op_odb_read(dir_fd, "f", &read, NULL), 0);
	assert_int_equal(read.header.version, OP_ODB_VERSION_0_9);
	op_odb_samples_free(&read);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole_file),     cmocka_unit_test(test_grown_file),
		cmocka_unit_test(test_empty_profile),  cmocka_unit_test(test_length),
		cmocka_unit_test(test_damaged_fields), cmocka_unit_test(test_garbage),
		cmocka_unit_test(test_no_file),        cmocka_unit_test(test_signals_and_short_reads),
		cmocka_unit_test(test_failing_calls),  cmocka_unit_test(test_file_of_0_9),
		cmocka_unit_test(test_taking_over),
	};

	return cmocka_run_group_tests(tests, directory_setup, directory_teardown);
}
