/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/ring/aux_area.h"

#include <errno.h>
#include <sys/mman.h>

#include "libop/base/sys.h"

int op_aux_map(const struct op_mring *ring, struct op_aux *ret_aux)
{
	void *control, *bytes;
	int err;

	if (!ring->aux_bytes)
		return -ENOENT;
	err = op_sys_mmap(NULL, ring->page_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, ring->fd, 0, &control);
	if (err < 0)
		return err;
	err = op_sys_mmap(NULL, ring->aux_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, ring->fd,
			  (off_t)(ring->page_bytes + ring->data_bytes), &bytes);
	if (err < 0) {
		op_sys_munmap(control, ring->page_bytes);
		return err;
	}
	*ret_aux = (struct op_aux){
		.control = control,
		.shared = (void *)((uint8_t *)control + OP_MRING_SHARED_OFFSET),
		.bytes = bytes,
		.aux_bytes = ring->aux_bytes,
		.page_bytes = ring->page_bytes,
		.overwrite = ring->flags & OP_MRING_OVERWRITE,
	};
	return 0;
}

void op_aux_unmap(struct op_aux *aux)
{
	if (!aux || !aux->control)
		return;
	op_sys_munmap(aux->bytes, aux->aux_bytes);
	op_sys_munmap(aux->control, aux->page_bytes);
	*aux = (struct op_aux){ 0 };
}

/* M, pairs with N: the previous user of the area has finished. */
static bool claim(const struct op_aux *aux, enum op_aux_state state)
{
	return op_claim(&aux->shared->aux_state, state);
}

/* N, pairs with M. */
static void release(const struct op_aux *aux)
{
	op_store_release(&aux->shared->aux_state, OP_AUX_IDLE);
}

int op_aux_writer_open(const struct op_aux *aux, struct op_aux_writer *ret_writer)
{
	struct op_aux_writer writer = { .aux = aux };

	/* K, pairs with L: the previous writer has stored everything. */
	if (!op_claim(&aux->shared->aux_owner, 1))
		return -EBUSY;
	writer.truncated = op_load_relaxed(&aux->shared->aux_left_out);
	writer.head = op_load_relaxed(&aux->control->aux_head);
	writer.tail = op_load_relaxed(&aux->control->aux_tail);
	if (writer.head - writer.tail > aux->aux_bytes)
		writer.tail = writer.head - aux->aux_bytes;
	*ret_writer = writer;
	return 0;
}

void op_aux_writer_close(struct op_aux_writer *writer)
{
	/* L, pairs with K in op_aux_writer_open. */
	op_store_release(&writer->aux->shared->aux_owner, 0);
}

/*
 * As with data_tail, a position that is not between the last one and the head is invalid and
 * ignored.
 */
static size_t room(struct op_aux_writer *writer)
{
	const struct op_aux *aux = writer->aux;
	/*
	 * R, pairs with S in op_aux_give_back: the reader has loaded the bytes that we overwrite
	 * from now on.
	 */
	uint64_t tail = op_load_acquire(&aux->control->aux_tail);

	if (aux->overwrite)
		return aux->aux_bytes;
	if (tail - writer->tail > writer->head - writer->tail)
		writer->bad_tails++;
	else
		writer->tail = tail;
	return aux->aux_bytes - (writer->head - writer->tail);
}

/* Remembers it for the next record, also that of the next writer. */
static void leave_out(struct op_aux_writer *writer)
{
	writer->truncated = true;
	op_store_relaxed(&writer->aux->shared->aux_left_out, 1);
}

int op_aux_try_begin(struct op_aux_writer *writer, struct op_aux_handle *ret_handle)
{
	size_t room_bytes;

	if (!claim(writer->aux, OP_AUX_WRITING))
		return -EBUSY;
	room_bytes = room(writer);
	if (!room_bytes) {
		release(writer->aux);
		return -ENOSPC;
	}
	*ret_handle = (struct op_aux_handle){ .writer = writer, .from = writer->head, .room = room_bytes };
	return 0;
}

int op_aux_begin(struct op_aux_writer *writer, struct op_aux_handle *ret_handle)
{
	int err = op_aux_try_begin(writer, ret_handle);

	if (err < 0)
		leave_out(writer);
	return err;
}

/*
 * Stored before the bytes are touched: the bytes one area before them are gone. The reader looks
 * after this transaction, see claim.
 */
static void touch(const struct op_aux *aux, uint64_t to)
{
	op_store_relaxed(&aux->shared->aux_left_out, 1); /* until a record names the bytes */
	op_compiler_fence();
	if ((int64_t)(to - op_load_relaxed(&aux->shared->aux_touched)) > 0)
		op_store_relaxed(&aux->shared->aux_touched, to);
	op_compiler_fence();
}

