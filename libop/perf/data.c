/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/perf/data.h"

#include <ctype.h>
#include <errno.h>

#define HEADER_BYTES             sizeof(struct perf_event_header)
/* of one compressed record, when the file does not say */
#define DECOMPRESSED_MAX_BYTES   (64u * 1024 * 1024)
#define DECOMPRESSED_LIMIT_BYTES (1024u * 1024 * 1024) /* whatever the file says */
#define EVENT_UPDATE_NAME        2u
#define EVENT_UPDATE_NAME_OFFSET 16u
#define AUXTRACE_MIN_BYTES       8u
#define TURN_RECORDS             64u /* of one file of a directory before the next choice */

/* Records that perf writes: enum perf_user_event_type in tools/lib/perf/include/perf/event.h. */
enum {
	USER_FIRST = 64,
	USER_ATTR = 64,
	USER_TRACING_DATA = 66,
	USER_BUILD_ID = 67,
	USER_FINISHED_ROUND = 68,
	USER_AUXTRACE = 71,
	USER_EVENT_UPDATE = 78,
	USER_FEATURE = 80,
	USER_COMPRESSED = 81,
	USER_COMPRESSED2 = 83,
};

/* A record: its header in this host's byte order, and its bytes as the file has them. */
struct raw {
	struct perf_event_header header;
	const uint8_t *record;
	const uint8_t *body;
	size_t nr_bytes; /* of the body */
	bool was_compressed;
};

typedef int (*handler)(struct op_perf_data *data, const struct raw *raw, struct op_perf_record *record);

/*
 * Ends the current file: the start of the next record is not known. 0, or -EINTR when `err` is
 * that.
 */
static int give_up(struct op_perf_data *data, const char *what, int err)
{
	if (err == -EINTR)
		return err;
	op_perf_trouble_note(&data->trouble, data->part->name, data->part->record_offset, what, err);
	data->part->ended = true;
	return 0;
}

static inline void parse_header(struct op_perf_data *data, const uint8_t *record, bool was_compressed, struct raw *ret_raw)
{
	*ret_raw = (struct raw){
		.header = {
			.type = op_perf_u32(record, data->swapped),
			.misc = op_perf_u16(record + offsetof(struct perf_event_header, misc), data->swapped),
			.size = op_perf_u16(record + offsetof(struct perf_event_header, size), data->swapped),
		},
		.record = record,
		.body = record + HEADER_BYTES,
		.was_compressed = was_compressed,
	};
	ret_raw->nr_bytes = ret_raw->header.size < HEADER_BYTES ? 0 : ret_raw->header.size - HEADER_BYTES;
}

/* ---- records that perf writes ---- */

static int take_attr(struct op_perf_data *data, const struct raw *raw, struct op_perf_record *record OP_UNUSED)
{
	struct perf_event_attr attr;
	uint32_t event;
	size_t size;
	int err;

	if (!data->is_pipe)
		return 0;
	err = op_perf_attr_read(raw->body, raw->nr_bytes, data->swapped, &attr, &size);
	if (!err)
		err = op_perf_events_add(&data->events, &attr, &event);
	if (!err && !op_perf_events_are_told_apart(&data->events))
		return give_up(data, "the file has several events, but its samples do not say to which event they belong", 0);
	for (; !err && raw->nr_bytes - size >= sizeof(uint64_t); size += sizeof(uint64_t))
		err = op_perf_events_add_id(&data->events, op_perf_u64(raw->body + size, data->swapped), event);
	return err;
}

static int take_event_update(struct op_perf_data *data, const struct raw *raw, struct op_perf_record *record OP_UNUSED)
{
	const uint8_t *body = raw->body;

	if (raw->nr_bytes <= EVENT_UPDATE_NAME_OFFSET)
		return -EBADMSG;
	if (op_perf_u64(body, data->swapped) != EVENT_UPDATE_NAME)
		return 0;
	return op_perf_events_name(&data->events, op_perf_events_find(&data->events, op_perf_u64(body + 8, data->swapped)),
				   (const char *)body + EVENT_UPDATE_NAME_OFFSET, raw->nr_bytes - EVENT_UPDATE_NAME_OFFSET);
}

static int take_feature(struct op_perf_data *data, const struct raw *raw, struct op_perf_record *record OP_UNUSED)
{
	size_t id_bytes = sizeof(uint64_t);

	if (raw->nr_bytes < id_bytes)
		return -EBADMSG;
	return op_perf_feature_read(&data->features, &data->events, op_perf_u64(raw->body, data->swapped), raw->body + id_bytes,
				    raw->nr_bytes - id_bytes, data->swapped);
}

