/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/opimport/backlog.h"

#include <errno.h>

#include "libop/base/grow.h"

/* The header of a record for a ring; the record follows. */
struct waiting {
	uint64_t time_ns;
	uint32_t cpu;
	uint32_t nr_bytes; /* of the record */
};

static_assert(sizeof(struct waiting) % 8 == 0, "records are aligned");

struct opi_backlog_index {
	uint64_t time_ns;
	size_t at; /* in the bytes of the side band */
};

void opi_backlog_init(struct opi_backlog *backlog, int dir_fd, size_t memory_bytes)
{
	*backlog = (struct opi_backlog){ .is_sorted = true };
	opi_spill_init(&backlog->ring, dir_fd, memory_bytes);
	opi_spill_init(&backlog->sideband, dir_fd, memory_bytes);
}

int opi_backlog_add(struct opi_backlog *backlog, const struct op_perf_record *record)
{
	struct opi_spill *ring = &backlog->ring;
	size_t nr_bytes = record->header->size;
	int err = opi_spill_reserve(ring, sizeof(struct waiting) + nr_bytes);
	struct waiting *waiting;

	if (err)
		return err;
	waiting = (void *)(ring->bytes + ring->length);
	*waiting = (struct waiting){ .time_ns = record->time_ns, .cpu = record->cpu, .nr_bytes = (uint32_t)nr_bytes };
	memcpy(waiting + 1, record->header, nr_bytes);
	ring->length += sizeof(*waiting) + nr_bytes;
	backlog->nr_ring++;
	return 0;
}

static int add_index(struct opi_backlog *backlog, uint64_t time_ns, size_t at)
{
	if (!op_grow(&backlog->index, &backlog->max_index, backlog->nr_index + 1))
		return -ENOMEM;
	backlog->index[backlog->nr_index++] = (struct opi_backlog_index){ .time_ns = time_ns, .at = at };
	backlog->is_sorted = false;
	return 0;
}

int opi_backlog_add_sideband(struct opi_backlog *backlog, const struct op_perf_record *record)
{
	struct opi_spill *sideband = &backlog->sideband;
	size_t nr_bytes = record->header->size;
	int err = opi_spill_reserve(sideband, nr_bytes);

	if (!err)
		err = add_index(backlog, record->time_ns, sideband->length);
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

static void sort(struct opi_backlog *backlog)
{
	if (!backlog->is_sorted)
		qsort(backlog->index + backlog->first, backlog->nr_index - backlog->first, sizeof(*backlog->index), compare);
	backlog->is_sorted = true;
}

static const struct perf_event_header *sideband_record(const struct opi_backlog *backlog, size_t index)
{
	return (const void *)(backlog->sideband.bytes + backlog->index[index].at);
}

uint64_t opi_backlog_slice(struct opi_backlog *backlog, uint64_t until_ns)
{
	size_t nr_bytes = 0;

	sort(backlog);
	for (size_t i = backlog->first; i < backlog->nr_index && backlog->index[i].time_ns <= until_ns; i++) {
		nr_bytes += sideband_record(backlog, i)->size;
		if (nr_bytes > backlog->sideband.memory_bytes)
			return backlog->index[i].time_ns;
	}
	return until_ns;
}

int opi_backlog_take_sideband(struct opi_backlog *backlog, uint64_t until_ns, opi_backlog_putter put, void *arg)
{
	int err = 0;

	sort(backlog);
	for (; !err && backlog->first < backlog->nr_index && backlog->index[backlog->first].time_ns <= until_ns; backlog->first++)
		err = put(arg, 0, sideband_record(backlog, backlog->first));
	return err;
}

/* Records that still wait move to the front. */
int opi_backlog_take(struct opi_backlog *backlog, uint64_t until_ns, opi_backlog_putter put, void *arg)
{
	uint8_t *bytes = backlog->ring.bytes;
	size_t nr_left = 0, left_bytes = 0;
	int err = 0;

	for (size_t at = 0; !err && at < backlog->ring.length;) {
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
	backlog->nr_ring = nr_left;
	backlog->ring.length = left_bytes;
	return err;
}

int opi_backlog_compact(struct opi_backlog *backlog)
{
	struct opi_spill old = backlog->sideband;
	size_t nr_left = backlog->nr_index - backlog->first;
	int err = 0;

	if (!backlog->first)
		return 0;
	if (!nr_left) {
		backlog->sideband.length = backlog->nr_index = backlog->first = 0;
		backlog->is_sorted = true;
		return 0;
	}
	opi_spill_init(&backlog->sideband, old.dir_fd, old.memory_bytes);
	for (size_t i = 0; !err && i < nr_left; i++) {
		const struct opi_backlog_index *from = &backlog->index[backlog->first + i];
		const struct perf_event_header *record = (const void *)(old.bytes + from->at);

		err = opi_spill_reserve(&backlog->sideband, record->size);
		if (err)
			break;
		memcpy(backlog->sideband.bytes + backlog->sideband.length, record, record->size);
		backlog->index[i] = (struct opi_backlog_index){ .time_ns = from->time_ns, .at = backlog->sideband.length };
		backlog->sideband.length += record->size;
	}
	opi_spill_free(&old);
	backlog->nr_index = nr_left;
	backlog->first = 0;
	return err;
}

void opi_backlog_free(struct opi_backlog *backlog)
{
	opi_spill_free(&backlog->ring);
	opi_spill_free(&backlog->sideband);
	free(backlog->index);
	backlog->index = NULL;
}
