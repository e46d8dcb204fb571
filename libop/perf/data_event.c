/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/perf/data_event.h"

#include <errno.h>

#include "libop/base/grow.h"
#include "libop/perf/data_input.h"

#define FLAGS_OFFSET 40u /* of the bit fields behind read_format */
#define NAME_BYTES   256u

struct id {
	struct op_hlink link;
	uint64_t id;
	uint32_t event;
};

/* ---- attributes ---- */

/* The numbers of an attribute, without its flags. */
static const struct {
	uint8_t offset, nr_bytes;
} fields[] = {
#define FIELD(name)                                                                                                                \
	{                                                                                                                          \
		offsetof(struct perf_event_attr, name), sizeof(((struct perf_event_attr *)NULL)->name)                             \
	}
	FIELD(type),
	FIELD(size),
	FIELD(config),
	FIELD(sample_period),
	FIELD(sample_type),
	FIELD(read_format),
	FIELD(wakeup_events),
	FIELD(bp_type),
	FIELD(config1),
	FIELD(config2),
	FIELD(branch_sample_type),
	FIELD(sample_regs_user),
	FIELD(sample_stack_user),
	FIELD(clockid),
	FIELD(sample_regs_intr),
	FIELD(aux_watermark),
	FIELD(sample_max_stack),
	FIELD(aux_sample_size),
#undef FIELD
};

static_assert(offsetof(struct perf_event_attr, read_format) + 8 == FLAGS_OFFSET, "flags follow read_format");

static void swap_field(uint8_t *bytes, size_t nr_bytes)
{
	for (size_t i = 0; i < nr_bytes / 2; i++) {
		uint8_t byte = bytes[i];

		bytes[i] = bytes[nr_bytes - 1 - i];
		bytes[nr_bytes - 1 - i] = byte;
	}
}

/* A machine of the other byte order allocates bit fields from the other end of each byte. */
static uint8_t mirror(uint8_t byte)
{
	uint8_t mirrored = 0;

	for (unsigned int i = 0; i < 8; i++)
		mirrored = (uint8_t)(mirrored << 1 | (byte >> i & 1));
	return mirrored;
}

static void swap_attr(struct perf_event_attr *attr)
{
	uint8_t *bytes = (uint8_t *)attr;

	for (size_t i = 0; i < op_array_size(fields); i++)
		swap_field(bytes + fields[i].offset, fields[i].nr_bytes);
	for (size_t i = 0; i < sizeof(uint64_t); i++)
		bytes[FLAGS_OFFSET + i] = mirror(bytes[FLAGS_OFFSET + i]);
}

int op_perf_attr_read(const uint8_t *bytes, size_t nr_bytes, bool swapped, struct perf_event_attr *ret_attr, size_t *ret_bytes)
{
	struct perf_event_attr attr = { 0 };
	size_t size;

	if (nr_bytes < PERF_ATTR_SIZE_VER0)
		return -EBADMSG;
	size = op_perf_u32(bytes + offsetof(struct perf_event_attr, size), swapped);
	if (!size)
		size = PERF_ATTR_SIZE_VER0;
	if (size < PERF_ATTR_SIZE_VER0 || size > nr_bytes || size % 8)
		return -EBADMSG;
	memcpy(&attr, bytes, op_min_u64(size, sizeof(attr)));
	if (swapped)
		swap_attr(&attr);
	*ret_attr = attr;
	if (ret_bytes)
		*ret_bytes = size;
	return 0;
}

/* ---- layouts ---- */

#define MEMBER(bit, name)                                                                                                          \
	{                                                                                                                          \
		bit, offsetof(struct op_perf_layout, name)                                                                         \
	}
#define NO_MEMBER(bit)                                                                                                             \
	{                                                                                                                          \
		bit, -1                                                                                                            \
	}

struct field {
	uint64_t bit;
	int offset; /* of the member of struct op_perf_layout for this field; -1: none */
};

/*
 * The fields of fixed size, a word each, in the order of the record. The others stand behind them.
 */
static const struct field sample_fields[] = {
	MEMBER(PERF_SAMPLE_IDENTIFIER, identifier),
	MEMBER(PERF_SAMPLE_IP, ip),
	MEMBER(PERF_SAMPLE_TID, tid),
	MEMBER(PERF_SAMPLE_TIME, time),
	NO_MEMBER(PERF_SAMPLE_ADDR),
	MEMBER(PERF_SAMPLE_ID, id),
	NO_MEMBER(PERF_SAMPLE_STREAM_ID),
	MEMBER(PERF_SAMPLE_CPU, cpu),
	NO_MEMBER(PERF_SAMPLE_PERIOD),
};

