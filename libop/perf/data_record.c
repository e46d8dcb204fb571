/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/perf/data_record.h"

#include <errno.h>

#include "libop/perf/data_input.h"
#include "libop/perf/data_raw.h"
#include "libop/perf/data_shape.h"
#include "libop/perf/stack_record.h"

/* a FORK of perf for a running process: PERF_RECORD_MISC_FORK_EXEC */
#define MISC_MADE_UP_FORK   (1u << 13)
/* of LOST_SAMPLES: PERF_RECORD_MISC_LOST_SAMPLES_BPF of perf's event.h */
#define MISC_LOST_TO_FILTER (1u << 15)
#define WORDS_OF_HEADER 1u
#define MMAP_NAME       32u /* the name stands behind two numbers of 32 bits and three of 64 */
#define MMAP2_NAME      64u
#define MMAP2_OLD_NAME  56u /* Linux 3.10 of RHEL 7.0: without prot and flags */
#define MMAP2_ID        32u
#define MMAP2_ID_BYTES  4u /* the length of the build-id, with padding; the build-id follows */
#define KSYMBOL_NAME    16u
#define TASK_TIME       16u
#define UNKNOWN_PID     UINT32_MAX

/* The record that is being translated. */
struct source {
	struct op_perf_translator *translator;
	const struct perf_event_header *header;
	const uint8_t *body;
	size_t nr_bytes; /* of the body, without sample_id */
	bool swapped;
	const struct op_perf_layout *layout;
	const uint8_t *end; /* of the body, with sample_id */
	struct op_perf_record *record;
};

typedef int (*handler)(struct source *source);

static uint32_t u32_at(const struct source *source, size_t offset)
{
	return op_perf_u32(source->body + offset, source->swapped);
}

static uint64_t u64_at(const struct source *source, size_t offset)
{
	return op_perf_u64(source->body + offset, source->swapped);
}

/* ---- writing a record ---- */

static uint64_t stamp(struct op_perf_translator *translator, bool has_time, uint64_t time_ns)
{
	if (!has_time)
		return ++translator->last_ns;
	time_ns = op_max_u64(time_ns, 1);
	translator->last_ns = op_max_u64(translator->last_ns, time_ns);
	return time_ns;
}

/* Writes the header of a record of nr_words, header included. Returns the place behind it. */
static uint64_t *begin(struct source *source, enum op_perf_kind kind, uint32_t type, uint16_t misc, size_t nr_words)
{
	uint64_t *out = source->translator->out;
	const struct perf_event_header header = { .type = type, .misc = misc, .size = (uint16_t)(nr_words * sizeof(*out)) };

	memcpy(out, &header, sizeof(header));
	source->record->kind = kind;
	source->record->header = (const void *)out;
	return out + WORDS_OF_HEADER;
}

static uint64_t pair_of(uint32_t first, uint32_t second)
{
	const uint32_t both[2] = { first, second };
	uint64_t word;

	memcpy(&word, both, sizeof(word));
	return word;
}

/* Writes the sample_id of opd's events. */
static void put_who(const struct source *source, uint64_t *at)
{
	const struct op_perf_layout *layout = source->layout;
	bool has_tid = layout->end_tid > 0;

	at[0] = pair_of(has_tid ? op_perf_u32(source->end - layout->end_tid, source->swapped) : UNKNOWN_PID,
			has_tid ? op_perf_u32(source->end - layout->end_tid + 4, source->swapped) : UNKNOWN_PID);
	at[1] = source->record->time_ns;
	at[2] = source->record->event + 1;
}

#define WHO_WORDS 3u

/* ---- records for the ring pair ---- */

static uint16_t misc_of(const struct source *source)
{
	return (uint16_t)(source->header->misc & ~OP_RECORD_MISC_AMOUNT);
}

static enum op_perf_has_raw find_raw(const struct op_perf_translator *translator, uint32_t index)
{
	const struct op_perf_event *event = &translator->events->events[index];
	enum op_ibs_kind kind;

