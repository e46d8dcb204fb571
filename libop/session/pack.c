/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/session/pack.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libop/base/file.h"
#include "libop/base/grow.h"
#include "libop/base/seal.h"
#include "libop/base/sys.h"
#include "libop/base/text.h"
#include "libop/odb/file_image.h"

#define MAGIC	     "opd-pack"
#define PACK_VERSION	     1u
#define SEAL_BYTES   16u
#define BUFFER_BYTES (256u << 10)
#define FILE_MODE    0644

struct head {
	char magic[8];
	uint32_t version, nr_files;
	uint64_t index_offset;
};

/* A file of the pack. At its offset: the path, zeros up to a multiple of 8 bytes, header, nodes. */
struct entry {
	uint64_t offset;
	uint32_t path_bytes, nr_nodes;
};

static_assert(sizeof(struct head) == 24 && sizeof(struct entry) == 16, "as format.md says");

static uint64_t padded(uint64_t nr_bytes)
{
	return (nr_bytes + 7) / 8 * 8;
}

/* ---- reading ---- */

static int read_all(int fd, void *bytes, size_t nr_bytes, uint64_t offset)
{
	size_t nr_read = 0;
	int err = op_file_read_at(fd, bytes, nr_bytes, (off_t)offset, &nr_read);

	return err ? err : nr_read == nr_bytes ? 0 : -EBADMSG;
}

static int read_head(int fd, uint64_t file_bytes, struct op_pack *pack)
{
	struct head head;
	int err = read_all(fd, &head, sizeof(head), 0);

	if (err)
		return err;
	if (memcmp(head.magic, MAGIC, sizeof(head.magic)) != 0 || head.version != PACK_VERSION || head.index_offset > file_bytes ||
	    file_bytes - head.index_offset != head.nr_files * (uint64_t)sizeof(struct entry) + SEAL_BYTES)
		return -EBADMSG;
	*pack = (struct op_pack){ .fd = fd, .nr_files = head.nr_files, .index_offset = head.index_offset };
	return 0;
}

int op_pack_open(int dir_fd, const char *path, struct op_pack *ret_pack)
{
	struct stat st;
	int fd = op_odb_open_regular(dir_fd, path, O_RDONLY | O_NONBLOCK, &st), err;

	if (fd < 0)
		return fd == -ELOOP || fd == -ENXIO ? -EBADMSG : fd; /* a link, a socket */
	err = read_head(fd, (uint64_t)st.st_size, ret_pack);
	if (err)
		close(fd);
	return err;
}

void op_pack_close(const struct op_pack *pack)
{
	close(pack->fd);
}

int op_pack_check(const struct op_pack *pack)
{
	return op_seal_check(pack->fd);
}

static int read_entry(const struct op_pack *pack, uint32_t index, struct entry *ret_entry)
{
	struct entry entry;
	int err = read_all(pack->fd, &entry, sizeof(entry), pack->index_offset + index * (uint64_t)sizeof(entry));
	uint64_t nr_bytes;

	if (err)
		return err;
	nr_bytes = padded(entry.path_bytes) + sizeof(struct op_odb_header) + entry.nr_nodes * (uint64_t)sizeof(struct op_odb_node);
	if (!entry.path_bytes || entry.path_bytes >= PATH_MAX || entry.offset > pack->index_offset ||
	    nr_bytes > pack->index_offset - entry.offset)
		return -EBADMSG;
	*ret_entry = entry;
	return 0;
}

int op_pack_path(const struct op_pack *pack, uint32_t index, char ret_path[PATH_MAX])
{
	struct entry entry;
	int err = read_entry(pack, index, &entry);

	if (!err)
		err = read_all(pack->fd, ret_path, entry.path_bytes, entry.offset);
	if (err)
		return err;
	ret_path[entry.path_bytes] = '\0';
	return strlen(ret_path) == entry.path_bytes ? 0 : -EBADMSG;
}

int op_pack_read(const struct op_pack *pack, uint32_t index, struct op_odb_samples *ret_samples)
{
	struct op_odb_samples samples = { 0 };
	struct entry entry;
	uint64_t offset;
	int err = read_entry(pack, index, &entry);

	if (err)
		return err;
	offset = entry.offset + padded(entry.path_bytes);
	err = read_all(pack->fd, &samples.header, sizeof(samples.header), offset);
	if (err)
		return err;
	if (memcmp(samples.header.magic, OP_ODB_MAGIC, sizeof(samples.header.magic)) || samples.header.version != OP_ODB_VERSION)
		return -EBADMSG;
	samples.nr_nodes = entry.nr_nodes;
	samples.nodes = calloc((size_t)entry.nr_nodes + 1, sizeof(*samples.nodes));
	if (!samples.nodes)
		return -ENOMEM;
	err = read_all(pack->fd, samples.nodes, entry.nr_nodes * sizeof(*samples.nodes), offset + sizeof(samples.header));
	if (err)
		op_odb_samples_free(&samples);
	else
		*ret_samples = samples;
	return err;
}

