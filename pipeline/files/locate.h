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

#include "libop/base/build_id.h"
#include "libop/base/compiler.h"
#include "libop/base/text.h"
#include "pipeline/files/identity.h"
#include "pipeline/files/mount_view.h"

struct opd_build_ids;
struct opd_stat_cache;

/* A mapping, from PERF_RECORD_MMAP2 or from a line of /proc/PID/maps. */
struct opd_mapped {
	uint32_t pid; /* for /proc/PID: the process, or a thread when the main thread has ended */
	uint64_t start, end; /* end exclusive */
	uint64_t offset;     /* in the file, in bytes */
	const char *name;    /* as the kernel writes it: a path, [vdso], //anon, or "" */
	/* a path from opd's root, from /proc/PID/maps; else from the root of the process */
	bool name_is_ours;
	bool is_foreign; /* recorded on another machine: no file of this host is looked at */
	struct op_build_id build_id; /* no bytes: the record has device and inode instead */
	uint64_t device, inode, inode_generation; /* inode, inode_generation 0: unknown */
	uint64_t time_ns; /* when it was mapped; 0: it is mapped now */
	struct opd_mount_views *mount_views;
	struct opd_mount_view *mount_view; /* of the process; NULL: the host's */
	struct opd_stat_cache *stat_cache; /* NULL: every file is looked at anew */
	struct opd_build_ids *build_ids;   /* NULL: build-ids are not queried */
};

struct opd_located {
	/* on the host if it is there, else in the view of the process; without " (deleted)" */
	struct op_text path;
	bool on_host; /* path leads to this file on the host, which is proved */
	bool host_has_another; /* host path is another file, or was not checked */
	bool knows_owner;      /* on_host, and no user's file server says whose file it is */
	bool seen;             /* stat is of this file */
	struct statx stat;
	uint64_t inode_generation; /* of stat's inode; 0: unknown */
	/* of what is mapped, also where stat is of a file in a layer of its overlay; 0: unknown */
	uint64_t mapped_device, mapped_inode;
};

/*
 * Compares the last components of two paths without " (deleted)", which the kernel appends to the
 * names of removed files. Directories differ between containers.
 */
bool opd_is_same_name(const char *a, const char *b) OP_NONNULL;

/* Decodes a name of /proc/PID/maps in place. The kernel encodes only newlines there. */
void opd_decode_newlines(char *name) OP_NONNULL;

/*
 * Finds a file. While the process has it mapped, the mapping leads to it, even when the file was
 * removed, replaced or renamed. Later the path is used: on the host, else through another process
 * with the same mount view. The file at the path must have the recorded device and inode.
 *
 * Anybody can have any name, in mount namespaces of their own, and what a mount there says of other
 * directories are names, too. So a path of the host is believed only if the host has the mapped
 * inode there, or if that file is in a layer of an overlay that root of the host mounted.
 *
 * The caller frees ret_located->path. 0 or -ENOMEM.
 */
int opd_locate(const struct opd_mapped *mapped, struct opd_located *ret_located) OP_NONNULL OP_MUST_CHECK;

/*
 * Looks at a regular file of the host in this process, which may hang. ret_generation may be NULL.
 * 0 or -errno.
 */
int opd_stat_on_host(const char *path, struct statx *ret_stat, uint64_t *ret_generation) OP_NONNULL_ARGS(1, 2) OP_MUST_CHECK;

#endif
