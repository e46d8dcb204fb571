/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/opcheck/sample_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "libop/base/file.h"
#include "libop/base/grow.h"
#include "libop/odb/odb.h"
#include "libop/odb/read.h"
#include "libop/base/sys.h"
#include "libop/session/pack.h"

#define MAX_BYTES (4ull << 30)

/* Bytes that are no hole. */
struct extent {
	uint64_t begin, end;
};

/* A file in memory. Its holes take none, and nobody reads them: a hole may be large. */
struct image {
	uint8_t *bytes; /* mapped; NULL: none */
	size_t mapped_bytes, nr_bytes;
	struct extent *extents;
	size_t nr_extents, capacity;
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

/* Where the file system does not tell, all is data. False: there is no more. */
static bool find_extent(int fd, uint64_t from, uint64_t nr_bytes, struct extent *ret_extent)
{
	off_t data = op_sys_lseek(fd, (off_t)from, SEEK_DATA), hole = data < 0 ? data : op_sys_lseek(fd, data, SEEK_HOLE);

	if (from >= nr_bytes || data == -ENXIO || (data >= 0 && (uint64_t)data >= nr_bytes))
		return false;
	ret_extent->begin = data < 0 ? from : (uint64_t)data;
	ret_extent->end = hole < 0 ? nr_bytes : op_min_u64((uint64_t)hole, nr_bytes);
	return true;
}

static int read_extents(int fd, struct image *image)
{
	struct extent extent = { 0 };

	while (find_extent(fd, extent.end, image->nr_bytes, &extent)) {
		size_t wanted = extent.end - extent.begin, nr_read = 0;
		int err = op_file_read_at(fd, image->bytes + extent.begin, wanted, (off_t)extent.begin, &nr_read);

		if (!err && !op_grow(&image->extents, &image->capacity, image->nr_extents + 1))
			err = -ENOMEM;
		if (err)
			return err;
		image->extents[image->nr_extents++] = extent;
		if (nr_read < wanted)
			image->nr_bytes = extent.begin + nr_read; /* it is shorter meanwhile */
	}
	return 0;
}

static int map_image(struct image *image, size_t nr_bytes)
{
	void *bytes = mmap(NULL, nr_bytes + 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (bytes == MAP_FAILED)
		return -ENOMEM;
	image->bytes = bytes;
	image->mapped_bytes = nr_bytes + 1;
	image->nr_bytes = nr_bytes;
	return 0;
}

static void free_image(struct image *image)
{
	if (image->bytes)
		munmap(image->bytes, image->mapped_bytes);
	free(image->extents);
}

/*
 * The first item from `index` on that is not all in a hole; nr_items: there is none. `base`: where
 * the items begin. *at: 0 at first; it goes on with `index`.
 */
static uint32_t skip_hole(const struct image *image, uint64_t base, size_t item_bytes, uint32_t index, uint32_t nr_items,
			  size_t *at)
{
	uint64_t begin = base + (uint64_t)index * item_bytes;

	while (*at < image->nr_extents && image->extents[*at].end <= begin)
		++*at;
	if (*at == image->nr_extents || index >= nr_items)
		return nr_items;
	if (image->extents[*at].begin > begin)
		index = (uint32_t)op_min_u64((image->extents[*at].begin - base) / item_bytes, nr_items);
	return index;
}

static int load(int dir_fd, const char *path, struct opk_file *file, struct image *image)
{
	int fd = op_sys_openat(dir_fd, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0), err;
	struct stat st;

	if (fd < 0)
		return fd;
	err = op_sys_fstat(fd, &st);
	if (err)
		goto out;
	if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size > MAX_BYTES) {
		note(file, OPK_LOST, S_ISREG(st.st_mode) ? "larger than any sample file" : "not a regular file", 0);
		goto out;
	}
	err = map_image(image, (size_t)st.st_size);
	if (!err)
		err = read_extents(fd, image);
out:
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
		note(file, OPK_LOST, "not a sample file: the magic number is wrong", 0);
	else if (file->header.version == OP_ODB_VERSION_0_9)
		return false;
	else if (op_odb_is_of_other_order(&file->header))
		note(file, OPK_FOREIGN, OP_ODB_OTHER_ORDER, offsetof(struct op_odb_header, version));
	else if (file->header.version != OP_ODB_VERSION)
		note(file, OPK_LOST, "a version of the format that opd does not write", offsetof(struct op_odb_header, version));
	return file->verdict < OPK_LOST;
}

/* How many nodes fit in the file, with node 0. */
static uint32_t nodes_within(const struct image *image)
{
	uint64_t nr = (image->nr_bytes - OP_ODB_NODES_OFFSET) / sizeof(struct op_odb_node);

	return (uint32_t)op_min_u64(nr, UINT32_MAX);
}

static uint32_t next_node(const struct image *image, uint32_t index, uint32_t nr_nodes, size_t *at)
{
	return skip_hole(image, OP_ODB_NODES_OFFSET, sizeof(struct op_odb_node), index, nr_nodes, at);
}

/* The number of nodes up to the last one with a count. */
static uint32_t nr_filled(const struct image *image, uint32_t nr_nodes)
{
	uint32_t nr = 1;
	size_t at = 0;

	for (uint32_t i = 1; (i = next_node(image, i, nr_nodes, &at)) < nr_nodes; i++)
		if (image->nodes[i].value)
			nr = i + 1;
	return nr;
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
		note(file, OPK_REPARABLE, "the number of nodes is not a power of two", at);
		size = nr_nodes;
	} else if (image->nr_bytes != op_odb_file_bytes(size)) {
		note(file, OPK_REPARABLE, "the length does not match the number of nodes", at);
	} else {
		*ret_has_hash = true;
	}
	nr_nodes = (uint32_t)op_min_u64(nr_nodes, size);
	if (!current_size || current_size > size) {
		note(file, OPK_REPARABLE, "the number of nodes in use is larger than the number of nodes",
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

/* How many nodes have room in data, at most. */
static size_t nr_in_data(const struct image *image, uint32_t nr_nodes)
{
	uint64_t nr = 0;

	for (size_t i = 0; i < image->nr_extents; i++)
		nr += (image->extents[i].end - image->extents[i].begin) / sizeof(struct op_odb_node) + 2;
	return (size_t)op_min_u64(nr, nr_nodes);
}

static void drop_nodes(struct opk_file *file, uint32_t index, uint32_t nr)
{
	note(file, OPK_REPARABLE, "a node of which a part is missing", offset_of_node(index));
	file->nr_dropped += nr;
}

/* Keeps the nodes that are not torn (libop/odb/format.h) and no fillers. A hole has torn nodes. */
static int take_nodes(struct opk_file *file, const struct image *image, uint32_t nr_nodes)
{
	uint32_t index = 1;
	size_t at = 0;

	file->nodes = calloc(nr_in_data(image, nr_nodes) + 1, sizeof(*file->nodes));
	if (!file->nodes)
		return -ENOMEM;
	for (uint32_t i = 1; index < nr_nodes; index = i + 1) {
		i = next_node(image, index, nr_nodes, &at);
		if (i > index)
			drop_nodes(file, index, i - index);
		if (i == nr_nodes)
			break;
		if (op_odb_is_torn(&image->nodes[i], i)) {
			drop_nodes(file, i, 1);
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

static uint32_t next_bucket(const struct image *image, uint32_t bucket, size_t *at)
{
	uint32_t size = image->descr->size;

	return skip_hole(image, offset_of_node(size), sizeof(uint32_t), bucket, size, at);
}

static bool has_no_hash(const struct image *image)
{
	uint32_t size = image->descr->size, bucket = 0;
	size_t at = 0;

	while ((bucket = next_bucket(image, bucket, &at)) < size && !image->hash[bucket])
		bucket++;
	return bucket == size;
}

static int check_hash(struct opk_file *file, const struct image *image, uint32_t nr_nodes)
{
	uint8_t *seen = calloc(1, nr_nodes / 8 + (size_t)1);
	size_t at = 0;

	if (!seen)
		return -ENOMEM;
	for (uint32_t bucket = 0; (bucket = next_bucket(image, bucket, &at)) < image->descr->size; bucket++) {
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
	int err = op_session_read_samples(dir_fd, path, &samples, &fault);

	if (err == -EBADMSG) {
		note(file, !strcmp(fault.why, OP_ODB_OTHER_ORDER) ? OPK_FOREIGN : OPK_LOST, fault.why, fault.offset);
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
		free_image(&image);
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