static int take_build_id(struct op_perf_data *data, const struct raw *raw, struct op_perf_record *record OP_UNUSED)
{
	return op_perf_build_id_read(&data->features, raw->record, raw->header.size, data->swapped);
}

/* A round in one of several files says nothing about the others. */
static int take_round(struct op_perf_data *data, const struct raw *raw OP_UNUSED, struct op_perf_record *record)
{
	if (data->parts.nr_parts == 1)
		record->kind = OP_PERF_ROUND;
	return 0;
}

/* Skips bytes behind a record that are not records. */
static int skip_trailing(struct op_perf_data *data, const struct raw *raw, uint64_t nr_bytes)
{
	int err = raw->was_compressed ? -EBADMSG : op_perf_input_skip(&data->part->input, nr_bytes);

	if (err == -EBADMSG)
		return give_up(data, "a compressed record contains a record that is followed by more data", 0);
	return err ? give_up(data, "the file ends inside the data after a record", err == -ENODATA ? 0 : err) : 0;
}

static int take_auxtrace(struct op_perf_data *data, const struct raw *raw, struct op_perf_record *record OP_UNUSED)
{
	uint64_t nr_bytes;

	if (raw->nr_bytes < AUXTRACE_MIN_BYTES)
		return give_up(data, "an AUX area trace does not say how long it is", 0);
	nr_bytes = op_perf_u64(raw->body, data->swapped);
	data->counts.nr_aux++;
	data->counts.aux_bytes += nr_bytes;
	return skip_trailing(data, raw, nr_bytes);
}

/* In a file, not a pipe, tracing data are a feature. */
static int take_tracing_data(struct op_perf_data *data, const struct raw *raw, struct op_perf_record *record OP_UNUSED)
{
	if (!data->is_pipe)
		return 0;
	if (raw->nr_bytes < sizeof(uint32_t))
		return give_up(data, "tracing data do not say how long they are", 0);
	return skip_trailing(data, raw, ((uint64_t)op_perf_u32(raw->body, data->swapped) + 7) / 8 * 8);
}

static int feed(struct op_perf_data *data, const struct raw *raw, const uint8_t *bytes, size_t nr_bytes)
{
	uint64_t max_bytes = data->features.compressed_from ? data->features.compressed_from : DECOMPRESSED_MAX_BYTES;

	if (raw->was_compressed)
		return give_up(data, "a compressed record is within another", 0);
	data->counts.nr_compressed++;
	memcpy(data->part->compressed, bytes, nr_bytes);
	return op_perf_zstd_feed(&data->part->zstd, data->part->compressed, nr_bytes,
				 op_min_u64(max_bytes, DECOMPRESSED_LIMIT_BYTES));
}

static int take_compressed(struct op_perf_data *data, const struct raw *raw, struct op_perf_record *record OP_UNUSED)
{
	return feed(data, raw, raw->body, raw->nr_bytes);
}

/* This kind has a length of its own, because the record is padded to a multiple of 8. */
static int take_compressed2(struct op_perf_data *data, const struct raw *raw, struct op_perf_record *record OP_UNUSED)
{
	uint64_t nr_bytes = raw->nr_bytes < sizeof(nr_bytes) ? UINT64_MAX : op_perf_u64(raw->body, data->swapped);

	if (nr_bytes > raw->nr_bytes - op_min_u64(raw->nr_bytes, sizeof(nr_bytes)))
		return give_up(data, "a compressed record is shorter than its content", 0);
	return feed(data, raw, raw->body + sizeof(nr_bytes), (size_t)nr_bytes);
}

static const handler user_handlers[] = {
	[USER_ATTR - USER_FIRST] = take_attr,
	[USER_TRACING_DATA - USER_FIRST] = take_tracing_data,
	[USER_BUILD_ID - USER_FIRST] = take_build_id,
	[USER_FINISHED_ROUND - USER_FIRST] = take_round,
	[USER_AUXTRACE - USER_FIRST] = take_auxtrace,
	[USER_EVENT_UPDATE - USER_FIRST] = take_event_update,
	[USER_FEATURE - USER_FIRST] = take_feature,
	[USER_COMPRESSED - USER_FIRST] = take_compressed,
	[USER_COMPRESSED2 - USER_FIRST] = take_compressed2,
};

