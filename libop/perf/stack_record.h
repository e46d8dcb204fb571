/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The parts of a sample from which a call stack is made: the chain that the kernel followed, the
 * user registers, and a copy of the top of the user stack. They stand behind the words of
 * OP_SAMPLE_TYPE. Source: perf_event_open(2), perf_output_sample in kernel/events/core.c, and
 * enum perf_event_x86_regs and perf_event_arm_regs of <asm/perf_regs.h>.
 *
 * The kernel may also defer the user part of the chain (Linux 6.19): the sample then has a cookie,
 * and PERF_RECORD_CALLCHAIN_DEFERRED with the same cookie follows when the thread is back in user
 * code.
 *
 * Everything points into the record, and its contents are not trusted. Any thread.
 */
#ifndef OP_STACK_RECORD_H
#define OP_STACK_RECORD_H

#include "libop/base/compiler.h"
#include "libop/perf/chain.h"
#include "libop/perf/record.h"
#include "libop/unwind/row_table.h"

/* PERF_RECORD_CALLCHAIN_DEFERRED; older headers do not have it. */
#define OP_RECORD_CALLCHAIN_DEFERRED 22u

/*
 * Behind enum perf_sample_regs_abi, in records of a file: there is user code, but what the sample
 * had of its stack is missing.
 */
#define OP_STACK_ABI_MISSING 3u

/* How the samples of an event are laid out. */
struct op_stack_layout {
	uint64_t sample_type; /* of perf_event_attr */
	uint64_t registers;   /* sample_regs_user of perf_event_attr */
	uint16_t machine;     /* EM_X86_64 or EM_AARCH64 */
};

struct op_stack_record {
	bool has_chain;
	struct op_chain chain;
	const uint8_t *raw; /* of PERF_SAMPLE_RAW; NULL: none */
	size_t nr_raw_bytes;
	bool is_user;       /* the thread has user code; false also where nothing says so */
	bool has_registers; /* of a 64-bit program; a thread of the kernel has none */
	uint64_t pc;
	uint64_t registers[OP_UNWIND_REGISTERS]; /* by DWARF numbers; `known` has a bit for each */
	uint64_t known;
	const uint8_t *stack; /* the copy: from the stack pointer on */
	size_t nr_stack_bytes;
};

struct op_deferred_record {
	struct op_record_id who;
	uint64_t cookie; /* as in the samples that wait for it (struct op_chain) */
	struct op_chain chain;
};

/* The machine that runs this program; EM_NONE: the walk does not know it. */
uint16_t op_stack_machine(void);

/* The registers that the walk uses: sample_regs_user of perf_event_attr. 0: an unknown machine. */
uint64_t op_stack_registers(uint16_t machine);

/*
 * Decodes a sample, taken in `mode`. sample_type has OP_SAMPLE_TYPE, and may have CALLCHAIN, RAW,
 * REGS_USER, STACK_USER and CGROUP. 0; -EBADMSG: a part is longer than the record.
 */
int op_stack_record(const struct perf_event_header *header, enum op_cpumode mode, const struct op_stack_layout *layout,
		    struct op_stack_record *ret_record) OP_NONNULL OP_MUST_CHECK;

/* Decodes PERF_RECORD_CALLCHAIN_DEFERRED. 0 or -EBADMSG. */
int op_deferred_record(const struct perf_event_header *header, struct op_deferred_record *ret_record) OP_NONNULL OP_MUST_CHECK;

#endif
