/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The layout of a timeline. All numbers are little-endian. Source: doc/opd-timeline.5.
 *
 *   file     header, blocks
 *   block    head, payload, index, tail
 *   payload  sections, packed by zstd; encode.c and decode.c have their contents
 *
 * A change that an old reader would misread changes the magic number of the file. A new section, a
 * new kind of context, or a new reason of a gap changes nothing: readers skip those that they do
 * not know. Nor does a new kind of node: an old reader leaves out the blocks that have one.
 */
#ifndef OP_TIMELINE_FORMAT_H
#define OP_TIMELINE_FORMAT_H

#include "libop/base/compiler.h"

#define OP_TIMELINE_MAGIC       "opdtime1"
#define OP_TIMELINE_BLOCK_MAGIC "opdblock"
#define OP_TIMELINE_HEAD_MAGIC  0x6b6c6270u /* "pblk" */

/* Limits of the format: a reader refuses more. */
#define OP_TIMELINE_RAW_MAX    (8u << 20) /* bytes of a payload */
#define OP_TIMELINE_RATIO_MAX  128u       /* of a packed payload, beyond OP_TIMELINE_RATIO_FREE */
#define OP_TIMELINE_RATIO_FREE 4096u
#define OP_TIMELINE_BLOCKS_MAX (1u << 20)
#define OP_TIMELINE_NODES_MAX  (1u << 18)
#define OP_TIMELINE_CODE_MAX   (1u << 18)
#define OP_TIMELINE_IMAGES_MAX (1u << 16)
#define OP_TIMELINE_TEXTS_MAX  (1u << 16)
#define OP_TIMELINE_EVENTS_MAX 4096u
#define OP_TIMELINE_ROWS_MAX   (1u << 16) /* of the ledger, and of the context */
#define OP_TIMELINE_TEXT_BYTES 4096u      /* of one text */
#define OP_TIMELINE_DEPTH_MAX  2048u      /* of a node */

/* Level k of the index covers the 8^k blocks before. */
#define OP_TIMELINE_LEVEL_SHIFT 3u
#define OP_TIMELINE_LEVELS_MAX  7u

struct op_timeline_header {
	char magic[8];
	uint64_t reserved; /* 0 */
};

struct op_timeline_head {
	uint32_t magic, block_bytes;
};

/* Blocks before this one: where the first of them begins, and the span of all of them. */
struct op_timeline_level {
	uint64_t offset; /* in the file */
	uint64_t wall_first_ns, wall_last_ns;
};

struct op_timeline_clocks {
	uint64_t wall_ns; /* since 1970, UTC */
	uint64_t boot_ns; /* CLOCK_BOOTTIME: goes on in suspend */
	uint64_t mono_ns; /* CLOCK_MONOTONIC: the clock of samples */
};

struct op_timeline_tail {
	struct op_timeline_clocks begin, end;
	uint64_t payload_sum; /* op_seal_sum of the packed payload */
	uint32_t number;      /* of the block, from 0 */
	uint32_t nr_levels;
	uint32_t raw_bytes;    /* of the payload, unpacked */
	uint32_t packed_bytes; /* equal to raw_bytes: it is not packed */
	uint16_t gap;          /* enum op_timeline_gap */
	uint16_t flags;
	uint32_t block_bytes;
	char magic[8];
	uint64_t sum; /* op_seal_sum of the index and of this, up to here */
};

static_assert(sizeof(struct op_timeline_header) == 16 && sizeof(struct op_timeline_head) == 8 &&
		      sizeof(struct op_timeline_level) == 24 && sizeof(struct op_timeline_tail) == 96,
	      "opd-timeline(5)");

#define OP_TIMELINE_IS_LATE   1u /* the block before was not written yet, so this one took longer */
#define OP_TIMELINE_IS_MERGED 2u /* several spans were merged into this one */

/* Why there is nothing between the end of the block before and the begin of this one. */
enum op_timeline_gap {
	OP_GAP_NONE,      /* nothing is missing */
	OP_GAP_FIRST,     /* the session begins here */
	OP_GAP_OFF,       /* opd did not run */
	OP_GAP_BOOT,      /* the host was off */
	OP_GAP_SUSPENDED, /* the host was suspended */
	OP_GAP_PAUSED,    /* opcontrol --stop */
	OP_GAP_UNWRITTEN, /* a block could not be written */
	OP_GAP_DISABLED,  /* TimelineInterval=0 */
	OP_GAP_REMOVED,   /* older blocks were removed from the file */
	OP_NR_GAPS,
};

