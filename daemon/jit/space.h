/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What code.c, which reads and finds JIT code, and daemon/keep/jit_write.c, which writes its objects, share. */
#ifndef OPD_JIT_SPACE_H
#define OPD_JIT_SPACE_H

#include "daemon/jit/code.h"
#include "daemon/jit/address_map.h"
#include "daemon/jit/owner.h"
#include "daemon/jit/jitdump.h"
#include "daemon/jit/perf_map.h"
#include "libop/base/compiler.h"

#define OPD_JIT_LABEL "jit-" /* of the images, followed by when they were made */

struct opd_jit_space {
	struct opd_jit *jit;
	struct opd_jit_space *next, **link;
	struct opd_jit_space *base; /* what was there when it was forked */
	uint32_t refs;
	struct opd_jit_owner owner;
	struct opd_jit_map map;
	struct opd_perf_map perf_map;
	struct opd_jitdump dump;
	uint64_t visit_ns;     /* when its files were looked at */
	uint64_t next_read_ns; /* a process that writes much has to wait */
	uint64_t cookie;       /* of its image; OP_DCOOKIE_NONE until it has samples */
	uint32_t nr_written;   /* functions in its objects as they were written last */
	uint32_t nr_failed;    /* of these objects: jit.failed has their paths */
	bool refused;          /* a file of it was */
};

static inline bool opd_jit_space_is_written(const struct opd_jit_space *space)
{
	return space->nr_written == space->map.nr_sampled && !space->nr_failed;
}

/* Frees the paths, and there are none. */
void opd_jit_forget_paths(struct opd_jit_paths *paths) OP_NONNULL;

/* Frees a space that nobody refers to, and gives back its reference to its base. */
void opd_jit_space_free(struct opd_jit_space *space) OP_NONNULL;

#endif
