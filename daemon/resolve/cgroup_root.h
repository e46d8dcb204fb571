/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Where the cgroup file system begins, for an opd in a cgroup namespace: what it finds there has its path from the namespace's root, while the kernel
 * tells paths from the root of all (cgroup_namespaces(7), kernel/events/core.c: perf_event_cgroup). How the latter begin is learnt from the first cgroup
 * that is told and still there.
 *
 * Sync thread only.
 */
#ifndef OPD_CGROUP_ROOT_H
#define OPD_CGROUP_ROOT_H

#include "libop/base/compiler.h"

struct opd_cgroup_root {
	bool is_sought;
	char *path; /* of the namespace's root, as the kernel tells it; NULL: not known, or none */
};

/* Nothing is sought where opd is in the namespace that all began with. */
void opd_cgroup_root_init(struct opd_cgroup_root *root) OP_NONNULL;

/*
 * The part of PATH, which the kernel told of the cgroup with this number, that names it below MOUNT-PATH, NULL for none; PATH itself when it is outside, or when
 * it is not known what to leave out.
 */
const char *opd_cgroup_root_strip(struct opd_cgroup_root *root, const char *mount_path, uint64_t id, const char *path)
	__attribute__((nonnull(1, 4)));

/* Allowed on a zeroed struct. */
void opd_cgroup_root_free(struct opd_cgroup_root *root) OP_NONNULL;

#endif
