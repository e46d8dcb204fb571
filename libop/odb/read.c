/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/odb/read.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libop/base/file.h"
#include "libop/base/sys.h"

#define GROWTH_TRIES   50
#define GROWTH_WAIT_NS 1000000 /* between two tries */

/* All bytes or an error; a short file is -EBADMSG. */
static int read_at(int fd, void *bytes, size_t nr_bytes, uint64_t offset)
{
	size_t nr_read = 0;
	int err = op_file_read_at(fd, bytes, nr_bytes, (off_t)offset, &nr_read);

	if (err < 0)
		return err;
	return nr_read == nr_bytes ? 0 : -EBADMSG;
}

/* The header of 0.9 from where it differs. */
struct header_0_9_rest {
	uint32_t spu_profile;
	uint64_t embedded_offset;
	uint64_t anon_start;
	uint64_t cg_to_anon_start;
	uint32_t reserved, pad;
} __attribute__((packed));

#define REST_0_9_OFFSET 52u

static_assert(REST_0_9_OFFSET + sizeof(struct header_0_9_rest) == 88, "header of oprofile 0.9.x");

/*
 * 1.0 left some processors out, and numbers moved: from `first` of 0.9 on, they are less by
 * `less`.
 */
static const struct {
	uint32_t first, less; /* OP_CPU_TYPE_UNKNOWN: 1.x has none of these */
} cpu_types_0_9[] = {
	{ 0, 0 },   { 5, OP_CPU_TYPE_UNKNOWN },  { 6, 1 },   { 7, OP_CPU_TYPE_UNKNOWN },  { 10, 4 },  { 12, OP_CPU_TYPE_UNKNOWN },
	{ 16, 8 },  { 43, OP_CPU_TYPE_UNKNOWN }, { 44, 9 },  { 45, OP_CPU_TYPE_UNKNOWN }, { 46, 10 }, { 50, OP_CPU_TYPE_UNKNOWN },
	{ 51, 11 }, { 55, OP_CPU_TYPE_UNKNOWN }, { 56, 12 }, { 84, OP_CPU_TYPE_UNKNOWN },
};

uint32_t op_odb_cpu_type_of_0_9(uint32_t number)
{
	size_t i = op_array_size(cpu_types_0_9);

	while (cpu_types_0_9[--i].first > number)
		;
	return cpu_types_0_9[i].less == OP_CPU_TYPE_UNKNOWN ? OP_CPU_TYPE_UNKNOWN : number - cpu_types_0_9[i].less;
}

int op_odb_fault(struct op_odb_fault *ret_fault, const char *why, uint64_t offset)
{
	*ret_fault = (struct op_odb_fault){ why, offset };
	return -EBADMSG;
}

int op_odb_read_part(int fd, void *bytes, size_t nr_bytes, uint64_t offset, const char *why, struct op_odb_fault *ret_fault)
{
	int err = read_at(fd, bytes, nr_bytes, offset);

	return err == -EBADMSG ? op_odb_fault(ret_fault, why, offset) : err;
}

static int read_header_0_9(int fd, struct op_odb_header *header, struct op_odb_fault *ret_fault)
{
	struct header_0_9_rest rest;
	int err = op_odb_read_part(fd, &rest, sizeof(rest), REST_0_9_OFFSET, OP_ODB_NO_HEADER, ret_fault);

	if (err)
		return err;
	header->pad1 = 0;
	header->anon_start = rest.anon_start;
	header->cg_to_anon_start = rest.cg_to_anon_start;
	header->cpu_type = op_odb_cpu_type_of_0_9(header->cpu_type);
	return 0;
}

/* The descriptor follows the header at *ret_descr_offset. */
static int read_header(int fd, struct op_odb_header *header, uint64_t *ret_descr_offset, struct op_odb_fault *ret_fault)
{
	int err = op_odb_read_part(fd, header, sizeof(*header), 0, OP_ODB_NO_HEADER, ret_fault);

	if (err)
		return err;
	if (memcmp(header->magic, OP_ODB_MAGIC, sizeof(header->magic)) != 0)
		return op_odb_fault(ret_fault, OP_ODB_BAD_MAGIC, 0);
	switch (header->version) {
	case OP_ODB_VERSION:
		*ret_descr_offset = sizeof(*header);
		return 0;
	case OP_ODB_VERSION_0_9:
		*ret_descr_offset = REST_0_9_OFFSET + sizeof(struct header_0_9_rest);
		return read_header_0_9(fd, header, ret_fault);
	default:
		return op_odb_fault(ret_fault, op_odb_is_of_other_order(header) ? OP_ODB_OTHER_ORDER : OP_ODB_BAD_VERSION,
				    offsetof(struct op_odb_header, version));
	}
}

/*
 * How many nodes fit in a file of so many bytes. A rest too small for a node with its bucket is
 * unused.
 */
static uint64_t nodes_in(uint64_t file_bytes, uint64_t nodes_offset)
{
	if (file_bytes < nodes_offset)
		return 0;
	return (file_bytes - nodes_offset) / (sizeof(struct op_odb_node) + sizeof(uint32_t));
}

/*
 * -EAGAIN when the file is longer than the descriptor says: the genuine writer may be growing it.
 */
static int read_descr_once(int fd, uint64_t offset, struct op_odb_descr *descr)
{
	struct stat st;
	int err = read_at(fd, descr, sizeof(*descr), offset);
	uint64_t nr_nodes;

	if (!err)
		err = op_sys_fstat(fd, &st);
	if (err < 0)
		return err;
	nr_nodes = nodes_in((uint64_t)st.st_size, offset + sizeof(*descr));
	if (nr_nodes != descr->size)
		return nr_nodes > descr->size ? -EAGAIN : -EBADMSG;
	return descr->current_size && descr->current_size <= descr->size ? 0 : -EBADMSG;
}

