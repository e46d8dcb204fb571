/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * cgroups, for separation by cgroup: a sample carries the number of its cgroup (PERF_SAMPLE_CGROUP), the side band says what
 * path a new one has (PERF_RECORD_CGROUP), and those that were there before opd are found in the cgroup file system, where the
 * number of a cgroup is the inode number of its directory. A removed cgroup keeps its path for samples that come late.
 *
 * A cgroup gets a slot with its first sample; slots are what sample files are kept by. Both tables are bounded: a cgroup that is forgotten is found again
 * while it is there, and slots that had no samples lately are taken back from whoever keeps files by them, when all are given. A path has one slot at a time.
 *
 * Sync thread only.
 */
#ifndef OPD_CGROUPS_H
#define OPD_CGROUPS_H

#include "libop/base/compiler.h"
#include "libop/base/htable.h"

#define OPD_CGROUPS_KNOWN_MAX 65536u /* beyond, those without a slot are forgotten and looked up again when they have a sample */
#define OPD_CGROUPS_BYTES_MAX (16u << 20) /* likewise */
#define OPD_CGROUP_SLOTS_MAX  4096u
#define OPD_CGROUP_NONE	      0u     /* no slot */

struct opd_cgroup_root {
	bool is_sought;
	char *path; /* of the namespace's root, as the kernel tells it; NULL: not known, or none */
};

struct opd_cgroups {
	const char *mount_path; /* of the hierarchy that perf knows; NULL: none is mounted */
	char *mount_storage;
	struct opd_cgroup_root root;
	struct op_htable by_id;
	size_t nr_bytes; /* of what is in it */
	struct op_htable by_path; /* slots that are given */
	struct opd_cgroup_slot **slots; /* slot - 1 is the index; NULL: not given */
	uint32_t *free_slots;           /* a stack */
	uint32_t nr_free, nr_slots;     /* not given, given */
	uint32_t max_slots;             /* OPD_CGROUP_SLOTS_MAX; a test may have fewer */
	uint32_t hand;                  /* index of the slot that is looked at next when some are to be taken back */
	uint32_t unknown_slot; /* of samples whose cgroup is nowhere to be found */
	uint64_t next_scan_ns;
	uint64_t last_id; /* of the last sample, and its slot */
	uint32_t last_slot;
	uint64_t wanted_id;     /* that the file system is scanned for */
	uint64_t nr_forgotten;  /* cgroups, to make room for others */
	uint64_t nr_taken_back; /* slots */
	uint64_t not_split;     /* samples that are stored, but not by cgroup */
	uint64_t of_unknown;    /* samples that are stored by unknown_slot */
};

/* Finds the hierarchy in MOUNTINFO-PATH ("/proc/self/mountinfo") and what is in it. 0 or -ENOMEM. */
int opd_cgroups_init(struct opd_cgroups *cgroups, const char *mountinfo_path) OP_NONNULL OP_MUST_CHECK;

/* A cgroup that came to be, by its path in the side band; a path that ends elsewhere replaces the one that was known. 0 or -ENOMEM. */
int opd_cgroups_add(struct opd_cgroups *cgroups, uint64_t id, const char *path) OP_NONNULL OP_MUST_CHECK;

/* The slot of the cgroup with this number; OPD_CGROUP_NONE when none is left (opd_cgroups_are_given), or no memory. */
uint32_t opd_cgroups_slot(struct opd_cgroups *cgroups, uint64_t id, uint64_t now_ns) OP_NONNULL;

/* The path of a slot that was given. */
const char *opd_cgroups_path(const struct opd_cgroups *cgroups, uint32_t slot) OP_NONNULL;

/* True when all slots are given. */
static inline bool opd_cgroups_are_given(const struct opd_cgroups *cgroups)
{
	return cgroups->nr_slots == cgroups->max_slots;
}

/*
 * In three steps: slots that had no sample lately are chosen, at most a quarter of all and at least one, when any is given; whoever keeps something by a slot
 * that is chosen lets go of it; and those that are chosen are taken back.
 */
void opd_cgroups_choose(struct opd_cgroups *cgroups) OP_NONNULL;
bool opd_cgroups_is_chosen(const struct opd_cgroups *cgroups, uint32_t slot) OP_NONNULL;
void opd_cgroups_take_back(struct opd_cgroups *cgroups) OP_NONNULL;

/* Takes all slots back: no file is kept by them any more. */
void opd_cgroups_forget_slots(struct opd_cgroups *cgroups) OP_NONNULL;

/* Frees everything; allowed on a zeroed struct. */
void opd_cgroups_free(struct opd_cgroups *cgroups);

#endif
