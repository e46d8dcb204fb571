/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/opcheck/sample_file.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "libop/base/file.h"
#include "libop/odb/odb.h"
#include "libop/odb/read.h"
#include "libop/base/sys.h"

#define MAX_BYTES (4ull << 30)

struct image {
	uint8_t *bytes;
	size_t nr_bytes;
	const struct op_odb_descr *descr;
	const struct op_odb_node *nodes;
	const uint32_t *hash;
};

static void note(struct opk_file *file, enum opk_verdict verdict, const char *fault, uint64_t offset)
{
	if (!file->fault) {
		file->fault = fault;
		file->offset = offset;
	}
	if (verdict > file->verdict)
		file->verdict = verdict;
}

/* ---- reading ---- */

static int load(int dir_fd, const char *path, struct opk_file *file, struct image *image)
{
	int fd = op_sys_openat(dir_fd, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0), err;
	struct stat st;

	if (fd < 0)
		return fd;
	err = op_sys_fstat(fd, &st);
	if (!err && (!S_ISREG(st.st_mode) || (uint64_t)st.st_size > MAX_BYTES))
		note(file, OPK_LOST, S_ISREG(st.st_mode) ? "larger than any sample file" : "not a regular file", 0);
	else if (!err) {
		image->nr_bytes = (size_t)st.st_size;
		image->bytes = malloc(image->nr_bytes + 1);
		err = image->bytes ? op_file_read_at(fd, image->bytes, image->nr_bytes, 0, &image->nr_bytes) : -ENOMEM;
	}
	close(fd);
	return err;
}

/* ---- header and lengths ---- */

static bool is_power_of_two(uint32_t n)
{
	return n && !(n & (n - 1));
}

static bool has_head(struct opk_file *file, const struct image *image)
{
	if (image->nr_bytes < OP_ODB_NODES_OFFSET) {
		note(file, OPK_LOST, "shorter than header and descriptor", image->nr_bytes);
		return false;
	}
	memcpy(&file->header, image->bytes, sizeof(file->header));
	if (memcmp(file->header.magic, OP_ODB_MAGIC, sizeof(file->header.magic)))
		note(file, OPK_LOST, "not a sample file: the first bytes are others", 0);
	else if (file->header.version == OP_ODB_VERSION_0_9)
		return false;
	else if (file->header.version != OP_ODB_VERSION)
		note(file, OPK_LOST, "a version of the format that opd does not write", offsetof(struct op_odb_header, version));
	return file->verdict != OPK_LOST;
}

/* How many nodes fit in the file, with node 0. */
static uint32_t nodes_within(const struct image *image)
{
	uint64_t nr = (image->nr_bytes - OP_ODB_NODES_OFFSET) / sizeof(struct op_odb_node);

	return (uint32_t)op_min_u64(nr, UINT32_MAX);
}

/* The number of nodes up to the last one with a count. */
static uint32_t nr_filled(const struct image *image, uint32_t nr_nodes)
{
	while (nr_nodes > 1 && !image->nodes[nr_nodes - 1].value)
		nr_nodes--;
	return nr_nodes;
}

/*
 * How many nodes to check, with node 0. *ret_has_hash: the descriptor and the length agree on the
 * hash table.
 */
static uint32_t check_descr(struct opk_file *file, const struct image *image, bool *ret_has_hash)
{
	const uint64_t at = sizeof(struct op_odb_header);
	uint32_t size = image->descr->size, current_size = image->descr->current_size, nr_nodes = nodes_within(image);

	*ret_has_hash = false;
	if (!is_power_of_two(size) || size < 2) {
		note(file, OPK_REPARABLE, "the number of nodes is no power of two", at);
		size = nr_nodes;
	} else if (image->nr_bytes != op_odb_file_bytes(size)) {
		note(file, OPK_REPARABLE, "the length is not that of the number of nodes", at);
	} else {
		*ret_has_hash = true;
	}
	nr_nodes = (uint32_t)op_min_u64(nr_nodes, size);
	if (!current_size || current_size > size) {
		note(file, OPK_REPARABLE, "the number of nodes in use is larger than that of all",
		     at + offsetof(struct op_odb_descr, current_size));
		*ret_has_hash = false;
		return nr_filled(image, nr_nodes);
	}
	if (current_size > nr_nodes)
		note(file, OPK_REPARABLE, "nodes in use lie behind the end", image->nr_bytes);
	return (uint32_t)op_min_u64(current_size, nr_nodes);
}

