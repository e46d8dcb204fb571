/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The names of a process over time. A process has the name of its main thread (its comm): exec sets
 * it, fork copies it, and a program may change it (prctl(2), PR_SET_NAME). A sample has the name
 * that its process had at its time, because the side band is read ahead of the samples.
 *
 * Sync thread only.
 */
#ifndef OPD_NAMING_H
#define OPD_NAMING_H

#include "libop/base/compiler.h"
#include "pipeline/files/proc_maps.h"

struct opd_name {
	struct opd_name *older;
	uint64_t from_ns;
	char comm[OPD_COMM_BYTES];
	/* of the last look-up by program.h: the program, the application and the user behind it */
	uint64_t program_cookie, app_cookie;
	uint32_t user;
};

/* Adds a name that holds from then on. Nothing changes when it holds already. 0 or -ENOMEM. */
int opd_name_add(struct opd_name **newest, const char *comm, uint64_t from_ns) OP_NONNULL OP_MUST_CHECK;

/* The name at that time, or the oldest known one; NULL: none is known. */
struct opd_name *opd_name_at(struct opd_name *newest, uint64_t time_ns) OP_MUST_CHECK;

/* Frees the names that were replaced before horizon_ns; all of them. NULL is allowed. */
void opd_names_prune(struct opd_name *newest, uint64_t horizon_ns);
void opd_names_free(struct opd_name *newest);

#endif
