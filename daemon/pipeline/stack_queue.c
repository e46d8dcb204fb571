/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "daemon/pipeline/stack_queue.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "libop/base/sys.h"

static int make_arena(struct opd_stack_queue *queue)
{
	void *arena;
	int err = op_sys_mmap(NULL, OPD_STACK_QUEUE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0, &arena);

	if (err)
		return err;
	madvise(arena, OPD_STACK_QUEUE_BYTES, MADV_DONTDUMP);
	queue->arena = arena;
	return 0;
}

/* A place for so many bytes in one piece. False: there is none. */
static bool reserve(struct opd_stack_queue *queue, size_t nr_bytes, size_t *ret_at)
{
	if (queue->tail >= queue->head && OPD_STACK_QUEUE_BYTES - queue->tail >= nr_bytes) {
		*ret_at = queue->tail;
		return true;
	}
	if (queue->tail >= queue->head) { /* from the start again */
		if (queue->head <= nr_bytes)
			return false;
		queue->end = queue->tail;
		*ret_at = 0;
		return true;
	}
	*ret_at = queue->tail;
	return queue->head - queue->tail > nr_bytes; /* head == tail means empty */
}

int opd_stack_queue_add(struct opd_stack_queue *queue, const struct opd_stack_sample *taken, struct opd_stack_waiting **ret_waiting)
{
	size_t nr_bytes = (sizeof(struct opd_stack_waiting) + taken->header->size + 7) & ~(size_t)7, at;
	struct opd_stack_waiting *waiting;
	int err = queue->arena ? 0 : make_arena(queue);

	if (err)
		return err;
	if (!reserve(queue, nr_bytes, &at))
		return -ENOSPC;
	waiting = (void *)(queue->arena + at);
	*waiting = (struct opd_stack_waiting){ .nr_bytes = (uint32_t)nr_bytes, .taken = *taken };
	memcpy(waiting + 1, taken->header, taken->header->size);
	waiting->taken.header = (const void *)(waiting + 1);
	queue->tail = at + nr_bytes;
	queue->nr++;
	*ret_waiting = waiting;
	return 0;
}

static struct opd_stack_waiting *entry_at(const struct opd_stack_queue *queue, size_t at)
{
	if (queue->tail < queue->head && at == queue->end)
		at = 0;
	return at == queue->tail ? NULL : (void *)(queue->arena + at);
}

struct opd_stack_waiting *opd_stack_queue_first(const struct opd_stack_queue *queue)
{
	return queue->arena ? entry_at(queue, queue->head) : NULL;
}

struct opd_stack_waiting *opd_stack_queue_next(const struct opd_stack_queue *queue, const struct opd_stack_waiting *waiting)
{
	return entry_at(queue, (size_t)((const uint8_t *)waiting - queue->arena) + waiting->nr_bytes);
}

void opd_stack_queue_done(struct opd_stack_queue *queue, struct opd_stack_waiting *waiting)
{
	explicit_bzero(waiting + 1, waiting->nr_bytes - sizeof(*waiting));
	waiting->is_done = true;
	queue->nr--;
}

void opd_stack_queue_trim(struct opd_stack_queue *queue)
{
	struct opd_stack_waiting *waiting = opd_stack_queue_first(queue);

	while (waiting && waiting->is_done) {
		size_t behind = (size_t)((uint8_t *)waiting - queue->arena) + waiting->nr_bytes;

		waiting = opd_stack_queue_next(queue, waiting);
		queue->head = waiting ? (size_t)((uint8_t *)waiting - queue->arena) : behind;
	}
	if (waiting || !queue->arena || queue->nr || !queue->tail)
		return;
	queue->head = queue->tail = 0;
	madvise(queue->arena, OPD_STACK_QUEUE_BYTES, MADV_DONTNEED);
}

void opd_stack_queue_free(struct opd_stack_queue *queue)
{
	if (queue->arena)
		munmap(queue->arena, OPD_STACK_QUEUE_BYTES);
	*queue = (struct opd_stack_queue){ 0 };
}