/* ---- nodes ---- */

static uint64_t offset_of_node(uint32_t index)
{
	return OP_ODB_NODES_OFFSET + (uint64_t)index * sizeof(struct op_odb_node);
}

/* Keeps the nodes that are not torn (libop/odb/format.h) and no fillers. */
static int take_nodes(struct opk_file *file, const struct image *image, uint32_t nr_nodes)
{
	file->nodes = calloc(nr_nodes + (size_t)1, sizeof(*file->nodes));
	if (!file->nodes)
		return -ENOMEM;
	for (uint32_t i = 1; i < nr_nodes; i++) {
		if (op_odb_is_torn(&image->nodes[i], i)) {
			note(file, OPK_REPARABLE, "a node of which a part is missing", offset_of_node(i));
			file->nr_dropped++;
			continue;
		}
		if (!image->nodes[i].value)
			continue;
		file->total += image->nodes[i].value;
		file->nodes[file->nr_nodes++] = image->nodes[i];
	}
	return 0;
}

static int compare_keys(const void *a, const void *b)
{
	const struct op_odb_node *left = a, *right = b;

	if (left->key != right->key)
		return left->key < right->key ? -1 : 1;
	return (left->value > right->value) - (left->value < right->value);
}

/* A key may stand twice when all but one of its counts are full. The nodes are sorted. */
static void check_duplicates(struct opk_file *file)
{
	qsort(file->nodes, file->nr_nodes, sizeof(*file->nodes), compare_keys);
	for (uint32_t i = 1; i < file->nr_nodes; i++) {
		if (file->nodes[i].key != file->nodes[i - 1].key || file->nodes[i].value == UINT32_MAX)
			continue;
		note(file, OPK_REPARABLE, "a key stands twice", OP_ODB_NODES_OFFSET);
		return;
	}
}

/* ---- hash ---- */

/* Whether the chain has only nodes of its own bucket, each once. `seen` has a bit for each node. */
static bool walk_bucket(struct opk_file *file, const struct image *image, uint32_t bucket, uint32_t nr_nodes, uint8_t *seen)
{
	uint64_t at = offset_of_node(image->descr->size) + (uint64_t)bucket * sizeof(uint32_t);

	for (uint32_t i = image->hash[bucket]; i; i = image->nodes[i].next) {
		if (i >= nr_nodes) {
			note(file, OPK_REPARABLE, "a link of the hash table leads to a node that is not in use", at);
			return false;
		}
		if (seen[i / 8] & 1u << i % 8) {
			note(file, OPK_REPARABLE, "a link of the hash table leads in a circle", at);
			return false;
		}
		seen[i / 8] = (uint8_t)(seen[i / 8] | 1u << i % 8);
		if (op_odb_bucket(image->nodes[i].key, image->descr->size) != bucket) {
			note(file, OPK_REPARABLE, "a node is in the bucket of another key", offset_of_node(i));
			return false;
		}
		at = offset_of_node(i) + offsetof(struct op_odb_node, next);
	}
	return true;
}

static bool has_no_hash(const struct image *image)
{
	uint32_t bucket = 0;

	while (bucket < image->descr->size && !image->hash[bucket])
		bucket++;
	return bucket == image->descr->size;
}

static int check_hash(struct opk_file *file, const struct image *image, uint32_t nr_nodes)
{
	uint8_t *seen = calloc(1, nr_nodes / 8 + (size_t)1);

	if (!seen)
		return -ENOMEM;
	for (uint32_t bucket = 0; bucket < image->descr->size; bucket++) {
		if (!walk_bucket(file, image, bucket, nr_nodes, seen)) {
			free(seen);
			return 0;
		}
	}
	for (uint32_t i = 1; i < nr_nodes; i++) {
		if (seen[i / 8] & 1u << i % 8)
			continue;
		note(file, OPK_REPARABLE, "a node is in no bucket", offset_of_node(i));
		break;
	}
	free(seen);
	return 0;
}

static int check_parts(struct opk_file *file, struct image *image, enum opk_state state)
{
	bool has_hash;
	uint32_t nr_nodes;
	int err;

	if (!has_head(file, image))
		return 0;
	image->descr = (const void *)(image->bytes + sizeof(struct op_odb_header));
	image->nodes = (const void *)(image->bytes + OP_ODB_NODES_OFFSET);
	nr_nodes = check_descr(file, image, &has_hash);
	err = take_nodes(file, image, nr_nodes);
	if (err)
		return err;
	check_duplicates(file);
	if (!has_hash)
		return 0;
	image->hash = (const void *)(image->nodes + image->descr->size);
	if (state == OPK_CLOSED && has_no_hash(image))
		return 0;
	return check_hash(file, image, nr_nodes);
}

