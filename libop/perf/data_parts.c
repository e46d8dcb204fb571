/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The files with records: one, or those of a directory that `perf record --threads` made. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <unistd.h>

#include "libop/base/grow.h"
#include "libop/base/parse.h"
#include "libop/base/sys.h"
#include "libop/perf/data_reader.h"

#define PREFIX "data."

struct numbers {
	uint32_t numbers[OP_PERF_PARTS_MAX];
	size_t nr;
};

static void close_part(struct op_perf_part *part)
{
	op_perf_input_close(&part->input);
	op_perf_zstd_free(&part->zstd);
	if (part->own_fd >= 0)
		close(part->own_fd);
	free(part);
}

static struct op_perf_part *make_part(int fd, int own_fd, const char *name)
{
	struct op_perf_part *part = calloc(1, sizeof(*part));

	if (!part)
		return NULL;
	if (op_perf_input_open(&part->input, fd, 0) < 0) {
		free(part);
		return NULL;
	}
	part->own_fd = own_fd;
	snprintf(part->name, sizeof(part->name), "%s", name);
	return part;
}

int op_perf_part_add(struct op_perf_data *data, int fd, int own_fd, const char *name)
{
	struct op_perf_part *part = make_part(fd, own_fd, name);

	if (part && op_grow(&data->parts, &data->parts_capacity, data->nr_parts + 1)) {
		part->input.stop = data->stop;
		data->parts[data->nr_parts++] = part;
		return 0;
	}
	if (part)
		close_part(part);
	else if (own_fd >= 0)
		close(own_fd);
	return -ENOMEM;
}

void op_perf_parts_close(struct op_perf_data *data)
{
	for (size_t i = 0; i < data->nr_parts; i++)
		close_part(data->parts[i]);
	free(data->parts);
}

static int compare(const void *left, const void *right)
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
	qsort(numbers->numbers, numbers->nr, sizeof(numbers->numbers[0]), compare);
	return 0;
}

static int open_part(struct op_perf_data *data, int dir_fd, uint32_t number)
{
	char name[sizeof(data->part->name)];
	struct stat st;
	int fd, err;

	snprintf(name, sizeof(name), PREFIX "%" PRIu32, number);
	fd = op_sys_openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);
	if (fd < 0)
		return fd;
	err = op_sys_fstat(fd, &st);
	if (!err && !S_ISREG(st.st_mode))
		err = -EINVAL;
	if (err) {
		close(fd);
		return err;
	}
	err = op_perf_part_add(data, fd, fd, name);
	if (err)
		return err;
	data->parts[data->nr_parts - 1]->data_end = (uint64_t)st.st_size;
	return 0;
}

/* perf numbers them from 0 on. */
static void note_missing(struct op_perf_data *data, uint32_t number)
{
	op_perf_reader_trouble(data, 0, "it is not there", 0);
	if (!data->trouble.nr_more)
		snprintf(data->trouble.file, sizeof(data->trouble.file), PREFIX "%" PRIu32, number);
}

int op_perf_parts_open(struct op_perf_data *data, int dir_fd)
{
	int copy_fd = op_sys_openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0), err;
	struct numbers numbers = { .nr = 0 };
	uint32_t expected = 0;
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
		if (numbers.numbers[i] != expected)
			note_missing(data, expected);
		expected = numbers.numbers[i] + 1;
		err = open_part(data, dir_fd, numbers.numbers[i]);
	}
	return err;
}
