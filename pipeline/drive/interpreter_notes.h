/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Notes about runtimes (note_record.h): names go to the runtimes at once. The frames of a thread
 * wait for the sample that they were read for, as other notes do (notes.h says why they may come
 * early), and are joined to it.
 *
 * Sync thread only.
 */
#ifndef OPD_INTERPRETER_NOTES_H
#define OPD_INTERPRETER_NOTES_H

#include "libop/base/compiler.h"
#include "libop/perf/record.h"
#include "pipeline/runtimes/interpreters.h"
#include "pipeline/stacks/queue.h"

#define OPD_INTERPRETER_NOTES_MAX 256u /* stacks that wait; the oldest makes room */

struct opd_interpreter_notes {
	struct opd_interpreter_noted {
		uint32_t cpu, tid;
		uint64_t time_ns;
		struct opd_interpreter_stack *stack;
	} waiting[OPD_INTERPRETER_NOTES_MAX];
	size_t nr_waiting;
	struct opd_interpreter_stack *joined; /* to the last sample */
};

/* Takes the record of a note. False: it is about something else. */
bool opd_interpreter_notes_take(struct opd_interpreter_notes *notes, struct opd_interpreters *interpreters,
				const struct perf_event_header *header, const struct op_sample *sample) OP_NONNULL OP_MUST_CHECK;

/* Sets the runtime of a sample. It is valid until the next call. */
void opd_interpreter_notes_join(struct opd_interpreter_notes *notes, struct opd_stack_sample *taken) OP_NONNULL;

/* Frees what waits. */
void opd_interpreter_notes_forget(struct opd_interpreter_notes *notes) OP_NONNULL;

#endif