enum op_timeline_section {
	OP_SECTION_TEXTS = 1,
	OP_SECTION_EVENTS,
	OP_SECTION_IMAGES,
	OP_SECTION_CODE,
	OP_SECTION_NODES,
	OP_SECTION_LEDGER,
	OP_SECTION_CONTEXT,
	OP_SECTION_RECORDS, /* left out when the block has no waits */
};

/* What the weights of an event count. Readers show a number that they do not know as it is. */
enum op_timeline_unit {
	OP_UNIT_SAMPLES,
	OP_UNIT_MICROSECONDS,
	OP_UNIT_BYTES,
};

/*
 * The kinds of nodes. A child has a higher kind than its parent, and any level may be left out; but
 * code and RUNTIME may lie below all code, RUNTIME and STATE, and STATE not below code. Code is
 * (image, value): where its function starts, or a place in a function of unknown start, the first
 * that was sampled in its 64 bytes.
 */
enum op_minute_kind {
	OP_MINUTE_ROOT,
	OP_MINUTE_SAMPLES, /* value: number of the event; samples are below */
	OP_MINUTE_STACKS,  /* the same; stacks are below, the outermost frame first */
	OP_MINUTE_APP,     /* image: a dcookie */
	OP_MINUTE_COMM,    /* value: a text */
	OP_MINUTE_CGROUP,  /* value: a text */
	OP_MINUTE_THREAD,  /* value: process * 2^32 + thread; image: CPU + 1, or 0 */
	OP_MINUTE_END,     /* value: enum op_stack_end */
	OP_MINUTE_IMAGE,   /* image: a dcookie */
	OP_MINUTE_FUNCTION,
	OP_MINUTE_PLACE,
	OP_MINUTE_KERNEL_FUNCTION,
	OP_MINUTE_KERNEL_PLACE,
	OP_MINUTE_STATE,   /* value: enum op_wait_state; comes before the frames */
	OP_MINUTE_RUNTIME, /* value: the text of a function: libop/stacks/runtime_name.h */
	OP_MINUTE_NR_KINDS,
};

#define OP_MINUTE_BUCKET_BYTES 64u /* places in the same one are one place */

static inline bool op_minute_is_code(uint32_t kind)
{
	return kind >= OP_MINUTE_FUNCTION && kind <= OP_MINUTE_KERNEL_PLACE;
}

static inline bool op_minute_is_place(uint32_t kind)
{
	return kind == OP_MINUTE_PLACE || kind == OP_MINUTE_KERNEL_PLACE;
}

static inline bool op_minute_has_text(uint32_t kind)
{
	return kind == OP_MINUTE_COMM || kind == OP_MINUTE_CGROUP || kind == OP_MINUTE_RUNTIME;
}

static inline bool op_minute_may_lie_below(uint32_t kind, uint32_t parent)
{
	if (kind == OP_MINUTE_SAMPLES || kind == OP_MINUTE_STACKS)
		return parent == OP_MINUTE_ROOT;
	if (parent == OP_MINUTE_ROOT || kind >= OP_MINUTE_NR_KINDS)
		return false;
	if (kind == OP_MINUTE_STATE)
		return parent < OP_MINUTE_IMAGE;
	return op_minute_is_code(kind) || kind > parent || (kind == OP_MINUTE_RUNTIME && parent == OP_MINUTE_RUNTIME);
}

/* A row of the context: what the host was like. */
enum op_context_kind {
	OP_CONTEXT_CPU_BUSY = 1, /* index: CPU; value: us in which it was not idle */
	OP_CONTEXT_LOAD,         /* index: 1, 5 or 15 minutes; value: load * 100, at the end */
	/* index: 2 * (0 cpu, 1 memory, 2 io, 3 irq) + (0 some, 1 full); value: us of stall */
	OP_CONTEXT_PSI,
	OP_CONTEXT_MEMORY,       /* index: 0 total, 1 available; value: KiB, at the end */
};

#endif
