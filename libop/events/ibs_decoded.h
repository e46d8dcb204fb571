/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A decoded IBS sample. It has three layers. The fields of the registers are what the hardware left
 * there, stale words included. The values behind `has`, and the facts, are valid: they passed the
 * conditions of the manual, of the CPU generation and of its errata. Code that counts or shows uses
 * only those.
 */
#ifndef OP_IBS_SAMPLE_H
#define OP_IBS_SAMPLE_H

#include "libop/base/compiler.h"
#include "libop/events/ibs_fields.h"

#define OP_IBS_FETCH_BYTES_MIN 28u
#define OP_IBS_OP_BYTES_MIN    60u
#define OP_IBS_BYTES_MAX       76u /* with known capabilities; unknown ones may add registers */

enum op_ibs_kind { OP_IBS_FETCH, OP_IBS_OP, OP_IBS_NR_KINDS };

/* Why a record cannot be decoded; each reason has a counter. */
enum op_ibs_reason {
	OP_IBS_OK,
	OP_IBS_CUT,	   /* the payload is longer than its record */
	OP_IBS_SHORT,	   /* fewer registers than any generation has */
	OP_IBS_UNEVEN,	   /* not a whole number of registers */
	OP_IBS_NO_CAPS,	   /* no capability word: its lowest bit is always set */
	OP_IBS_EXTRA,	   /* more registers than the capability word announces */
	OP_IBS_NOT_VALID,  /* no sample in the registers: Val is 0 */
	OP_IBS_NO_ADDRESS, /* erratum 1197: a fetch at address 0 */
	OP_IBS_NR_REASONS,
};

/* Unusual properties of a record that was decoded. */
enum op_ibs_note {
	OP_IBS_NOTE_UNKNOWN_CAPS = 1, /* unknown capability bits; unknown registers are ignored */
	OP_IBS_NOTE_MISSING = 2,      /* a register that the capabilities announce is missing */
	/* a fetch of Linux before 5.10: its last words belong to ops and are ignored */
	OP_IBS_NOTE_OLD_FETCH = 4,
	OP_IBS_NOTE_REDACTED = 8,     /* the kernel removed the physical address */
};

#define OP_IBS_MEMBER(type, member, name, first, bits) type member;
struct op_ibs_fetch {
	OP_IBS_FIELDS_FETCH(OP_IBS_MEMBER)
};

struct op_ibs_op {
	OP_IBS_FIELDS_OP(OP_IBS_MEMBER)
};
#undef OP_IBS_MEMBER

/* Values that a sample may have; the member of one that it does not have is 0. */
enum op_ibs_has {
	/* otherwise there is only the interrupted ip of the sample */
	OP_IBS_HAS_IP = 1u << 0,
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
	/* before Zen 4: the L3 or the cache of another core, it is not known which */
	OP_IBS_SOURCE_NODE_CACHE,
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
	OP_IBS_O_PAGE_4K,      /* of the entry that was hit, in either TLB */
	OP_IBS_O_PAGE_2M,
	OP_IBS_O_PAGE_1G,
	OP_IBS_O_STREAMING,
	OP_IBS_O_BEYOND,       /* a load with data from beyond the caches of the core */
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
	uint32_t period;     /* of the hardware; the period of the sample is PERF_SAMPLE_PERIOD */
	uint8_t nr_words;    /* registers in the record */
	uint8_t notes;	     /* enum op_ibs_note */
	uint8_t width_bytes; /* of the access; 0: not known */
	uint8_t depth;	     /* outstanding misses at the end of this one */
	uint16_t latency, tlb_refill, tag_to_ret, comp_to_ret; /* cycles; 65535: or more */
	uint32_t has;	     /* enum op_ibs_has */
	enum op_ibs_source source;
	uint64_t facts;	     /* enum op_ibs_fetch_fact or op_ibs_op_fact, as OP_IBS_FACT */
	uint64_t ip, linear, physical, target;
	union {
		struct op_ibs_fetch fetch;
		struct op_ibs_op op;
	};
};

#endif
