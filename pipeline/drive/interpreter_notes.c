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

bool opd_interpreter_notes_take(struct opd_interpreter_notes *notes, struct opd_interpreters *interpreters,
				const struct perf_event_header *header, const struct op_sample *sample)
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

static uint64_t apart_ns(const struct opd_interpreter_noted *noted, const struct op_sample *sample)
{
	return noted->time_ns > sample->time_ns ? noted->time_ns - sample->time_ns : sample->time_ns - noted->time_ns;
}

/*
 * The nearest note of the thread is the sample's: one of its next sample may wait as well. While
 * rings are swapped, a note is in the earlier ring, and its sample in the later one, behind samples
 * that are younger; so a note waits as those of deep stacks do.
 */
void opd_interpreter_notes_join(struct opd_interpreter_notes *notes, struct opd_stack_sample *taken)
{
	const struct op_sample *sample = &taken->sample;
	size_t at = 0, nearest = SIZE_MAX;

	free(notes->joined);
	notes->joined = NULL;
	while (at < notes->nr_waiting) {
		const struct opd_interpreter_noted *noted = &notes->waiting[at];

		if (noted->cpu == sample->cpu && noted->time_ns + OPD_NOTES_WAIT_NS < sample->time_ns) {
			drop(notes, at);
			continue;
		}
		if (noted->cpu == sample->cpu && noted->tid == sample->tid && apart_ns(noted, sample) <= OPD_NOTES_APART_NS &&
		    (nearest == SIZE_MAX || apart_ns(noted, sample) < apart_ns(&notes->waiting[nearest], sample)))
			nearest = at;
		at++;
	}
	if (nearest != SIZE_MAX) {
		notes->joined = notes->waiting[nearest].stack;
		take_away(notes, nearest);
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
