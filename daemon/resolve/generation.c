/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "daemon/resolve/generation.h"

#include <fcntl.h>

#include "libop/base/sys.h"

/*
 * Source: enum fid_type in include/linux/exportfs.h and who encodes them: generic ext2, 3, 4 and xfs; shmem_encode_fh in mm/shmem.c; xfs with
 * 64 bits and what the kernel makes for a file system that has no handles of its own; fs/btrfs/export.h.
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

uint64_t opd_generation_at(const char *path, uint64_t inode)
{
	union {
		struct file_handle head;
		uint8_t bytes[sizeof(struct file_handle) + MAX_HANDLE_SZ];
	} handle = { .head.handle_bytes = MAX_HANDLE_SZ };

	if (op_sys_name_to_handle(path, &handle.head) < 0)
		return 0;
	return opd_generation_in(handle.head.handle_type, handle.head.f_handle, handle.head.handle_bytes, inode);
}