/* ---- all records ---- */

static int take_user(struct op_perf_data *data, const struct raw *raw, struct op_perf_record *record)
{
	uint32_t index = raw->header.type - USER_FIRST;
	handler handle = index < op_array_size(user_handlers) ? user_handlers[index] : NULL;

	return handle ? handle(data, raw, record) : 0;
}

/* Builds the record in place: copying it would read fields that were just stored. */
static int take(struct op_perf_data *data, const struct raw *raw, struct op_perf_record *record)
{
	int err;

	data->counts.nr_records++;
	data->counts.nr_samples += raw->header.type == PERF_RECORD_SAMPLE;
	if (op_likely(raw->header.type < USER_FIRST)) {
		err = op_perf_translate(&data->translator, &raw->header, raw->body, record);
	} else {
		*record = (struct op_perf_record){ .kind = OP_PERF_PASSED_OVER, .event = OP_PERF_NO_EVENT };
		err = take_user(data, raw, record);
	}
	if (op_unlikely(err == -ENOMEM || err == -EINTR))
		return err;
	if (op_unlikely(err)) {
		data->counts.nr_bad++;
		op_perf_trouble_note(&data->trouble, data->part->name, data->part->record_offset, "a record has invalid content",
				     0);
	}
	data->counts.nr_passed_over += record->kind == OP_PERF_PASSED_OVER;
	data->part->newest_ns = op_max_u64(data->part->newest_ns, record->time_ns);
	return 1;
}

/* 1 and the next record of the compressed one; 0: there is no further whole one. */
static int next_compressed(struct op_perf_data *data, struct op_perf_record *ret_record)
{
	struct op_perf_zstd *zstd = &data->part->zstd;
	struct raw raw;
	int err = op_perf_zstd_more(zstd, HEADER_BYTES);

	if (err)
		return give_up(data, "a compressed record cannot be decompressed", 0);
	if (zstd->end - zstd->begin < HEADER_BYTES)
		return 0;
	parse_header(data, zstd->buffer + zstd->begin, true, &raw);
	if (raw.header.size < HEADER_BYTES)
		return give_up(data, "a record in a compressed one is shorter than its header", 0);
	if (op_perf_zstd_more(zstd, raw.header.size))
		return give_up(data, "a compressed record cannot be decompressed", 0);
	if (zstd->end - zstd->begin < raw.header.size)
		return 0;
	parse_header(data, zstd->buffer + zstd->begin, true, &raw);
	zstd->begin += raw.header.size;
	return take(data, &raw, ret_record);
}

/* The end of the current file, which may have come too early. */
static int end(struct op_perf_data *data, size_t nr_left)
{
	struct op_perf_part *part = data->part;
	bool is_cut = nr_left || (part->data_end && part->input.offset < part->data_end);

	if (is_cut)
		return give_up(data, "the file ends before its records do", 0);
	part->ended = true;
	if (part->zstd.end > part->zstd.begin)
		return give_up(data, "the last compressed record ends within a record", 0);
	if (!data->events.nr_events)
		return give_up(data, "it has no events", 0);
	if (data->unfinished && part == data->parts.parts[0])
		return give_up(data, "perf did not finish writing the file", 0);
	return 0;
}

/*
 * Text behind the last record of a pipe: what perf or the program printed went to the same file. A
 * record does not begin with text, because its type is a small number.
 */
static bool is_text(struct op_perf_input *input, size_t nr_left)
{
	const uint8_t *bytes = input->buffer + input->begin;

	if (nr_left >= HEADER_BYTES && !(bytes[0] && bytes[1] && bytes[2]))
		return false;
	op_perf_input_left(input, OP_PERF_INPUT_BYTES);
	for (size_t i = input->begin; i < input->end; i++)
		if (input->buffer[i] < ' ' && !isspace(input->buffer[i]))
			return false;
	return input->end > input->begin;
}

