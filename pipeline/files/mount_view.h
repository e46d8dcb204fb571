/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Where a process sees files: its mount namespace and its root directory. A process with the host's
 * namespace and root has no view (NULL): its paths are the host's. The host is what process 1 sees,
 * because opd itself may have a private namespace. When process 1 may not be read, the host is what
 * opd sees.
 *
 * Sync thread only.
 */
#ifndef OPD_MOUNT_VIEW_H
#define OPD_MOUNT_VIEW_H

#include <limits.h>

#include "libop/base/compiler.h"
#include "libop/base/htable.h"
#include "pipeline/files/lookers.h"
#include "pipeline/files/mounts.h"

struct opd_mount_views;

/* The inodes of its namespaces; user_ns 0: unknown. */
struct opd_host {
	uint64_t mnt_ns, user_ns;
	const char *prefix; /* of its root directory, as a path of opd: "" or "/proc/1/root" */
};

/* Finds it at the first call, which needs the rights of a looker, and remembers it. */
const struct opd_host *opd_host(void);

/* Where a process is, as /proc tells. */
struct opd_place {
	uint64_t mnt_ns, user_ns; /* inodes of the namespaces; user_ns 0: unknown */
	char root[PATH_MAX];
};

/* Reads it in this process, which may hang. False: the process is gone, or may not be read. */
bool opd_place_read(uint32_t pid, struct opd_place *ret_place) OP_NONNULL OP_MUST_CHECK;

/*
 * Opens /proc/PID. The descriptor stays that of this process: it has no files any more when
 * another process gets the number. An O_PATH descriptor or -errno.
 */
int opd_proc_open(uint32_t pid) OP_MUST_CHECK;
bool opd_place_read_at(int proc_fd, struct opd_place *ret_place) OP_NONNULL OP_MUST_CHECK;

/* Address spaces share a view. It is freed with the last reference. */
struct opd_mount_view {
	struct op_hlink link;
	struct opd_mount_views *views;
	uint32_t refs;
	uint64_t mnt_ns; /* inode of the mount namespace */
	/* of the user namespace of a process there; 0: the host's, or unknown */
	uint64_t user_ns;
	char *root;      /* root directory in that namespace, "/" without a chroot */
	char *name;      /* shown to users: mnt:[4026532000], chroot:/srv/jail */
	struct opd_mounts mounts;
	uint64_t mounts_read_ns; /* 0: never */
	/* links of the views with known mounts; at NULL: its mounts are unknown */
	struct opd_mount_view *next, **at;
	/* a process that was seen there, which may outlive the others; 0: none */
	uint32_t seen_pid;
};

/* for all views, and the same again for their mounts */
#define OPD_MOUNT_VIEWS_BYTES_MAX (8u << 20)

struct opd_mount_views {
	struct op_htable by_key;
	size_t nr_bytes, nr_mount_bytes;
	struct opd_mount_view *with_mounts, **last_at; /* longest unread first */
	uint64_t nr_dropped; /* views without room, and views whose mounts made room for others */
	struct opd_lookers *lookers; /* of the caller; NULL: this process looks itself */
	struct opd_mounts host;
	uint64_t host_read_ns;
};

/* No reference to a view may be left. */
void opd_mount_views_free(struct opd_mount_views *views) OP_NONNULL;

/* Adds a reference, drops one. Both accept NULL. */
struct opd_mount_view *opd_mount_view_ref(struct opd_mount_view *view);
void opd_mount_view_put(struct opd_mount_view *view);

/*
 * Replaces the reference *view by the view of a living process. Leaves it when the process is gone
 * or may not be read, or when there is no room. 0 or -ENOMEM.
 */
int opd_mount_view_update(struct opd_mount_views *views, uint32_t pid, struct opd_mount_view **view) OP_NONNULL OP_MUST_CHECK;

/*
 * The same when the mount namespace is known and only the root may differ, since the kernel does
 * not report chroot.
 */
int opd_mount_view_update_root(struct opd_mount_views *views, uint32_t pid, struct opd_mount_view **view) OP_NONNULL OP_MUST_CHECK;

/* The same when it was read already. */
int opd_mount_view_set(struct opd_mount_views *views, uint32_t pid, const struct opd_place *place,
		       struct opd_mount_view **view) OP_NONNULL OP_MUST_CHECK;

/* The process entered another mount namespace (PERF_RECORD_NAMESPACES). 0 or -ENOMEM. */
int opd_mount_view_enter(struct opd_mount_views *views, uint64_t mnt_ns, uint64_t user_ns,
			 struct opd_mount_view **view) OP_NONNULL OP_MUST_CHECK;

/* A reference to the view of such a process; NULL: the host's. 0; -ENOMEM; -ENOSPC: no room. */
int opd_mount_view_get(struct opd_mount_views *views, const struct opd_place *place,
		       struct opd_mount_view **ret_view) OP_NONNULL OP_MUST_CHECK;

/* What a question about a process with this view is about. NULL: the host's. */
struct opd_look_about opd_mount_view_about(const struct opd_mount_view *view, uint32_t pid);

/*
 * The mounts of a view. Reads them in this process, which may hang, through a living process when
 * they are unknown, or when `again` and they are not new. Valid until the mounts of another view
 * are read.
 */
const struct opd_mounts *opd_mount_view_mounts(struct opd_mount_view *view, uint32_t pid, bool again) OP_NONNULL;

/* A living process with this view; 0: none is known. */
uint32_t opd_mount_view_pid(const struct opd_mount_view *view) OP_NONNULL;

/*
 * True when only root of the host can have made the mounts of the view: the mount namespace belongs
 * to the user namespace that the host's belongs to. Its number may be in use again, so a living
 * process is asked each time: `pid`, or one that was seen there.
 */
bool opd_mount_view_is_roots(const struct opd_mount_view *view, uint32_t pid) OP_NONNULL;

/* The mounts of the host. `again` as above. */
const struct opd_mounts *opd_mount_views_host_mounts(struct opd_mount_views *views, bool again) OP_NONNULL;

/* True when paths in the view are paths of the host below the view's root. True for NULL. */
bool opd_mount_view_shares_host(const struct opd_mount_view *view);

#endif
