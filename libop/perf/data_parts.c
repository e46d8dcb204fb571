/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/perf/data_parts.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <unistd.h>

#include "libop/base/grow.h"
#include "libop/base/parse.h"
#include "libop/base/sys.h"

#define PREFIX "data."

struct numbers {
	uint32_t numbers[OP_PERF_PARTS_MAX];
	size_t nr;
};

void op_perf_trouble_note(struct op_perf_trouble *trouble, const char *file, uint64_t offset, const char *what, int err)
{
	if (trouble->what) {
		trouble->nr_more++;
		return;
	}
	*trouble = (struct op_perf_trouble){ .what = what, .offset = offset, .err = err };
	snprintf(trouble->file, sizeof(trouble->file), "%s", file);
}

static void close_part(struct op_perf_part *part)
{
	op_perf_input_close(&part->input);
	op_perf_zstd_free(&part->zstd);
	if (part->own_fd >= 0)
		close(part->own_fd);
	free(part);
}

int op_perf_parts_add(struct op_perf_parts *parts, int fd, int own_fd, const char *name)
{
	struct op_perf_part *part = calloc(1, sizeof(*part));

	if (!part || op_perf_input_open(&part->input, fd, 0) < 0) {
		free(part);
		if (own_fd >= 0)
			close(own_fd);
		return -ENOMEM;
	}
	part->input.stop = parts->stop;
	part->own_fd = own_fd;
	snprintf(part->name, sizeof(part->name), "%s", name);
	if (!op_grow(&parts->parts, &parts->capacity, parts->nr_parts + 1)) {
		close_part(part);
		return -ENOMEM;
	}
	parts->parts[parts->nr_parts++] = part;
	return 0;
}

void op_perf_parts_close(struct op_perf_parts *parts)
{
	for (size_t i = 0; i < parts->nr_parts; i++)
		close_part(parts->parts[i]);
	free(parts->parts);
}

static int compare_numbers(const void *left, const void *right)
{
	const uint32_t *a = left, *b = right;

	return (*a > *b) - (*a < *b);
}

static int read_numbers(DIR *dir, struct numbers *numbers)
{
	const struct dirent *entry;

	while ((entry = readdir(dir))) {
		const char *digits = entry->d_name + strlen(PREFIX);
		uint64_t number;

		if (strncmp(entry->d_name, PREFIX, strlen(PREFIX)) != 0 || op_parse_u64(digits, 0, UINT32_MAX, &number) < 0 ||
		    (*digits == '0' && digits[1]))
			continue;
		if (numbers->nr == OP_PERF_PARTS_MAX)
			return -E2BIG;
		numbers->numbers[numbers->nr++] = (uint32_t)number;
	}
	qsort(numbers->numbers, numbers->nr, sizeof(numbers->numbers[0]), compare_numbers);
	return 0;
}

static int open_part(struct op_perf_parts *parts, int dir_fd, const char *name)
{
	struct stat st;
	int fd = op_sys_openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0), err;

	if (fd < 0)
		return fd;
	err = op_sys_fstat(fd, &st);
	if (!err && !S_ISREG(st.st_mode))
		err = -EINVAL;
	if (err) {
		close(fd);
		return err;
	}
	err = op_perf_parts_add(parts, fd, fd, name);
	if (!err)
		parts->parts[parts->nr_parts - 1]->data_end = (uint64_t)st.st_size;
	return err;
}

int op_perf_parts_add_dir(struct op_perf_parts *parts, int dir_fd, struct op_perf_trouble *trouble)
{
	int copy_fd = op_sys_openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0), err;
	struct numbers numbers = { .nr = 0 };
	char name[OP_PERF_FILE_NAME_BYTES];
	uint32_t expected = 0; /* perf numbers the files from 0 on */
	DIR *dir;

	if (copy_fd < 0)
		return copy_fd;
	dir = fdopendir(copy_fd);
	if (!dir) {
		close(copy_fd);
		return -ENOMEM;
	}
	err = read_numbers(dir, &numbers);
	closedir(dir);
	for (size_t i = 0; !err && i < numbers.nr; i++) {
		if (numbers.numbers[i] != expected) {
			snprintf(name, sizeof(name), PREFIX "%" PRIu32, expected);
			op_perf_trouble_note(trouble, name, 0, "it is not there", 0);
		}
		expected = numbers.numbers[i] + 1;
		snprintf(name, sizeof(name), PREFIX "%" PRIu32, numbers.numbers[i]);
		err = open_part(parts, dir_fd, name);
	}
	return err;
}
