/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Resolve: a sample to its image, its offset there and its application. There is always an answer: what cannot be
 * attributed goes to a pseudo-image and says so.
 *
 * Sync thread only.
 */
#ifndef OPD_RESOLVE_H
#define OPD_RESOLVE_H

#include "daemon/image.h"
#include "daemon/kernel_map.h"
#include "daemon/process.h"
#include "libop/compiler.h"
#include "libop/dcookie.h"
#include "libop/record.h"

struct opd_resolver {
	struct op_dcookie_table *table;
	struct opd_processes processes;
	struct opd_jit *jit; /* owned */
	struct opd_kernel_map kernel;
	uint64_t pseudo[OPD_NR_PSEUDO];
	uint64_t now_ns; /* set by the sync thread at each visit; stamps what is read from /proc */
};

struct opd_resolved {
	struct op_location location;
	uint64_t app_cookie; /* OP_DCOOKIE_NONE: no application (kernel thread, idle) */
	bool is_kernel;      /* the sample was taken in kernel mode */
	bool unattributed;
};

/* `vmlinux` may be NULL. 0 or -ENOMEM. */
int opd_resolver_init(struct opd_resolver *resolver, const char *vmlinux) OP_NONNULL_ARGS(1) OP_MUST_CHECK;
void opd_resolver_free(struct opd_resolver *resolver);

/* 0, or -ENOMEM when there was no memory for what had to be looked up. */
int opd_resolve(struct opd_resolver *resolver, const struct op_sample *sample,
		struct opd_resolved *ret_resolved) OP_NONNULL OP_MUST_CHECK;

#endif
