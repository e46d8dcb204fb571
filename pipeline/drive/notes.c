/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pipeline/drive/notes.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "libop/base/sys.h"

#define RECORD_BYTES 65536u /* more than a record can have */
#define ALL_BYTES    (OPD_NOTES_BYTES + 2 * RECORD_BYTES)
#define SP_X86_64    7u /* DWARF numbers */
#define SP_ARM64     31u

/* A note that waits for its sample. */
struct note {
	uint32_t cpu, tid;
	uint64_t time_ns;
	uint64_t nr_bytes; /* with this, a multiple of 8 */
	struct opd_stack_note stack;
};

static struct note *note_at(const struct opd_notes *notes, size_t at)
{
	return (void *)(notes->waiting + at);
}

/* Takes notes away, and clears what they leave: copies hold secrets. */
static void take_away(struct opd_notes *notes, size_t from, size_t to)
{
	memmove(notes->waiting + from, notes->waiting + to, notes->nr_waiting - to);
	explicit_bzero(notes->waiting + notes->nr_waiting - (to - from), to - from);
	notes->nr_waiting -= to - from;
}

static void drop(struct opd_notes *notes, size_t at)
{
	notes->counts.nr_dropped++;
	take_away(notes, at, at + note_at(notes, at)->nr_bytes);
}

void opd_notes_take(struct opd_notes *notes, const struct perf_event_header *header, const struct op_sample *sample)
{
	static const struct op_stack_layout layout = { .sample_type = OP_SAMPLE_TYPE | PERF_SAMPLE_RAW };
	struct note note = { .cpu = sample->cpu, .tid = sample->tid, .time_ns = sample->time_ns };
	struct op_stack_record record;

	if (op_stack_record(header, sample->mode, &layout, &record) < 0 || record.nr_raw_bytes < sizeof(note.stack)) {
		notes->counts.nr_dropped++;
		return;
	}
	memcpy(&note.stack, record.raw, sizeof(note.stack));
	if (note.stack.kind != OPD_NOTE_STACK || note.stack.nr_bytes > record.nr_raw_bytes - sizeof(note.stack)) {
		notes->counts.nr_dropped++;
		return;
	}
	note.nr_bytes = (sizeof(note) + note.stack.nr_bytes + 7) & ~(uint64_t)7;
	while (notes->nr_waiting + note.nr_bytes > OPD_NOTES_BYTES)
		drop(notes, 0);
	memcpy(notes->waiting + notes->nr_waiting, &note, sizeof(note));
	memcpy(notes->waiting + notes->nr_waiting + sizeof(note), record.raw + sizeof(note.stack), note.stack.nr_bytes);
	notes->nr_waiting += note.nr_bytes;
}

/* ---- joining ---- */

/* The parts of a sample around the copy of its stack, and how much of it the kernel could copy. */
struct parts {
	const uint8_t *begin, *copy, *behind, *end;
	size_t nr_copied;
};

static void find_parts(const struct opd_stack_sample *taken, const struct op_stack_record *stack, struct parts *ret_parts)
{
	const uint8_t *begin = (const uint8_t *)taken->header;
	uint64_t nr_asked;

	memcpy(&nr_asked, stack->stack - sizeof(nr_asked), sizeof(nr_asked));
	*ret_parts = (struct parts){
		.begin = begin,
		.copy = stack->stack,
		.behind = stack->stack + nr_asked + sizeof(nr_asked),
		.end = begin + taken->header->size,
		.nr_copied = stack->nr_stack_bytes,
	};
}

static uint8_t *add(uint8_t *to, const void *from, size_t nr_bytes)
{
	memcpy(to, from, nr_bytes);
	return to + nr_bytes;
}

/* Makes the record of the sample with a longer copy, whose end stands in `more`. */
static void lengthen(struct opd_notes *notes, const struct parts *parts, const uint8_t *more, size_t nr_more,
		     struct opd_stack_sample *taken)
{
	size_t nr_copied = parts->nr_copied;
	size_t nr_others = (size_t)(parts->copy + sizeof(uint64_t) - parts->begin + (parts->end - parts->behind));
	uint64_t nr_bytes = op_min_u64(nr_copied + nr_more, RECORD_BYTES - sizeof(uint64_t) - nr_others) & ~(uint64_t)7;
	struct perf_event_header header = *taken->header;
	uint8_t *to = notes->record;

