/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/opimport/backlog.h"

#include <errno.h>

#define FIRST_INDEX 1024u

/* A record for a ring; it stands behind this. */
struct waiting {
	uint64_t time_ns;
	uint32_t cpu;
	uint32_t nr_bytes; /* of the record */
};

static_assert(sizeof(struct waiting) % 8 == 0, "records are aligned");

struct opi_backlog_index {
	uint64_t time_ns;
	size_t at; /* those of one time are in the order of the file */
};

void opi_backlog_init(struct opi_backlog *held, int dir_fd, size_t memory_bytes)
{
	*held = (struct opi_backlog){ .is_sorted = true };
	opi_spill_init(&held->ring, dir_fd, memory_bytes);
	opi_spill_init(&held->sideband, dir_fd, memory_bytes);
}

int opi_backlog_add(struct opi_backlog *held, const struct op_perf_record *record)
{
	struct opi_spill *ring = &held->ring;
	size_t nr_bytes = record->header->size;
	int err = opi_spill_reserve(ring, sizeof(struct waiting) + nr_bytes);
	struct waiting *waiting;

	if (err)
		return err;
	waiting = (void *)(ring->bytes + ring->length);
	*waiting = (struct waiting){ .time_ns = record->time_ns, .cpu = record->cpu, .nr_bytes = (uint32_t)nr_bytes };
	memcpy(waiting + 1, record->header, nr_bytes);
	ring->length += sizeof(*waiting) + nr_bytes;
	held->nr_ring++;
	return 0;
}

static int add_index(struct opi_backlog *held, uint64_t time_ns, size_t at)
{
	if (held->nr_index == held->max_index) {
		size_t max = held->max_index ? 2 * held->max_index : FIRST_INDEX;
		struct opi_backlog_index *more = realloc(held->index, max * sizeof(*more));

		if (!more)
			return -ENOMEM;
		held->index = more;
		held->max_index = max;
	}
	held->index[held->nr_index++] = (struct opi_backlog_index){ .time_ns = time_ns, .at = at };
	held->is_sorted = false;
	return 0;
}

int opi_backlog_add_sideband(struct opi_backlog *held, const struct op_perf_record *record)
{
	struct opi_spill *sideband = &held->sideband;
	size_t nr_bytes = record->header->size;
	int err = opi_spill_reserve(sideband, nr_bytes);

	if (!err)
		err = add_index(held, record->time_ns, sideband->length);
	if (err)
		return err;
	memcpy(sideband->bytes + sideband->length, record->header, nr_bytes);
	sideband->length += nr_bytes;
	return 0;
}

static int compare(const void *left, const void *right)
{
	const struct opi_backlog_index *a = left, *b = right;

	if (a->time_ns != b->time_ns)
		return a->time_ns < b->time_ns ? -1 : 1;
	return (a->at > b->at) - (a->at < b->at);
}

static void sort(struct opi_backlog *held)
{
	if (!held->is_sorted)
		qsort(held->index + held->first, held->nr_index - held->first, sizeof(*held->index), compare);
	held->is_sorted = true;
}

static const struct perf_event_header *sideband_record(const struct opi_backlog *held, size_t index)
{
	return (const void *)(held->sideband.bytes + held->index[index].at);
}

uint64_t opi_backlog_slice(struct opi_backlog *held, uint64_t until_ns)
{
	size_t nr_bytes = 0;

	sort(held);
	for (size_t i = held->first; i < held->nr_index && held->index[i].time_ns <= until_ns; i++) {
		nr_bytes += sideband_record(held, i)->size;
		if (nr_bytes > held->sideband.memory_bytes)
			return held->index[i].time_ns;
	}
	return until_ns;
}

int opi_backlog_take_sideband(struct opi_backlog *held, uint64_t until_ns, opi_backlog_putter put, void *arg)
{
	int err = 0;

	sort(held);
	for (; !err && held->first < held->nr_index && held->index[held->first].time_ns <= until_ns; held->first++)
		err = put(arg, 0, sideband_record(held, held->first));
	return err;
}

/* What has to wait moves to the front. */
int opi_backlog_take(struct opi_backlog *held, uint64_t until_ns, opi_backlog_putter put, void *arg)
{
	uint8_t *bytes = held->ring.bytes;
	size_t nr_left = 0, left_bytes = 0;
	int err = 0;

	for (size_t at = 0; !err && at < held->ring.length;) {
		const struct waiting *waiting = (const void *)(bytes + at);
		size_t nr_bytes = sizeof(*waiting) + waiting->nr_bytes;

		if (waiting->time_ns <= until_ns) {
			err = put(arg, waiting->cpu, (const void *)(waiting + 1));
		} else {
			if (left_bytes != at)
				memmove(bytes + left_bytes, waiting, nr_bytes);
			left_bytes += nr_bytes;
			nr_left++;
		}
		at += nr_bytes;
	}
	held->nr_ring = nr_left;
	held->ring.length = left_bytes;
	return err;
}

static void start_again(struct opi_backlog *held)
{
	held->sideband.length = held->nr_index = held->first = 0;
	held->is_sorted = true;
}

int opi_backlog_settle(struct opi_backlog *held)
{
	struct opi_spill old = held->sideband;
	size_t nr_left = held->nr_index - held->first;
	int err = 0;

	if (!held->first)
		return 0;
	if (!nr_left) {
		start_again(held);
		return 0;
	}
	opi_spill_init(&held->sideband, old.dir_fd, old.memory_bytes);
	for (size_t i = 0; !err && i < nr_left; i++) {
		const struct opi_backlog_index *from = &held->index[held->first + i];
		const struct perf_event_header *record = (const void *)(old.bytes + from->at);

		err = opi_spill_reserve(&held->sideband, record->size);
		if (err)
			break;
		memcpy(held->sideband.bytes + held->sideband.length, record, record->size);
		held->index[i] = (struct opi_backlog_index){ .time_ns = from->time_ns, .at = held->sideband.length };
		held->sideband.length += record->size;
	}
	opi_spill_free(&old);
	held->nr_index = nr_left;
	held->first = 0;
	return err;
}

void opi_backlog_free(struct opi_backlog *held)
{
	opi_spill_free(&held->ring);
	opi_spill_free(&held->sideband);
	free(held->index);
	held->index = NULL;
}
