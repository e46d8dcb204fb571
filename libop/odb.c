/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/odb.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "libop/atomic.h"
#include "libop/sys.h"

#define FILE_MODE 0644
#define DIRECTORY_MODE 0755
#define TMP_FLAGS (O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC)
#define SIZE_MAX_NODES (1u << 27) /* 2.7 GB in one file: an image has no more addresses than that */

/* The mapped file. The descriptor is closed once mapped, so open sample files cost no descriptors. */
struct op_odb {
	struct op_odb_header *header; /* start of the mapping */
	struct op_odb_descr *descr;
	struct op_odb_node *nodes;
	uint32_t *hash;
	uint32_t size; /* as in the descriptor, which is a page away */
	size_t map_bytes;
	uint32_t dropped;
	bool promised; /* what is in it is on the disk, or will be: see op_odb_promise */
	int dir_fd;
	char *tmp_path;
	char path[];
};

static void point_into(struct op_odb *odb, void *map, uint32_t size)
{
	uint8_t *base = map;

	odb->header = map;
	odb->descr = (void *)(base + sizeof(struct op_odb_header));
	odb->nodes = (void *)(base + OP_ODB_NODES_OFFSET);
	odb->hash = (void *)(odb->nodes + size);
	odb->size = size;
	odb->map_bytes = op_odb_file_bytes(size);
}

/* Makes the directories that lead to path, which is as before afterwards. From below: most of them are there. */
static int make_parents(int dir_fd, char *path)
{
	char *slash = strrchr(path, '/');
	int err;

	if (!slash || slash == path)
		return 0;
	*slash = '\0';
	err = op_sys_mkdirat(dir_fd, path, DIRECTORY_MODE);
	if (err == -ENOENT) {
		err = make_parents(dir_fd, path);
		if (!err)
			err = op_sys_mkdirat(dir_fd, path, DIRECTORY_MODE);
	}
	*slash = '/';
	return err == -EEXIST ? 0 : err;
}

static int make_directories(int dir_fd, const char *path)
{
	char *copy = strdup(path);
	int err = copy ? make_parents(dir_fd, copy) : -ENOMEM;

	free(copy);
	return err;
}

/* A file of the right length with its blocks allocated, and mapped: what is written to the map later cannot fail. */
static int make_mapped(int dir_fd, const char *tmp_path, uint32_t size, int *ret_fd, void **ret_map)
{
	off_t bytes = (off_t)op_odb_file_bytes(size);
	int fd, err;

	fd = op_sys_openat(dir_fd, tmp_path, TMP_FLAGS, FILE_MODE);
	/* Somebody tidied the session directory up. */
	if (fd == -ENOENT && !make_directories(dir_fd, tmp_path))
		fd = op_sys_openat(dir_fd, tmp_path, TMP_FLAGS, FILE_MODE);
	if (fd < 0)
		return fd;
	err = op_sys_fallocate(fd, 0, 0, bytes);
	if (!err)
		err = op_sys_mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0, ret_map);
	if (err) {
		close(fd);
		op_sys_unlinkat(dir_fd, tmp_path, 0);
		return err;
	}
	*ret_fd = fd;
	return 0;
}

static int publish(int dir_fd, const char *tmp_path, const char *path)
{
	int err = op_sys_renameat(dir_fd, tmp_path, dir_fd, path);

	if (err == -ENOENT) {
		err = make_directories(dir_fd, path);
		if (!err)
			err = op_sys_renameat(dir_fd, tmp_path, dir_fd, path);
	}
	return err;
}

static int create(struct op_odb *odb, const struct op_odb_header *header)
{
	void *map;
	int fd, err;

	err = make_mapped(odb->dir_fd, odb->tmp_path, OP_ODB_INITIAL_SIZE, &fd, &map);
	if (err)
		return err;
	close(fd);
	point_into(odb, map, OP_ODB_INITIAL_SIZE);
	*odb->header = *header;
	odb->descr->size = OP_ODB_INITIAL_SIZE;
	odb->descr->current_size = 1;
	err = publish(odb->dir_fd, odb->tmp_path, odb->path);
	if (err) {
		op_sys_munmap(map, odb->map_bytes);
		odb->header = NULL;
		op_sys_unlinkat(odb->dir_fd, odb->tmp_path, 0);
	}
	return err;
}

