/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pipeline/stacks/queue.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "libop/base/sys.h"

#define ENTRIES_BYTES (OPD_STACK_QUEUE_ENTRIES * sizeof(struct opd_stack_waiting))
#ifndef MADV_DONTNEED_LOCKED
#define MADV_DONTNEED_LOCKED 24 /* Linux 5.18 */
#endif
#define ALL_BYTES     (OPD_STACK_QUEUE_BYTES + ENTRIES_BYTES)

static int make_room(struct opd_stack_queue *queue)
{
	void *memory;
	int err = op_sys_mmap(NULL, ALL_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0, &memory);

	if (err)
		return err;
	madvise(memory, OPD_STACK_QUEUE_BYTES, MADV_DONTDUMP);
	/* Nor is it swapped out, where RLIMIT_MEMLOCK or CAP_IPC_LOCK allows that. */
	(void)mlock2(memory, OPD_STACK_QUEUE_BYTES, MLOCK_ONFAULT);
	queue->records = memory;
	queue->entries = (void *)(queue->records + OPD_STACK_QUEUE_BYTES);
	return 0;
}

static struct opd_stack_waiting *entry_at(const struct opd_stack_queue *queue, uint32_t index)
{
	return &queue->entries[index % OPD_STACK_QUEUE_ENTRIES];
}

/* A place for so many bytes in one piece. False: there is none. */
static bool reserve(const struct opd_stack_queue *queue, size_t nr_bytes, size_t *ret_at)
{
	if (queue->end - queue->first == OPD_STACK_QUEUE_ENTRIES)
		return false;
	*ret_at = queue->tail;
	if (queue->tail < queue->head)
		return queue->head - queue->tail > nr_bytes; /* head == tail means empty */
	if (OPD_STACK_QUEUE_BYTES - queue->tail >= nr_bytes)
		return true;
	*ret_at = 0; /* from the start again */
	return queue->head > nr_bytes;
}

static size_t wait_bytes(const struct opd_stack_sample *taken, size_t nr_bytes)
{
	return taken->state ? nr_bytes : 0;
}

int opd_stack_queue_add(struct opd_stack_queue *queue, const struct opd_stack_sample *taken, struct opd_stack_waiting **ret_waiting)
{
	size_t nr_bytes = (taken->header->size + 7u) & ~(size_t)7, at;
	struct opd_stack_waiting *waiting;
	int err = queue->records ? 0 : make_room(queue);

	if (err)
		return err;
	if (queue->wait_bytes + wait_bytes(taken, nr_bytes) > OPD_STACK_QUEUE_WAIT_BYTES || !reserve(queue, nr_bytes, &at))
		return -ENOSPC;
	queue->wait_bytes += wait_bytes(taken, nr_bytes);
	memcpy(queue->records + at, taken->header, taken->header->size);
	waiting = entry_at(queue, queue->end++);
	*waiting = (struct opd_stack_waiting){ .at = at, .nr_bytes = (uint32_t)nr_bytes, .taken = *taken };
	waiting->taken.header = (const void *)(queue->records + at);
	waiting->taken.runtime = opd_interpreter_stack_copy(taken->runtime);
	queue->tail = at + nr_bytes;
	if (!queue->nr++ || (queue->oldest_ns && taken->sample.time_ns < queue->oldest_ns))
		queue->oldest_ns = taken->sample.time_ns;
	*ret_waiting = waiting;
	return 0;
}

static struct opd_stack_waiting *not_done_from(const struct opd_stack_queue *queue, uint32_t index)
{
	for (; index != queue->end; index++)
		if (!entry_at(queue, index)->is_done)
			return entry_at(queue, index);
	return NULL;
}

struct opd_stack_waiting *opd_stack_queue_first(const struct opd_stack_queue *queue)
{
	return not_done_from(queue, queue->first);
}

struct opd_stack_waiting *opd_stack_queue_next(const struct opd_stack_queue *queue, const struct opd_stack_waiting *waiting)
{
	uint32_t offset = ((uint32_t)(waiting - queue->entries) - queue->first) % OPD_STACK_QUEUE_ENTRIES;

	return not_done_from(queue, queue->first + offset + 1);
}

uint64_t opd_stack_queue_oldest_ns(struct opd_stack_queue *queue)
{
	if (!queue->nr)
		return UINT64_MAX;
	if (!queue->oldest_ns) {
		queue->oldest_ns = UINT64_MAX;
		for (const struct opd_stack_waiting *waiting = opd_stack_queue_first(queue); waiting;
		     waiting = opd_stack_queue_next(queue, waiting))
			queue->oldest_ns = op_min_u64(queue->oldest_ns, waiting->taken.sample.time_ns);
	}
	return queue->oldest_ns;
}

/*
 * Gives back the pages of a record that is done, and those that it shares with a neighbour that is
 * done as well: one sample may wait for a minute, and thousands come and go behind it.
 */
static void give_back(const struct opd_stack_queue *queue, const struct opd_stack_waiting *waiting)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), begin = waiting->at, end = begin + waiting->nr_bytes;
	uint32_t offset = ((uint32_t)(waiting - queue->entries) - queue->first) % OPD_STACK_QUEUE_ENTRIES;
	const struct opd_stack_waiting *before = offset ? entry_at(queue, queue->first + offset - 1) : NULL;
	const struct opd_stack_waiting *behind =
		queue->first + offset + 1 != queue->end ? entry_at(queue, queue->first + offset + 1) : NULL;

	if (before && before->is_done && before->at < begin && before->at <= begin / page * page)
		begin = begin / page * page;
	if (behind && behind->is_done && behind->at == end && behind->nr_bytes >= page)
		end += page;
	begin = (begin + page - 1) / page * page;
	end = end / page * page;
	if (begin < end && madvise(queue->records + begin, end - begin, MADV_DONTNEED_LOCKED) < 0)
		(void)madvise(queue->records + begin, end - begin, MADV_DONTNEED);
}

void opd_stack_queue_done(struct opd_stack_queue *queue, struct opd_stack_waiting *waiting)
{
	explicit_bzero(queue->records + waiting->at, waiting->nr_bytes);
	give_back(queue, waiting);
	free(waiting->taken.runtime);
	waiting->taken.runtime = NULL;
	waiting->is_done = true;
	queue->wait_bytes -= wait_bytes(&waiting->taken, waiting->nr_bytes);
	queue->nr--;
	if (waiting->taken.sample.time_ns == queue->oldest_ns)
		queue->oldest_ns = 0;
}

void opd_stack_queue_trim(struct opd_stack_queue *queue)
{
	while (queue->first != queue->end && entry_at(queue, queue->first)->is_done)
		queue->first++;
	if (queue->first != queue->end)
		queue->head = entry_at(queue, queue->first)->at;
	else
		opd_stack_queue_free(queue);
}

void opd_stack_queue_free(struct opd_stack_queue *queue)
{
	for (uint32_t i = queue->first; queue->records && i != queue->end; i++)
		free(entry_at(queue, i)->taken.runtime);
	if (queue->records)
		munmap(queue->records, ALL_BYTES); /* the kernel clears it */
	*queue = (struct opd_stack_queue){ 0 };
}
