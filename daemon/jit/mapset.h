/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The mappings of one address space, each with the time from which it holds. A later mapping cuts what it overlaps; what was cut
 * off is kept as the past until no sample can ask for it. Sets are shared between parent and child after a fork: counted by
 * references, copied by the first who changes it.
 *
 * Sync thread only.
 */
#ifndef OPD_MAPSET_H
#define OPD_MAPSET_H

#include "libop/base/compiler.h"

struct opd_mapping {
	uint64_t start, end;     /* addresses, end exclusive */
	uint64_t key;            /* offset of `start` in the image: file offset, or bytes from the start of the region */
	uint64_t cookie;         /* of the image; of the label when region_end is not 0 (daemon/resolve/image.h) */
	uint64_t region_end;     /* anonymous region: address after its last byte, also when a part was cut off; 0 for a file */
	bool may_be_jit;         /* code may have been made there at run time (daemon/resolve/jit_lookup.h) */
	uint64_t from_ns, to_ns; /* when it holds; to_ns is UINT64_MAX while it does */
};

#define OPD_MAPSET_MAX   16384       /* mappings that hold now, or past ones kept: the oldest go first */
#define OPD_MAPPINGS_MAX (384u << 10) /* rows that there is room for in all sets of an account, 24 MiB */

struct opd_mapset;

/* What sets have in common; zero before the first. */
struct opd_mapset_account {
	struct opd_mapset *sets;
	uint64_t nr_mappings; /* rows that there is room for in all of them, never more than OPD_MAPPINGS_MAX */
	uint64_t nr_dropped;  /* mappings that a set could not keep */
};

/* An empty set with one reference, on an account that outlives it, or on none (NULL); NULL without memory. */
struct opd_mapset *opd_mapset_new(struct opd_mapset_account *account) OP_MUST_CHECK;

/* One reference more, and one less; the last one frees. opd_mapset_put takes NULL. */
struct opd_mapset *opd_mapset_get(struct opd_mapset *set) OP_NONNULL;
void opd_mapset_put(struct opd_mapset *set);

/*
 * Adds a mapping (to_ns is set here). *set is replaced by a copy when others hold references. What was cut and ended before
 * horizon_ns is forgotten. unmap is not reported, so a process that maps and unmaps in new places fills its set: beyond
 * OPD_MAPSET_MAX the mappings that have held longest without being a file's go, else the longest of all. Where the account has no
 * room, every set of it gives what ended before horizon_ns, and then the largest give theirs in the same way until there is; when all have
 * next to nothing the new one is dropped. 0 or -ENOMEM; then the set is as before.
 */
int opd_mapset_add(struct opd_mapset **set, const struct opd_mapping *mapping, uint64_t horizon_ns) OP_NONNULL OP_MUST_CHECK;

/* The mapping that held `address` at time_ns; NULL for none. Valid until a set of the account changes. */
const struct opd_mapping *opd_mapset_find(const struct opd_mapset *set, uint64_t address, uint64_t time_ns) OP_NONNULL;

/* Calls `visit` for the cookie of every mapping, past ones too; not again for a set that was visited with the same `round`. */
void opd_mapset_visit_cookies(struct opd_mapset *set, uint32_t round, void (*visit)(uint64_t cookie, void *arg), void *arg)
	OP_NONNULL_ARGS(1, 3);

/* Gives every mapping, also those that ended, the cookie that `change` says. */
void opd_mapset_change_cookies(struct opd_mapset *set, uint64_t (*change)(uint64_t cookie, void *arg), void *arg) OP_NONNULL_ARGS(1, 2);

/* Number of mappings that hold now. */
size_t opd_mapset_count(const struct opd_mapset *set) OP_NONNULL;

#endif
