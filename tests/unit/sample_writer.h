/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Sample files and session directories for tests, written without libop's writer. A call that fails
 * ends the test program.
 */
#ifndef SAMPLE_WRITER_H
#define SAMPLE_WRITER_H

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libop/odb/format.h"
#include "tests/die.h"

struct sample {
	uint64_t key;
	uint32_t value;
};

/* Makes every directory of a path up to its last slash. */
static inline void sample_make_dirs(int dir_fd, const char *path)
{
	char *copy = strdup(path);

	for (char *slash = strchr(copy + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdirat(dir_fd, copy, 0755) < 0 && errno != EEXIST)
			die(copy, -errno);
		*slash = '/';
	}
	free(copy);
}

/* Writes a file of any content, with its directories. */
static inline void sample_write_bytes(int dir_fd, const char *path, const void *bytes, size_t nr_bytes)
{
	int fd;

	sample_make_dirs(dir_fd, path);
	fd = openat(dir_fd, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0 || write(fd, bytes, nr_bytes) != (ssize_t)nr_bytes || close(fd) < 0)
		die(path, -errno);
}

/* The header opd writes for a timer sample of an ordinary file. */
static inline struct op_odb_header sample_header(void)
{
	struct op_odb_header header = { .version = OP_ODB_VERSION, .cpu_type = OP_CPU_TYPE_TIMER };

	memcpy(header.magic, OP_ODB_MAGIC, sizeof(header.magic));
	return header;
}

/* Writes a whole sample file with its hash table. It has 128 nodes, or more when needed. */
static inline void sample_write(int dir_fd, const char *path, const struct op_odb_header *header, const struct sample *samples,
				uint32_t nr_samples)
{
	struct op_odb_descr descr = { .size = OP_ODB_INITIAL_SIZE, .current_size = nr_samples + 1 };
	struct op_odb_node *nodes;
	uint32_t *hash;
	char *bytes;

	while (descr.size < descr.current_size)
		descr.size *= 2;
	bytes = calloc(1, op_odb_file_bytes(descr.size));
	if (!bytes)
		die(path, -errno);
	memcpy(bytes, header, sizeof(*header));
	memcpy(bytes + sizeof(*header), &descr, sizeof(descr));
	nodes = (struct op_odb_node *)(void *)(bytes + OP_ODB_NODES_OFFSET);
	hash = (uint32_t *)(void *)(nodes + descr.size);
	for (uint32_t i = 1; i <= nr_samples; i++) {
		uint32_t *bucket = &hash[op_odb_bucket(samples[i - 1].key, descr.size)];

		nodes[i] = (struct op_odb_node){ samples[i - 1].key, samples[i - 1].value, *bucket };
		*bucket = i;
	}
	sample_write_bytes(dir_fd, path, bytes, op_odb_file_bytes(descr.size));
	free(bytes);
}

#endif