	if (op_perf_is_ibs(translator->features, event, &kind))
		return OP_PERF_RAW_IBS;
	if (op_perf_may_be_ibs(translator->features, event) && translator->nr_looks[index] < OP_PERF_LOOKS_MAX)
		return OP_PERF_RAW_MAYBE;
	return OP_PERF_RAW_NONE;
}

/* True when PERF_SAMPLE_RAW of this event has, or may have, IBS registers. */
static bool has_registers(const struct source *source)
{
	struct op_perf_translator *translator = source->translator;
	uint8_t *has_raw = &translator->has_raw[source->record->event];

	if (op_unlikely(*has_raw == OP_PERF_RAW_UNKNOWN || *has_raw == OP_PERF_RAW_MAYBE))
		*has_raw = (uint8_t)find_raw(translator, source->record->event);
	return *has_raw != OP_PERF_RAW_NONE;
}

/* Writes the call chain behind the fixed fields. One that is cut short becomes empty: -EBADMSG. */
static int put_chain(struct source *source, uint64_t **at_after)
{
	const struct op_perf_event *event = &source->translator->events->events[source->record->event];
	const uint8_t *words;
	size_t nr_words;
	uint64_t *at = *at_after;
	int err = op_perf_chain(event, source->body, source->nr_bytes, source->swapped, &words, &nr_words);

	if (err)
		nr_words = 0;
	nr_words = op_min_u64(nr_words, OP_PERF_CHAIN_WORDS - 1);
	*at++ = nr_words;
	for (size_t i = 0; i < nr_words; i++)
		*at++ = op_perf_u64(words + i * sizeof(*at), source->swapped);
	begin(source, OP_PERF_RING, PERF_RECORD_SAMPLE, misc_of(source), (size_t)(at - source->translator->out));
	*at_after = at;
	return err;
}

/* So many words of the file, or as many zeros. */
static uint64_t *put_words(const struct source *source, uint64_t *at, const uint8_t *words, size_t nr_words)
{
	for (size_t i = 0; i < nr_words; i++)
		*at++ = words ? op_perf_u64(words + i * sizeof(*at), source->swapped) : 0;
	return at;
}

/* Writes chain, registers and copy, in the form in which opd asks the kernel for them. */
static int put_stack(struct source *source, uint64_t *at)
{
	const struct op_perf_event *event = &source->translator->events->events[source->record->event];
	uint64_t *out = source->translator->out, mask = event->attr.sample_regs_user;
	struct op_perf_stack stack;
	size_t nr_words, room;
	int err = op_perf_stack(event, source->body, source->nr_bytes, source->swapped, &stack);

	if (err)
		stack = (struct op_perf_stack){ .abi = OP_STACK_ABI_MISSING };
	/* The words of a copy of the other byte order would have to be swapped one by one. */
	if (source->swapped && stack.abi)
		stack.abi = OP_STACK_ABI_MISSING;
	*at = op_min_u64(stack.nr_chain, OP_PERF_STACK_CHAIN_WORDS - 1);
	at = put_words(source, at + 1, stack.chain, (size_t)*at);
	*at++ = stack.abi;
	if (stack.abi && event->attr.sample_type & PERF_SAMPLE_REGS_USER)
		at = put_words(source, at, stack.registers, (size_t)__builtin_popcountll(mask));
	room = op_array_size(source->translator->out) - (size_t)(at - out) - 2;
	nr_words = source->swapped ? 0 : op_min_u64((stack.nr_copied + sizeof(*at) - 1) / sizeof(*at), room);
	*at++ = nr_words * sizeof(*at);
	if (nr_words) {
		memcpy(at, stack.copy, nr_words * sizeof(*at));
		at += nr_words;
		*at++ = op_min_u64(stack.nr_copied, nr_words * sizeof(*at));
	}
	begin(source, OP_PERF_RING, PERF_RECORD_SAMPLE, misc_of(source), (size_t)(at - out));
	return err;
}

