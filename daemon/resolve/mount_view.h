/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Where a process sees files from: its mount namespace and its root directory, and how a path there is found on the host. A process
 * of the host's own namespace and root has no view (NULL): its paths are the host's.
 *
 * The host is what process 1 sees; opd itself may have a private view. Where process 1 may not be looked at, the host is what opd sees.
 *
 * Sync thread only.
 */
#ifndef OPD_MOUNT_VIEW_H
#define OPD_MOUNT_VIEW_H

#include "daemon/resolve/mounts.h"
#include "libop/base/compiler.h"
#include "libop/base/htable.h"

struct opd_mount_views;

/* Shared by the address spaces that live there, counted by references; gone with the last. */
struct opd_mount_view {
	struct op_hlink link;
	struct opd_mount_views *views;
	uint32_t refs;
	uint64_t mnt_ns; /* inode of the mount namespace */
	char *root;      /* of the processes, in their namespace; "/" unless they are in a chroot as well */
	char *name;      /* what a user calls it: mnt:[4026532000], chroot:/srv/jail */
	struct opd_mounts mounts;
	uint64_t mounts_read_ns; /* 0: never */
	struct opd_mount_view *next, **at; /* among those whose mounts are known; at NULL: they are not */
	uint32_t seen_pid;	 /* a process that was seen there, to be asked for the mounts when others are gone; 0: none */
};

#define OPD_MOUNT_VIEWS_BYTES_MAX (8u << 20) /* of all views, and once more of their mounts */

struct opd_mount_views {
	struct op_htable by_key;
	size_t nr_bytes, nr_mount_bytes;
	struct opd_mount_view *with_mounts, **last_at; /* the one that was read the longest time ago first */
	uint64_t nr_dropped; /* views that had no room, or whose mounts were forgotten to make some */
	bool known; /* the next four are set */
	uint64_t host_ns;
	const char *host_prefix; /* leads opd to the host's root directory: "" or "/proc/1/root" */
	struct opd_mounts host;
	uint64_t host_read_ns;
};

/* Nothing may refer to a view any more. */
void opd_mount_views_free(struct opd_mount_views *views) OP_NONNULL;

/* One reference more, and one less. Both take NULL. */
struct opd_mount_view *opd_mount_view_ref(struct opd_mount_view *view);
void opd_mount_view_put(struct opd_mount_view *view);

/*
 * Replaces *view, a reference or NULL, by where a living process is; leaves it when the process is gone or may not be looked at, or when there
 * is no room for another view. 0 or -ENOMEM.
 */
int opd_mount_view_update(struct opd_mount_views *views, uint32_t pid, struct opd_mount_view **view) OP_NONNULL OP_MUST_CHECK;

/* The same when its mount namespace is known to be that of *view, and only its root may be another one: chroot is not reported. */
int opd_mount_view_update_root(struct opd_mount_views *views, uint32_t pid, struct opd_mount_view **view) OP_NONNULL OP_MUST_CHECK;

/* The process entered another mount namespace, as PERF_RECORD_NAMESPACES tells. 0 or -ENOMEM. */
int opd_mount_view_enter(struct opd_mount_views *views, uint64_t mnt_ns, struct opd_mount_view **view) OP_NONNULL OP_MUST_CHECK;

/*
 * The mounts of a view, read through a living process of it when they are not known, or again when they may have changed. Valid until those of
 * another view are asked for.
 */
const struct opd_mounts *opd_mount_view_mounts(struct opd_mount_view *view, uint32_t pid, bool again) OP_NONNULL;

/* A process that lives there, as far as one is known; 0: none. */
uint32_t opd_mount_view_pid(const struct opd_mount_view *view) OP_NONNULL;

/* The mounts of the host. */
const struct opd_mounts *opd_mount_views_host_mounts(struct opd_mount_views *views, bool again) OP_NONNULL;

/* True when paths of the view are those of the host below its root; also for no view. */
bool opd_mount_view_shares_host(const struct opd_mount_views *views, const struct opd_mount_view *view) OP_NONNULL_ARGS(1);

#endif
