/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A space: the JIT code of one process as its own files describe it, /tmp/perf-PID.map and jitdump.
 * Known functions are counted under an anonymous image of the space, at addresses of the space's
 * synthetic range (address_map.h). The symbols of that image are in TGID.jo beside the sample
 * files. pipeline/resolve/jit_lookup.h says which spaces an address space has.
 *
 * Sync thread only.
 */
#ifndef OPD_JIT_SPACE_H
#define OPD_JIT_SPACE_H

#include "libop/base/compiler.h"
#include "libop/control/jit_stats.h"
#include "libop/session/dcookie.h"
#include "pipeline/files/owner_ask.h"
#include "pipeline/jit/address_map.h"
#include "pipeline/jit/budget.h"
#include "pipeline/jit/jitdump.h"
#include "pipeline/jit/perf_map.h"
#include "pipeline/jit/waiting.h"

#define OPD_JIT_SPACES_MAX 1024u /* at a time */
/* of all of them: a directory in /proc, a map and a dump each */
#define OPD_JIT_DESCRIPTORS_MAX (3u * OPD_JIT_SPACES_MAX)
/* for this time the files of a process that has ended are read on, as far as the budget goes */
#define OPD_JIT_ENDING_NS (10u * (uint64_t)OP_NS_PER_S)

/* Paths of objects, below the session directory. */
struct opd_jit_paths {
	char **paths;
	size_t nr;
};

/* All spaces. */
struct opd_jit {
	struct op_dcookie_table *table;
	struct opd_lookers *lookers; /* of the caller; NULL: this process opens the files itself */
	struct opd_jit_space *spaces;
	size_t nr_spaces;
	/*
	 * descriptor numbers from here on are for others; a process that would need one is refused
	 */
	int max_fd;
	uint64_t counters[OP_NR_JIT];
	struct opd_jit_budget budget;
	struct opd_jit_waits waits;
	/* of objects: when they are written next, and since when this is under way */
	uint64_t next_write_ns, write_since_ns;
	struct opd_jit_paths changed; /* written, and not synced yet */
	struct opd_jit_paths failed;  /* could not be written the last time */
};

struct opd_jit_space {
	struct opd_jit *jit;
	struct opd_jit_space *next, **link;
	struct opd_jit_space *base; /* of the parent process when it forked this one; a reference */
	uint32_t refs;
	struct opd_jit_owner owner;
	struct opd_look_about about;
	struct opd_jit_map map;
	struct opd_perf_map perf_map;
	struct opd_far_file map_file; /* that it was read from: later there may be no path to it */
	struct opd_jitdump dump;
	uint64_t visit_ns;               /* of the last reading of its files */
	uint32_t round;                  /* of the budget, in which it had its turn last */
	bool put_off; /* there may be more in its files than was read, or no answer came */
	uint64_t cookie;                 /* of the range; OP_DCOOKIE_NONE: no samples there */
	char label[OPD_JIT_LABEL_BYTES]; /* of its images; "" until it has one */
	struct opd_jit_waiting *waiting; /* samples without a name; owned; NULL: none */
	/* the process has ended, and what it wrote at its end is read until then; 0: it lives */
	uint64_t ends_ns;
	uint32_t nr_written; /* functions in its objects as they were written last */
	uint32_t nr_failed;  /* of these objects: jit.failed has their paths */
	uint64_t tried_ns;   /* when its objects were looked at and written last */
	bool refused;        /* one of its files was */
	bool is_counted;     /* as a process with JIT code */
};

void opd_jit_init(struct opd_jit *jit, struct op_dcookie_table *table) OP_NONNULL;
void opd_jit_free(struct opd_jit *jit) OP_NONNULL;

/*
 * Makes an empty space with one reference. 0; -ENFILE: too many spaces or too few descriptors;
 * -ENOMEM.
 */
int opd_jit_space_new(struct opd_jit *jit, const struct opd_jit_process *process,
		      struct opd_jit_space **ret_space) OP_NONNULL OP_MUST_CHECK;

/*
 * opd_jit_space_get adds a reference, opd_jit_space_put drops one. The space is freed without
 * references and with its objects written.
 */
struct opd_jit_space *opd_jit_space_get(struct opd_jit_space *space);
void opd_jit_space_put(struct opd_jit_space *space);

/* Frees a space without references, and drops its reference to its base. */
void opd_jit_space_free(struct opd_jit_space *space) OP_NONNULL;

/* True when the process describes its code, or has a file that goes on. */
static inline bool opd_jit_space_has_read(const struct opd_jit_space *space)
{
	return opd_jit_map_count(&space->map) || (space->dump.file.fd >= 0 && !space->dump.ended);
}

/*
 * True when the process describes its code, or may still do so: a map that is empty so far is
 * written when a buffer is full, or at the end. Files of a process that has ended are read later,
 * too.
 */
static inline bool opd_jit_space_is_useful(const struct opd_jit_space *space)
{
	return opd_jit_space_has_read(space) || space->perf_map.more || space->map_file.fd >= 0 ||
	       (space->ends_ns && space->put_off);
}

static inline bool opd_jit_space_is_written(const struct opd_jit_space *space)
{
	return space->nr_written == space->map.nr_sampled && !space->nr_failed;
}

/* True for the path of a jitdump. */
bool opd_jit_is_dump(const char *path) OP_NONNULL;

/*
 * Opens the dump that the process has mapped from start to end, before the file can go away. 0;
 * -ENFILE: too few descriptors; another -errno. A file that may not be used is counted.
 */
int opd_jit_space_open_dump(struct opd_jit_space *space, uint64_t start, uint64_t end, const char *path) OP_NONNULL OP_MUST_CHECK;

/*
 * Reads what is new in the files of the process, once per visit and as far as the budget of its
 * user goes.
 */
void opd_jit_space_refresh(struct opd_jit_space *space, const struct opd_jit_times *times) OP_NONNULL;

/*
 * Finds the function that was at an address at that time. OPD_JIT_IN_RANGE: *ret_location has its
 * place; OPD_JIT_AT_ADDRESS: the place is the address in an image of space->waiting.
 * OPD_JIT_NOWHERE: there is none, or no memory.
 */
enum opd_jit_place opd_jit_space_find(struct opd_jit_space *space, uint64_t address, uint64_t time_ns,
				      struct op_location *ret_location) OP_NONNULL OP_MUST_CHECK;

/* The label of the space's images; made with the first one. */
const char *opd_jit_space_label(struct opd_jit_space *space) OP_NONNULL;

/*
 * The process has ended. Its files are read once more: a compiler may write its last names at exit.
 */
void opd_jit_space_ends(struct opd_jit_space *space, const struct opd_jit_times *times) OP_NONNULL;

/* Goes on with the files of processes that have ended and whose spaces have no references. */
void opd_jit_read_ended(struct opd_jit *jit, const struct opd_jit_times *times) OP_NONNULL;

/* Calls `visit` for the cookie of each space; OP_DCOOKIE_NONE among them. */
void opd_jit_visit_cookies(const struct opd_jit *jit, void (*visit)(uint64_t cookie, void *arg), void *arg) OP_NONNULL_ARGS(1, 2);

/* Frees the paths and empties the list. */
void opd_jit_forget_paths(struct opd_jit_paths *paths) OP_NONNULL;

#endif