static void check_registers(struct source *source, const uint8_t *raw, uint32_t raw_bytes)
{
	struct op_perf_translator *translator = source->translator;
	uint32_t event = source->record->event;

	translator->nr_looks[event]++;
	op_perf_recognise(translator->events, event, raw, raw_bytes, translator->out[WORDS_OF_HEADER + 1]);
}

/*
 * Writes the registers behind the other fields. Without those that are cut short: -EBADMSG; the
 * decoder will count it.
 */
static int put_registers(struct source *source, uint64_t *at)
{
	const struct op_perf_event *event = &source->translator->events->events[source->record->event];
	uint64_t *out = source->translator->out;
	const uint8_t *raw;
	uint32_t raw_bytes;
	size_t nr_words;

	if (op_perf_raw(event, source->body, source->nr_bytes, source->swapped, &raw, &raw_bytes) < 0)
		return -EBADMSG;
	if (op_unlikely(source->translator->has_raw[source->record->event] == OP_PERF_RAW_MAYBE))
		check_registers(source, raw, raw_bytes);
	raw_bytes = (uint32_t)op_min_u64(raw_bytes, OP_PERF_RAW_BYTES_MAX);
	nr_words = (sizeof(raw_bytes) + raw_bytes + sizeof(*at) - 1) / sizeof(*at);
	at[nr_words - 1] = 0;
	memcpy(at, &raw_bytes, sizeof(raw_bytes));
	memcpy((uint8_t *)at + sizeof(raw_bytes), raw, raw_bytes);
	begin(source, OP_PERF_RING, PERF_RECORD_SAMPLE, misc_of(source), (size_t)(at - out) + nr_words);
	return 0;
}

/* A sample of an unknown event, or too short for its event. Only the identifier is written. */
static int take_damaged(struct source *source)
{
	const struct op_perf_events *events = source->translator->events;
	uint32_t event = source->record->event;
	int16_t id = events->events[0].layout.id;
	bool is_known = event != OP_PERF_NO_EVENT;
	uint64_t *out;

	source->record->time_ns = stamp(source->translator, false, 0);
	out = begin(source, OP_PERF_RING, PERF_RECORD_SAMPLE, 0, WORDS_OF_HEADER + is_known);
	if (is_known)
		out[0] = (uint64_t)event + 1;
	return is_known || source->nr_bytes < (size_t)id + sizeof(*out) ? -EBADMSG : 0;
}

/* Values that are cut short, -EBADMSG, are not used. */
static int begin_reads(struct source *source, const struct op_perf_event *event)
{
	struct op_perf_translator *translator = source->translator;
	struct op_perf_reads *reads = &translator->reads;
	struct op_perf_group group;
	int err = op_perf_group(event, source->body, source->nr_bytes, source->swapped, &group);

	if (err)
		return err;
	*reads = (struct op_perf_reads){
		.words = group.words,
		.nr_left = group.nr_counters,
		.nr_words = group.nr_words,
		.ip = translator->out[2],
		.who = translator->out[3],
		.tid = event->attr.inherit && event->layout.tid >= 0 ? u32_at(source, (size_t)event->layout.tid + 4) : 0,
		.misc = misc_of(source),
		.sample = *source->record,
	};
	return 0;
}

int op_perf_translate_reads(struct op_perf_translator *translator, struct op_perf_record *ret_record)
{
	struct op_perf_reads *reads = &translator->reads;
	struct op_perf_events *events = translator->events;

	while (reads->nr_left) {
		const uint8_t *words = reads->words;
		uint64_t id = op_perf_u64(words + sizeof(id), translator->swapped), amount;
		uint32_t event = op_perf_events_find(events, id);
		uint64_t *out = translator->out;
		int err;

		reads->words += reads->nr_words * sizeof(id);
		reads->nr_left--;
		if (event == OP_PERF_NO_EVENT || !op_perf_is_only_read(&events->events[event]))
			continue;
		err = op_perf_events_read(events, id, reads->tid, op_perf_u64(words, translator->swapped), &amount);
		if (err)
			return err == -ENOMEM ? err : -EBADMSG;
		if (!amount)
			continue;
		*ret_record = reads->sample;
		ret_record->event = event;
		ret_record->header = (const void *)out;
		memcpy(out,
		       &(struct perf_event_header){ .type = PERF_RECORD_SAMPLE,
						    .misc = (uint16_t)(reads->misc | OP_RECORD_MISC_AMOUNT),
						    .size = OP_SAMPLE_RECORD_BYTES + sizeof(amount) },
		       sizeof(struct perf_event_header));
		out[1] = (uint64_t)event + 1;
		out[2] = reads->ip;
		out[3] = reads->who;
		out[4] = reads->sample.time_ns;
		out[5] = amount;
		return 1;
	}
	return 0;
}