static uint32_t *bucket_of(const struct op_odb *odb, uint64_t key)
{
	return &odb->hash[op_odb_bucket(key, odb->size)];
}

static void link_node(struct op_odb *odb, uint32_t index)
{
	struct op_odb_node *node = &odb->nodes[index];
	uint32_t *bucket = bucket_of(odb, node->key);

	node->next = *bucket;
	*bucket = index;
}

/* The node array is the truth; whatever the hash said when the last writer ended is made anew from it. */
static void rebuild_hash(struct op_odb *odb)
{
	uint32_t nr_nodes = odb->descr->current_size;

	for (uint32_t i = 0; i < odb->descr->size; i++)
		if (odb->hash[i] >= nr_nodes)
			odb->dropped++;
	memset(odb->hash, 0, odb->descr->size * sizeof(uint32_t));
	for (uint32_t i = 1; i < nr_nodes; i++)
		link_node(odb, i);
}

static int check(const struct op_odb_header *header, const struct op_odb_descr *descr, off_t bytes)
{
	if (memcmp(header->magic, OP_ODB_MAGIC, sizeof(header->magic)) != 0 || header->version != OP_ODB_VERSION)
		return -EBADMSG;
	if (descr->size < 2 || descr->size > SIZE_MAX_NODES || (descr->size & (descr->size - 1)))
		return -EBADMSG;
	if (descr->current_size < 1 || descr->current_size > descr->size)
		return -EBADMSG;
	return bytes == (off_t)op_odb_file_bytes(descr->size) ? 0 : -EBADMSG;
}

static int open_existing(struct op_odb *odb, int fd)
{
	struct {
		struct op_odb_header header;
		struct op_odb_descr descr;
	} head;
	struct stat st;
	void *map;
	ssize_t nr;
	int err = op_sys_fstat(fd, &st);

	if (err)
		return err;
	if (!S_ISREG(st.st_mode))
		return -EBADMSG;
	nr = op_sys_pread(fd, &head, sizeof(head), 0);
	if (nr < 0)
		return (int)nr;
	if (nr < (ssize_t)sizeof(head))
		return -EBADMSG;
	err = check(&head.header, &head.descr, st.st_size);
	/* Blocks that a sparse copy left out would be SIGBUS on a full disk. */
	if (!err)
		err = op_sys_fallocate(fd, 0, 0, st.st_size);
	if (!err)
		err = op_sys_mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0, &map);
	if (err)
		return err;
	point_into(odb, map, head.descr.size);
	rebuild_hash(odb);
	odb->promised = true;
	return 0;
}

int op_odb_open(int dir_fd, const char *path, const char *tmp_path, const struct op_odb_header *header, struct op_odb **ret_odb)
{
	struct op_odb *odb = calloc(1, sizeof(*odb) + strlen(path) + 1);
	int fd, err;

	if (!odb)
		return -ENOMEM;
	odb->dir_fd = dir_fd;
	memcpy(odb->path, path, strlen(path) + 1);
	odb->tmp_path = strdup(tmp_path);
	if (!odb->tmp_path) {
		op_odb_close(odb);
		return -ENOMEM;
	}
	fd = op_sys_openat(dir_fd, path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0);
	if (fd >= 0) {
		err = open_existing(odb, fd);
		close(fd);
	} else {
		err = fd == -ENOENT ? create(odb, header) : fd;
	}
	if (err) {
		op_odb_close(odb);
		return err;
	}
	*ret_odb = odb;
	return 0;
}

const struct op_odb_header *op_odb_header(const struct op_odb *odb)
{
	return odb->header;
}

void op_odb_promise(struct op_odb *odb)
{
	odb->promised = true;
}

uint32_t op_odb_dropped(const struct op_odb *odb)
{
	return odb->dropped;
}

/*
 * A file of twice the size takes the place of this one. It is on the disk before it does where the old one is, by a dump's
 * promise; a disk takes long, and whoever counts does not wait for it without need. A kill at any moment leaves the old or the
 * new one.
 */