/* ---- a file that is being written, or of oprofile 0.9: sound when a reader accepts it ---- */

static int check_readable(int dir_fd, const char *path, struct opk_file *file)
{
	struct op_odb_samples samples = { 0 };
	struct op_odb_fault fault;
	int err = op_odb_read(dir_fd, path, &samples, &fault);

	if (err == -EBADMSG) {
		note(file, OPK_LOST, fault.why, fault.offset);
		return 0;
	}
	if (err)
		return err;
	file->header = samples.header;
	file->nodes = samples.nodes;
	file->nr_nodes = samples.nr_nodes;
	for (uint32_t i = 0; i < samples.nr_nodes; i++)
		file->total += samples.nodes[i].value;
	return 0;
}

int opk_file_check(int dir_fd, const char *path, enum opk_state state, struct opk_file *ret_file)
{
	struct opk_file file = { .verdict = OPK_SOUND };
	struct image image = { 0 };
	int err;

	if (state == OPK_WRITTEN) {
		err = check_readable(dir_fd, path, &file);
	} else {
		err = load(dir_fd, path, &file, &image);
		if (!err && file.verdict == OPK_SOUND)
			err = check_parts(&file, &image, state);
		if (!err && file.verdict == OPK_SOUND && file.header.version == OP_ODB_VERSION_0_9)
			err = check_readable(dir_fd, path, &file);
		free(image.bytes);
	}
	if (err)
		opk_file_free(&file);
	else
		*ret_file = file;
	return err;
}

/* ---- repair ---- */

static int fill(int dir_fd, const struct opk_file *file)
{
	struct op_odb *odb;
	int fd, err = op_odb_open(dir_fd, OPK_FILE_NEW, OPK_FILE_TMP, &file->header, &odb);

	if (err)
		return err;
	for (uint32_t i = 0; i < file->nr_nodes && !err; i++)
		err = op_odb_add(odb, file->nodes[i].key, file->nodes[i].value);
	op_odb_close(odb);
	if (err)
		return err;
	fd = op_sys_openat(dir_fd, OPK_FILE_NEW, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0);
	if (fd < 0)
		return fd;
	err = op_file_inherit_owner(dir_fd, fd);
	if (!err)
		err = op_sys_fsync(fd);
	close(fd);
	return err;
}

static int sync_parent(int dir_fd, const char *path)
{
	const char *slash = strrchr(path, '/');
	char *parent = slash ? strndup(path, (size_t)(slash - path)) : strdup(".");
	int fd, err;

	if (!parent)
		return -ENOMEM;
	fd = op_sys_openat(dir_fd, parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	free(parent);
	if (fd < 0)
		return fd;
	err = op_sys_fsync(fd);
	close(fd);
	return err;
}

int opk_file_rewrite(int dir_fd, const char *path, const struct opk_file *file)
{
	int err;

	op_sys_unlinkat(dir_fd, OPK_FILE_NEW, 0); /* from a run that was killed */
	err = fill(dir_fd, file);
	if (!err)
		err = op_file_rename_below(dir_fd, OPK_FILE_NEW, path);
	if (err) {
		op_sys_unlinkat(dir_fd, OPK_FILE_NEW, 0);
		return err;
	}
	return sync_parent(dir_fd, path);
}

int opk_file_exchange(int dir_fd, const char *path, const char *other_path)
{
	const char *name, *other_name;
	int parent = op_file_open_parent(dir_fd, path, false, &name), other_parent, err;

	if (parent < 0)
		return parent;
	other_parent = op_file_open_parent(dir_fd, other_path, false, &other_name);
	err = other_parent < 0 ? other_parent : op_sys_rename_exchange(parent, name, other_parent, other_name);
	if (other_parent >= 0)
		close(other_parent);
	close(parent);
	if (!err)
		err = sync_parent(dir_fd, path);
	return err ? err : sync_parent(dir_fd, other_path);
}

void opk_file_free(struct opk_file *file)
{
	if (!file)
		return;
	free(file->nodes);
	file->nodes = NULL;
}
