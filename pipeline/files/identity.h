/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Which file a descriptor leads to. A path, a mapping of a process and a number in /proc lead to
 * another file a moment later, a descriptor does not. So what is decided about the bytes of a file
 * is decided by the identity of the descriptor that reads them.
 *
 * Any thread, any process.
 */
#ifndef OPD_IDENTITY_H
#define OPD_IDENTITY_H

#include <stddef.h>

#include "libop/base/compiler.h"

struct opd_file_identity {
	uint64_t device, inode;
	uint64_t generation; /* of the inode; 0: the file system does not tell it */
	uint64_t mtime_ns, ctime_ns, nr_bytes;
	uint32_t uid, mode;
	bool is_served; /* a program of some user makes the contents and all of the above (FUSE) */
};

/* 0 or -errno. */
int opd_file_identify(int fd, struct opd_file_identity *ret_identity) OP_NONNULL OP_MUST_CHECK;

/*
 * True when a file is the one that was recorded, with the same contents. In `recorded`, 0 is
 * unknown. Without a generation another file can have got the inode: then the time of the last
 * change of the inode must be the same, which no user can set.
 */
bool opd_file_is(const struct opd_file_identity *file, const struct opd_file_identity *recorded) OP_NONNULL OP_MUST_CHECK;

/*
 * True when only the owner can have made the contents: no file server of a user has it, and
 * no other user may write to it.
 */
bool opd_file_is_owners(const struct opd_file_identity *file) OP_NONNULL OP_MUST_CHECK;

/*
 * The generation of an inode tells a file from an earlier one with the same inode number.
 * name_to_handle_at(2) has it in the file's handle; no file is opened. `fd` may be an O_PATH
 * descriptor. 0: unknown, or the file has another inode.
 */
uint64_t opd_generation_of(int fd, uint64_t inode);

/* The generation in a handle of name_to_handle_at(2). Its form depends on the file system. */
uint64_t opd_generation_in(int type, const uint8_t *handle, size_t nr_bytes, uint64_t inode) OP_NONNULL;

#endif
