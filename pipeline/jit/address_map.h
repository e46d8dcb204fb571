/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The functions of one process's JIT code: which function was at an address at which time.
 * Functions are added one by one. A new function cuts older ones that it overlaps (pieces.h). A
 * function gets an address in the synthetic range with its first sample, so that functions which
 * replace each other at one address are counted apart.
 *
 * Functions come from files of the process, which may be hostile. Everything is limited, and what
 * exceeds a limit is counted.
 *
 * A late function (waiting.h) stays at its own addresses, where its first samples were counted
 * before it had a name. These addresses are not given to another function, so they have one name in
 * the object whatever comes there later.
 *
 * Sync thread only.
 */
#ifndef OPD_JIT_MAP_H
#define OPD_JIT_MAP_H

#include "libop/base/compiler.h"
#include "libop/control/jit_stats.h"
#include "pipeline/jit/budget.h"
#include "pipeline/jit/functions.h"
#include "pipeline/jit/pieces.h"

#define OPD_JIT_NAME_MAX           1024u                  /* of a name; a longer one is cut */
#define OPD_JIT_FUNCTION_MAX_BYTES (64u << 20)            /* of one function */
#define OPD_JIT_PROCESS_MAX_BYTES  ((uint64_t)32u << 20)  /* memory for one process */
/* memory for all processes; a user may use as much of it as is left for others */
#define OPD_JIT_ALL_MAX_BYTES      ((uint64_t)128u << 20)
/* code bytes in the object of one process; further functions are kept without code */
#define OPD_JIT_CODE_MAX_BYTES     ((uint64_t)16u << 20)
#define OPD_JIT_CODE_ALL_MAX_BYTES ((uint64_t)256u << 20) /* code bytes in all objects */

/*
 * The synthetic range: functions without code bytes first, functions with code bytes from CODE_AT
 * on.
 */
#define OPD_JIT_RANGE_START ((uint64_t)0x6a69 << 48)
#define OPD_JIT_RANGE_BYTES ((uint64_t)1 << 41)
#define OPD_JIT_CODE_AT     ((uint64_t)1 << 40) /* from the start of the range */
#define OPD_JIT_ALIGNMENT   16u

#define OPD_JIT_LATE_MAX 16384u /* late functions of a process: each is a section of the object */

/* A function that was added, at an address. */
struct opd_jit_added {
	uint64_t start;
	uint32_t function;
};

struct opd_jit_map {
	struct opd_jit_functions functions;
	struct opd_jit_pieces pieces;
	uint64_t next_offset, next_code_offset;
	struct opd_jit_pieces late; /* whole functions; none is ever cut */
	uint32_t nr_late;
	uint64_t late_code_bytes;
	/* functions since keeps_added was set and opd_jit_map_forget_added was called */
	struct opd_jit_added *added;
	size_t nr_added, added_capacity;
	bool keeps_added;
	uint32_t nr_sampled; /* functions that the object names: those with samples */
	uint64_t nr_bytes;   /* memory of the functions and pieces */
	uint64_t *counters;  /* OP_NR_JIT counters, shared by all maps */
	struct opd_jit_use *user; /* a reference; NULL: no process shares the memory */
};

/* A function as a file of the process describes it. */
struct opd_jit_code {
	uint64_t start, bytes;
	const char *name; /* not trusted */
	uint64_t from_ns; /* when the function appeared */
	uint64_t code_at, lines_at;
	bool may_be_known; /* true: the same name at the same addresses is the same function */
	bool is_exact;     /* from_ns is the function's own time, not that of its file */
};

/*
 * Adds a function. One that exceeds a limit or makes no sense is counted and left out. Functions
 * that ended before horizon_ns may be forgotten. 0 or -ENOMEM.
 */
int opd_jit_map_add(struct opd_jit_map *map, const struct opd_jit_code *code, uint64_t horizon_ns) OP_NONNULL OP_MUST_CHECK;

/*
 * The function at old_start is at new_start as well since from_ns. A move of an unknown function is
 * counted as a bad record. 0 or -ENOMEM.
 */
int opd_jit_map_move(struct opd_jit_map *map, uint64_t old_start, uint64_t new_start, uint64_t from_ns,
		     uint64_t horizon_ns) OP_NONNULL OP_MUST_CHECK;

enum opd_jit_place {
	OPD_JIT_NOWHERE,    /* no function is known */
	OPD_JIT_IN_RANGE,   /* in the synthetic range */
	OPD_JIT_AT_ADDRESS, /* a late function, at its own address */
};

/*
 * Finds the function at an address at that time. *ret_offset: the offset in the synthetic range, if
 * it is there.
 */
enum opd_jit_place opd_jit_map_find(struct opd_jit_map *map, uint64_t address, uint64_t time_ns, uint64_t *ret_offset) OP_NONNULL;

/*
 * Makes a function late at one of its places. False: it cannot be, since others are there or for
 * want of room.
 */
bool opd_jit_map_make_late(struct opd_jit_map *map, const struct opd_jit_added *added) OP_NONNULL;

/* True when the address is that of a late function. */
bool opd_jit_map_is_late(const struct opd_jit_map *map, uint64_t address) OP_NONNULL;

/* Forgets the first functions that were added. */
void opd_jit_map_forget_added(struct opd_jit_map *map, size_t nr) OP_NONNULL;

/* The work that was done for the map so far; readers add a step for each line or record. */
static inline uint64_t opd_jit_map_steps(const struct opd_jit_map *map)
{
	return map->pieces.account.nr_steps;
}

static inline void opd_jit_map_add_step(struct opd_jit_map *map)
{
	map->pieces.account.nr_steps++;
}

/* The number of functions that hold, had samples, or may still have some. */
static inline size_t opd_jit_map_count(const struct opd_jit_map *map)
{
	return map->functions.nr_rows - map->functions.nr_free;
}

/* Frees the contents of the map, subtracts its memory from the counters, and drops its user. */
void opd_jit_map_free(struct opd_jit_map *map);

#endif
