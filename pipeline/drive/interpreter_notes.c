/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pipeline/drive/interpreter_notes.h"

#include <stdlib.h>
#include <string.h>

#include "libop/perf/stack_record.h"
#include "pipeline/drive/notes.h"

static void take_away(struct opd_interpreter_notes *notes, size_t at)
{
	notes->nr_waiting--;
	memmove(&notes->waiting[at], &notes->waiting[at + 1], (notes->nr_waiting - at) * sizeof(*notes->waiting));
}

static void drop(struct opd_interpreter_notes *notes, size_t at)
{
	free(notes->waiting[at].stack);
	take_away(notes, at);
}

bool opd_interpreter_notes_take(struct opd_interpreter_notes *notes, struct opd_interpreters *interpreters, const struct perf_event_header *header,
			    const struct op_sample *sample)
{
	static const struct op_stack_layout layout = { .sample_type = OP_SAMPLE_TYPE | PERF_SAMPLE_RAW };
	struct op_stack_record record;
	struct opd_interpreter_stack *stack;
	uint32_t kind;

	if (op_stack_record(header, sample->mode, &layout, &record) < 0 || record.nr_raw_bytes < sizeof(kind))
		return false;
	memcpy(&kind, record.raw, sizeof(kind));
	if (kind == OPD_NOTE_NAME)
		opd_interpreters_take_name(interpreters, sample->pid, record.raw, record.nr_raw_bytes);
	if (kind != OPD_NOTE_FRAMES)
		return kind == OPD_NOTE_NAME;
	stack = opd_interpreters_take_frames(interpreters, sample->pid, record.raw, record.nr_raw_bytes);
	if (!stack)
		return true;
	if (notes->nr_waiting == OPD_INTERPRETER_NOTES_MAX)
		drop(notes, 0);
	notes->waiting[notes->nr_waiting++] = (struct opd_interpreter_noted){ sample->cpu, sample->tid, sample->time_ns, stack };
	return true;
}

void opd_interpreter_notes_join(struct opd_interpreter_notes *notes, struct opd_stack_sample *taken)
{
	const struct op_sample *sample = &taken->sample;
	size_t at = 0;

	free(notes->joined);
	notes->joined = NULL;
	while (at < notes->nr_waiting) {
		const struct opd_interpreter_noted *noted = &notes->waiting[at];

		/* The time of a sample is a little earlier than that of its note. */
		if (noted->cpu != sample->cpu || noted->time_ns > sample->time_ns + OPD_NOTES_APART_NS) {
			at++;
		} else if (noted->tid == sample->tid && noted->time_ns + OPD_NOTES_APART_NS >= sample->time_ns) {
			free(notes->joined); /* of a sample that was lost: this one is later */
			notes->joined = noted->stack;
			take_away(notes, at);
		} else {
			drop(notes, at);
		}
	}
	taken->runtime = notes->joined;
}

void opd_interpreter_notes_forget(struct opd_interpreter_notes *notes)
{
	while (notes->nr_waiting)
		drop(notes, notes->nr_waiting - 1);
	free(notes->joined);
	notes->joined = NULL;
}
