/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * cgroups, for separation by cgroup: a sample carries the number of its cgroup (PERF_SAMPLE_CGROUP), the side band says what
 * path a new one has (PERF_RECORD_CGROUP), and those that were there before opd are found in the cgroup file system, where the
 * number of a cgroup is the inode number of its directory. A removed cgroup keeps its path for samples that come late.
 *
 * A cgroup gets a slot with its first sample; slots are what sample files are kept by. Both tables are bounded.
 *
 * Sync thread only.
 */
#ifndef OPD_CGROUPS_H
#define OPD_CGROUPS_H

#include "libop/compiler.h"
#include "libop/htable.h"

#define OPD_CGROUPS_KNOWN_MAX 65536u /* beyond, those without a sample are forgotten and looked up again when they have one */
#define OPD_CGROUP_SLOTS_MAX  4096u  /* beyond, samples are not kept by cgroup and counted in `not_split` */
#define OPD_CGROUP_NONE	      0u     /* no slot */

struct opd_cgroups {
	const char *mount_path; /* of the hierarchy that perf knows; NULL: none is mounted */
	char *mount_storage;
	struct op_htable by_id;
	char **slots; /* paths; slot - 1 is the index */
	uint32_t nr_slots;
	uint32_t unknown_slot; /* of samples whose cgroup is nowhere to be found */
	uint64_t next_scan_ns;
	uint64_t last_id; /* of the last sample, and its slot */
	uint32_t last_slot;
	uint64_t not_split; /* samples that are stored, but not by cgroup */
};

/* Finds the hierarchy in MOUNTINFO-PATH ("/proc/self/mountinfo") and what is in it. 0 or -ENOMEM. */
int opd_cgroups_init(struct opd_cgroups *cgroups, const char *mountinfo_path) OP_NONNULL OP_MUST_CHECK;

/* A cgroup that came to be; a path that ends elsewhere replaces the one that was known. 0 or -ENOMEM. */
int opd_cgroups_add(struct opd_cgroups *cgroups, uint64_t id, const char *path) OP_NONNULL OP_MUST_CHECK;

/* The slot of the cgroup with this number; OPD_CGROUP_NONE when there is no more room. */
uint32_t opd_cgroups_slot(struct opd_cgroups *cgroups, uint64_t id, uint64_t now_ns) OP_NONNULL;

/* The path of a slot that was given. */
const char *opd_cgroups_path(const struct opd_cgroups *cgroups, uint32_t slot) OP_NONNULL;

/* Gives all slots back: no file is kept by them any more. */
void opd_cgroups_forget_slots(struct opd_cgroups *cgroups) OP_NONNULL;

/* Frees everything; allowed on a zeroed struct. */
void opd_cgroups_free(struct opd_cgroups *cgroups);

#endif