static int take_sample(struct source *source)
{
	const struct op_perf_layout *layout;
	const struct op_perf_event *event;
	struct op_perf_translator *translator = source->translator;
	struct op_perf_record *record = source->record;
	uint64_t *out, *at;
	int err = 0, raw_err = 0, read_err = 0;

	record->event = op_perf_events_of_sample(translator->events, source->body, source->nr_bytes, source->swapped);
	event = record->event == OP_PERF_NO_EVENT ? NULL : &translator->events->events[record->event];
	layout = event ? &event->layout : NULL;
	if (op_unlikely(!layout || source->nr_bytes < (size_t)layout->nr_bytes))
		return take_damaged(source);
	record->time_ns = stamp(translator, layout->time >= 0, layout->time >= 0 ? u64_at(source, (size_t)layout->time) : 0);
	record->cpu = layout->cpu >= 0 ? u32_at(source, (size_t)layout->cpu) : 0;
	out = begin(source, OP_PERF_RING, PERF_RECORD_SAMPLE, misc_of(source), OP_SAMPLE_RECORD_BYTES / sizeof(*out));
	out[0] = (uint64_t)record->event + 1;
	out[1] = layout->ip >= 0 ? u64_at(source, (size_t)layout->ip) : 0;
	out[2] = layout->tid >= 0 ? pair_of(u32_at(source, (size_t)layout->tid), u32_at(source, (size_t)layout->tid + 4))
				  : pair_of(UNKNOWN_PID, UNKNOWN_PID);
	out[3] = record->time_ns;
	at = out + 4;
	if (op_unlikely(event->attr.sample_type & PERF_SAMPLE_READ))
		read_err = begin_reads(source, event);
	if (op_unlikely(op_perf_has_stack(event))) {
		err = put_stack(source, at);
		return err ? err : read_err;
	}
	if (op_unlikely(event->attr.sample_type & PERF_SAMPLE_CALLCHAIN))
		err = put_chain(source, &at);
	if (op_unlikely(has_registers(source)))
		raw_err = put_registers(source, at);
	return err ? err : raw_err ? raw_err : read_err;
}

static bool has_lost_count(const struct source *source)
{
	uint32_t event = source->record->event;

	return event != OP_PERF_NO_EVENT && source->translator->events->events[event].attr.read_format & OP_PERF_FORMAT_LOST;
}

static uint32_t event_of_id(const struct source *source, uint64_t id)
{
	const struct op_perf_events *events = source->translator->events;

	return events->nr_events == 1 ? 0 : op_perf_events_find(events, id);
}

static int take_lost(struct source *source)
{
	uint64_t *out;

	if (source->nr_bytes < 16)
		return -EBADMSG;
	source->record->event = event_of_id(source, u64_at(source, 0));
	out = begin(source, has_lost_count(source) ? OP_PERF_LOST_AGAIN : OP_PERF_RING, PERF_RECORD_LOST, 0, WORDS_OF_HEADER + 2);
	out[0] = (uint64_t)source->record->event + 1;
	out[1] = u64_at(source, 8);
	return 0;
}

/* LOST_SAMPLES of the kernel have a time; those of perf do not. */
static bool is_of_perf(const struct source *source)
{
	int16_t time = source->layout->end_time;

	return has_lost_count(source) && (time <= 0 || !op_perf_u64(source->end - time, source->swapped));
}

