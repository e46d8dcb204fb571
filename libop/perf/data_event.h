/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The events of a perf.data file: their attributes in this host's byte order, their names and identifiers, and where in their
 * records the fields are that opd needs. Source: perf_event_open(2), <linux/perf_event.h>; a file may have an older or newer
 * attribute than this host's header: what is not there is 0, what is more is not looked at. One thread.
 */
#ifndef OP_PERF_EVENT_H
#define OP_PERF_EVENT_H

#include <linux/perf_event.h>

#include "libop/base/compiler.h"
#include "libop/base/htable.h"

#define OP_PERF_EVENTS_MAX 1024u
#define OP_PERF_IDS_MAX    (1u << 22)
#define OP_PERF_FEW_IDS    256u
#define OP_PERF_NO_EVENT   UINT32_MAX
#define OP_PERF_FORMAT_LOST (1u << 4) /* PERF_FORMAT_LOST, Linux 6.0 */

/* Where the fields of a sample are, bytes behind the header; and those of sample_id, bytes before the end. -1: not there. */
struct op_perf_layout {
	int16_t identifier, ip, tid, time, id, cpu;
	int16_t nr_bytes; /* of all fields of fixed size: a sample has at least as many */
	int16_t end_tid, end_time, end_id, end_cpu;
	int16_t end_bytes; /* 0: records other than samples have no sample_id */
};

struct op_perf_event {
	struct perf_event_attr attr;
	char *name; /* as the file has it; NULL: it has none */
	struct op_perf_layout layout;
	uint8_t recognised; /* its samples were found to be registers of IBS (data_shape.h): enum op_ibs_kind + 1; 0: they were not */
};

struct op_perf_events {
	struct op_perf_event *events;
	size_t nr_events, capacity;
	struct op_htable ids;
	struct {
		uint64_t id;
		uint32_t event;
		bool is_known;
	} few_ids[OP_PERF_FEW_IDS]; /* the same, those that come first, by their lowest bits */
	size_t nr_ids;
	bool has_build_ids; /* one of them asked for build-ids in MMAP2 */
};

/* A layout from sample_type and sample_id_all. */
void op_perf_layout_make(const struct perf_event_attr *attr, struct op_perf_layout *ret_layout) OP_NONNULL;

/*
 * The attribute at `bytes`, of which nr_bytes are there. 0 and, when not NULL, how many it takes; -EBADMSG: it says a size that
 * it cannot have.
 */
int op_perf_attr_read(const uint8_t *bytes, size_t nr_bytes, bool swapped, struct perf_event_attr *ret_attr, size_t *ret_bytes)
	OP_NONNULL_ARGS(1, 4) OP_MUST_CHECK;

/* Adds an event. 0; -E2BIG; -ENOMEM. */
int op_perf_events_add(struct op_perf_events *events, const struct perf_event_attr *attr,
		       uint32_t *ret_event) OP_NONNULL OP_MUST_CHECK;

/* An identifier of an event; one that is known keeps its event. 0; -E2BIG; -ENOMEM. */
int op_perf_events_add_id(struct op_perf_events *events, uint64_t id, uint32_t event) OP_NONNULL OP_MUST_CHECK;

/* Names an event, or OP_PERF_NO_EVENT, by at most nr_bytes. The first name stays. 0 or -ENOMEM. */
int op_perf_events_name(struct op_perf_events *events, uint32_t event, const char *name, size_t nr_bytes) OP_NONNULL OP_MUST_CHECK;

/* The event of an identifier, or OP_PERF_NO_EVENT. */
uint32_t op_perf_events_find(const struct op_perf_events *events, uint64_t id) OP_NONNULL;

/*
 * The event of a sample with nr_bytes behind its header, or of another record by its sample_id. The only one is meant by every
 * record; the first by one without identifier, as perf has it. OP_PERF_NO_EVENT: an identifier of no event.
 */
uint32_t op_perf_events_of_sample(const struct op_perf_events *events, const uint8_t *body, size_t nr_bytes,
				  bool swapped) OP_NONNULL;
uint32_t op_perf_events_of_record(const struct op_perf_events *events, const uint8_t *body, size_t nr_bytes,
				  bool swapped) OP_NONNULL;

/* True when samples have an identifier and the events agree on where it is, in other records as well; or there is one event only. */
bool op_perf_events_are_told_apart(const struct op_perf_events *events) OP_NONNULL;

void op_perf_events_free(struct op_perf_events *events) OP_NONNULL;

#endif
