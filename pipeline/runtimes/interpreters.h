/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The runtimes that the program in the kernel reads: which files have one, the functions that it
 * has named, and the frames of a sample.
 *
 * Sync thread only.
 */
#ifndef OPD_INTERPRETERS_H
#define OPD_INTERPRETERS_H

#include "libop/base/compiler.h"
#include "libop/control/runtime_stats.h"
#include "libop/session/dcookie.h"
#include "libop/unwind/row_table.h"
#include "pipeline/runtimes/names.h"
#include "pipeline/runtimes/shared.h"

struct opd_interpreters;

/* The functions that a thread ran, the innermost first. */
struct opd_interpreter_stack {
	uint64_t cookie;                /* of the image of the runtime */
	uint64_t loop_start, loop_end;  /* positions in it: the interpreter's loop */
	uint32_t nr_frames;
	struct opd_interpreter_call {
		uint32_t name; /* names.h */
		uint32_t line; /* 0: not known */
		bool is_entry; /* native code called it: a loop of the interpreter ends here */
	} calls[];
};

/*
 * wanted: of the configuration Runtimes=, a bit for each enum op_runtime. The names stay the
 * caller's. 0 or -ENOMEM. opd_interpreters_free frees; NULL is allowed.
 */
int opd_interpreters_new(uint64_t wanted, struct opd_runtime_names *names,
			 struct opd_interpreters **ret_interpreters) OP_NONNULL OP_MUST_CHECK;
void opd_interpreters_free(struct opd_interpreters *interpreters);

/* The maps interpreter_images and interpreter_control of the program, which stay the caller's. */
void opd_interpreters_set_maps(struct opd_interpreters *interpreters, int images_fd,
			       struct opd_interpreter_control *control) OP_NONNULL;

/* An image whose row table has words is in a stack: from now on the program reads its runtime. */
void opd_interpreters_see_image(struct opd_interpreters *interpreters, uint64_t cookie, const struct op_image_id *id,
			    const struct op_row_table *table) OP_NONNULL;

/* Takes a note OPD_NOTE_NAME of a process. */
void opd_interpreters_take_name(struct opd_interpreters *interpreters, uint32_t tgid, const void *note, size_t nr_bytes) OP_NONNULL;

/*
 * Takes a note OPD_NOTE_FRAMES. The caller frees the result. NULL: the thread ran nothing of the
 * runtime, the note is damaged, or there is no memory.
 */
struct opd_interpreter_stack *opd_interpreters_take_frames(struct opd_interpreters *interpreters, uint32_t tgid, const void *note,
						   size_t nr_bytes) OP_NONNULL OP_MUST_CHECK;

/* A copy, which the caller frees. NULL: of NULL, or no memory. */
struct opd_interpreter_stack *opd_interpreter_stack_copy(const struct opd_interpreter_stack *stack) OP_MUST_CHECK;

/* Adds what was seen since opd was started (libop/control/runtime_stats.h). */
void opd_interpreters_add_counts(const struct opd_interpreters *interpreters,
				 uint64_t stats[OP_NR_RUNTIMES][OP_NR_RUNTIME_STATS]) OP_NONNULL;

#endif