static int take_lost_samples(struct source *source)
{
	uint64_t *out;

	if (source->nr_bytes < 8)
		return -EBADMSG;
	if (source->header->misc & MISC_LOST_TO_FILTER)
		return 0;
	source->record->is_sum = is_of_perf(source);
	out = begin(source, OP_PERF_RING, PERF_RECORD_LOST_SAMPLES, 0, WORDS_OF_HEADER + 1 + WHO_WORDS);
	out[0] = u64_at(source, 0);
	put_who(source, out + 1);
	return 0;
}

static int take_throttle(struct source *source)
{
	uint64_t *out;

	if (source->nr_bytes < 24)
		return -EBADMSG;
	source->record->event = event_of_id(source, u64_at(source, 8));
	if (source->record->event == OP_PERF_NO_EVENT)
		return 0;
	out = begin(source, OP_PERF_RING, source->header->type, 0, WORDS_OF_HEADER + 3);
	out[0] = u64_at(source, 0);
	out[1] = (uint64_t)source->record->event + 1;
	out[2] = 0;
	return 0;
}

/* ---- records for the side band ---- */

/* The name at the end of a body. NULL: it has no end, or is longer than a path. */
static const char *name_at(const struct source *source, size_t offset, size_t *ret_words)
{
	const char *name = (const char *)source->body + offset;
	size_t length;

	if (source->nr_bytes <= offset)
		return NULL;
	length = strnlen(name, source->nr_bytes - offset);
	if (length == source->nr_bytes - offset || length >= OP_PERF_NAME_BYTES_MAX)
		return NULL;
	*ret_words = length / sizeof(uint64_t) + 1;
	return name;
}

static void put_name(uint64_t *at, const char *name, size_t nr_words)
{
	at[nr_words - 1] = 0;
	memcpy(at, name, strlen(name) + 1);
}

/*
 * The flag alone is no proof: while another profiler on the host uses build-ids, the kernel (seen
 * with 6.18) leaves the flag set in records for others.
 */
static bool has_build_id(const struct source *source)
{
	return source->header->type == PERF_RECORD_MMAP2 && source->header->misc & PERF_RECORD_MISC_MMAP_BUILD_ID &&
	       source->translator->events->has_build_ids;
}

/* Writes the second part of an MMAP2: the build-id, or device and inode. True: it is a build-id. */
static bool put_identity(const struct source *source, const char *name, uint64_t *out)
{
	const struct op_build_id *known = op_perf_build_id_of(source->translator->features, name);
	uint8_t *id = (uint8_t *)out;

	if (has_build_id(source)) {
		memcpy(id, source->body + MMAP2_ID, MMAP2_NAME - MMAP2_ID - 8);
		return true;
	}
	memset(id, 0, MMAP2_NAME - MMAP2_ID - 8);
	if (known) {
		id[0] = known->nr_bytes;
		memcpy(id + MMAP2_ID_BYTES, known->bytes, known->nr_bytes);
	} else if (source->header->type == PERF_RECORD_MMAP2) {
		out[0] = pair_of(u32_at(source, MMAP2_ID), u32_at(source, MMAP2_ID + 4));
		out[1] = u64_at(source, MMAP2_ID + 8);
		out[2] = u64_at(source, MMAP2_ID + 16);
	}
	return known;
}