static int next_plain(struct op_perf_data *data, struct op_perf_record *ret_record)
{
	struct op_perf_part *part = data->part;
	ssize_t left = op_perf_input_left(&part->input, HEADER_BYTES);
	const uint8_t *record;
	struct raw raw;
	uint16_t size;
	int err;

	part->record_offset = part->input.offset;
	if (left < 0)
		return give_up(data, "it cannot be read", (int)left);
	if (op_unlikely(data->is_pipe && is_text(&part->input, (size_t)left))) {
		data->counts.text_bytes = part->input.end - part->input.begin;
		left = 0;
	}
	if ((size_t)left < HEADER_BYTES)
		return end(data, (size_t)left);
	size = op_perf_u16(part->input.buffer + part->input.begin + offsetof(struct perf_event_header, size), data->swapped);
	if (size < HEADER_BYTES)
		return give_up(data, "a record is shorter than its header", 0);
	err = op_perf_input_peek(&part->input, size, &record);
	if (err)
		return err == -ENODATA ? end(data, size) : give_up(data, "it cannot be read", err);
	parse_header(data, record, false, &raw);
	/* The peeked bytes stay valid until the next read. */
	part->input.begin += raw.header.size;
	part->input.offset += raw.header.size;
	return take(data, &raw, ret_record);
}

/* 1 and the next record of the current file; 0: none, or the file has ended. */
static int next_of_part(struct op_perf_data *data, struct op_perf_record *ret_record)
{
	const struct op_perf_part *part = data->part;

	if (part->zstd.end > part->zstd.begin || op_perf_zstd_is_busy(&part->zstd)) {
		int result = next_compressed(data, ret_record);

		if (result || part->ended)
			return result;
	}
	return next_plain(data, ret_record);
}

/* Chooses the file that is behind the others in time. False: all have ended. */
static bool choose_part(struct op_perf_data *data)
{
	struct op_perf_part *oldest = NULL;

	for (size_t i = 0; i < data->parts.nr_parts; i++) {
		struct op_perf_part *part = data->parts.parts[i];

		if (!part->ended && (!oldest || part->newest_ns < oldest->newest_ns))
			oldest = part;
	}
	if (!oldest)
		return false;
	data->part = oldest;
	data->nr_turn = TURN_RECORDS;
	return true;
}

/* The other events of the last sample's group. 1: there is one; 0; or -ENOMEM. */
static int next_read(struct op_perf_data *data, struct op_perf_record *ret_record)
{
	int result = op_perf_translate_reads(&data->translator, ret_record);

	if (result != -EBADMSG)
		return result;
	data->translator.reads.nr_left = 0;
	data->counts.nr_bad++;
	op_perf_trouble_note(&data->trouble, data->part->name, data->part->record_offset,
			     "there are too many counters and threads in groups", 0);
	return 0;
}

int op_perf_data_next(struct op_perf_data *data, struct op_perf_record *ret_record)
{
	int result = op_unlikely(data->translator.reads.nr_left) ? next_read(data, ret_record) : 0;

	while (!result) {
		if (op_unlikely(!data->nr_turn || data->part->ended) && !choose_part(data))
			return 0;
		data->nr_turn--;
		result = next_of_part(data, ret_record);
	}
	return result;
}

/* ---- the state of the reader ---- */

const struct op_perf_events *op_perf_data_events(const struct op_perf_data *data)
{
	return &data->events;
}

const struct op_perf_features *op_perf_data_features(const struct op_perf_data *data)
{
	return &data->features;
}

const struct op_perf_counts *op_perf_data_counts(const struct op_perf_data *data)
{
	return &data->counts;
}

const struct op_perf_trouble *op_perf_data_trouble(const struct op_perf_data *data)
{
	return &data->trouble;
}

void op_perf_data_progress(const struct op_perf_data *data, uint64_t *ret_offset, uint64_t *ret_end)
{
	uint64_t offset = 0, end = 0;

	for (size_t i = 0; i < data->parts.nr_parts; i++) {
		offset += data->parts.parts[i]->input.offset;
		end += data->parts.parts[i]->data_end;
	}
	*ret_offset = offset;
	*ret_end = end;
}

void op_perf_data_assume_ibs(struct op_perf_data *data, enum op_ibs_kind kind, uint32_t type)
{
	data->features.ibs_pmu_types[kind] = type;
}

bool op_perf_data_is_swapped(const struct op_perf_data *data)
{
	return data->swapped;
}

bool op_perf_data_is_pipe(const struct op_perf_data *data)
{
	return data->is_pipe;
}

size_t op_perf_data_nr_files(const struct op_perf_data *data)
{
	return data->parts.nr_parts;
}

void op_perf_data_close(struct op_perf_data *data)
{
	if (!data)
		return;
	op_perf_parts_close(&data->parts);
	op_perf_events_free(&data->events);
	op_perf_features_free(&data->features);
	free(data);
}