int op_pack_find(const struct op_pack *pack, const char *path, uint32_t *ret_index)
{
	uint32_t begin = 0, end = pack->nr_files;
	char found[PATH_MAX];

	while (begin < end) {
		uint32_t middle = begin + (end - begin) / 2;
		int err = op_pack_path(pack, middle, found), order;

		if (err)
			return err;
		order = strcmp(found, path);
		if (!order) {
			*ret_index = middle;
			return 0;
		}
		if (order < 0)
			begin = middle + 1;
		else
			end = middle;
	}
	return -ENOENT;
}

static int read_path(const struct op_pack *pack, const char *path, struct op_odb_samples *ret_samples)
{
	uint32_t index = 0;
	int err = op_pack_find(pack, path, &index);

	return err ? err : op_pack_read(pack, index, ret_samples);
}

/*
 * The file first: what is packed meanwhile is in the pack before its file is gone. Then the file
 * again: what is unpacked meanwhile is a file before the pack is gone.
 */
int op_session_read_samples(int dir_fd, const char *path, struct op_odb_samples *ret_samples, struct op_odb_fault *ret_fault)
{
	int err = op_odb_read(dir_fd, path, ret_samples, ret_fault);
	struct op_pack pack;

	if (err != -ENOENT)
		return err;
	err = op_pack_open(dir_fd, OP_SESSION_PACKED, &pack);
	if (!err) {
		err = read_path(&pack, path, ret_samples);
		op_pack_close(&pack);
	}
	if (err == -ENOENT)
		return op_odb_read(dir_fd, path, ret_samples, ret_fault);
	return err == -EBADMSG ? op_odb_fault(ret_fault, "a damaged pack", 0) : err;
}

bool op_session_has_packed(int dir_fd, const char *path)
{
	struct op_pack pack;
	uint32_t index;
	bool has;

	if (op_pack_open(dir_fd, OP_SESSION_PACKED, &pack))
		return false;
	has = !op_pack_find(&pack, path, &index);
	op_pack_close(&pack);
	return has;
}

/* ---- writing ---- */

struct writer {
	int dir_fd, fd;
	uint64_t nr_written;
	struct op_text buffer; /* to be written behind that */
	struct entry *index;
	size_t nr_files, capacity;
};

static int flush(struct writer *writer)
{
	struct op_text *buffer = &writer->buffer;
	int err = buffer->failed ? -ENOMEM : op_sys_write_all(writer->fd, op_text_get(buffer), buffer->length);

	writer->nr_written += buffer->length;
	op_text_truncate(buffer, 0);
	return err;
}

static int add(struct writer *writer, const char *path, const struct op_odb_samples *samples)
{
	static const char zeros[8];
	size_t path_bytes = strlen(path);
	struct entry *entry;

	if (writer->nr_files == UINT32_MAX || !op_grow(&writer->index, &writer->capacity, writer->nr_files + 1))
		return -ENOMEM;
	entry = &writer->index[writer->nr_files++];
	*entry = (struct entry){ .offset = writer->nr_written + writer->buffer.length, .path_bytes = (uint32_t)path_bytes };
	op_text_add_bytes(&writer->buffer, path, path_bytes);
	op_text_add_bytes(&writer->buffer, zeros, padded(path_bytes) - path_bytes);
	op_text_add_bytes(&writer->buffer, &samples->header, sizeof(samples->header));
	for (uint32_t i = 0; i < samples->nr_nodes; i++) {
		struct op_odb_node node = { .key = samples->nodes[i].key, .value = samples->nodes[i].value };

		if (!node.value)
			continue; /* a filler */
		op_text_add_bytes(&writer->buffer, &node, sizeof(node));
		entry->nr_nodes++;
	}
	return writer->buffer.length >= BUFFER_BYTES ? flush(writer) : 0;
}

/* Files of oprofile 0.9 and damaged ones stay outside. */
static int add_file(struct writer *writer, const char *path, bool *ret_added)
{
	struct op_odb_samples samples;
	int err = op_odb_read(writer->dir_fd, path, &samples, NULL);

	*ret_added = !err && samples.header.version == OP_ODB_VERSION;
	if (err)
		return err == -ENOMEM || err == -EMFILE || err == -ENFILE ? err : 0;
	if (*ret_added)
		err = add(writer, path, &samples);
	op_odb_samples_free(&samples);
	return err;
}

static int add_old(struct writer *writer, const struct op_pack *old, uint32_t index, const char *path)
{
	struct op_odb_samples samples;
	int err = op_pack_read(old, index, &samples);

	if (err)
		return err;
	err = add(writer, path, &samples);
	op_odb_samples_free(&samples);
	return err;
}

/* Both are sorted. At the same path the file has more than the old pack. */
static int merge(struct writer *writer, const struct op_pack *old, char *const *paths, size_t nr_paths)
{
	char old_path[PATH_MAX];
	uint32_t at = 0;
	size_t i = 0;
	int err = 0;

	while (!err && (i < nr_paths || at < old->nr_files)) {
		bool is_added = false;
		int order = -1;

		if (at < old->nr_files)
			err = op_pack_path(old, at, old_path);
		if (at < old->nr_files)
			order = i < nr_paths ? strcmp(paths[i], old_path) : 1;
		if (!err && order <= 0)
			err = add_file(writer, paths[i++], &is_added);
		if (!err && order >= 0 && !is_added)
			err = add_old(writer, old, at, old_path);
		at += order >= 0;
	}
	return err;
}

