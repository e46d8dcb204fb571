/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pipeline/files/identity.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "libop/base/clock.h"
#include "libop/base/sys.h"

/*
 * Handle types with a generation. Source: enum fid_type in include/linux/exportfs.h and its users:
 * generic (ext2, 3, 4, xfs); shmem_encode_fh in mm/shmem.c; xfs with 64 bits, and file systems
 * without handles of their own; fs/btrfs/export.h.
 */
static const struct layout {
	int type;
	size_t nr_bytes;
	size_t inode_at, inode_bytes, generation_at;
} layouts[] = {
	{ .type = 0x01, .nr_bytes = 8, .inode_at = 0, .inode_bytes = 4, .generation_at = 4 },
	{ .type = 0x01, .nr_bytes = 12, .inode_at = 4, .inode_bytes = 8, .generation_at = 0 },
	{ .type = 0x81, .nr_bytes = 12, .inode_at = 0, .inode_bytes = 8, .generation_at = 8 },
	{ .type = 0x4d, .nr_bytes = 20, .inode_at = 0, .inode_bytes = 8, .generation_at = 16 },
};

uint64_t opd_generation_in(int type, const uint8_t *handle, size_t nr_bytes, uint64_t inode)
{
	for (size_t i = 0; i < op_array_size(layouts); i++) {
		const struct layout *layout = &layouts[i];
		uint64_t handle_inode = 0;
		uint32_t generation;

		if (layout->type != type || layout->nr_bytes != nr_bytes)
			continue;
		for (size_t byte = layout->inode_bytes; byte--;)
			handle_inode = handle_inode << 8 | handle[layout->inode_at + byte];
		memcpy(&generation, handle + layout->generation_at, sizeof(generation));
		if (handle_inode == inode)
			return generation;
	}
	return 0;
}

uint64_t opd_generation_of(int fd, uint64_t inode)
{
	union {
		struct file_handle head;
		uint8_t bytes[sizeof(struct file_handle) + MAX_HANDLE_SZ];
	} handle = { .head.handle_bytes = MAX_HANDLE_SZ };

	if (op_sys_name_to_handle(fd, &handle.head) < 0)
		return 0;
	return opd_generation_in(handle.head.handle_type, handle.head.f_handle, handle.head.handle_bytes, inode);
}

/* ---- identity ---- */

static uint64_t ns_of(const struct timespec *time)
{
	return (uint64_t)time->tv_sec * OP_NS_PER_S + (uint64_t)time->tv_nsec;
}

int opd_file_identify(int fd, struct opd_file_identity *ret_identity)
{
	struct statfs fs;
	struct stat st;
	int err = op_sys_fstat(fd, &st);

	if (err)
		return err;
	*ret_identity = (struct opd_file_identity){
		.device = st.st_dev,
		.inode = st.st_ino,
		.generation = opd_generation_of(fd, st.st_ino),
		.mtime_ns = ns_of(&st.st_mtim),
		.ctime_ns = ns_of(&st.st_ctim),
		.nr_bytes = (uint64_t)st.st_size,
		.uid = st.st_uid,
		.mode = st.st_mode,
		.is_served = fstatfs(fd, &fs) < 0 || fs.f_type == FUSE_SUPER_MAGIC,
	};
	return 0;
}

static bool is_same(uint64_t value, uint64_t recorded)
{
	return !recorded || value == recorded;
}

bool opd_file_is(const struct opd_file_identity *file, const struct opd_file_identity *recorded)
{
	bool has_generations = file->generation && recorded->generation;

	return is_same(file->device, recorded->device) && is_same(file->inode, recorded->inode) &&
	       is_same(file->mtime_ns, recorded->mtime_ns) && is_same(file->nr_bytes, recorded->nr_bytes) &&
	       (has_generations ? file->generation == recorded->generation : is_same(file->ctime_ns, recorded->ctime_ns));
}

bool opd_file_is_owners(const struct opd_file_identity *file)
{
	return !file->is_served && !(file->mode & (S_IWGRP | S_IWOTH));
}
