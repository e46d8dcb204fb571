/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The events of a perf.data file: attributes in this host's byte order, names, identifiers, and the
 * positions of the fields in their records. Source: perf_event_open(2), <linux/perf_event.h>. A
 * file may have an older or newer attribute than this host: missing fields are 0, additional ones
 * are ignored. One thread.
 */
#ifndef OP_PERF_EVENT_H
#define OP_PERF_EVENT_H

#include <linux/perf_event.h>

#include "libop/base/compiler.h"
#include "libop/base/htable.h"

#define OP_PERF_EVENTS_MAX 1024u
#define OP_PERF_IDS_MAX    (1u << 22)
#define OP_PERF_FEW_IDS    256u
#define OP_PERF_READS_MAX  (1u << 20)
#define OP_PERF_NO_EVENT   UINT32_MAX
#define OP_PERF_FORMAT_LOST (1u << 4) /* PERF_FORMAT_LOST, Linux 6.0 */

/*
 * Positions of the fields: of a sample in bytes behind the header, of sample_id in bytes before the
 * end. -1: no such field.
 */
struct op_perf_layout {
	int16_t identifier, ip, tid, time, id, cpu;
	int16_t nr_bytes; /* of the fields of fixed size, the least that a sample has */
	int16_t end_tid, end_time, end_id, end_cpu;
	int16_t end_bytes; /* 0: records other than samples have no sample_id */
};

struct op_perf_event {
	struct perf_event_attr attr;
	char *name; /* as the file has it; NULL: it has none */
	struct op_perf_layout layout;
	/* IBS registers by the contents of samples (data_shape.h): enum op_ibs_kind + 1; 0: no */
	uint8_t recognised;
};

struct op_perf_events {
	struct op_perf_event *events;
	size_t nr_events, capacity;
	struct op_htable ids;
	struct {
		uint64_t id;
		uint32_t event;
		bool is_known;
	} few_ids[OP_PERF_FEW_IDS]; /* a fast path: the first identifiers by their lowest bits */
	size_t nr_ids;
	struct op_htable reads; /* the values that samples read last (op_perf_events_read) */
	bool has_build_ids; /* one event has attr.build_id: build-ids in MMAP2 */
	bool has_comm_exec; /* one event has attr.comm_exec: the COMM of an exec is marked */
};

/*
 * Reads the attribute at `bytes`. 0 and the size of the attribute in *ret_bytes, which may be NULL;
 * -EBADMSG: an impossible size.
 */
int op_perf_attr_read(const uint8_t *bytes, size_t nr_bytes, bool swapped, struct perf_event_attr *ret_attr, size_t *ret_bytes)
	OP_NONNULL_ARGS(1, 4) OP_MUST_CHECK;

/* Adds an event. 0; -E2BIG; -ENOMEM. */
int op_perf_events_add(struct op_perf_events *events, const struct perf_event_attr *attr,
		       uint32_t *ret_event) OP_NONNULL OP_MUST_CHECK;

/* Adds an identifier of an event; a known identifier keeps its event. 0; -E2BIG; -ENOMEM. */
int op_perf_events_add_id(struct op_perf_events *events, uint64_t id, uint32_t event) OP_NONNULL OP_MUST_CHECK;

/*
 * Names an event by at most nr_bytes; the first name stays, OP_PERF_NO_EVENT is ignored. 0 or
 * -ENOMEM.
 */
int op_perf_events_name(struct op_perf_events *events, uint32_t event, const char *name, size_t nr_bytes) OP_NONNULL OP_MUST_CHECK;

/* The event of an identifier, or OP_PERF_NO_EVENT. */
uint32_t op_perf_events_find(const struct op_perf_events *events, uint64_t id) OP_NONNULL;

/*
 * The event of a sample with nr_bytes behind its header, or of another record by its sample_id. As
 * in perf, a single event has all records, and the first event has the records without identifier.
 * OP_PERF_NO_EVENT: an unknown identifier.
 */
uint32_t op_perf_events_of_sample(const struct op_perf_events *events, const uint8_t *body, size_t nr_bytes,
				  bool swapped) OP_NONNULL;
uint32_t op_perf_events_of_record(const struct op_perf_events *events, const uint8_t *body, size_t nr_bytes,
				  bool swapped) OP_NONNULL;

/*
 * True for an event that takes no samples: it is counted by the values that samples of other events
 * of its group read.
 */
static inline bool op_perf_is_only_read(const struct op_perf_event *event)
{
	return !event->attr.sample_period; /* or sample_freq */
}

/*
 * A sample has read this value of a counter; tid is 0 when all threads share it. *ret_amount: how
 * much it has grown since the last one. 0; -E2BIG; -ENOMEM.
 */
int op_perf_events_read(struct op_perf_events *events, uint64_t id, uint32_t tid, uint64_t value,
			uint64_t *ret_amount) OP_NONNULL OP_MUST_CHECK;

/*
 * True when samples of the event have a stack: a copy of it, or a call chain. Samples whose raw
 * data may be registers of IBS have only callers.
 */
bool op_perf_has_stack(const struct op_perf_event *event) OP_NONNULL;

/*
 * True when there is one event, or all events have an identifier at the same position of samples
 * and of other records.
 */
bool op_perf_events_are_told_apart(const struct op_perf_events *events) OP_NONNULL;

void op_perf_events_free(struct op_perf_events *events) OP_NONNULL;

#endif
