/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A stack: a sample, its frames, how they end, how much the stack weighs, and whose it is. source.h
 * makes stacks, and pipeline/drive/stack_booking.h hands them to the sinks (pipeline/count/sink.h).
 *
 * It is valid until the next one is made: who keeps something of it copies it.
 */
#ifndef OPD_STACK_H
#define OPD_STACK_H

#include "libop/base/compiler.h"
#include "libop/session/stack_ends.h"
#include "libop/session/wait_states.h"
#include "pipeline/resolve/resolver.h"
#include "pipeline/stacks/waker.h"
#include "pipeline/stacks/walk.h"

#define OPD_STACK_KERNEL_MAX 256u /* frames of the kernel */
#define OPD_STACK_FRAMES_MAX (OPD_STACK_KERNEL_MAX + OPD_WALK_FRAMES_MAX) /* native ones */
#define OPD_STACK_RUNTIME_MAX 256u /* of a runtime */
#define OPD_STACK_ALL_MAX (OPD_STACK_FRAMES_MAX + OPD_STACK_RUNTIME_MAX)

struct opd_runtime_names; /* pipeline/runtimes/names.h */

struct opd_stack {
	const struct op_sample *sample; /* belongs to who called the source */
	/* The leaf first. The offset of a caller is the one behind its call. */
	struct opd_resolved frames[OPD_STACK_ALL_MAX];
	size_t nr_frames;    /* at least 1: the sample itself */
	const struct opd_runtime_names *names; /* of frames of runtimes; NULL: there are none */
	uint64_t leaf_start; /* offset of the function of the leaf; 0: unknown */
	enum op_stack_end end;
	enum op_wait_state state; /* of a wait; its weight is in microseconds */
	bool goes_on; /* a wait that was taken before: more of its time, and no new record */
	const struct opd_waker *waker; /* of a wait; NULL: unknown */
	uint64_t waker_app;  /* its application; OP_DCOOKIE_NONE: unknown, or the kernel's */
	uint64_t weight;     /* in the unit of its event: 1 where it counts samples */
	uint32_t event;      /* its index */
	uint64_t app_cookie; /* of the application; OP_DCOOKIE_NONE: the kernel's */
	const char *comm;    /* name of the process at that time; NULL: unknown */
	const char *cgroup;  /* its path, OPD_CGROUP_UNKNOWN, or NULL: samples have none */
	/* What became of it; the file of stacks sets this (pipeline/count/sink.h). */
	uint32_t node;       /* to which the weight was added (libop/stacks/format.h) */
	bool has_room;       /* false: the node is one of the callers */
	int error;           /* -errno: it is not stored */
};

#endif
