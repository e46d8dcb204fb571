/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * wfcqueue of liburcu: an unbounded linked queue. Its nodes are a fixed pool, used in turn, so that
 * it holds as many records as the others; the reader takes all that is there with one splice and
 * then says how many nodes are free again.
 */
#define _LGPL_SOURCE /* its functions inline, as those of the others are */

#include "tests/bench/peer.h"

#include <stdlib.h>
#include <urcu/wfcqueue.h>

#include "libop/base/atomic.h"

struct node {
	struct cds_wfcq_node link;
	uint64_t words[];
};

struct queue {
	struct __cds_wfcq_head head;
	_Alignas(128) struct cds_wfcq_tail tail;
	_Alignas(128) uint64_t taken; /* records, by the reader */
	_Alignas(128) uint64_t written;
	uint64_t seen_taken; /* the writer's last look */
	uint64_t nr;
	size_t record_bytes;
	uint8_t *nodes;
};

static void *create(size_t ring_bytes, size_t record_bytes)
{
	struct queue *queue = aligned_alloc(128, sizeof(*queue));

	if (!queue)
		return NULL;
	memset(queue, 0, sizeof(*queue));
	queue->nr = ring_bytes / record_bytes;
	queue->record_bytes = record_bytes;
	queue->nodes = malloc(queue->nr * (sizeof(struct node) + record_bytes));
	if (!queue->nodes) {
		free(queue);
		return NULL;
	}
	__cds_wfcq_init(&queue->head, &queue->tail);
	return queue;
}

static inline __attribute__((always_inline)) uint64_t enqueue(struct queue *queue, uint64_t first, uint64_t nr, size_t nr_bytes)
{
	for (uint64_t i = 0; i < nr; i++) {
		struct node *node;

		if (queue->written - queue->seen_taken == queue->nr) {
			/* Pairs with the release in dequeue: the node has been read. */
			queue->seen_taken = op_load_acquire(&queue->taken);
			if (queue->written - queue->seen_taken == queue->nr)
				return i;
		}
		node = (void *)(queue->nodes + (queue->written++ & (queue->nr - 1)) * (sizeof(*node) + nr_bytes));
		peer_fill(node->words, first + i, nr_bytes);
		cds_wfcq_node_init(&node->link);
		cds_wfcq_enqueue(&queue->head, &queue->tail, &node->link);
	}
	return nr;
}

static inline __attribute__((always_inline)) uint64_t dequeue(struct queue *queue, struct peer_check *check, size_t nr_bytes)
{
	struct __cds_wfcq_head head;
	struct cds_wfcq_tail tail;
	struct cds_wfcq_node *link, *next;
	uint64_t nr = 0;

	__cds_wfcq_init(&head, &tail);
	if (__cds_wfcq_splice_blocking(&head, &tail, &queue->head, &queue->tail) == CDS_WFCQ_RET_SRC_EMPTY)
		return 0;
	__cds_wfcq_for_each_blocking_safe(&head, &tail, link, next) {
		peer_check(check, ((struct node *)link)->words, nr_bytes);
		nr++;
	}
	/* Pairs with the acquire in enqueue. */
	op_store_release(&queue->taken, queue->taken + nr);
	return nr;
}

static uint64_t write_records(void *handle, uint64_t first, uint64_t nr)
{
	struct queue *queue = handle;

	return PEER_BY_SIZE(queue->record_bytes, enqueue, queue, first, nr);
}

static uint64_t read_records(void *handle, struct peer_check *check)
{
	struct queue *queue = handle;

	return PEER_BY_SIZE(queue->record_bytes, dequeue, queue, check);
}

static void destroy(void *handle)
{
	struct queue *queue = handle;

	free(queue->nodes);
	free(queue);
}

const struct peer peer_wfcqueue = { .create = create, .write = write_records, .read = read_records, .destroy = destroy };
