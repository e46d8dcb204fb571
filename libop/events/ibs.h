/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * IBS samples: from the bytes of PERF_SAMPLE_RAW to a struct. The payload is a capability word of 32 bits and the sampled
 * registers, 64 bits each, little endian, in a fixed order; the capability word and the length say which are there (doc/ibs.md).
 *
 * A decoded sample has three layers. The registers' fields are what the hardware left there, stale words and all. The values
 * behind `has` and the facts mean something: they passed the gates of the manual, of the generation and of its errata.
 * Whoever counts or shows looks at those.
 *
 * No function here allocates, keeps a pointer to the record or has a state; all may run beside all.
 */
#ifndef OP_IBS_H
#define OP_IBS_H

#include <linux/perf_event.h>

#include "libop/base/compiler.h"
#include "libop/events/ibs_cpu.h"
#include "libop/events/ibs_fields.h"

#define OP_IBS_FETCH_BYTES_MIN 28u
#define OP_IBS_OP_BYTES_MIN    60u
#define OP_IBS_BYTES_MAX       76u /* of what is known today; with unknown capabilities there may be more */

enum op_ibs_kind { OP_IBS_FETCH, OP_IBS_OP, OP_IBS_NR_KINDS };

/* Why a record cannot be used, each with a counter of its own. */
enum op_ibs_reason {
	OP_IBS_OK,
	OP_IBS_CUT,	   /* the sample says that there is more than its record has */
	OP_IBS_SHORT,	   /* fewer words than any generation has */
	OP_IBS_UNEVEN,	   /* no whole number of registers */
	OP_IBS_NO_CAPS,	   /* the capability word is none: its lowest bit is always set */
	OP_IBS_EXTRA,	   /* more registers than the capability word announces */
	OP_IBS_NOT_VALID,  /* the registers hold no sample: Val is 0 */
	OP_IBS_NO_ADDRESS, /* erratum 1197: a fetch at address 0 */
	OP_IBS_NR_REASONS,
};

/* What is unusual about a record that can be used. */
enum op_ibs_note {
	OP_IBS_NOTE_UNKNOWN_CAPS = 1, /* capability bits that opd does not know; words behind the known ones are not looked at */
	OP_IBS_NOTE_MISSING = 2,      /* a word that the capabilities announce is not there */
	OP_IBS_NOTE_OLD_FETCH = 4,    /* a fetch of a kernel before 5.10: its last words belong to ops and are not looked at */
	OP_IBS_NOTE_REDACTED = 8,     /* the kernel has taken the physical address out */
};

#define OP_IBS_MEMBER(type, member, name, first, bits) type member;
struct op_ibs_fetch {
	OP_IBS_FIELDS_FETCH(OP_IBS_MEMBER)
};

struct op_ibs_op {
	OP_IBS_FIELDS_OP(OP_IBS_MEMBER)
};
#undef OP_IBS_MEMBER

/* Values that a sample may or may not have; where it has not, the member is 0. */
enum op_ibs_has {
	OP_IBS_HAS_IP = 1u << 0,	 /* else the interrupted ip of the sample is all there is */
	OP_IBS_HAS_LINEAR = 1u << 1,	 /* of the data; the ip of a fetch is its linear address */
	OP_IBS_HAS_PHYSICAL = 1u << 2,	 /* of the data, or of the fetch */
	OP_IBS_HAS_TARGET = 1u << 3,
	OP_IBS_HAS_LATENCY = 1u << 4,	 /* a fetch's latency, a load's miss latency */
	OP_IBS_HAS_TLB_REFILL = 1u << 5,
	OP_IBS_HAS_RETIRE = 1u << 6,	 /* tag_to_ret and comp_to_ret */
	OP_IBS_HAS_DEPTH = 1u << 7,
	OP_IBS_HAS_SOURCE = 1u << 8,
};