	header.size = (uint16_t)(nr_others + nr_bytes);
	to = add(to, parts->begin, (size_t)(parts->copy - sizeof(nr_bytes) - parts->begin));
	memcpy(notes->record, &header, sizeof(header));
	to = add(to, &nr_bytes, sizeof(nr_bytes));
	to = add(to, parts->copy, nr_copied);
	to = add(to, more, nr_bytes - nr_copied);
	to = add(to, &nr_bytes, sizeof(nr_bytes));
	add(to, parts->behind, (size_t)(parts->end - parts->behind));
	notes->nr_record = header.size;
	notes->counts.nr_joined++;
	taken->header = (const void *)notes->record;
}

static bool is_about(const struct note *note, const struct opd_stack_sample *taken, uint64_t sp)
{
	const struct op_sample *sample = &taken->sample;
	uint64_t apart_ns = sample->time_ns > note->time_ns ? sample->time_ns - note->time_ns : note->time_ns - sample->time_ns;

	return note->cpu == sample->cpu && note->tid == sample->tid && note->stack.sp == sp && apart_ns < OPD_NOTES_APART_NS;
}

/* Adds the bytes of a note behind those that there are. One that does not join them is left out. */
static void add_note(struct opd_notes *notes, const struct note *note, size_t offset, size_t *nr)
{
	const struct opd_stack_note *stack = &note->stack;
	size_t end = (size_t)stack->offset + stack->nr_bytes;

	if (!stack->nr_bytes || stack->after != offset + *nr || stack->offset < stack->after || end > OPD_DEEP_STACK_MAX)
		return;
	memset(notes->more + *nr, 0, stack->offset - stack->after);
	memcpy(notes->more + (stack->offset - offset), note + 1, stack->nr_bytes);
	*nr = end - offset;
}

/*
 * Collects the bytes of the notes about a sample, one behind the other from `offset` on, and takes
 * these notes away. So it does with notes of this CPU that are much older: their samples are lost.
 */
static size_t collect(struct opd_notes *notes, struct opd_stack_sample *taken, uint64_t sp, size_t offset)
{
	size_t nr = 0, at = 0;

	while (at < notes->nr_waiting) {
		const struct note *note = note_at(notes, at);

		if (is_about(note, taken, sp)) {
			taken->stack_distance = note->stack.distance;
			add_note(notes, note, offset, &nr);
			take_away(notes, at, at + note->nr_bytes);
		} else if (note->cpu == taken->sample.cpu && note->time_ns + OPD_NOTES_WAIT_NS < taken->sample.time_ns) {
			drop(notes, at);
		} else {
			at += note->nr_bytes;
		}
	}
	return nr;
}

/* The last record, whose sample was taken. */
static void clear_record(struct opd_notes *notes)
{
	explicit_bzero(notes->record, notes->nr_record);
	notes->nr_record = 0;
}

void opd_notes_join(struct opd_notes *notes, const struct op_stack_layout *layout, struct opd_stack_sample *taken)
{
	unsigned int sp = layout->machine == EM_X86_64 ? SP_X86_64 : SP_ARM64;
	struct op_stack_record stack;
	struct parts parts;
	size_t nr;

	clear_record(notes);
	if (!notes->nr_waiting || op_stack_record(taken->header, taken->sample.mode, layout, &stack) < 0 || !stack.has_registers ||
	    !stack.nr_stack_bytes)
		return;
	nr = collect(notes, taken, stack.registers[sp], stack.nr_stack_bytes);
	if (nr) {
		find_parts(taken, &stack, &parts);
		lengthen(notes, &parts, notes->more, nr, taken);
	}
	explicit_bzero(notes->more, nr);
}

/* ---- opening ---- */

int opd_notes_new(struct opd_notes **ret_notes)
{
	struct opd_notes *notes = calloc(1, sizeof(*notes));
	void *memory;
	int err;

	if (!notes)
		return -ENOMEM;
	err = op_sys_mmap(NULL, ALL_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0, &memory);
	if (err) {
		free(notes);
		return err;
	}
	madvise(memory, ALL_BYTES, MADV_DONTDUMP);
	(void)mlock2(memory, ALL_BYTES, MLOCK_ONFAULT);
	notes->waiting = memory;
	notes->record = notes->waiting + OPD_NOTES_BYTES;
	notes->more = notes->record + RECORD_BYTES;
	*ret_notes = notes;
	return 0;
}

void opd_notes_free(struct opd_notes *notes)
{
	if (!notes)
		return;
	explicit_bzero(notes->waiting, notes->nr_waiting);
	op_sys_munmap(notes->waiting, ALL_BYTES);
	free(notes);
}