static int read_descr(int fd, uint64_t offset, struct op_odb_descr *descr, struct op_odb_fault *ret_fault)
{
	static const struct timespec wait = { .tv_nsec = GROWTH_WAIT_NS };
	int err = read_descr_once(fd, offset, descr);

	for (int i = 0; err == -EAGAIN && i < GROWTH_TRIES; i++) {
		nanosleep(&wait, NULL);
		err = read_descr_once(fd, offset, descr);
	}
	return err == -EAGAIN || err == -EBADMSG ? op_odb_fault(ret_fault, OP_ODB_BAD_NODES, offset) : err;
}

/*
 * The next nodes from `from` on that lie in data, and not in a hole: a file may be sparse, and the
 * nodes in a hole are empty. Where the file system does not tell, all is data. False: there are
 * none.
 */
static bool find_data(int fd, uint64_t offset, uint32_t from, uint32_t nr_nodes, uint32_t *ret_begin, uint32_t *ret_end)
{
	uint64_t begin_byte = offset + from * sizeof(struct op_odb_node), end_byte = offset + nr_nodes * sizeof(struct op_odb_node);
	off_t data = op_sys_lseek(fd, (off_t)begin_byte, SEEK_DATA), hole;

	if (from >= nr_nodes || data == -ENXIO || (data >= 0 && (uint64_t)data >= end_byte))
		return false;
	hole = data < 0 ? data : op_sys_lseek(fd, data, SEEK_HOLE);
	*ret_begin = data < 0 ? from : (uint32_t)(((uint64_t)data - offset) / sizeof(struct op_odb_node));
	*ret_end = nr_nodes;
	if (hole >= 0 && (uint64_t)hole < end_byte)
		*ret_end = (uint32_t)(((uint64_t)hole - offset + sizeof(struct op_odb_node) - 1) / sizeof(struct op_odb_node));
	return true;
}

/* Reads the nodes that are no holes. A file has one stretch of them, a sparse one more. */
static int read_stretches(int fd, uint64_t offset, uint32_t nr_nodes, struct op_odb_samples *samples,
			  struct op_odb_fault *ret_fault)
{
	uint32_t begin, end = 0;

	while (find_data(fd, offset, end, nr_nodes, &begin, &end)) {
		uint32_t nr = end - begin, nr_before = samples->nr_nodes;
		struct op_odb_node *nodes = reallocarray(samples->nodes, (size_t)nr_before + nr, sizeof(*nodes));
		int err;

		if (!nodes)
			return -ENOMEM;
		samples->nodes = nodes;
		err = op_odb_read_part(fd, nodes + nr_before, nr * sizeof(*nodes), offset + begin * sizeof(*nodes),
				       OP_ODB_BAD_NODES, ret_fault);
		if (err)
			return err;
		samples->nr_nodes += nr;
	}
	return 0;
}

static int read_nodes(int fd, uint64_t offset, struct op_odb_samples *samples, struct op_odb_fault *ret_fault)
{
	uint32_t nr_nodes = samples->nr_nodes;
	int err;

	samples->nr_nodes = 0;
	err = read_stretches(fd, offset + sizeof(*samples->nodes), nr_nodes, samples, ret_fault);
	if (err) {
		free(samples->nodes);
		samples->nodes = NULL;
	}
	return err;
}

/* Everything but the nodes, which begin at *ret_offset. */
static int read_head(int fd, struct op_odb_samples *samples, uint64_t *ret_offset, struct op_odb_fault *ret_fault)
{
	struct op_odb_descr descr;
	uint64_t offset = 0;
	struct stat st;
	int err = op_sys_fstat(fd, &st);

	if (err < 0)
		return err;
	if (!S_ISREG(st.st_mode))
		return op_odb_fault(ret_fault, "Not a regular file", 0);
	err = read_header(fd, &samples->header, &offset, ret_fault);
	if (!err)
		err = read_descr(fd, offset, &descr, ret_fault);
	if (err < 0)
		return err;
	samples->nr_nodes = descr.current_size - 1;
	*ret_offset = offset + sizeof(descr);
	return 0;
}

int op_odb_read_open(int fd, struct op_odb_samples *ret_samples, struct op_odb_fault *ret_fault)
{
	struct op_odb_samples samples = { 0 };
	uint64_t offset = 0;
	int err = read_head(fd, &samples, &offset, ret_fault);

	if (!err)
		err = read_nodes(fd, offset, &samples, ret_fault);
	if (err < 0)
		return err;
	*ret_samples = samples;
	return 0;
}

int op_odb_read(int dir_fd, const char *path, struct op_odb_samples *ret_samples, struct op_odb_fault *ret_fault)
{
	int fd = op_sys_openat(dir_fd, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);
	struct op_odb_fault found;
	int err;

	if (fd < 0)
		return fd;
	err = op_odb_read_open(fd, ret_samples, &found);
	if (err == -EBADMSG && ret_fault)
		*ret_fault = found;
	close(fd);
	return err;
}

int op_odb_read_nr_nodes(int dir_fd, const char *path, uint32_t *ret_nr_nodes)
{
	int fd = op_file_open_below(dir_fd, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0), err;
	struct op_odb_samples head = { 0 };
	struct op_odb_fault fault;
	uint64_t offset;

	if (fd < 0)
		return fd;
	err = read_head(fd, &head, &offset, &fault);
	close(fd);
	if (!err)
		*ret_nr_nodes = head.nr_nodes;
	return err;
}

void op_odb_samples_free(struct op_odb_samples *samples)
{
	if (!samples)
		return;
	free(samples->nodes);
	*samples = (struct op_odb_samples){ 0 };
}
