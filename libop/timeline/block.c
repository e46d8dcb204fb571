/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/timeline/block.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "libop/base/file.h"
#include "libop/base/seal.h"
#include "libop/timeline/decode.h"

#define PACK_LEVEL      15 /* a payload is small, and packed once a minute */
#define BLOCK_BYTES_MIN (sizeof(struct op_timeline_head) + sizeof(struct op_timeline_tail))
#define BLOCK_BYTES_MAX (OP_TIMELINE_RAW_MAX + 4096u)

/* ---- byte order ---- */

static void clocks_to_le(struct op_timeline_clocks *clocks)
{
	clocks->wall_ns = htole64(clocks->wall_ns);
	clocks->boot_ns = htole64(clocks->boot_ns);
	clocks->mono_ns = htole64(clocks->mono_ns);
}

/* Also the other way. */
static void tail_to_le(struct op_timeline_tail *tail)
{
	clocks_to_le(&tail->begin);
	clocks_to_le(&tail->end);
	tail->payload_sum = htole64(tail->payload_sum);
	tail->number = htole32(tail->number);
	tail->nr_levels = htole32(tail->nr_levels);
	tail->raw_bytes = htole32(tail->raw_bytes);
	tail->packed_bytes = htole32(tail->packed_bytes);
	tail->gap = htole16(tail->gap);
	tail->flags = htole16(tail->flags);
	tail->block_bytes = htole32(tail->block_bytes);
	tail->sum = htole64(tail->sum);
}

static void level_to_le(struct op_timeline_level *level)
{
	level->offset = htole64(level->offset);
	level->wall_first_ns = htole64(level->wall_first_ns);
	level->wall_last_ns = htole64(level->wall_last_ns);
}

/* ---- making ---- */

static bool is_ratio_allowed(uint64_t raw_bytes, uint64_t packed_bytes)
{
	return raw_bytes <= OP_TIMELINE_RATIO_FREE + packed_bytes * OP_TIMELINE_RATIO_MAX;
}

/* What does not become smaller, or too small to be read without a risk, stays as it is. */
static int pack(const struct op_bytes *payload, struct op_bytes *ret_packed)
{
	struct op_bytes packed = { 0 };
	size_t nr_bytes;

	packed.capacity = ZSTD_compressBound(payload->length);
	packed.data = malloc(packed.capacity);
	if (!packed.data)
		return -ENOMEM;
	nr_bytes = ZSTD_compress(packed.data, packed.capacity, payload->data, payload->length, PACK_LEVEL);
	if (ZSTD_isError(nr_bytes)) {
		op_bytes_free(&packed);
		return -ENOMEM;
	}
	packed.length = nr_bytes;
	if (nr_bytes >= payload->length || !is_ratio_allowed(payload->length, nr_bytes)) {
		packed.length = 0;
		op_bytes_add(&packed, payload->data, payload->length);
	}
	*ret_packed = packed;
	return 0;
}

int op_block_make(const struct op_bytes *payload, const struct op_timeline_tail *tail, const struct op_timeline_level *levels,
		  struct op_bytes *block)
{
	struct op_timeline_tail full = *tail;
	struct op_bytes packed;
	int err = pack(payload, &packed);

	if (err)
		return err;
	full.raw_bytes = (uint32_t)payload->length;
	err = op_block_frame(&packed, &full, levels, block);
	op_bytes_free(&packed);
	return err;
}

int op_block_frame(const struct op_bytes *packed, const struct op_timeline_tail *tail, const struct op_timeline_level *levels,
		   struct op_bytes *block)
{
	size_t index_bytes = tail->nr_levels * sizeof(*levels), before = block->length;
	struct op_timeline_tail full = *tail;
	struct op_timeline_head head;

	full.payload_sum = op_seal_sum(packed->data, packed->length);
	full.packed_bytes = (uint32_t)packed->length;
	full.block_bytes = (uint32_t)(sizeof(head) + packed->length + index_bytes + sizeof(full));
	memcpy(full.magic, OP_TIMELINE_BLOCK_MAGIC, sizeof(full.magic));
	full.sum = 0;
	tail_to_le(&full);
	head = (struct op_timeline_head){ htole32(OP_TIMELINE_HEAD_MAGIC), full.block_bytes };
	op_bytes_add(block, &head, sizeof(head));
	op_bytes_add(block, packed->data, packed->length);
	for (uint32_t i = 0; i < tail->nr_levels; i++) {
		struct op_timeline_level level = levels[i];

		level_to_le(&level);
		op_bytes_add(block, &level, sizeof(level));
	}
	op_bytes_add(block, &full, sizeof(full));
	if (block->failed)
		return -ENOMEM;
	full.sum = htole64(op_seal_sum(block->data + block->length - sizeof(full) - index_bytes,
				       index_bytes + offsetof(struct op_timeline_tail, sum)));
	memcpy(block->data + block->length - sizeof(full.sum), &full.sum, sizeof(full.sum));
	return block->length - before == le32toh(full.block_bytes) ? 0 : -ENOMEM;
}

/* ---- reading ---- */

static bool is_sound(const struct op_timeline_tail *tail, uint64_t room)
{
	return !memcmp(tail->magic, OP_TIMELINE_BLOCK_MAGIC, sizeof(tail->magic)) && tail->nr_levels <= OP_TIMELINE_LEVELS_MAX &&
	       tail->raw_bytes <= OP_TIMELINE_RAW_MAX && tail->packed_bytes <= tail->raw_bytes &&
	       is_ratio_allowed(tail->raw_bytes, tail->packed_bytes) && tail->block_bytes <= room &&
	       tail->block_bytes ==
		       BLOCK_BYTES_MIN + (uint64_t)tail->packed_bytes + tail->nr_levels * sizeof(struct op_timeline_level);
}

