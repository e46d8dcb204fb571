/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The cgroups of samples, for separation by cgroup and for stacks. A sample has the number of its
 * cgroup (PERF_SAMPLE_CGROUP). PERF_RECORD_CGROUP reports the paths of new cgroups. Older cgroups
 * are found in the cgroup file system, where the number of a cgroup is the inode of its directory.
 * A removed cgroup keeps its path for late samples.
 *
 * A cgroup gets a slot with its first flat sample. Sample files are kept by slot. A path has one
 * slot at a time. Both tables are bounded: a forgotten cgroup is found again while it exists, and
 * slots without recent samples are taken back when all are given.
 *
 * Sync thread only.
 */
#ifndef OPD_CGROUPS_H
#define OPD_CGROUPS_H

#include "libop/base/compiler.h"
#include "libop/base/htable.h"

#define OPD_CGROUPS_KNOWN_MAX 65536u      /* beyond, cgroups without a slot are forgotten */
#define OPD_CGROUPS_BYTES_MAX (16u << 20) /* the same, in bytes */
#define OPD_CGROUP_SLOTS_MAX  4096u
#define OPD_CGROUP_NONE       0u /* no slot */
#define OPD_CGROUP_UNKNOWN    "/(unknown cgroup)" /* the path of cgroups that are not found */

struct opd_cgroups {
	char *mount_path; /* of the hierarchy that perf uses; NULL: not mounted */
	/* opd is in a cgroup namespace, and the path of its root is not known yet */
	bool seeks_root;
	char *root_path; /* as the kernel reports it; NULL: unknown or not needed */
	struct op_htable by_id;
	size_t nr_bytes;                /* bytes of by_id's entries */
	struct op_htable by_path;       /* the given slots */
	struct opd_cgroup_slot **slots; /* index slot - 1; NULL: not given */
	uint32_t *free_slots;           /* a stack of slots that are not given */
	uint32_t nr_free, nr_slots;     /* numbers of free and of given slots */
	uint32_t max_slots;             /* OPD_CGROUP_SLOTS_MAX; less in a test */
	uint32_t hand;                  /* index from which slots to be taken back are searched */
	uint32_t unknown_slot;          /* for samples whose cgroup is not found */
	uint64_t next_scan_ns;
	uint64_t last_id; /* of the last sample, with its slot */
	uint32_t last_slot;
	uint64_t wanted_id;     /* the cgroup that the file system is scanned for */
	uint64_t nr_forgotten;  /* cgroups that made room for others */
	uint64_t nr_taken_back; /* slots that were taken back */
	uint64_t not_split;     /* samples that are stored, but not separated by cgroup */
	uint64_t of_unknown;    /* samples that are stored under unknown_slot */
};

/* Finds the hierarchy in MOUNTINFO-PATH ("/proc/self/mountinfo") and its cgroups. 0 or -ENOMEM. */
int opd_cgroups_init(struct opd_cgroups *cgroups, const char *mountinfo_path) OP_NONNULL OP_MUST_CHECK;

/*
 * Adds a cgroup with the path that PERF_RECORD_CGROUP reports, or replaces its path. 0 or -ENOMEM.
 */
int opd_cgroups_add(struct opd_cgroups *cgroups, uint64_t id, const char *path) OP_NONNULL OP_MUST_CHECK;

/*
 * The slot of a cgroup. OPD_CGROUP_NONE: all slots are given (opd_cgroups_are_given), or no memory.
 */
uint32_t opd_cgroups_slot(struct opd_cgroups *cgroups, uint64_t id, uint64_t now_ns) OP_NONNULL;

/* The path of a cgroup, which takes no slot; valid until the next call. NULL: it is not found. */
const char *opd_cgroups_find_path(struct opd_cgroups *cgroups, uint64_t id, uint64_t now_ns) OP_NONNULL;

/* The path of a slot; OPD_CGROUP_UNKNOWN if it is not given. */
const char *opd_cgroups_path(const struct opd_cgroups *cgroups, uint32_t slot) OP_NONNULL;

/* True when all slots are given. */
static inline bool opd_cgroups_are_given(const struct opd_cgroups *cgroups)
{
	return cgroups->nr_slots == cgroups->max_slots;
}

/*
 * Taking slots back has three steps. opd_cgroups_choose chooses slots without recent samples, at
 * most a quarter of all and at least one. The caller closes what it keeps by chosen slots.
 * opd_cgroups_take_back takes the chosen slots back.
 */
void opd_cgroups_choose(struct opd_cgroups *cgroups) OP_NONNULL;
bool opd_cgroups_is_chosen(const struct opd_cgroups *cgroups, uint32_t slot) OP_NONNULL;
void opd_cgroups_take_back(struct opd_cgroups *cgroups) OP_NONNULL;

/* Takes all slots back. No file is kept by a slot any more. */
void opd_cgroups_forget_slots(struct opd_cgroups *cgroups) OP_NONNULL;

/* Frees everything; allowed on a zeroed struct. */
void opd_cgroups_free(struct opd_cgroups *cgroups);

#endif
