/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/ring.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "libop/atomic.h"
#include "libop/sys.h"

int op_ring_map(int fd, size_t data_bytes, struct op_ring *ret_ring)
{
	size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *bounce;
	void *map;
	int err;

	if (data_bytes < page_bytes || (data_bytes & (data_bytes - 1)))
		return -EINVAL;
	bounce = aligned_alloc(8, OP_RECORD_BYTES_MAX);
	if (!bounce)
		return -ENOMEM;
	err = op_sys_mmap(NULL, page_bytes + data_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0, &map);
	if (err < 0) {
		free(bounce);
		return err;
	}
	*ret_ring = (struct op_ring){
		.k_control = map,
		.k_data = (uint8_t *)map + page_bytes,
		.data_bytes = data_bytes,
		.map_bytes = page_bytes + data_bytes,
		.bounce = bounce,
	};
	return 0;
}

uint64_t op_ring_begin(struct op_ring *ring)
{
	/* C, pairs with B in the kernel's perf_output_put_handle: records up to head are seen whole. */
	ring->head = op_load_acquire(&ring->k_control->data_head);
	if (ring->head - ring->tail > ring->data_bytes) {
		ring->tail = ring->head;
		ring->damaged++;
	}
	return ring->head - ring->tail;
}

/* Copies `nr_bytes` that start at position `from` and may go over the end of the data. */
static void copy_out(const struct op_ring *ring, uint64_t from, void *to, size_t nr_bytes)
{
	size_t offset = from & (ring->data_bytes - 1);
	size_t first = op_min_u64(nr_bytes, ring->data_bytes - offset);

	memcpy(to, ring->k_data + offset, first);
	memcpy((uint8_t *)to + first, ring->k_data, nr_bytes - first);
}

static const struct perf_event_header *pass_over(struct op_ring *ring)
{
	ring->tail = ring->head;
	ring->damaged++;
	return NULL;
}

const struct perf_event_header *op_ring_next(struct op_ring *ring)
{
	uint64_t available = ring->head - ring->tail;
	size_t offset = ring->tail & (ring->data_bytes - 1);
	struct perf_event_header header;
	const uint8_t *record;

	if (!available)
		return NULL;
	if (available < sizeof(header))
		return pass_over(ring);
	copy_out(ring, ring->tail, &header, sizeof(header));
	if (header.size < sizeof(header) || header.size > available || header.size % 8)
		return pass_over(ring);
	if (offset + header.size <= ring->data_bytes) {
		record = ring->k_data + offset;
	} else {
		copy_out(ring, ring->tail, ring->bounce, header.size);
		record = ring->bounce;
	}
	ring->tail += header.size;
	return (const void *)record;
}

void op_ring_put_back(struct op_ring *ring, const struct perf_event_header *record)
{
	ring->tail -= record->size;
}

void op_ring_end(struct op_ring *ring)
{
	/* D, pairs with A in the kernel's perf_output_begin: our reads are done before the space is given back. */
	op_store_release(&ring->k_control->data_tail, ring->tail);
}

bool op_ring_pending(const struct op_ring *ring)
{
	/* No order needed: only a hint, the reader looks again with C before it reads. */
	return op_load_relaxed(&ring->k_control->data_head) != ring->tail;
}

void op_ring_unmap(struct op_ring *ring)
{
	if (!ring)
		return;
	if (ring->k_control)
		op_sys_munmap(ring->k_control, ring->map_bytes);
	free(ring->bounce);
	*ring = (struct op_ring){ 0 };
}
