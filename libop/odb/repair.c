/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/odb/repair.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "libop/base/file.h"
#include "libop/odb/file_image.h"
#include "libop/odb/read.h"

/* A damaged file in memory. */
struct remains {
	struct op_odb_header header;
	struct op_odb_descr descr;
	struct op_odb_node *nodes; /* from node 0 */
	uint32_t nr_nodes;         /* that the file has, with node 0 */
	uint32_t nr_fillers;       /* that the new file of one of 0.9 may need, too */
	bool is_of_0_9;
};

static int read_head(int fd, struct remains *remains)
{
	struct {
		struct op_odb_header header;
		struct op_odb_descr descr;
	} head;
	size_t nr_read = 0;
	int err = op_file_read_at(fd, &head, sizeof(head), 0, &nr_read);

	if (err)
		return err;
	if (nr_read < sizeof(head))
		return -EBADMSG;
	remains->header = head.header;
	remains->descr = head.descr;
	return op_odb_check_head(&head.header, &head.descr);
}

/* A file of 0.9 must be whole. The new one has the processor that opd writes in all files. */
static int read_of_0_9(int fd, off_t file_bytes, struct remains *remains)
{
	struct op_odb_samples samples;
	struct op_odb_fault fault;
	int err = (uint64_t)file_bytes < op_odb_file_bytes(OP_ODB_SIZE_MAX / 2) ? op_odb_read_open(fd, &samples, &fault) : -EBADMSG;

	if (err)
		return err;
	remains->nodes = calloc((size_t)samples.nr_nodes + 1, sizeof(*remains->nodes));
	if (remains->nodes) {
		remains->header = samples.header;
		remains->header.version = OP_ODB_VERSION;
		remains->header.cpu_type = OP_CPU_TYPE_TIMER;
		remains->nr_nodes = remains->descr.current_size = samples.nr_nodes + 1;
		for (uint32_t i = 0; i < samples.nr_nodes; i++) {
			remains->nodes[i + 1] = samples.nodes[i];
			remains->nr_fillers += !samples.nodes[i].key;
		}
	}
	op_odb_samples_free(&samples);
	return remains->nodes ? 0 : -ENOMEM;
}

/* Takes as much memory as the file has nodes, whatever the descriptor says. */
static int read_remains(int fd, off_t file_bytes, struct remains *remains)
{
	size_t nr_read = 0;
	uint64_t nr_nodes;
	int err = read_head(fd, remains);

	remains->is_of_0_9 = op_odb_is_of_0_9(&remains->header);
	if (remains->is_of_0_9)
		return read_of_0_9(fd, file_bytes, remains);
	if (err)
		return err;
	nr_nodes = op_min_u64(remains->descr.current_size, ((uint64_t)file_bytes - OP_ODB_NODES_OFFSET) / sizeof(*remains->nodes));
	remains->nodes = calloc(nr_nodes + 1, sizeof(*remains->nodes));
	if (!remains->nodes)
		return -ENOMEM;
	err = op_file_read_at(fd, remains->nodes, nr_nodes * sizeof(*remains->nodes), OP_ODB_NODES_OFFSET, &nr_read);
	if (!err)
		remains->nr_nodes = (uint32_t)(nr_read / sizeof(*remains->nodes));
	return err;
}

/* Copies the whole nodes, with fillers where they are needed now. Returns how many they were. */
static uint32_t copy_whole(const struct remains *remains, const struct op_odb_map *map)
{
	uint32_t nr = 1, nr_whole = 0;

	for (uint32_t i = 1; i < remains->nr_nodes; i++) {
		const struct op_odb_node *node = &remains->nodes[i];

		if (!remains->is_of_0_9 && op_odb_is_torn(&remains->nodes[i], i))
			continue;
		nr_whole++;
		if (!node->value)
			continue; /* a filler */
		if (op_odb_needs_filler(node->key, nr)) {
			map->nodes[nr].key = map->nodes[nr - 1].key;
			nr++;
		}
		map->nodes[nr].key = node->key;
		map->nodes[nr++].value = node->value;
	}
	map->descr->current_size = nr;
	return nr_whole;
}

/* Nodes only move to the front, so the new file needs one filler more than the old one at most. */
static int write_whole(int dir_fd, const char *path, const char *tmp_path, const struct remains *remains, uint32_t *ret_dropped,
		       struct op_odb_pending **ret_pending)
{
	uint32_t size = OP_ODB_INITIAL_SIZE, nr_nodes = remains->nr_nodes + remains->nr_fillers, nr_whole;
	struct op_odb_map map;
	int err;

	while (size < nr_nodes)
		size *= 2;
	err = op_odb_make_file(dir_fd, tmp_path, size, (uint32_t)op_min_u64(size, (uint64_t)nr_nodes + 1), &map);
	if (err)
		return err;
	*map.header = remains->header;
	nr_whole = copy_whole(remains, &map);
	op_odb_link_nodes(&map);
	err = op_odb_map_error(&map);
	if (err)
		op_file_unlink_below(dir_fd, tmp_path);
	else
		err = op_odb_replace(dir_fd, tmp_path, path, map.inode, ret_pending);
	op_odb_unmap(&map);
	if (!err)
		*ret_dropped = remains->descr.current_size - 1 - nr_whole;
	return err;
}

/* Where readers accept the file. op_odb_map_sound mends the rest. */
static int repair_in_place(int fd, const struct stat *st, uint32_t *ret_dropped)
{
	struct op_odb_map map;
	uint32_t dropped;
	int err = op_odb_map_sound(fd, st, &map, &dropped);

	if (err)
		return err;
	op_odb_unmap(&map);
	*ret_dropped = dropped;
	return 0;
}

int op_odb_repair(int dir_fd, const char *path, const char *tmp_path, uint32_t *ret_dropped, struct op_odb_pending **ret_pending)
{
	struct remains remains = { 0 };
	struct op_odb_pending *pending = NULL;
	struct stat st;
	int fd = op_odb_open_regular(dir_fd, path, O_RDWR, &st), err;

	if (fd < 0)
		return fd;
	err = repair_in_place(fd, &st, ret_dropped);
	if (err == -EUCLEAN) {
		err = read_remains(fd, st.st_size, &remains);
		if (!err)
			err = write_whole(dir_fd, path, tmp_path, &remains, ret_dropped, &pending);
		free(remains.nodes);
	}
	close(fd);
	if (!err)
		*ret_pending = pending;
	return err;
}
