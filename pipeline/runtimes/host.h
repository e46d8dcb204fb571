/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What a runtime is, to runtimes.h, and what it has there: lookers, names, and budgets for its
 * questions.
 *
 * Sync thread only.
 */
#ifndef OPD_RUNTIME_HOST_H
#define OPD_RUNTIME_HOST_H

#include "libop/base/compiler.h"
#include "pipeline/runtimes/names.h"
#include "pipeline/runtimes/step.h"

#define OPD_RUNTIME_BUDGETS 256u /* owners that have the same one share it */

struct opd_lookers;

/* Of an owner and a runtime. */
struct opd_runtime_budget {
	int64_t ns, bytes; /* that are left; less than 0: more was spent */
	uint64_t at_ns;    /* 0: nothing was spent yet */
};

struct opd_runtime_host {
	struct opd_lookers *lookers;     /* the caller's */
	struct opd_runtime_names *names; /* owned */
	bool is_out;   /* until the next turn: no looker had time */
	bool is_spent; /* since the last ask began: its owner's budget was used up */
	uint64_t nr_refused[OP_NR_RUNTIMES]; /* processes whose version is not known */
	bool has_changed; /* a looker found that a process is not who it was */
	struct opd_runtime_budget budgets[OPD_RUNTIME_BUDGETS];
};

/* Why a frame could not be read, or its caller not be found: the worst of a sample is counted. */
enum opd_runtime_fault {
	OPD_RUNTIME_NO_FAULT,
	OPD_RUNTIME_NAMELESS,
	OPD_RUNTIME_MOVED,
	OPD_RUNTIME_FAULT,
	OPD_RUNTIME_NO_CALLER,
};

/* A process that a runtime takes. */
struct opd_runtime_process {
	uint32_t pid;
	uint64_t user_ns;       /* its user namespace; 0: the host's, or unknown */
	uint64_t image_address; /* in a mapping of the runtime's image */
	uint64_t image_cookie;
	uint64_t who; /* opd_far_memory_who */
};

/* A row of the table. */
struct opd_runtime_kind {
	enum op_runtime runtime;
	/* True for the base name of the image that has the runtime: a library or an executable. */
	bool (*is_image)(const char *base_name);
	/* Begins with a process. What it returns is its own; NULL: no memory. */
	void *(*begin)(struct opd_runtime_host *host, const struct opd_runtime_process *process);
	/* How to step; `fault` may be set to say what is missing. */
	enum opd_runtime_how (*ask)(void *process, const struct opd_runtime_frame *frame, struct opd_runtime_answer *ret_answer,
				    enum opd_runtime_fault *fault);
	void (*end)(void *process);
};

/*
 * What questions about processes of an owner (opd_look_owner) may cost: each runtime has a budget
 * of time and of bytes for each owner. False: it is used up for now.
 */
bool opd_runtime_may_spend(struct opd_runtime_host *host, uint64_t owner, enum op_runtime runtime,
			   uint64_t now_ns) OP_NONNULL OP_MUST_CHECK;
void opd_runtime_spend(struct opd_runtime_host *host, uint64_t owner, enum op_runtime runtime, uint64_t ns,
		       uint64_t bytes) OP_NONNULL;

#endif
