/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What the program in the kernel (program.bpf.c) and opd share: the layouts of its maps and of its
 * records. Numbers have the byte order of the machine.
 *
 *   map               kind               key         value
 *   threads           task storage       thread      what the thread waits for; the program's alone
 *   control           array, mapped      0           struct opd_wait_control, which opd writes
 *   cpus              array, mapped      CPU         struct opd_wait_cpu, which that CPU writes
 *   output            perf event array   CPU         the event WAIT of that CPU
 *   kicks             array of rings     CPU         a BPF ring buffer: program.bpf.c says why
 *   notes             perf event array   CPU         the event of notes of that CPU
 *   deep_cpus         array, mapped      CPU         struct opd_deep_cpu, which that CPU writes
 *
 * opd may read a value while its CPU writes it: each number is whole, and its sums agree to within
 * one switch.
 */
#ifndef OPD_WAITS_SHARED_H
#define OPD_WAITS_SHARED_H

#include <linux/types.h>

#include "pipeline/drive/note_record.h"

/* States of a thread that does not run: enum op_wait_state (libop/session/wait_states.h). */
#define OPD_WAIT_BLOCKED	 1
#define OPD_WAIT_DISK		 2
#define OPD_WAIT_UNINTERRUPTIBLE 3
#define OPD_WAIT_RUNNABLE	 4
#define OPD_WAIT_PREEMPTED	 5
#define OPD_WAIT_FROZEN		 6
#define OPD_WAIT_STATES		 8 /* with 0, which is none, and one to spare */

/* What is left out where the verifier of a kernel refuses it. A bit for each in `parts`. */
enum opd_wait_part { OPD_PART_waits, OPD_PART_deep, OPD_PART_interpreters, OPD_NR_PARTS };
#define OPD_PART_BIT(part) (1u << (part))
#define OPD_PARTS_ALL	   (OPD_PART_BIT(OPD_NR_PARTS) - 1)

#define OPD_WAIT_QUANTUM_MAX 1000000000u
#define OPD_WAIT_KICK_BYTES 16384u /* of the ring buffer of one CPU: some 1,000 kicks */

struct opd_wait_control {
	__u64 quantum_ns[OPD_WAIT_STATES]; /* OPD_WAIT_QUANTUM_MAX at most; 0: all are recorded */
	__u64 open_ns; /* a wait of which opd was not told for so long is told */
	__u32 epoch;   /* another number each time that opd begins to sample; 0: it does not */
	/*
	 * A CPU may write so many records in a round, which ends when opd has read the rings: waits
	 * leave room for others when opd comes late.
	 */
	__u32 round, grant;
	/* of samples of STACKS: the bytes that the kernel copies; 0: there are no deep copies */
	__u32 stack_bytes;
	__u32 deep_round, deep_grant; /* bytes of deep copies that a CPU may write in a round */
	__u32 spare;
};

/* The parts of a wait that are recorded: in the state, and after the wake-up for a CPU. */
#define OPD_WAIT_PARTS 2

/* PERF_SAMPLE_RAW of a record of the event WAIT. */
struct opd_wait_record {
	__u64 weight_ns[OPD_WAIT_PARTS]; /* 0: the part is not recorded */
	__u64 begin_ns;                  /* of the wait: names it, together with the thread */
	__u32 state[OPD_WAIT_PARTS];
	__u32 waker;   /* the thread that ended the wait; 0: unknown */
	__u32 is_long; /* opd was told of the wait while it lasted */
	__u32 waker_pid;     /* its process */
	__u32 by_interrupt;  /* no thread did: a timer, a device, the network */
	char waker_name[16]; /* of the thread; it ends with a NUL */
};

struct opd_wait_cpu {
	/* switches = idle + kernel + emitted + skipped + lost */
	__u64 switches, idle, kernel, emitted, skipped, lost;
	/* of the lost ones: the begin was not seen; the interrupt came late; the ring was full */
	__u64 lost_unknown, lost_late, lost_full;
	__u64 lost_ns;	/* owed to threads that have ended */
	__u64 asked;	/* records that the quantum has asked for */
	__u64 deferred; /* of the skipped ones: the grant was used up */
	__u32 round, nr_left;
	/* of waits that are over, without the parts that opd was told of while they lasted */
	__u64 total_ns[OPD_WAIT_STATES];
	struct opd_wait_record record; /* the one that is due */
	__u32 due;                     /* its thread; 0: none is */
	__u32 spare;
};

/*
 * The kernel copies as many bytes of each stack. Where that does not reach the top of the stack,
 * the program writes the rest into notes, up to OPD_DEEP_STACK_MAX.
 */
#define OPD_DEEP_SLACK 256u /* beyond the top: where the first function of a program returns to */
#define OPD_DEEP_DISTANCE_MAX (64u << 20) /* what is farther is another stack */
#define OPD_DEEP_PASS_MASK 7u /* of stacks larger than OPD_DEEP_STACK_MAX, one of 8 is copied */

/* deep = copied + passed + denied + unread + lost */
struct opd_deep_cpu {
	__u64 samples; /* of programs */
	__u64 deep;    /* whose stack is larger than the copy of the kernel */
	__u64 copied;  /* the rest of the stack is in notes */
	__u64 passed;  /* larger than OPD_DEEP_STACK_MAX, and left out by chance */
	__u64 denied;  /* the grant was used up */
	__u64 unread;  /* the memory was not present, or a note was being written */
	__u64 lost;    /* the ring was full */
	__u64 bytes;   /* of stacks in notes */
	__u32 round, nr_left;
};

/*
 * Registers of user space in struct opd_wait_open: those that a called function keeps.
 * x86-64: ip, sp, bp, bx, r12 to r15; arm64: pc, sp, x29, x19 to x28, x30.
 */
#define OPD_WAIT_REGISTERS   14
#define OPD_WAIT_KERNEL_IPS  24

/* An element of the iterator `waiting`: a thread that waits now. */
struct opd_wait_open {
	__u64 weight_ns; /* since opd was last told */
	__u64 begin_ns;
	__u64 now_ns;
	__u64 cgroup;	 /* as PERF_SAMPLE_CGROUP; 0: unknown */
	__u32 pid, tid;
	__u32 state;
	__u32 nr_ips;	 /* of the kernel, the innermost first */
	__u64 registers[OPD_WAIT_REGISTERS];
	__u64 ips[OPD_WAIT_KERNEL_IPS];
};

#endif