/* Where a load's data came from. */
enum op_ibs_source {
	OP_IBS_SOURCE_NONE,
	OP_IBS_SOURCE_L1,
	OP_IBS_SOURCE_L2,
	OP_IBS_SOURCE_L3,	  /* Zen 4 and later: or another L1 or L2 below it */
	OP_IBS_SOURCE_NODE_CACHE, /* before Zen 4: the L3 or another core's cache, which one is not known */
	OP_IBS_SOURCE_NEAR_CACHE, /* of another core complex of this node */
	OP_IBS_SOURCE_FAR_CACHE,  /* of another node */
	OP_IBS_SOURCE_DRAM,
	OP_IBS_SOURCE_PMEM,
	OP_IBS_SOURCE_CXL,
	OP_IBS_SOURCE_IO,
	OP_IBS_SOURCE_PEER,	  /* coherent memory of a processor of another type */
	OP_IBS_NR_SOURCES,
};

/* Bits of op_ibs.facts of a fetch. */
enum op_ibs_fetch_fact {
	OP_IBS_F_ALL,
	OP_IBS_F_KILLED,
	OP_IBS_F_ATTEMPTED, /* not killed */
	OP_IBS_F_COMPLETED,
	OP_IBS_F_ABORTED,
	OP_IBS_F_ITLB_HIT,
	OP_IBS_F_ITLB_L2_HIT,
	OP_IBS_F_ITLB_MISS,
	OP_IBS_F_IC_MISS,
	OP_IBS_F_IC_HIT,
	OP_IBS_F_PAGE_4K,
	OP_IBS_F_PAGE_16K,
	OP_IBS_F_PAGE_2M,
	OP_IBS_F_PAGE_1G,
	OP_IBS_F_L2_MISS,
	OP_IBS_F_L3_MISS,
	OP_IBS_F_OC_MISS,
};

/* Bits of op_ibs.facts of an op. */
enum op_ibs_op_fact {
	OP_IBS_O_ALL,
	OP_IBS_O_BRANCH,
	OP_IBS_O_TAKEN,	       /* this and the next two: a branch */
	OP_IBS_O_MISPREDICTED,
	OP_IBS_O_RETURN,
	OP_IBS_O_RESYNC,
	OP_IBS_O_FUSED,
	OP_IBS_O_MICROCODE,
	OP_IBS_O_MEM,	       /* load, store or both */
	OP_IBS_O_LOAD,
	OP_IBS_O_STORE,
	OP_IBS_O_PREFETCH,
	OP_IBS_O_MISALIGNED,
	OP_IBS_O_LOCKED,
	OP_IBS_O_UC,
	OP_IBS_O_WC,
	OP_IBS_O_LOAD_BANK,
	OP_IBS_O_STORE_BANK,
	OP_IBS_O_FORWARD,
	OP_IBS_O_CANCEL,
	OP_IBS_O_DC_MISS,
	OP_IBS_O_DC_HIT,
	OP_IBS_O_NO_MAB,
	OP_IBS_O_L2_MISS,
	OP_IBS_O_L2_HIT,
	OP_IBS_O_TLB_HIT,
	OP_IBS_O_TLB_L2_HIT,
	OP_IBS_O_TLB_MISS,
	OP_IBS_O_PAGE_4K,      /* of the entry that was hit, in whichever TLB */
	OP_IBS_O_PAGE_2M,
	OP_IBS_O_PAGE_1G,
	OP_IBS_O_STREAMING,
	OP_IBS_O_BEYOND,       /* a load that got its data from beyond the core's caches */
	OP_IBS_O_LOCAL,	       /* this and the rest: BEYOND */
	OP_IBS_O_REMOTE,
	OP_IBS_O_REMOTE_SOCKET,
	OP_IBS_O_MODIFIED,
	OP_IBS_O_OWNED,
	OP_IBS_O_SRC_L3,
	OP_IBS_O_SRC_NODE_CACHE,
	OP_IBS_O_SRC_NEAR_CACHE,
	OP_IBS_O_SRC_FAR_CACHE,
	OP_IBS_O_SRC_CACHE_OF_NODE, /* NODE_CACHE or NEAR_CACHE: another core's */
	OP_IBS_O_SRC_DRAM,
	OP_IBS_O_SRC_PMEM,
	OP_IBS_O_SRC_CXL,
	OP_IBS_O_SRC_IO,
	OP_IBS_O_SRC_PEER,
	OP_IBS_O_NR_FACTS,
};

