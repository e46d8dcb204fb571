/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/odb.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libop/sys.h"

#define GROWTH_TRIES   50
#define GROWTH_WAIT_NS 1000000 /* between two tries */

/* All bytes or an error; a short file is -EBADMSG. */
static int read_at(int fd, void *bytes, size_t nr_bytes, uint64_t offset)
{
	char *to = bytes;

	while (nr_bytes) {
		ssize_t got = op_sys_pread(fd, to, nr_bytes, (off_t)offset);

		if (got == -EINTR)
			continue;
		if (got < 0)
			return (int)got;
		if (!got)
			return -EBADMSG;
		to += got;
		offset += (size_t)got;
		nr_bytes -= (size_t)got;
	}
	return 0;
}

static int read_header(int fd, struct op_odb_header *header, const char **why)
{
	int err = read_at(fd, header, sizeof(*header), 0);

	if (err == -EBADMSG)
		*why = "Can't read sample file header";
	if (err < 0)
		return err;
	*why = memcmp(header->magic, OP_ODB_MAGIC, sizeof(header->magic)) ? "Invalid sample file, bad magic number"
	       : header->version != OP_ODB_VERSION                        ? "samples files version mismatch"
									  : NULL;
	return *why ? -EBADMSG : 0;
}

/* Nodes a file of so many bytes has room for; a rest smaller than a node and its bucket does not matter. */
static uint64_t nodes_in(uint64_t file_bytes)
{
	if (file_bytes < OP_ODB_NODES_OFFSET)
		return 0;
	return (file_bytes - OP_ODB_NODES_OFFSET) / (sizeof(struct op_odb_node) + sizeof(uint32_t));
}

/* The descriptor, when it agrees with the file's length; -EAGAIN while the writer is between the two. */
static int read_descr_once(int fd, struct op_odb_descr *descr)
{
	struct stat st;
	int err = read_at(fd, descr, sizeof(*descr), sizeof(struct op_odb_header));
	uint64_t nr_nodes;

	if (!err)
		err = op_sys_fstat(fd, &st);
	if (err < 0)
		return err;
	nr_nodes = nodes_in((uint64_t)st.st_size);
	if (nr_nodes != descr->size)
		return nr_nodes > descr->size ? -EAGAIN : -EBADMSG;
	return descr->current_size && descr->current_size <= descr->size ? 0 : -EBADMSG;
}

static int read_descr(int fd, struct op_odb_descr *descr, const char **why)
{
	static const struct timespec wait = { .tv_nsec = GROWTH_WAIT_NS };
	int err = read_descr_once(fd, descr);

	for (int i = 0; err == -EAGAIN && i < GROWTH_TRIES; i++) {
		nanosleep(&wait, NULL);
		err = read_descr_once(fd, descr);
	}
	if (err == -EAGAIN || err == -EBADMSG) {
		*why = "Invalid argument";
		return -EBADMSG;
	}
	return err;
}

static int read_nodes(int fd, uint32_t nr_nodes, struct op_odb_node **ret_nodes, const char **why)
{
	struct op_odb_node *nodes = NULL;
	int err;

	if (!nr_nodes) {
		*ret_nodes = NULL;
		return 0;
	}
	nodes = calloc(nr_nodes, sizeof(*nodes));
	if (!nodes)
		return -ENOMEM;
	err = read_at(fd, nodes, nr_nodes * sizeof(*nodes), OP_ODB_NODES_OFFSET + sizeof(*nodes));
	if (err < 0) {
		*why = "Invalid argument";
		free(nodes);
		return err;
	}
	*ret_nodes = nodes;
	return 0;
}

static int read_file(int fd, struct op_odb_samples *ret_samples, const char **why)
{
	struct op_odb_samples samples = { 0 };
	struct op_odb_descr descr;
	struct stat st;
	int err = op_sys_fstat(fd, &st);

	if (err < 0)
		return err;
	if (!S_ISREG(st.st_mode)) {
		*why = "Not a regular file";
		return -EBADMSG;
	}
	err = read_header(fd, &samples.header, why);
	if (err < 0)
		return err;
	err = read_descr(fd, &descr, why);
	if (err < 0)
		return err;
	samples.nr_nodes = descr.current_size - 1;
	err = read_nodes(fd, samples.nr_nodes, &samples.nodes, why);
	if (err < 0)
		return err;
	*ret_samples = samples;
	return 0;
}

int op_odb_read(int dir_fd, const char *path, struct op_odb_samples *ret_samples, const char **ret_why)
{
	int fd = op_sys_openat(dir_fd, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);
	const char *why = NULL;
	int err;

	if (fd < 0)
		return fd;
	err = read_file(fd, ret_samples, &why);
	if (err == -EBADMSG && ret_why)
		*ret_why = why;
	close(fd);
	return err;
}

void op_odb_samples_free(struct op_odb_samples *samples)
{
	if (!samples)
		return;
	free(samples->nodes);
	*samples = (struct op_odb_samples){ 0 };
}
