/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Fuzz target for the readers of a session. Input: length of the name of a sample file (2 bytes),
 * the name, the file. The name is parsed, and a file with that name is listed. The file is read,
 * repaired, and opened for counting. A repaired file can be read and has no counts that were not
 * there before.
 */
#include "tests/fuzz/fuzz_dir.h"

#include <errno.h>

#include "libop/odb/odb.h"
#include "libop/odb/read.h"
#include "libop/odb/recover.h"
#include "libop/odb/repair.h"
#include "libop/session/contents.h"
#include "libop/session/list.h"

#define FILE_NAME "{root}/f/{dep}/{root}/f/TIMER.1.0.all.all.all"
#define TMP_NAME  "tmp/sample"

static uint64_t sum_of(const struct op_odb_samples *samples)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < samples->nr_nodes; i++)
		sum += samples->nodes[i].value;
	return sum;
}

static bool read_sum(int dir_fd, uint64_t *ret_sum)
{
	struct op_odb_samples samples;
	struct op_odb_fault fault = { 0 };
	int err = op_odb_read(dir_fd, FILE_NAME, &samples, &fault);

	fuzz_check(!err || (err == -EBADMSG && fault.why));
	if (err)
		return false;
	*ret_sum = sum_of(&samples);
	op_odb_samples_free(&samples);
	return true;
}

static void count_in(int dir_fd)
{
	struct op_odb_header header = { .version = OP_ODB_VERSION };
	uint64_t before, after;
	struct op_odb *odb;

	fuzz_check(read_sum(dir_fd, &before));
	fuzz_check(!op_odb_open(dir_fd, FILE_NAME, TMP_NAME, &header, &odb));
	for (uint64_t key = 0; key < 200; key++)
		fuzz_check(!op_odb_add(odb, key, 1));
	op_odb_close(odb);
	fuzz_check(read_sum(dir_fd, &after) && after == before + 200);
}

static bool is_sealed(const char *path OP_UNUSED)
{
	return false;
}

static void check_file(int dir_fd, const uint8_t *bytes, size_t nr_bytes)
{
	static const struct op_odb_moves no_moves = { .from = "samples/current" };
	struct op_odb_pending *pending = NULL;
	uint64_t nr_put_back;
	uint64_t before = 0, after = 0;
	uint32_t dropped = 0;
	bool was_readable;

	fuzz_check(fuzz_dir_write(FILE_NAME, bytes, nr_bytes));
	was_readable = read_sum(dir_fd, &before);
	if (op_odb_repair(dir_fd, FILE_NAME, TMP_NAME, &dropped, &pending))
		return;
	fuzz_check(read_sum(dir_fd, &after));
	fuzz_check(!was_readable || after <= before);
	op_odb_free_pending(pending);
	fuzz_check(!op_odb_recover(dir_fd, TMP_NAME, &no_moves, is_sealed, &nr_put_back));
	fuzz_check(read_sum(dir_fd, &before) && before == after);
	count_in(dir_fd);
	fuzz_check(!op_odb_recover(dir_fd, TMP_NAME, &no_moves, is_sealed, &nr_put_back));
}

static void check_name(int dir_fd, const char *name)
{
	struct op_session_list list;
	struct op_sample_name parsed;
	char *storage, *bad_path = NULL;
	int err = op_unmangle(name, &parsed, &storage, NULL);

	if (!err)
		free(storage);
	if (!fuzz_dir_write(name, "", 0))
		return;
	if (!op_session_list(dir_fd, &list, &bad_path))
		op_session_list_free(&list);
	free(bad_path);
}

/* Names are below a directory of their own, where they cannot disturb each other. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t nr_bytes)
{
	int dir_fd = fuzz_dir_open();
	struct fuzz_part parts[2];
	char *name;

	if (!fuzz_split(bytes, nr_bytes, parts))
		return 0;
	name = strndup((const char *)parts[0].bytes, parts[0].nr_bytes);
	fuzz_check(name);
	check_file(dir_fd, parts[1].bytes, parts[1].nr_bytes);
	if (!strncmp(name, "{root}/", 7) || !strncmp(name, "{kern}/", 7))
		check_name(dir_fd, name);
	fuzz_check(!op_session_clear(dir_fd, NULL));
	free(name);
	return 0;
}