/* sample_id, from its end. */
static const struct field end_fields[] = {
	MEMBER(PERF_SAMPLE_IDENTIFIER, end_id), MEMBER(PERF_SAMPLE_CPU, end_cpu),   NO_MEMBER(PERF_SAMPLE_STREAM_ID),
	MEMBER(PERF_SAMPLE_ID, end_id),         MEMBER(PERF_SAMPLE_TIME, end_time), MEMBER(PERF_SAMPLE_TID, end_tid),
};

static void set_member(struct op_perf_layout *layout, int offset, int16_t value)
{
	int16_t *member = (int16_t *)(void *)((char *)layout + offset);

	if (offset >= 0 && *member < 0)
		*member = value;
}

static void make_layout(const struct perf_event_attr *attr, struct op_perf_layout *ret_layout)
{
	struct op_perf_layout layout = { -1, -1, -1, -1, -1, -1, 0, -1, -1, -1, -1, 0 };

	for (size_t i = 0; i < op_array_size(sample_fields); i++) {
		if (!(attr->sample_type & sample_fields[i].bit))
			continue;
		set_member(&layout, sample_fields[i].offset, layout.nr_bytes);
		layout.nr_bytes += 8;
	}
	for (size_t i = 0; attr->sample_id_all && i < op_array_size(end_fields); i++) {
		if (!(attr->sample_type & end_fields[i].bit))
			continue;
		layout.end_bytes += 8;
		set_member(&layout, end_fields[i].offset, layout.end_bytes);
	}
	if (layout.identifier >= 0)
		layout.id = layout.identifier;
	*ret_layout = layout;
}

/* ---- the table ---- */

int op_perf_events_add(struct op_perf_events *events, const struct perf_event_attr *attr, uint32_t *ret_event)
{
	if (events->nr_events >= OP_PERF_EVENTS_MAX)
		return -E2BIG;
	if (!op_grow(&events->events, &events->capacity, events->nr_events + 1))
		return -ENOMEM;
	events->events[events->nr_events] = (struct op_perf_event){ .attr = *attr };
	make_layout(attr, &events->events[events->nr_events].layout);
	events->has_build_ids |= attr->build_id;
	events->has_comm_exec |= attr->comm_exec;
	*ret_event = (uint32_t)events->nr_events++;
	return 0;
}

static struct id *find_id(const struct op_perf_events *events, uint64_t id)
{
	for (struct op_hlink *link = op_htable_first(&events->ids, op_hash_u64(id)); link; link = op_htable_next(link)) {
		struct id *known = op_container_of(link, struct id, link);

		if (known->id == id)
			return known;
	}
	return NULL;
}

int op_perf_events_add_id(struct op_perf_events *events, uint64_t id, uint32_t event)
{
	size_t slot = id % OP_PERF_FEW_IDS;
	struct id *known;

	if (find_id(events, id))
		return 0;
	if (events->nr_ids >= OP_PERF_IDS_MAX)
		return -E2BIG;
	known = malloc(sizeof(*known));
	if (!known)
		return -ENOMEM;
	known->id = id;
	known->event = event;
	if (op_htable_insert(&events->ids, &known->link, op_hash_u64(id)) < 0) {
		free(known);
		return -ENOMEM;
	}
	events->nr_ids++;
	if (!events->few_ids[slot].is_known) {
		events->few_ids[slot].id = id;
		events->few_ids[slot].event = event;
		events->few_ids[slot].is_known = true;
	}
	return 0;
}

/* The value of a counter that a sample read last. */
struct read {
	struct op_hlink link;
	uint64_t id, value;
	uint32_t tid;
};

static struct read *find_read(const struct op_perf_events *events, uint64_t hash, uint64_t id, uint32_t tid)
{
	for (struct op_hlink *link = op_htable_first(&events->reads, hash); link; link = op_htable_next(link)) {
		struct read *read = op_container_of(link, struct read, link);

		if (read->id == id && read->tid == tid)
			return read;
	}
	return NULL;
}

