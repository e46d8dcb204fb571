/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/perf/data_raw.h"

#include <errno.h>

#include "libop/perf/data_input.h"

#define WORD sizeof(uint64_t)

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
