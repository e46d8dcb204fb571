/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Which file is mapped there, and by which path it is found on the host: for processes in containers, chroots and of the host itself.
 *
 * Sync thread only.
 */
#ifndef OPD_LOCATE_H
#define OPD_LOCATE_H

#include <sys/stat.h>

#include "daemon/resolve/mount_view.h"
#include "libop/base/compiler.h"
#include "libop/base/text.h"

/* What is to be found: a file that a process has mapped, or had. */
struct opd_wanted {
	uint32_t pid;        /* or the number of a living thread */
	uint64_t start, end; /* of the mapping */
	const char *name;    /* as the kernel says it */
	bool name_is_ours;   /* from /proc/PID/maps: seen from opd's root; else from the process's */
	bool is_foreign;       /* of another machine: the name is all there is */
	bool has_inode;
	uint64_t inode;   /* when has_inode */
	uint64_t inode_generation; /* the same; 0: unknown */
	uint64_t time_ns; /* OP_CLOCK: when it was mapped; 0: it is mapped now */
	struct opd_mount_view *mount_view;
};

struct opd_located {
	struct op_text path; /* on the host, where it is there, else as the process sees it; without " (deleted)" */
	bool on_host;        /* path leads to this very file on the host */
	bool seen;           /* stat is of this very file */
	struct statx stat;
	uint64_t inode_generation; /* of stat's inode; 0: unknown */
};

/* A name in /proc/PID/maps, in place: a newline is the only byte that the kernel does not write there as it is. */
void opd_decode_newlines(char *name) OP_NONNULL;

/*
 * Finds a file. The mapping itself leads to it while the process has it, also when the file was removed, replaced or renamed; afterwards (no
 * mapping there, or that of a file of another name and inode, for numbers of processes are used again) the path
 * is believed when the file there has the inode of the mapping, or none was told, and was there already: on the host, else where another
 * process lives that sees the same. The caller frees
 * ret_located->path. 0 or -ENOMEM.
 */
int opd_locate(struct opd_mount_views *views, const struct opd_wanted *wanted,
	       struct opd_located *ret_located) OP_NONNULL OP_MUST_CHECK;

/* Of the file at `path`, a link is followed, whose inode is that; 0: unknown, or it has another inode. */
uint64_t opd_generation_at(const char *path, uint64_t inode) OP_NONNULL;

/* The same in a handle of that type, as name_to_handle_at(2) gives it. */
uint64_t opd_generation_in(int type, const uint8_t *handle, size_t nr_bytes, uint64_t inode) OP_NONNULL;

#endif