int op_perf_events_read(struct op_perf_events *events, uint64_t id, uint32_t tid, uint64_t value, uint64_t *ret_amount)
{
	uint64_t hash = op_hash_u64(id ^ (uint64_t)tid << 32);
	struct read *read = find_read(events, hash, id, tid);

	if (!read) {
		if (events->reads.nr_entries >= OP_PERF_READS_MAX)
			return -E2BIG;
		read = calloc(1, sizeof(*read));
		if (!read)
			return -ENOMEM;
		read->id = id;
		read->tid = tid;
		if (op_htable_insert(&events->reads, &read->link, hash) < 0) {
			free(read);
			return -ENOMEM;
		}
	}
	*ret_amount = value > read->value ? value - read->value : 0;
	read->value = value;
	return 0;
}

int op_perf_events_name(struct op_perf_events *events, uint32_t event, const char *name, size_t nr_bytes)
{
	if (event >= events->nr_events || events->events[event].name || !strnlen(name, nr_bytes))
		return 0;
	events->events[event].name = strndup(name, op_min_u64(nr_bytes, NAME_BYTES));
	return events->events[event].name ? 0 : -ENOMEM;
}

uint32_t op_perf_events_find(const struct op_perf_events *events, uint64_t id)
{
	size_t slot = id % OP_PERF_FEW_IDS;
	const struct id *known;

	if (op_likely(events->few_ids[slot].is_known && events->few_ids[slot].id == id))
		return events->few_ids[slot].event;
	known = find_id(events, id);
	return known ? known->event : OP_PERF_NO_EVENT;
}

/* Records that perf made up have the identifier 0. */
static uint32_t event_of(const struct op_perf_events *events, int16_t offset, const uint8_t *body, bool swapped)
{
	uint64_t id = offset < 0 ? 0 : op_perf_u64(body + offset, swapped);

	if (!id || events->nr_events == 1)
		return events->nr_events ? 0 : OP_PERF_NO_EVENT;
	return op_perf_events_find(events, id);
}

uint32_t op_perf_events_of_sample(const struct op_perf_events *events, const uint8_t *body, size_t nr_bytes, bool swapped)
{
	int16_t offset = events->nr_events ? events->events[0].layout.id : -1;

	return offset >= 0 && (size_t)offset + 8 > nr_bytes ? OP_PERF_NO_EVENT : event_of(events, offset, body, swapped);
}

uint32_t op_perf_events_of_record(const struct op_perf_events *events, const uint8_t *body, size_t nr_bytes, bool swapped)
{
	int16_t offset = events->nr_events ? events->events[0].layout.end_id : -1;

	if (offset >= 0 && (size_t)offset > nr_bytes)
		return OP_PERF_NO_EVENT;
	return event_of(events, offset < 0 ? offset : (int16_t)0, body + (offset < 0 ? 0 : nr_bytes - (size_t)offset), swapped);
}

bool op_perf_has_stack(const struct op_perf_event *event)
{
	const struct perf_event_attr *attr = &event->attr;
	bool may_be_ibs = attr->type == PERF_TYPE_HARDWARE || attr->type == PERF_TYPE_RAW || attr->type >= PERF_TYPE_MAX;

	if (!(attr->sample_type & (PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_STACK_USER)))
		return false;
	return !(attr->sample_type & PERF_SAMPLE_RAW) || !may_be_ibs;
}

bool op_perf_events_are_told_apart(const struct op_perf_events *events)
{
	for (size_t i = 1; i < events->nr_events; i++) {
		const struct op_perf_layout *first = &events->events[0].layout, *layout = &events->events[i].layout;

		if (layout->id < 0 || layout->id != first->id || layout->end_id != first->end_id)
			return false;
	}
	return true;
}

static void free_id(struct op_hlink *link, void *arg OP_UNUSED)
{
	free(op_container_of(link, struct id, link));
}

static void free_read(struct op_hlink *link, void *arg OP_UNUSED)
{
	free(op_container_of(link, struct read, link));
}

void op_perf_events_free(struct op_perf_events *events)
{
	op_htable_visit(&events->ids, free_id, NULL);
	op_htable_free(&events->ids);
	op_htable_visit(&events->reads, free_read, NULL);
	op_htable_free(&events->reads);
	for (size_t i = 0; i < events->nr_events; i++)
		free(events->events[i].name);
	free(events->events);
	*events = (struct op_perf_events){ 0 };
}
