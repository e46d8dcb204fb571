/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Which file a mapping is of, and the path of that file on the host. Works for processes in
 * containers, in chroots and on the host.
 *
 * Sync thread only.
 */
#ifndef OPD_LOCATE_H
#define OPD_LOCATE_H

#include <sys/stat.h>

#include "daemon/resolve/mount_view.h"
#include "libop/base/compiler.h"
#include "libop/base/text.h"

/* A file that a process has mapped, or had. */
struct opd_wanted {
	uint32_t pid;        /* the process, or a living thread of it */
	uint64_t start, end; /* of the mapping */
	const char *name;    /* as the kernel writes it */
	/* from /proc/PID/maps: seen from opd's root; else from the root of the process */
	bool name_is_ours;
	bool is_foreign; /* recorded on another machine: only the name is known */
	bool has_inode;
	uint64_t inode;            /* valid with has_inode */
	uint64_t inode_generation; /* valid with has_inode; 0: unknown */
	uint64_t time_ns;          /* when it was mapped, OP_CLOCK; 0: it is mapped now */
	struct opd_mount_view *mount_view;
};

struct opd_located {
	/* on the host if it is there, else in the view of the process; without " (deleted)" */
	struct op_text path;
	bool on_host; /* path leads to this file on the host */
	bool seen;    /* stat is of this file */
	struct statx stat;
	uint64_t inode_generation; /* of stat's inode; 0: unknown */
};

/* Decodes a name of /proc/PID/maps in place. The kernel encodes only newlines there. */
void opd_decode_newlines(char *name) OP_NONNULL;

/*
 * Finds a file. While the process has it mapped, the mapping leads to it, even when the file was
 * removed, replaced or renamed. Later the path is used: on the host, else through another process
 * with the same mount view. The file at the path must have the recorded inode; without a recorded
 * inode it must be older than the mapping. The caller frees ret_located->path. 0 or -ENOMEM.
 */
int opd_locate(struct opd_mount_views *views, const struct opd_wanted *wanted,
	       struct opd_located *ret_located) OP_NONNULL OP_MUST_CHECK;

/*
 * The generation of an inode tells a file from an earlier one with the same inode number.
 * open_by_handle_at(2) has it in the file's handle; no file is opened. Of the file at `path`, links
 * are followed. 0: unknown, or the file has another inode.
 */
uint64_t opd_generation_at(const char *path, uint64_t inode) OP_NONNULL;

/* The generation in a handle of name_to_handle_at(2). Its form depends on the file system. */
uint64_t opd_generation_in(int type, const uint8_t *handle, size_t nr_bytes, uint64_t inode) OP_NONNULL;

#endif