#define OP_IBS_FACT(bit) (UINT64_C(1) << (bit))
static_assert(OP_IBS_O_NR_FACTS <= 64, "facts of an op in one word");

struct op_ibs {
	enum op_ibs_kind kind;
	uint32_t caps;
	uint32_t period;     /* that the hardware was set to; the period of the sample is PERF_SAMPLE_PERIOD */
	uint8_t nr_words;    /* registers in the record */
	uint8_t notes;	     /* enum op_ibs_note */
	uint8_t width_bytes; /* of the access; 0: not known */
	uint8_t depth;	     /* outstanding misses when this one was finished */
	uint16_t latency, tlb_refill, tag_to_ret, comp_to_ret; /* cycles; 65535: that or more */
	uint32_t has;	     /* enum op_ibs_has */
	enum op_ibs_source source;
	uint64_t facts;	     /* enum op_ibs_fetch_fact or op_ibs_op_fact, as OP_IBS_FACT */
	uint64_t ip, linear, physical, target;
	union {
		struct op_ibs_fetch fetch;
		struct op_ibs_op op;
	};
};

/*
 * Decodes one payload, `raw_bytes` bytes at any alignment. The kind is known from the event, never from the length. OP_IBS_OK, or
 * why not, and *ret_ibs is untouched.
 */
enum op_ibs_reason op_ibs_decode(const struct op_ibs_cpu *cpu, enum op_ibs_kind kind, const void *raw, size_t raw_bytes,
				 struct op_ibs *ret_ibs) OP_NONNULL OP_MUST_CHECK;

/*
 * The payload within a PERF_RECORD_SAMPLE of an event with this sample_type, which has PERF_SAMPLE_RAW and not PERF_SAMPLE_READ.
 * The record is whole, as op_ring_next gives it. OP_IBS_OK, OP_IBS_CUT.
 */
enum op_ibs_reason op_ibs_raw(const struct perf_event_header *header, uint64_t sample_type, const void **ret_raw,
			      size_t *ret_raw_bytes) OP_NONNULL OP_MUST_CHECK;

/* A reason in words, for a ledger ("no whole number of registers"). */
const char *op_ibs_reason_text(enum op_ibs_reason reason) OP_MUST_CHECK;

/* The word for a source ("near cache"). */
const char *op_ibs_source_text(enum op_ibs_source source) OP_MUST_CHECK;

/* PERF_SAMPLE_DATA_SRC of an op, as Linux 6.6 and later derive it on this CPU. */
uint64_t op_ibs_data_src(const struct op_ibs_cpu *cpu, const struct op_ibs *ibs) OP_NONNULL OP_MUST_CHECK;

/* What was decoded and what was not, by reason. One writer. */
struct op_ibs_counts {
	uint64_t by_reason[OP_IBS_NR_REASONS]; /* [OP_IBS_OK]: decoded */
	uint64_t unknown_caps, missing, old_fetch, redacted;
};

/* Counts one record; `ibs` is looked at with OP_IBS_OK only. */
void op_ibs_count(struct op_ibs_counts *counts, enum op_ibs_reason reason, const struct op_ibs *ibs) OP_NONNULL;

/* A register's field: row `index` of a kind, from 0; NULL after the last. */
struct op_ibs_field {
	const char *name; /* as the manual has it, without the prefix */
	uint16_t offset, nr_bytes; /* in struct op_ibs */
};
const struct op_ibs_field *op_ibs_field(enum op_ibs_kind kind, size_t index) OP_MUST_CHECK;

/* What the sample has there. */
uint64_t op_ibs_field_value(const struct op_ibs *ibs, const struct op_ibs_field *field) OP_NONNULL OP_MUST_CHECK;

#endif
