/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A mapset: the mappings of an address space (pipeline/resolve/process.h) over time. It is a map of
 * spans (spans.h) that parent and child share after a fork; the first that changes it makes a copy.
 * All sets together have limits.
 *
 * Sync thread only.
 */
#ifndef OPD_MAPSET_H
#define OPD_MAPSET_H

#include "libop/base/compiler.h"
#include "pipeline/jit/spans.h"

struct opd_mapping {
	/* key: offset of `start` in the file, or in the region */
	OPD_SPAN_FIELDS(key);
	/* of the image; of the label of the region (resolve/image.h) when region_end is not 0 */
	uint64_t cookie;
	/* of anonymous memory: end of the whole region, also when a part was cut off; 0: a file */
	uint64_t region_end;
	bool may_be_jit; /* may hold code made at run time (pipeline/resolve/jit_lookup.h) */
};

#define OPD_MAPSET_MAX   16384        /* mappings that hold, and as many past ones */
#define OPD_MAPPINGS_MAX (384u << 10) /* rows with room in all sets of an account, 24 MiB */

struct opd_mapset;

/* What several sets share. All zero at first. */
struct opd_mapset_account {
	struct opd_mapset *sets;
	struct opd_span_account mappings; /* at most OPD_MAPPINGS_MAX with room */
};

/*
 * Makes an empty set with one reference. The account outlives it. NULL: no memory.
 */
struct opd_mapset *opd_mapset_new(struct opd_mapset_account *account) OP_NONNULL OP_MUST_CHECK;

/* Adds a reference, drops one. The last drop frees the set. opd_mapset_put accepts NULL. */
struct opd_mapset *opd_mapset_get(struct opd_mapset *set) OP_NONNULL;
void opd_mapset_put(struct opd_mapset *set);

/*
 * Adds a mapping and sets its to_ns. Replaces *set by a copy when others hold references. Forgets
 * parts that ended before horizon_ns. 0 or -ENOMEM; then the set is unchanged.
 *
 * The kernel does not report munmap, so a process that maps and unmaps at new addresses fills its
 * set. A full set drops the mappings that have held longest, regions before files. When the account
 * is full, all sets forget their past before horizon_ns, then the largest sets are cut. When all
 * sets are small, the new mapping is dropped. Drops are counted.
 */
int opd_mapset_add(struct opd_mapset **set, const struct opd_mapping *mapping, uint64_t horizon_ns) OP_NONNULL OP_MUST_CHECK;

/*
 * The mapping that held `address` at time_ns; NULL: none. Valid until a set of the account changes.
 */
const struct opd_mapping *opd_mapset_find(const struct opd_mapset *set, uint64_t address, uint64_t time_ns) OP_NONNULL;

/*
 * Calls `visit` for the cookie of every mapping, past ones included. Skips a set that was already
 * visited with the same `round`.
 */
void opd_mapset_visit_cookies(struct opd_mapset *set, uint32_t round, void (*visit)(uint64_t cookie, void *arg), void *arg)
	OP_NONNULL_ARGS(1, 3);

/* Calls `visit` for every mapping, past ones included. It must not change the set. */
void opd_mapset_visit(const struct opd_mapset *set, void (*visit)(const struct opd_mapping *mapping, void *arg), void *arg)
	OP_NONNULL_ARGS(1, 2);

/* The end of the highest mapping that holds now; 0: there is none. */
uint64_t opd_mapset_end(const struct opd_mapset *set) OP_NONNULL;

/* The number of mappings that hold now. */
size_t opd_mapset_count(const struct opd_mapset *set) OP_NONNULL;

#endif
