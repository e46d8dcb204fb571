/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Fuzz target for sample files of other machines. Input: length of the description (2 bytes), the
 * `abi` file, the sample file. An imported file can be read with all its samples. A refused file
 * leaves nothing, and the user gets a message.
 */
#include "tests/fuzz/fuzz_dir.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libop/odb/abi.h"
#include "libop/base/sys.h"
#include "tests/fuzz/fuzz_log.h"
#include "tools/opimport/opimport.h"

#define ABI  "abi"
#define FROM "from"
#define TO   "to"

static uint64_t sum_of(const struct op_odb_samples *samples)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < samples->nr_nodes; i++)
		sum += samples->nodes[i].value;
	return sum;
}

static uint64_t read_foreign(int dir_fd, const char *text)
{
	struct op_odb_samples samples;
	struct op_odb_fault fault = { 0 };
	const char *name = NULL;
	struct op_abi abi;
	uint64_t sum;
	int fd = openat(dir_fd, FROM, O_RDONLY | O_CLOEXEC);

	fuzz_check(fd >= 0 && !op_abi_parse(text, &abi, &name) && !op_abi_read(&abi, fd, &samples, &fault));
	sum = sum_of(&samples);
	op_odb_samples_free(&samples);
	close(fd);
	return sum;
}

static void check_import(int dir_fd, const char *text)
{
	char paths[3][FUZZ_PATH_BYTES];
	struct opi_options options = { .abi = paths[0], .file = paths[1], .output = paths[2], .force = true };
	struct op_odb_samples samples;
	struct op_odb_fault fault = { 0 };
	struct stat st;
	int err;

	for (size_t i = 0; i < op_array_size(paths); i++)
		fuzz_dir_path(paths[i], (const char *const[]){ ABI, FROM, TO }[i]);
	fuzz_nr_errors = 0;
	err = opi_import_foreign(&options);
	fuzz_check(err ? fuzz_nr_errors == 1 : !fuzz_nr_errors);
	if (err) {
		fuzz_check(fstatat(dir_fd, TO, &st, 0) < 0);
		return;
	}
	fuzz_check(!op_odb_read(dir_fd, TO, &samples, &fault));
	fuzz_check(sum_of(&samples) == read_foreign(dir_fd, text));
	op_odb_samples_free(&samples);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t nr_bytes)
{
	int dir_fd = fuzz_dir_open();
	struct fuzz_part parts[2];
	char *text;

	if (!fuzz_split(bytes, nr_bytes, parts))
		return 0;
	text = calloc(1, parts[0].nr_bytes + 1); /* not strndup: the input has no byte behind it */
	fuzz_check(text);
	memcpy(text, parts[0].bytes, parts[0].nr_bytes);
	fuzz_check(fuzz_dir_write(ABI, parts[0].bytes, parts[0].nr_bytes) &&
		   fuzz_dir_write(FROM, parts[1].bytes, parts[1].nr_bytes));
	check_import(dir_fd, text);
	op_sys_unlinkat(dir_fd, TO, 0);
	free(text);
	return 0;
}