size_t op_aux_write(struct op_aux_handle *handle, const void *bytes, size_t nr_bytes)
{
	const struct op_aux *aux = handle->writer->aux;
	size_t offset = (handle->from + handle->nr_bytes) & (aux->aux_bytes - 1);
	size_t taken = op_min_u64(nr_bytes, handle->room);
	size_t first = op_min_u64(taken, aux->aux_bytes - offset);

	touch(aux, handle->from + handle->nr_bytes + taken);
	memcpy(aux->bytes + offset, bytes, first);
	memcpy(aux->bytes, (const uint8_t *)bytes + first, taken - first);
	handle->nr_bytes += taken;
	handle->room -= taken;
	if (taken < nr_bytes)
		leave_out(handle->writer);
	return taken;
}

/*
 * Publishes the bytes, then the record that names them. The stores before serve take_back_unnamed
 * (memory.c).
 */
static void move_heads(struct op_aux_writer *writer, struct op_mring_writer *data, size_t nr_bytes)
{
	struct op_mring_shared *shared = writer->aux->shared;

	op_store_relaxed(&shared->aux_before, writer->head);
	op_compiler_fence();
	op_store_relaxed(&shared->aux_at, data->next);
	op_compiler_fence();
	op_store_relaxed(&shared->aux_left_out, 0);
	writer->head += nr_bytes;
	/* T, pairs with U in op_aux_copy_out: the bytes are stored before. */
	op_store_release(&writer->aux->control->aux_head, writer->head);
	op_mring_commit(data);
	writer->truncated = false;
}

static int publish(struct op_aux_handle *handle, struct op_mring_writer *data, size_t nr_bytes)
{
	struct op_aux_writer *writer = handle->writer;
	struct op_aux_record record = {
		.header = { .type = PERF_RECORD_AUX, .size = sizeof(record) },
		.aux_offset = handle->from,
		.aux_size = nr_bytes,
		.flags = (writer->truncated ? PERF_AUX_FLAG_TRUNCATED : 0) | (writer->aux->overwrite ? PERF_AUX_FLAG_OVERWRITE : 0),
	};
	struct perf_event_header *header;
	int err = op_mring_reserve(data, sizeof(record), &header);

	if (err < 0) {
		leave_out(writer);
		return err;
	}
	memcpy(header, &record, sizeof(record));
	move_heads(writer, data, nr_bytes);
	return 0;
}

int op_aux_end(struct op_aux_handle *handle, struct op_mring_writer *data, size_t nr_bytes)
{
	int err = 0;

	nr_bytes = op_min_u64(nr_bytes, handle->nr_bytes);
	if (nr_bytes || handle->writer->truncated)
		err = publish(handle, data, nr_bytes);
	else
		op_store_relaxed(&handle->writer->aux->shared->aux_left_out, 0);
	release(handle->writer->aux);
	return err;
}

static int64_t copy_pages(const struct op_aux *aux, uint64_t from, uint64_t to, op_aux_piece_fn *piece, void *arg)
{
	uint64_t at = from;

	while (at != to) {
		uint64_t page_end = (at | (aux->page_bytes - 1)) + 1;
		size_t nr_bytes = op_min_u64(to - at, page_end - at);
		int err = piece(aux->bytes + (at & (aux->aux_bytes - 1)), nr_bytes, arg);

		if (err)
			return err;
		at += nr_bytes;
	}
	return (int64_t)(to - from);
}

int64_t op_aux_copy_out(const struct op_aux *aux, uint64_t from, uint64_t to, op_aux_piece_fn *piece, void *arg)
{
	int64_t result = -ERANGE;
	uint64_t head, touched;

	if (!claim(aux, OP_AUX_COPYING))
		return -EBUSY;
	/* U, pairs with T in move_heads: the bytes up to head are seen whole. */
	head = op_load_acquire(&aux->control->aux_head);
	touched = op_load_relaxed(&aux->shared->aux_touched);
	/*
	 * Compares differences, as positions never wrap: from <= to <= head, and at most one area
	 * back.
	 */
	if (head - from <= aux->aux_bytes && head - to <= head - from && touched - from <= aux->aux_bytes)
		result = copy_pages(aux, from, to, piece, arg);
	release(aux);
	return result;
}

void op_aux_give_back(const struct op_aux *aux, uint64_t to)
{
	/* S, pairs with R in room: our loads are done before the space is returned. */
	op_store_release(&aux->control->aux_tail, to);
}
