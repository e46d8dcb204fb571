/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The layout of a sample file: oprofile 1.0 to 1.4 (version 0x13), little-endian hosts,
 * doc/format.md.
 *
 *   [ header 72 ][ descriptor 32 ][ node array: size x 16 ][ hash table: size x 4 ]
 *
 * The writer fills a node, links it to its bucket and raises current_size last. A reader that
 * looks at nodes 1 to current_size - 1 sees whole nodes only. Any thread.
 */
#ifndef OP_ODB_FORMAT_H
#define OP_ODB_FORMAT_H

#include <errno.h>

#include "libop/base/compiler.h"

#define OP_ODB_MAGIC	    "DAE\n"
#define OP_ODB_VERSION	    0x13u
#define OP_ODB_VERSION_0_9  0x12u /* oprofile 0.9: a longer header, other numbers of processors */
#define OP_CPU_TYPE_UNKNOWN UINT32_MAX /* a processor that oprofile 1.x has no number for */
#define OP_CPU_TYPE_TIMER   4u /* what opd writes: it needs no event description files */

struct op_odb_header {
	char magic[4];
	uint32_t version;
	uint32_t cpu_type;
	uint32_t ctr_event;	/* event number, 0 for the timer */
	uint32_t ctr_um;	/* unit mask */
	uint32_t ctr_count;	/* sampling period */
	uint32_t is_kernel;	/* image is kernel or module; in a callgraph file the caller */
	uint32_t pad0;
	double cpu_speed_mhz;	/* <= 0: unknown */
	uint64_t mtime;		/* seconds, of the image; 0: unknown */
	uint32_t cg_to_is_kernel;
	uint32_t pad1;
	uint64_t anon_start;	/* start of the anonymous region, else 0 */
	uint64_t cg_to_anon_start;
};

struct op_odb_descr {
	uint32_t size;		/* nodes allocated, a power of two */
	uint32_t current_size;	/* index of the next free node; 1 when empty: node 0 is unused */
	uint32_t pad[6];
};

struct op_odb_node {
	uint64_t key;
	uint32_t value;
	uint32_t next; /* next node of the bucket, 0 at the end */
};

static_assert(sizeof(struct op_odb_header) == 72, "header of oprofile 1.x");
static_assert(offsetof(struct op_odb_header, cpu_speed_mhz) == 32, "header of oprofile 1.x");
static_assert(offsetof(struct op_odb_header, anon_start) == 56, "header of oprofile 1.x");
static_assert(sizeof(struct op_odb_descr) == 32, "descriptor of oprofile 1.x");
static_assert(sizeof(struct op_odb_node) == 16, "node of oprofile 1.x");

#define OP_ODB_INITIAL_SIZE 128u
#define OP_ODB_SIZE_MAX	    (1u << 27) /* nodes; 2.7 GB: no image has more addresses */
#define OP_ODB_NODES_OFFSET (sizeof(struct op_odb_header) + sizeof(struct op_odb_descr))

/* Length in bytes of a file with room for `size` nodes. */
static inline uint64_t op_odb_file_bytes(uint64_t size)
{
	return OP_ODB_NODES_OFFSET + size * (sizeof(struct op_odb_node) + sizeof(uint32_t));
}

/* Whether a whole sample file may have that length. */
static inline bool op_odb_is_length(uint64_t nr_bytes)
{
	uint64_t size = (nr_bytes - OP_ODB_NODES_OFFSET) / (sizeof(struct op_odb_node) + sizeof(uint32_t));

	return nr_bytes > OP_ODB_NODES_OFFSET && size >= 2 && !(size & (size - 1)) && nr_bytes == op_odb_file_bytes(size);
}

/* Bucket of a key; part of the format. */
static inline uint32_t op_odb_bucket(uint64_t key, uint32_t size)
{
	uint32_t t = (uint32_t)(key >> 32) ^ (uint32_t)key;

	return (t ^ (t >> 8)) & (size - 1);
}

/* Whether it is a header of oprofile 0.9. */
static inline bool op_odb_is_of_0_9(const struct op_odb_header *header)
{
	return !memcmp(header->magic, OP_ODB_MAGIC, sizeof(header->magic)) && header->version == OP_ODB_VERSION_0_9;
}

/* Whether it is a header of a machine of the other byte order (libop/odb/abi.h reads those). */
static inline bool op_odb_is_of_other_order(const struct op_odb_header *header)
{
	uint32_t version = __builtin_bswap32(header->version);

	return !memcmp(header->magic, OP_ODB_MAGIC, sizeof(header->magic)) &&
	       (version == OP_ODB_VERSION || version == OP_ODB_VERSION_0_9);
}

/* Whether header and descriptor are those of a sample file of 1.x: 0 or -EBADMSG. */
static inline int OP_MUST_CHECK op_odb_check_head(const struct op_odb_header *header, const struct op_odb_descr *descr)
{
	if (memcmp(header->magic, OP_ODB_MAGIC, sizeof(header->magic)) != 0 || header->version != OP_ODB_VERSION)
		return -EBADMSG;
	if (descr->size < 2 || descr->size > OP_ODB_SIZE_MAX || (descr->size & (descr->size - 1)))
		return -EBADMSG;
	return descr->current_size >= 1 && descr->current_size <= descr->size ? 0 : -EBADMSG;
}

/*
 * Key and value of every 32nd node lie in different sectors. A power cut may keep the value and
 * lose the key, so a node there with a value and key 0 is torn. The writer never puts a real key 0
 * there: before it, it writes a filler, a node with the key of the node before it and value 0.
 */
static inline bool op_odb_needs_filler(uint64_t key, uint32_t index)
{
	return !key && index % 32 == 25;
}

static_assert((OP_ODB_NODES_OFFSET + 25 * sizeof(struct op_odb_node) + 8) % 512 == 0, "key and value in two sectors");

/* Whether a power cut left only a part of the node. `node` points into the array, at that index. */
static inline bool op_odb_is_torn(const struct op_odb_node *node, uint32_t index)
{
	if (node->value)
		return op_odb_needs_filler(node->key, index);
	return !op_odb_needs_filler(0, index) || !node[-1].value || node->key != node[-1].key;
}

#endif
