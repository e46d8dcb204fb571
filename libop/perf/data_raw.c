/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/perf/data_raw.h"

#include <errno.h>

#include "libop/perf/data_input.h"
#include "libop/perf/stack_record.h"

#define WORD         sizeof(uint64_t)
#define BRANCH_WORDS 3u
#define HW_INDEX     (1u << 17) /* PERF_SAMPLE_BRANCH_HW_INDEX, Linux 5.7 */
#define COUNTERS     (1u << 19) /* PERF_SAMPLE_BRANCH_COUNTERS, Linux 6.8 */

/* A position in a sample. */
struct cursor {
	const uint8_t *body;
	size_t at, nr_bytes;
	bool swapped;
};

static bool skip_words(struct cursor *cursor, uint64_t nr_words)
{
	if (nr_words > (cursor->nr_bytes - cursor->at) / WORD)
		return false;
	cursor->at += (size_t)nr_words * WORD;
	return true;
}

static bool take_word(struct cursor *cursor, uint64_t *ret_word)
{
	const uint8_t *word = cursor->body + cursor->at;

	if (!skip_words(cursor, 1))
		return false;
	*ret_word = op_perf_u64(word, cursor->swapped);
	return true;
}

/* PERF_SAMPLE_READ: one count or those of a group, each with the fields of read_format. */
static bool skip_read(struct cursor *cursor, uint64_t read_format)
{
	uint64_t times = !!(read_format & PERF_FORMAT_TOTAL_TIME_ENABLED) + !!(read_format & PERF_FORMAT_TOTAL_TIME_RUNNING);
	uint64_t each = 1 + !!(read_format & PERF_FORMAT_ID) + !!(read_format & OP_PERF_FORMAT_LOST), nr = 1;

	if (read_format & PERF_FORMAT_GROUP && !take_word(cursor, &nr))
		return false;
	return skip_words(cursor, times) && nr <= cursor->nr_bytes && skip_words(cursor, nr * each);
}

int op_perf_group(const struct op_perf_event *event, const uint8_t *body, size_t nr_bytes, bool swapped,
		  struct op_perf_group *ret_group)
{
	struct cursor cursor = { body, (size_t)event->layout.nr_bytes, nr_bytes, swapped };
	uint64_t format = event->attr.read_format, each = 2 + !!(format & OP_PERF_FORMAT_LOST), nr;

	*ret_group = (struct op_perf_group){ .nr_words = (size_t)each };
	if (!(event->attr.sample_type & PERF_SAMPLE_READ) || !(format & PERF_FORMAT_GROUP) || !(format & PERF_FORMAT_ID))
		return 0;
	if (cursor.at > nr_bytes || !take_word(&cursor, &nr) ||
	    !skip_words(&cursor, !!(format & PERF_FORMAT_TOTAL_TIME_ENABLED) + !!(format & PERF_FORMAT_TOTAL_TIME_RUNNING)))
		return -EBADMSG;
	ret_group->words = body + cursor.at;
	if (nr > nr_bytes || !skip_words(&cursor, nr * each))
		return -EBADMSG;
	ret_group->nr_counters = (size_t)nr;
	return 0;
}

/*
 * Skips up to the end of the call chain; *ret_nr_words are its words, 0 for an event without one.
 */
static bool skip_to_raw(struct cursor *cursor, const struct op_perf_event *event, uint64_t *ret_nr_words)
{
	*ret_nr_words = 0;
	if (cursor->at > cursor->nr_bytes)
		return false;
	if (event->attr.sample_type & PERF_SAMPLE_READ && !skip_read(cursor, event->attr.read_format))
		return false;
	if (!(event->attr.sample_type & PERF_SAMPLE_CALLCHAIN))
		return true;
	return take_word(cursor, ret_nr_words) && skip_words(cursor, *ret_nr_words);
}

int op_perf_chain(const struct op_perf_event *event, const uint8_t *body, size_t nr_bytes, bool swapped, const uint8_t **ret_words,
		  size_t *ret_nr_words)
{
	struct cursor cursor = { body, (size_t)event->layout.nr_bytes, nr_bytes, swapped };
	uint64_t nr_words;

	if (!skip_to_raw(&cursor, event, &nr_words))
		return -EBADMSG;
	*ret_words = body + cursor.at - nr_words * WORD;
	*ret_nr_words = (size_t)nr_words;
	return 0;
}

