/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/ring/reader.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "libop/base/atomic.h"
#include "libop/base/sys.h"

static int map_ring(int fd, size_t data_bytes, int protection, unsigned int flags, struct op_ring *ret_ring)
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
	err = op_sys_mmap(NULL, page_bytes + data_bytes, protection, MAP_SHARED, fd, 0, &map);
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
		.flags = flags,
	};
	return 0;
}

int op_ring_map(int fd, size_t data_bytes, struct op_ring *ret_ring)
{
	return map_ring(fd, data_bytes, PROT_READ | PROT_WRITE, 0, ret_ring);
}

int op_ring_map_backward(int fd, size_t data_bytes, struct op_ring *ret_ring)
{
	/* A read-only mapping tells the kernel to overwrite. */
	return map_ring(fd, data_bytes, PROT_READ, OP_RING_BACKWARD, ret_ring);
}

/* Skips to the head after an impossible length or head. Later records are aligned all the same. */
static void skip_to_head(struct op_ring *ring)
{
	ring->head &= ~(uint64_t)7;
	ring->tail = ring->head;
	ring->damaged++;
}

static uint64_t begin_backward(struct op_ring *ring)
{
	/*
	 * C, pairs with B, as in op_ring_begin. The floor needs no order: the writer stands still.
	 */
	uint64_t start = op_load_acquire(&ring->k_control->data_head) & ~(uint64_t)7;
	uint64_t torn = ring->floor ? start - op_load_relaxed(ring->floor) : 0;
	uint64_t whole;

	if (torn > ring->data_bytes) {
		torn = ring->data_bytes;
		ring->damaged++;
	}
	whole = op_min_u64(ring->data_bytes - torn, ring->known - start);
	ring->start = start;
	ring->tail = start;
	ring->head = start + whole;
	return whole;
}

uint64_t op_ring_begin(struct op_ring *ring)
{
	if (ring->flags & OP_RING_BACKWARD)
		return begin_backward(ring);
	/*
	 * C, pairs with B in the kernel's perf_output_put_handle: records up to head are seen
	 * whole.
	 */
	ring->head = op_load_acquire(&ring->k_control->data_head);
	if (ring->head - ring->tail > ring->data_bytes)
		skip_to_head(ring);
	return ring->head - ring->tail;
}

/* Copies nr_bytes from position `from`; they may wrap around the end of the data. */
static void copy_out(const struct op_ring *ring, uint64_t from, void *to, size_t nr_bytes)
{
	size_t offset = from & (ring->data_bytes - 1);
	size_t first = op_min_u64(nr_bytes, ring->data_bytes - offset);

	memcpy(to, ring->k_data + offset, first);
	memcpy((uint8_t *)to + first, ring->k_data, nr_bytes - first);
}

/* A gap ends at a word that is not zero or with its page, whichever comes first. */
static void skip_gap(struct op_ring *ring)
{
	size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	uint64_t page_end = (ring->tail | (page_bytes - 1)) + 1;
	uint64_t word;

	while (ring->head - ring->tail >= sizeof(word) && ring->tail != page_end) {
		copy_out(ring, ring->tail, &word, sizeof(word));
		if (word)
			break;
		ring->tail += sizeof(word);
	}
}

/* The header at the tail, after skipping gaps. False: there is none. */
static bool peek(struct op_ring *ring, struct perf_event_header *ret_header)
{
	while (ring->head - ring->tail >= sizeof(*ret_header)) {
		uint64_t tail = ring->tail;

		/* Positions and the size of a header are multiples of 8: a header does not wrap. */
		memcpy(ret_header, ring->k_data + (tail & (ring->data_bytes - 1)), sizeof(*ret_header));
		if (ret_header->size || !(ring->flags & OP_RING_GAPS))
			return true;
		skip_gap(ring);
		if (ring->tail == tail)
			return true;
	}
	return false;
}

/* The record at the tail, contiguous. */
static const void *in_one_piece(struct op_ring *ring, const struct perf_event_header *header)
{
	size_t offset = ring->tail & (ring->data_bytes - 1);

	if (offset + header->size <= ring->data_bytes && !(ring->flags & OP_RING_COPY))
		return ring->k_data + offset;
	copy_out(ring, ring->tail, ring->bounce, header->size);
	ring->bounced = op_max_u64(ring->bounced, header->size);
	memcpy(ring->bounce, header, sizeof(*header));
	return ring->bounce;
}

const struct perf_event_header *op_ring_next_slow(struct op_ring *ring)
{
	struct perf_event_header header;
	const void *record;

	if (ring->head == ring->tail)
		return NULL;
	if (!peek(ring, &header)) {
		if (ring->head != ring->tail)
			skip_to_head(ring);
		return NULL;
	}
	if ((ring->flags & OP_RING_BACKWARD) && header.size > ring->head - ring->tail) {
		ring->head = ring->tail; /* the oldest one is partly overwritten */
		return NULL;
	}
	if (header.size < sizeof(header) || header.size > ring->head - ring->tail || header.size % 8) {
		skip_to_head(ring);
		return NULL;
	}
	record = in_one_piece(ring, &header);
	ring->tail += header.size;
	return record;
}

void op_ring_put_back(struct op_ring *ring, const struct perf_event_header *record)
{
	ring->tail -= record->size;
}

void op_ring_end(struct op_ring *ring)
{
	if (op_unlikely(ring->bounced)) {
		explicit_bzero(ring->bounce, ring->bounced);
		ring->bounced = 0;
	}
	if (ring->flags & OP_RING_BACKWARD) {
		/*
		 * No order: a head that moved proves a late writer, one that did not proves
		 * nothing.
		 */
		ring->late += op_load_relaxed(&ring->k_control->data_head) != ring->start;
		ring->known = ring->start;
		return;
	}
	/*
	 * D, pairs with A in the kernel's perf_output_begin: our loads are done before the space is
	 * returned.
	 */
	op_store_release(&ring->k_control->data_tail, ring->tail);
}

uint64_t op_ring_pending(const struct op_ring *ring)
{
	/* No order: a hint. The reader loads the head again with C before it reads. */
	uint64_t head = op_load_relaxed(&ring->k_control->data_head);

	return ring->flags & OP_RING_BACKWARD ? ring->known - head : head - ring->tail;
}

void op_ring_unmap(struct op_ring *ring)
{
	if (!ring)
		return;
	if (ring->k_control && ring->map_bytes)
		op_sys_munmap(ring->k_control, ring->map_bytes);
	free(ring->bounce);
	*ring = (struct op_ring){ 0 };
}
