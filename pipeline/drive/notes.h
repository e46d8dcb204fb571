/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Notes about samples with stacks (note_record.h): kept until their sample comes, and joined to it.
 *
 * A note stands right before its sample in the same ring. A swap directs one event after the other,
 * that of notes last, so the notes of a few samples are in the old ring, and the samples in the new
 * one: such notes wait. A full ring loses a sample and keeps its note, or the other way round. So a
 * note belongs to a sample when CPU, thread and stack pointer are the same, and the time nearly.
 *
 * Sync thread only.
 */
#ifndef OPD_NOTES_H
#define OPD_NOTES_H

#include "libop/base/clock.h"
#include "libop/base/compiler.h"
#include "libop/perf/stack_record.h"
#include "pipeline/drive/note_record.h"
#include "pipeline/stacks/queue.h"

#define OPD_NOTES_BYTES    (1u << 20) /* of notes that wait; the oldest make room */
#define OPD_NOTES_APART_NS 2000000u /* between a note and its sample, at most */
#define OPD_NOTES_WAIT_NS  (5 * (uint64_t)OP_NS_PER_S) /* a swap takes less */

struct opd_notes_counts {
	uint64_t nr_joined;  /* samples with more of their stack */
	uint64_t nr_dropped; /* notes whose sample did not come, or that could not be decoded */
};

struct opd_notes {
	uint8_t *waiting; /* struct note, each with the bytes behind */
	size_t nr_waiting;
	uint8_t *record; /* of the sample that was joined last */
	size_t nr_record;
	uint8_t *more; /* of a stack */
	struct opd_notes_counts counts;
};

/* In memory that is in no core dump: copies of stacks hold secrets. 0 or -errno. */
int opd_notes_new(struct opd_notes **ret_notes) OP_NONNULL OP_MUST_CHECK;
void opd_notes_free(struct opd_notes *notes);

/* Takes the record of a note. */
void opd_notes_take(struct opd_notes *notes, const struct perf_event_header *header, const struct op_sample *sample) OP_NONNULL;

/*
 * Gives a sample what its notes say: the distance to the top of its stack; and a record with more
 * of the stack, which is valid until the next call. The layout is that of the record.
 */
void opd_notes_join(struct opd_notes *notes, const struct op_stack_layout *layout, struct opd_stack_sample *taken) OP_NONNULL;

#endif
