/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The JIT code of one address space: which function was at an address at which time. Functions come one by one, a later one
 * cuts what it overlaps, and what was cut off is kept as the past as mappings are (daemon/jit/mapset.h). Each function that has
 * samples gets a place of its own in a synthetic range of addresses, so that code which replaces other code at an address is
 * counted apart from it.
 *
 * Functions are read from files of the process and cannot be trusted: everything is limited, and what goes beyond is counted.
 *
 * Sync thread only.
 */
#ifndef OPD_JIT_MAP_H
#define OPD_JIT_MAP_H

#include "daemon/jit/mapset.h"
#include "libop/base/compiler.h"
#include "libop/base/htable.h"
#include "libop/control/jit_stats.h"
#include "libop/base/text.h"

#define OPD_JIT_NO_OFFSET           UINT64_MAX
#define OPD_JIT_NAME_MAX           1024u                  /* bytes of a name, the rest is cut off */
#define OPD_JIT_FUNCTION_MAX_BYTES (64u << 20)            /* of one function */
#define OPD_JIT_PROCESS_MAX_BYTES  ((uint64_t)32u << 20)  /* of memory for one process */
#define OPD_JIT_ALL_MAX_BYTES      ((uint64_t)128u << 20) /* of memory for all */
#define OPD_JIT_CODE_MAX_BYTES     ((uint64_t)16u << 20)  /* of code bytes kept for one process; more is kept without them */
#define OPD_JIT_CODE_ALL_MAX_BYTES ((uint64_t)256u << 20) /* for all */

/* The synthetic range: first functions without code bytes, from CODE_AT on those that have them. */
#define OPD_JIT_RANGE_START ((uint64_t)0x6a69 << 48)
#define OPD_JIT_RANGE_BYTES ((uint64_t)1 << 41)
#define OPD_JIT_CODE_AT     ((uint64_t)1 << 40) /* from the start of the range */
#define OPD_JIT_ALIGNMENT   16u

struct opd_jit_function {
	uint64_t offset;    /* offset in the synthetic range; OPD_JIT_NO_PLACE: no samples yet */
	uint64_t code_at;  /* where its code is in the jitdump; 0: not known */
	uint64_t lines_at; /* where its DEBUG_INFO record is in the jitdump; 0: there is none */
	uint64_t start;    /* address it had first */
	uint32_t bytes;
	uint32_t name_at; /* in names */
};

struct opd_jit_map {
	struct op_htable windows; /* of WINDOW_BYTES addresses each, those that have functions */
	struct opd_jit_function *functions;
	size_t nr_functions, capacity;
	struct op_text names; /* NUL-terminated, one behind the other */
	uint64_t next_offset, next_code_offset;
	uint32_t nr_sampled;
	uint64_t nr_bytes;  /* of memory, as it is counted against the limits */
	size_t compact_wait; /* refusals until forgetting is tried again: the last time there was little to forget */
	uint64_t *counters; /* OP_NR_JIT, of all maps together */
};

/* What a file says of a function. */
struct opd_jit_code {
	uint64_t start, bytes;
	const char *name; /* of a foreign hand */
	uint64_t from_ns; /* when it came there */
	uint64_t code_at, lines_at;
	bool may_be_known; /* the same name at the same addresses is the same function */
};

/*
 * Adds a function; what is beyond a limit or makes no sense is counted and left out. What ended before horizon_ns may be
 * forgotten. 0 or -ENOMEM.
 */
int opd_jit_map_add(struct opd_jit_map *map, const struct opd_jit_code *code, uint64_t horizon_ns) OP_NONNULL OP_MUST_CHECK;

/* The function that was at old_start is at new_start since from_ns, too. One that is not known is a bad record. 0 or -ENOMEM. */
int opd_jit_map_move(struct opd_jit_map *map, uint64_t old_start, uint64_t new_start, uint64_t from_ns,
		     uint64_t horizon_ns) OP_NONNULL OP_MUST_CHECK;

/* Where an address lay at that time, as an offset in the synthetic range. False when no function is known there. */
bool opd_jit_map_find(struct opd_jit_map *map, uint64_t address, uint64_t time_ns, uint64_t *ret_offset) OP_NONNULL;

/* The name of a function of the map. */
static inline const char *opd_jit_map_name(const struct opd_jit_map *map, const struct opd_jit_function *function)
{
	return op_text_get(&map->names) + function->name_at;
}

/* Frees what the map holds; its memory is given back in the counters. */
void opd_jit_map_free(struct opd_jit_map *map);

#endif