static int end(struct writer *writer)
{
	struct head head = { .magic = MAGIC, .version = PACK_VERSION, .nr_files = (uint32_t)writer->nr_files };
	int err;

	head.index_offset = writer->nr_written + writer->buffer.length;
	op_text_add_bytes(&writer->buffer, writer->index, writer->nr_files * sizeof(*writer->index));
	err = flush(writer);
	if (!err)
		err = op_sys_pwrite_all(writer->fd, &head, sizeof(head), 0);
	if (!err)
		err = op_seal_append(writer->fd);
	return err ? err : op_sys_fsync(writer->fd);
}

int op_session_write_pack(int dir_fd, char *const *paths, size_t nr_paths, int fd)
{
	static const struct head unfinished;
	struct writer writer = { .dir_fd = dir_fd, .fd = fd };
	struct op_pack old = { .fd = -1 };
	int err = op_pack_open(dir_fd, OP_SESSION_PACKED, &old);

	if (!err)
		err = op_pack_check(&old);
	if (err && err != -ENOENT)
		goto out;
	op_text_add_bytes(&writer.buffer, &unfinished, sizeof(unfinished));
	err = merge(&writer, &old, paths, nr_paths);
	if (!err)
		err = end(&writer);
out:
	if (old.fd >= 0)
		op_pack_close(&old);
	op_text_free(&writer.buffer);
	free(writer.index);
	return err;
}

int op_session_remove_file(int dir_fd, const char *path)
{
	int err = op_file_remove_below(dir_fd, path, 0);
	char *dir = err ? NULL : strdup(path), *slash;

	while (dir && (slash = strrchr(dir, '/'))) {
		*slash = '\0';
		if (!strchr(dir, '/') || op_file_remove_below(dir_fd, dir, AT_REMOVEDIR))
			break;
	}
	free(dir);
	return err;
}

/* ---- sample files again ---- */

/* The nodes, and a filler where one is needed. */
static void fill(const struct op_odb_map *map, const struct op_odb_samples *samples)
{
	uint32_t nr = 1;

	*map->header = samples->header;
	for (uint32_t i = 0; i < samples->nr_nodes; i++) {
		if (op_odb_needs_filler(samples->nodes[i].key, nr)) {
			map->nodes[nr].key = map->nodes[nr - 1].key;
			nr++;
		}
		map->nodes[nr].key = samples->nodes[i].key;
		map->nodes[nr++].value = samples->nodes[i].value;
	}
	*map->descr = (struct op_odb_descr){ .size = map->size, .current_size = nr };
	op_odb_link_nodes(map);
}

/* How many nodes of key 0 there are, each of which may need a filler. */
static uint32_t nr_fillers(const struct op_odb_samples *samples)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < samples->nr_nodes; i++)
		nr += !samples->nodes[i].key;
	return nr;
}

int op_session_write_sample_file(int fd, const struct op_odb_samples *samples)
{
	uint64_t nr_nodes = (uint64_t)samples->nr_nodes + nr_fillers(samples) + 1;
	uint32_t size = OP_ODB_INITIAL_SIZE;
	struct op_odb_map map;
	uint8_t *bytes;
	int err;

	if (nr_nodes > OP_ODB_SIZE_MAX)
		return -EBADMSG;
	while (size < nr_nodes)
		size *= 2;
	bytes = calloc(1, op_odb_file_bytes(size));
	if (!bytes)
		return -ENOMEM;
	map = (struct op_odb_map){
		.header = (void *)bytes,
		.descr = (void *)(bytes + sizeof(struct op_odb_header)),
		.nodes = (void *)(bytes + OP_ODB_NODES_OFFSET),
		.hash = (void *)(bytes + OP_ODB_NODES_OFFSET + size * sizeof(struct op_odb_node)),
		.size = size,
	};
	fill(&map, samples);
	err = op_sys_write_all(fd, bytes, op_odb_file_bytes(size));
	free(bytes);
	return err;
}

int op_session_unpack_file(int dir_fd, const struct op_pack *pack, const char *path)
{
	struct op_odb_samples samples;
	uint64_t dir_bytes;
	int err = read_path(pack, path, &samples), fd;

	if (err)
		return err;
	fd = op_file_create_below(dir_fd, OP_SESSION_PACK_NEW, FILE_MODE);
	err = fd < 0 ? fd : op_session_write_sample_file(fd, &samples);
	if (fd >= 0)
		close(fd);
	if (!err)
		err = op_file_publish_below(dir_fd, OP_SESSION_PACK_NEW, path, &dir_bytes);
	if (err && fd >= 0)
		op_file_unlink_below(dir_fd, OP_SESSION_PACK_NEW);
	op_odb_samples_free(&samples);
	return err;
}
