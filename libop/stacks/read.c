/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/stacks/read.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libop/base/file.h"
#include "libop/base/sys.h"

/* In place, node by node, so that each is checked against nodes that were. */
static uint32_t check_nodes(struct op_stack_node *nodes, uint32_t nr_nodes)
{
	uint32_t nr = 0;

	while (nr < nr_nodes && op_stack_is_sound(nodes, nr))
		nr++;
	for (uint32_t i = 0; i < nr; i++)
		nodes[i] = (struct op_stack_node){
			.parent = le32toh(nodes[i].parent),
			.kind = le16toh(nodes[i].kind),
			.records = le16toh(nodes[i].records),
			.value = le64toh(nodes[i].value),
			.image = le64toh(nodes[i].image),
			.count = le64toh(nodes[i].count),
		};
	return nr;
}

static int read_nodes(int fd, uint32_t nr_nodes, struct op_stack_tree *tree)
{
	size_t nr_bytes = (size_t)nr_nodes * sizeof(struct op_stack_node), nr_read;
	int err;

	tree->nodes = malloc(nr_bytes);
	if (!tree->nodes)
		return -ENOMEM;
	err = op_file_read_at(fd, tree->nodes, nr_bytes, sizeof(struct op_stacks_header), &nr_read);
	if (err < 0)
		return err;
	tree->nr_nodes = check_nodes(tree->nodes, (uint32_t)(nr_read / sizeof(struct op_stack_node)));
	tree->nr_damaged = nr_nodes - tree->nr_nodes;
	return tree->nr_nodes ? 0 : -EBADMSG;
}

/* The header first: all nodes that it counts are in the file then. */
static int read_fd(int fd, struct op_stack_tree *tree)
{
	struct op_stacks_header header;
	struct stat st;
	size_t nr_read;
	uint64_t nr_nodes;
	uint32_t nr_missing;
	int err = op_sys_fstat(fd, &st);

	if (!err && !S_ISREG(st.st_mode))
		err = -EBADMSG;
	if (!err)
		err = op_file_read_at(fd, &header, sizeof(header), 0, &nr_read);
	if (err < 0)
		return err;
	if (nr_read < sizeof(header) || !op_stacks_is_header(&header))
		return -EBADMSG;
	/* A damaged header may say any number, so it gets no more memory than the file is long. */
	nr_nodes = op_min_u64(le32toh(header.nr_nodes), ((uint64_t)st.st_size - sizeof(header)) / sizeof(struct op_stack_node));
	if (!nr_nodes)
		return -EBADMSG;
	nr_missing = le32toh(header.nr_nodes) - (uint32_t)nr_nodes;
	err = read_nodes(fd, (uint32_t)nr_nodes, tree);
	tree->nr_damaged += nr_missing;
	tree->nr_cut = le32toh(header.nr_cut);
	tree->no_room = le64toh(header.no_room);
	tree->no_room_us = le64toh(header.no_room_us);
	return err;
}

int op_stacks_read(int dir_fd, const char *path, struct op_stack_tree *ret_tree)
{
	struct op_stack_tree tree = { 0 };
	int fd = op_file_open_below(dir_fd, path, O_RDONLY | O_NONBLOCK, 0), err;

	if (fd < 0)
		return fd;
	err = read_fd(fd, &tree);
	close(fd);
	if (err)
		op_stack_tree_free(&tree);
	else
		*ret_tree = tree;
	return err;
}

void op_stack_tree_free(struct op_stack_tree *tree)
{
	free(tree->nodes);
	*tree = (struct op_stack_tree){ 0 };
}

/* The bytes are as in the file. */
static void unpack(const struct op_stack_node *node, char bytes[OP_STACK_PIECE_BYTES])
{
	uint64_t words[] = { htole64(node->value), htole64(node->image) };

	static_assert(sizeof(words) == OP_STACK_PIECE_BYTES, "a piece fills a node");
	memcpy(bytes, words, sizeof(words));
}

char *op_stack_text(const struct op_stack_tree *tree, uint64_t node)
{
	size_t nr_pieces = 0;
	char *text, *piece;

	for (uint64_t i = node; tree->nodes[i].kind == OP_STACK_TEXT && nr_pieces < OP_STACK_TEXT_MAX / OP_STACK_PIECE_BYTES;
	     i = tree->nodes[i].parent)
		nr_pieces++;
	text = malloc(nr_pieces * OP_STACK_PIECE_BYTES + 1);
	if (!text)
		return NULL;
	piece = text + nr_pieces * OP_STACK_PIECE_BYTES;
	*piece = '\0';
	for (uint64_t i = node; piece > text; i = tree->nodes[i].parent) {
		piece -= OP_STACK_PIECE_BYTES;
		unpack(&tree->nodes[i], piece);
	}
	return text;
}

void op_stack_comm(const struct op_stack_node *node, char comm[OP_STACK_PIECE_BYTES])
{
	unpack(node, comm);
	comm[OP_STACK_PIECE_BYTES - 1] = '\0';
}