static bool is_of_kernel(const struct perf_event_header *header)
{
	return (header->misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL;
}

static bool is_of_guest(const struct perf_event_header *header)
{
	uint32_t mode = header->misc & PERF_RECORD_MISC_CPUMODE_MASK;

	return mode == PERF_RECORD_MISC_GUEST_KERNEL || mode == PERF_RECORD_MISC_GUEST_USER;
}

/*
 * Where the name of the file is. prot, which is there otherwise, has only its lowest and its
 * highest bits.
 */
static size_t mmap_name_offset(const struct source *source)
{
	if (source->header->type != PERF_RECORD_MMAP2)
		return MMAP_NAME;
	return source->nr_bytes > MMAP2_OLD_NAME && source->body[MMAP2_OLD_NAME] >= ' ' ? MMAP2_OLD_NAME : MMAP2_NAME;
}

static int take_mmap(struct source *source)
{
	size_t name_offset = mmap_name_offset(source), nr_words;
	const char *name = name_at(source, name_offset, &nr_words);
	uint16_t misc = source->header->misc & (PERF_RECORD_MISC_CPUMODE_MASK | PERF_RECORD_MISC_MMAP_DATA);
	uint64_t *out;

	if (!name)
		return -EBADMSG;
	if (is_of_guest(source->header))
		return 0;
	out = begin(source, is_of_kernel(source->header) ? OP_PERF_KERNEL : OP_PERF_SIDEBAND, PERF_RECORD_MMAP2, misc,
		    WORDS_OF_HEADER + MMAP2_NAME / sizeof(*out) + nr_words + WHO_WORDS);
	out[0] = pair_of(u32_at(source, 0), u32_at(source, 4));
	for (size_t i = 1; i < 4; i++)
		out[i] = u64_at(source, i * sizeof(*out));
	if (put_identity(source, name, out + 4))
		begin(source, source->record->kind, PERF_RECORD_MMAP2, misc | PERF_RECORD_MISC_MMAP_BUILD_ID,
		      source->record->header->size / sizeof(*out));
	out[7] = name_offset == MMAP2_NAME ? pair_of(u32_at(source, MMAP2_NAME - 8), u32_at(source, MMAP2_NAME - 4)) : 0;
	put_name(out + 8, name, nr_words);
	put_who(source, out + 8 + nr_words);
	return 0;
}

static int take_task(struct source *source)
{
	struct op_perf_record *record = source->record;
	uint64_t *out;

	if (source->nr_bytes < TASK_TIME + 8)
		return -EBADMSG;
	if (source->header->type == PERF_RECORD_FORK && (source->header->misc & MISC_MADE_UP_FORK || !u64_at(source, TASK_TIME)))
		return 0;
	record->time_ns = stamp(source->translator, true, u64_at(source, TASK_TIME));
	out = begin(source, OP_PERF_SIDEBAND, source->header->type, 0, WORDS_OF_HEADER + 3 + WHO_WORDS);
	out[0] = pair_of(u32_at(source, 0), u32_at(source, 4));
	out[1] = pair_of(u32_at(source, 8), u32_at(source, 12));
	out[2] = record->time_ns;
	put_who(source, out + 3);
	return 0;
}

/*
 * A name without the mark of an exec is that of prctl(2) where execs are marked. It may come from
 * an exec where they are not, and where perf found it in /proc: such a record has no time.
 */
static bool is_rename(const struct source *source)
{
	return source->translator->events->has_comm_exec && source->layout->end_time > 0 && source->record->time_ns > 1;
}

static int take_comm(struct source *source)
{
	size_t nr_words;
	const char *name = name_at(source, 8, &nr_words);
	uint16_t misc = source->header->misc & PERF_RECORD_MISC_COMM_EXEC;
	uint64_t *out;

	if (!name)
		return -EBADMSG;
	if (!misc && u32_at(source, 0) != u32_at(source, 4))
		return 0; /* of a thread */
	if (!misc && is_rename(source))
		misc = OP_RECORD_MISC_RENAME;
	out = begin(source, OP_PERF_SIDEBAND, PERF_RECORD_COMM, misc, WORDS_OF_HEADER + 1 + nr_words + WHO_WORDS);
	out[0] = pair_of(u32_at(source, 0), u32_at(source, 4));
	put_name(out + 1, name, nr_words);
	put_who(source, out + 1 + nr_words);
	return 0;
}

static int take_ksymbol(struct source *source)
{
	size_t nr_words;
	const char *name = name_at(source, KSYMBOL_NAME, &nr_words);
	uint16_t words[2];
	uint64_t *out;

	if (!name)
		return -EBADMSG;
	words[0] = op_perf_u16(source->body + 12, source->swapped);
	words[1] = op_perf_u16(source->body + 14, source->swapped);
	out = begin(source, OP_PERF_SIDEBAND, PERF_RECORD_KSYMBOL, 0, WORDS_OF_HEADER + 2 + nr_words + WHO_WORDS);
	out[0] = u64_at(source, 0);
	out[1] = pair_of(u32_at(source, 8), 0);
	memcpy((uint8_t *)&out[1] + 4, words, sizeof(words));
	put_name(out + 2, name, nr_words);
	put_who(source, out + 2 + nr_words);
	return 0;
}

static const handler handlers[] = {
	[PERF_RECORD_MMAP] = take_mmap,
	[PERF_RECORD_LOST] = take_lost,
	[PERF_RECORD_COMM] = take_comm,
	[PERF_RECORD_EXIT] = take_task,
	[PERF_RECORD_THROTTLE] = take_throttle,
	[PERF_RECORD_UNTHROTTLE] = take_throttle,
	[PERF_RECORD_FORK] = take_task,
	[PERF_RECORD_MMAP2] = take_mmap,
	[PERF_RECORD_LOST_SAMPLES] = take_lost_samples,
	[PERF_RECORD_KSYMBOL] = take_ksymbol,
};

/*
 * The kernel writes too large a size in KSYMBOL (trailer_at in record.c): the record ends behind
 * the name and sample_id.
 */
static size_t written_bytes(const struct source *source)
{
	size_t id_bytes = (size_t)source->translator->events->events[0].layout.end_bytes, nr_bytes = source->nr_bytes;

	if (source->header->type != PERF_RECORD_KSYMBOL || nr_bytes < KSYMBOL_NAME + id_bytes)
		return nr_bytes;
	nr_bytes = KSYMBOL_NAME + strnlen((const char *)source->body + KSYMBOL_NAME, nr_bytes - KSYMBOL_NAME - id_bytes) + 1;
	nr_bytes = (nr_bytes + sizeof(uint64_t) - 1) / sizeof(uint64_t) * sizeof(uint64_t) + id_bytes;
	return nr_bytes < source->nr_bytes ? nr_bytes : source->nr_bytes;
}

/* Takes event, time and CPU from sample_id, which ends every record except a sample. */
static int take_with_id(struct source *source, handler handle)
{
	const struct op_perf_events *events = source->translator->events;
	struct op_perf_record *record = source->record;

	source->nr_bytes = written_bytes(source);
	record->event = op_perf_events_of_record(events, source->body, source->nr_bytes, source->swapped);
	source->layout = &events->events[record->event == OP_PERF_NO_EVENT ? 0 : record->event].layout;
	if (source->nr_bytes < (size_t)source->layout->end_bytes)
		return -EBADMSG;
	source->end = source->body + source->nr_bytes;
	source->nr_bytes -= (size_t)source->layout->end_bytes;
	record->time_ns =
		stamp(source->translator, source->layout->end_time > 0,
		      source->layout->end_time > 0 ? op_perf_u64(source->end - source->layout->end_time, source->swapped) : 0);
	if (source->layout->end_cpu > 0)
		record->cpu = op_perf_u32(source->end - source->layout->end_cpu, source->swapped);
	return handle(source);
}

int op_perf_translate(struct op_perf_translator *translator, const struct perf_event_header *header, const uint8_t *body,
		      struct op_perf_record *ret_record)
{
	static const struct op_perf_record none = { .kind = OP_PERF_PASSED_OVER, .event = OP_PERF_NO_EVENT };
	struct source source = {
		.translator = translator,
		.header = header,
		.body = body,
		.nr_bytes = header->size - sizeof(*header),
		.swapped = translator->swapped,
		.record = ret_record,
	};
	handler handle = header->type < op_array_size(handlers) ? handlers[header->type] : NULL;
	int err = 0;

	*ret_record = none;
	translator->reads.nr_left = 0;
	if (op_likely(header->type == PERF_RECORD_SAMPLE))
		err = translator->events->nr_events ? take_sample(&source) : -EBADMSG;
	else if (handle && translator->events->nr_events)
		err = take_with_id(&source, handle);
	if (op_unlikely(err) && header->type != PERF_RECORD_SAMPLE)
		*ret_record = none;
	return err;
}