int op_perf_raw(const struct op_perf_event *event, const uint8_t *body, size_t nr_bytes, bool swapped, const uint8_t **ret_raw,
		uint32_t *ret_raw_bytes)
{
	struct cursor cursor = { body, (size_t)event->layout.nr_bytes, nr_bytes, swapped };
	uint64_t nr_chain;
	uint32_t raw_bytes;

	if (!skip_to_raw(&cursor, event, &nr_chain))
		return -EBADMSG;
	if (nr_bytes - cursor.at < sizeof(raw_bytes))
		return -EBADMSG;
	raw_bytes = op_perf_u32(body + cursor.at, swapped);
	if (raw_bytes > nr_bytes - cursor.at - sizeof(raw_bytes))
		return -EBADMSG;
	*ret_raw = body + cursor.at + sizeof(raw_bytes);
	*ret_raw_bytes = raw_bytes;
	return 0;
}

/* ---- stacks ---- */

/* The length, in 32 bits, counts its own padding. */
static bool skip_raw(struct cursor *cursor)
{
	uint32_t raw_bytes;

	if (cursor->nr_bytes - cursor->at < sizeof(raw_bytes))
		return false;
	raw_bytes = op_perf_u32(cursor->body + cursor->at, cursor->swapped);
	return skip_words(cursor, (sizeof(raw_bytes) + (uint64_t)raw_bytes + WORD - 1) / WORD);
}

static bool skip_branches(struct cursor *cursor, uint64_t kind)
{
	uint64_t nr, words = BRANCH_WORDS + !!(kind & COUNTERS);

	if (!take_word(cursor, &nr))
		return false;
	return nr <= cursor->nr_bytes && skip_words(cursor, !!(kind & HW_INDEX) + nr * words);
}

static bool take_registers(struct cursor *cursor, uint64_t mask, struct op_perf_stack *stack)
{
	if (!take_word(cursor, &stack->abi))
		return false;
	stack->registers = stack->abi ? cursor->body + cursor->at : NULL;
	return !stack->abi || skip_words(cursor, (uint64_t)__builtin_popcountll(mask));
}

/* The kernel writes as many bytes as it was asked for, and then how many of them are the stack. */
static bool take_copy(struct cursor *cursor, struct op_perf_stack *stack)
{
	uint64_t nr_asked, nr_copied;

	if (!take_word(cursor, &nr_asked))
		return false;
	if (!nr_asked)
		return true;
	stack->copy = cursor->body + cursor->at;
	if (nr_asked % WORD || !skip_words(cursor, nr_asked / WORD) || !take_word(cursor, &nr_copied) || nr_copied > nr_asked)
		return false;
	stack->nr_copied = (size_t)nr_copied;
	return true;
}

/* A chain of the kernel alone is whole for its threads; others have left something out. */
static bool leaves_out_user(const struct perf_event_attr *attr)
{
	return attr->exclude_callchain_user && !attr->exclude_user && !(attr->sample_type & PERF_SAMPLE_REGS_USER);
}

int op_perf_stack(const struct op_perf_event *event, const uint8_t *body, size_t nr_bytes, bool swapped,
		  struct op_perf_stack *ret_stack)
{
	struct cursor cursor = { body, (size_t)event->layout.nr_bytes, nr_bytes, swapped };
	struct op_perf_stack stack = { .abi = leaves_out_user(&event->attr) ? OP_STACK_ABI_MISSING : 0 };
	const struct perf_event_attr *attr = &event->attr;
	uint64_t nr_chain;

	if (!skip_to_raw(&cursor, event, &nr_chain))
		return -EBADMSG;
	stack.chain = body + cursor.at - nr_chain * WORD;
	stack.nr_chain = (size_t)nr_chain;
	if ((attr->sample_type & PERF_SAMPLE_RAW && !skip_raw(&cursor)) ||
	    (attr->sample_type & PERF_SAMPLE_BRANCH_STACK && !skip_branches(&cursor, attr->branch_sample_type)) ||
	    (attr->sample_type & PERF_SAMPLE_REGS_USER && !take_registers(&cursor, attr->sample_regs_user, &stack)) ||
	    (attr->sample_type & PERF_SAMPLE_STACK_USER && !take_copy(&cursor, &stack)))
		return -EBADMSG;
	*ret_stack = stack;
	return 0;
}