static bool has_head(int fd, const struct op_block *block)
{
	struct op_timeline_head head;
	size_t nr_read;

	return !op_file_read_at(fd, &head, sizeof(head), (off_t)block->offset, &nr_read) && nr_read == sizeof(head) &&
	       le32toh(head.magic) == OP_TIMELINE_HEAD_MAGIC && le32toh(head.block_bytes) == block->tail.block_bytes;
}

/* The levels lead to blocks before this one. */
static bool are_levels_sound(const struct op_block *block)
{
	for (uint32_t i = 0; i < block->tail.nr_levels; i++)
		if (block->levels[i].offset < sizeof(struct op_timeline_header) || block->levels[i].offset >= block->offset)
			return false;
	return true;
}

int op_block_read_back(int fd, uint64_t begin, uint64_t end, struct op_block *ret_block)
{
	uint8_t bytes[OP_TIMELINE_LEVELS_MAX * sizeof(struct op_timeline_level) + sizeof(struct op_timeline_tail)];
	size_t wanted = end > begin ? (size_t)op_min_u64(sizeof(bytes), end - begin) : 0, nr_read, index_bytes;
	struct op_block block = { .end = end };
	const uint8_t *index;
	uint64_t sum;
	int err;

	if (wanted < BLOCK_BYTES_MIN)
		return -EBADMSG;
	err = op_file_read_at(fd, bytes, wanted, (off_t)(end - wanted), &nr_read);
	if (err || nr_read < wanted)
		return err ? err : -EBADMSG;
	memcpy(&block.tail, bytes + wanted - sizeof(block.tail), sizeof(block.tail));
	tail_to_le(&block.tail);
	if (!is_sound(&block.tail, end - begin))
		return -EBADMSG;
	index_bytes = block.tail.nr_levels * sizeof(struct op_timeline_level);
	index = bytes + wanted - sizeof(block.tail) - index_bytes;
	sum = op_seal_sum(index, index_bytes + offsetof(struct op_timeline_tail, sum));
	memcpy(block.levels, index, index_bytes);
	for (uint32_t i = 0; i < block.tail.nr_levels; i++)
		level_to_le(&block.levels[i]);
	block.offset = end - block.tail.block_bytes;
	if (sum != block.tail.sum || !has_head(fd, &block) || !are_levels_sound(&block))
		return -EBADMSG;
	*ret_block = block;
	return 0;
}

int op_block_read(int fd, uint64_t begin, uint64_t end, struct op_block *ret_block)
{
	struct op_timeline_head head = { 0 };
	struct op_block block;
	uint32_t nr_bytes;
	size_t nr_read;
	int err = op_file_read_at(fd, &head, sizeof(head), (off_t)begin, &nr_read);

	if (err)
		return err;
	nr_bytes = le32toh(head.block_bytes);
	if (nr_read < sizeof(head) || le32toh(head.magic) != OP_TIMELINE_HEAD_MAGIC || nr_bytes < BLOCK_BYTES_MIN ||
	    nr_bytes > BLOCK_BYTES_MAX || nr_bytes > end - begin)
		return -EBADMSG;
	err = op_block_read_back(fd, begin, begin + nr_bytes, &block);
	if (err)
		return err;
	if (block.offset != begin)
		return -EBADMSG;
	*ret_block = block;
	return 0;
}

static int unpack(const struct op_timeline_tail *tail, const uint8_t *packed, struct op_minute *minute)
{
	uint8_t *raw;
	size_t nr_bytes;
	int err;

	if (tail->packed_bytes == tail->raw_bytes)
		return op_minute_decode(minute, packed, tail->raw_bytes);
	raw = malloc(tail->raw_bytes);
	if (!raw)
		return -ENOMEM;
	nr_bytes = ZSTD_decompress(raw, tail->raw_bytes, packed, tail->packed_bytes);
	err = nr_bytes == tail->raw_bytes ? op_minute_decode(minute, raw, nr_bytes) : -EBADMSG;
	free(raw);
	return err;
}

int op_block_read_packed(int fd, const struct op_block *block, struct op_bytes *ret_packed)
{
	const struct op_timeline_tail *tail = &block->tail;
	struct op_bytes packed = { .data = malloc(tail->packed_bytes + 1u), .capacity = tail->packed_bytes + 1u };
	int err = packed.data ? op_file_read_at(fd, packed.data, tail->packed_bytes,
						(off_t)(block->offset + sizeof(struct op_timeline_head)), &packed.length)
			      : -ENOMEM;

	if (!err && (packed.length < tail->packed_bytes || op_seal_sum(packed.data, packed.length) != tail->payload_sum))
		err = -EBADMSG;
	if (err)
		op_bytes_free(&packed);
	else
		*ret_packed = packed;
	return err;
}

int op_block_load(int fd, const struct op_block *block, struct op_minute *minute)
{
	const struct op_timeline_tail *tail = &block->tail;
	struct op_bytes packed;
	int err = op_block_read_packed(fd, block, &packed);

	if (err)
		return err;
	err = unpack(tail, packed.data, minute);
	op_bytes_free(&packed);
	if (err)
		return err;
	minute->begin = tail->begin;
	minute->end = tail->end;
	minute->gap = tail->gap;
	minute->flags = tail->flags;
	return 0;
}
