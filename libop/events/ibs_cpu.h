/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What family and model of an AMD CPU add to the capability word of its IBS: fields that only some
 * generations have, and errata. Source: doc/ibs.md. Any thread.
 */
#ifndef OP_IBS_CPU_H
#define OP_IBS_CPU_H

#include "libop/base/compiler.h"

/*
 * The capability word: EAX of CPUID function 8000_001B, and the first four bytes of every raw
 * sample.
 */
enum op_ibs_caps {
	OP_IBS_CAP_AVAIL = 1u << 0,
	OP_IBS_CAP_FETCH = 1u << 1,
	OP_IBS_CAP_OP = 1u << 2,
	OP_IBS_CAP_RW_CNT = 1u << 3,
	OP_IBS_CAP_OP_CNT = 1u << 4,	     /* dispatched ops can be counted instead of cycles */
	OP_IBS_CAP_BR_TARGET = 1u << 5,	     /* one word more in an op record */
	OP_IBS_CAP_OP_CNT_EXT = 1u << 6,     /* counts of 27 bits */
	OP_IBS_CAP_RIP_INVALID = 1u << 7,
	OP_IBS_CAP_BRN_FUSE = 1u << 8,
	OP_IBS_CAP_FETCH_EXTD_CTL = 1u << 9, /* one word more in a fetch record */
	OP_IBS_CAP_OP_DATA4 = 1u << 10,	     /* one word more in an op record */
	OP_IBS_CAP_ZEN4 = 1u << 11,	     /* L3 misses, op cache, data sources of five bits */
	OP_IBS_CAP_LD_LAT = 1u << 12,
	OP_IBS_CAP_STRM_ST = 1u << 16,	     /* streaming stores and the remote socket */
	/* page size as a number; DTLB bits with a physical address only */
	OP_IBS_CAP_DTLB_STATS = 1u << 19,
	OP_IBS_CAPS_KNOWN = 0xfffff,
};

enum op_ibs_trait {
	OP_IBS_RESYNC = 1u << 0,	/* BrnResync and MispReturn */
	OP_IBS_MICROCODE = 1u << 1,	/* Microcode */
	OP_IBS_FETCH_L2 = 1u << 2,	/* FetchL2Miss */
	OP_IBS_LD_BANK = 1u << 3,	/* LdBnkCon */
	OP_IBS_ST_BANK = 1u << 4,	/* StBnkCon */
	OP_IBS_FORWARD = 1u << 5,	/* StToLdFwd */
	OP_IBS_CANCEL = 1u << 6,	/* StToLdCan */
	OP_IBS_L2 = 1u << 7,		/* OP_DATA3 bits 31:20 and 63:48 */
	OP_IBS_NODE = 1u << 8,		/* RmtNode */
	OP_IBS_HIT_STATE = 1u << 9,	/* CacheHitSt */
	OP_IBS_SRC_L3 = 1u << 10,	/* source 1 in three bits is the local L3 */
	/* source 4 in three bits is a far cache, and source 2 always one of this node */
	OP_IBS_SRC_FAR = 1u << 11,
	OP_IBS_DTLB_1G = 1u << 12,	/* DcL1TlbHit1G, DcL2TlbHit1G */
	/* a fetch's status means something with a physical address only */
	OP_IBS_FETCH_GATED = 1u << 13,
	OP_IBS_ERRATUM_484 = 1u << 14,	/* OP_DATA2 invalid for write-combining accesses */
	/* NoMabAlloc without DcMiss is bogus, BR_TARGET unreliable */
	OP_IBS_ERRATUM_717 = 1u << 15,
	OP_IBS_ERRATUM_1197 = 1u << 16, /* fetches at address 0 */
	OP_IBS_ERRATUM_1238 = 1u << 17, /* IcMiss of a fetch is bogus */
	OP_IBS_ERRATUM_1293 = 1u << 18, /* SwPf or NoMabAlloc: no L2Miss, OpenMemReqs, OP_DATA2 */
	OP_IBS_ERRATUM_1347 = 1u << 19, /* another encoding of a fetch's page size */
	/* the load-latency filter works only together with L3MissOnly */
	OP_IBS_ERRATUM_1606 = 1u << 20,
	/* the CPU is not known: only traits of all CPUs with the capability word */
	OP_IBS_GUESSED = 1u << 21,
};

struct op_ibs_cpu {
	uint32_t family, model;
	uint32_t traits; /* enum op_ibs_trait */
};

/*
 * The traits of a CPU by family and model, extended parts added (Zen 4: 19h). Families without IBS
 * have no traits; families after 1Ah have those of the newest known one.
 */
void op_ibs_cpu_init(uint32_t family, uint32_t model, struct op_ibs_cpu *ret_cpu) OP_NONNULL;

/* An unknown CPU: op_ibs_decode uses the capability word of each record. */
void op_ibs_cpu_unknown(struct op_ibs_cpu *ret_cpu) OP_NONNULL;

/*
 * The traits that a capability word implies: those of the generation that has this word, with the
 * errata of all its CPUs. Before family 17h the word does not tell the generations apart; then
 * there is no L2Miss, and op_ibs_decode names no source beyond L1.
 */
void op_ibs_cpu_of_caps(uint32_t caps, struct op_ibs_cpu *ret_cpu) OP_NONNULL;

/*
 * The cpu_type of oprofile 1.x in the header of sample files: that of the family, or a generic one.
 */
uint32_t op_ibs_cpu_type(const struct op_ibs_cpu *cpu) OP_NONNULL OP_MUST_CHECK;
#define OP_IBS_CPU_TYPE_GENERIC 69u

/* True for a cpu_type that op_ibs_cpu_type returns. */
bool op_ibs_is_cpu_type(uint32_t cpu_type) OP_MUST_CHECK;

/*
 * As op_ibs_cpu_init, from the text "AuthenticAMD,family,model,stepping" of the feature CPUID of
 * perf.data, in decimal. 0; -EINVAL: another text; -ENODEV: another vendor.
 */
int op_ibs_cpu_parse(const char *cpuid, struct op_ibs_cpu *ret_cpu) OP_NONNULL OP_MUST_CHECK;

#endif