static int grow(struct op_odb *odb)
{
	uint32_t old_size = odb->descr->size, nr_nodes = odb->descr->current_size;
	size_t used_bytes = OP_ODB_NODES_OFFSET + (size_t)nr_nodes * sizeof(struct op_odb_node);
	void *old_map = odb->header, *map;
	size_t old_map_bytes = odb->map_bytes;
	int fd, err;

	if (old_size >= SIZE_MAX_NODES)
		return -EFBIG;
	err = make_mapped(odb->dir_fd, odb->tmp_path, old_size * 2, &fd, &map);
	if (err)
		return err;
	memcpy(map, old_map, used_bytes);
	point_into(odb, map, old_size * 2);
	odb->descr->size = old_size * 2;
	for (uint32_t i = 1; i < nr_nodes; i++)
		link_node(odb, i);
	err = odb->promised ? op_sys_fsync(fd) : 0;
	close(fd);
	if (!err)
		err = op_sys_renameat(odb->dir_fd, odb->tmp_path, odb->dir_fd, odb->path);
	if (err) {
		op_sys_munmap(map, odb->map_bytes);
		op_sys_unlinkat(odb->dir_fd, odb->tmp_path, 0);
		point_into(odb, old_map, old_size);
		return err;
	}
	op_sys_munmap(old_map, old_map_bytes);
	return 0;
}

static uint32_t find(const struct op_odb *odb, uint64_t key)
{
	uint32_t index = *bucket_of(odb, key);

	while (index && odb->nodes[index].key != key)
		index = odb->nodes[index].next;
	return index;
}

static int insert(struct op_odb *odb, uint64_t key, uint32_t count)
{
	uint32_t index;
	struct op_odb_node *node;

	if (odb->descr->current_size == odb->descr->size) {
		int err = grow(odb);

		if (err)
			return err;
	}
	index = odb->descr->current_size;
	node = &odb->nodes[index];
	node->key = key;
	node->value = count;
	link_node(odb, index);
	/* P, pairs with Q in op_odb_read: a reader that sees the size sees the node. */
	op_store_release(&odb->descr->current_size, index + 1);
	return 0;
}

int op_odb_add(struct op_odb *odb, uint64_t key, uint32_t count)
{
	uint32_t index = find(odb, key);
	uint32_t value;

	if (!index)
		return insert(odb, key, count);
	value = odb->nodes[index].value;
	if (op_unlikely(count > UINT32_MAX - value)) {
		uint32_t fits = UINT32_MAX - value;
		int err = insert(odb, key, count - fits);

		if (err)
			return err;
		/* The file may have grown: the index still holds. */
		op_store_relaxed(&odb->nodes[index].value, UINT32_MAX);
		return 0;
	}
	op_store_relaxed(&odb->nodes[index].value, value + count);
	return 0;
}

/* Asks for what op_odb_add will look at: the buckets, the first node of each, the second where it is not the first. */
static void fetch(const struct op_odb_addition *additions, size_t nr_additions)
{
	uint32_t at[OP_ODB_ADDITIONS_MAX];

	for (size_t i = 0; i < nr_additions; i++)
		op_prefetch(bucket_of(additions[i].odb, additions[i].key));
	for (size_t i = 0; i < nr_additions; i++) {
		at[i] = *bucket_of(additions[i].odb, additions[i].key);
		op_prefetch(&additions[i].odb->nodes[at[i]]);
	}
	for (size_t i = 0; i < nr_additions; i++) {
		const struct op_odb_node *node = &additions[i].odb->nodes[at[i]];

		if (at[i] && node->key != additions[i].key)
			op_prefetch(&additions[i].odb->nodes[node->next]);
	}
}

void op_odb_add_all(struct op_odb_addition *additions, size_t nr_additions)
{
	while (nr_additions) {
		size_t nr = op_min_u64(nr_additions, OP_ODB_ADDITIONS_MAX);

		fetch(additions, nr);
		for (size_t i = 0; i < nr; i++)
			additions[i].error = op_odb_add(additions[i].odb, additions[i].key, additions[i].count);
		additions += nr;
		nr_additions -= nr;
	}
}

void op_odb_close(struct op_odb *odb)
{
	if (!odb)
		return;
	if (odb->header)
		op_sys_munmap(odb->header, odb->map_bytes);
	free(odb->tmp_path);
	free(odb);
}
