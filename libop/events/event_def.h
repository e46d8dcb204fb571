/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The event of a session. */
#ifndef OP_EVENT_DEF_H
#define OP_EVENT_DEF_H

#include "libop/base/compiler.h"
#include "libop/events/ibs_request.h"

#define OP_EVENT_NAME_BYTES 64
#define OP_EVENTS_MAX 128 /* in one setup */
#define OP_STACKS_NAME "STACKS"
#define OP_WAITS_NAME "WAIT"

/* How an event gets its samples. */
enum op_event_role {
	OP_EVENT_PLAIN,   /* the kernel takes a sample each `count` events */
	/* the same for an IBS sampler; it has no sample files, only derived events */
	OP_EVENT_SAMPLER,
	/* counted from the samples of a sampler; one sample may add more than 1 */
	OP_EVENT_DERIVED,
	/* the memory view of a sampler, below mem/, in no ledger (libop/session/memory_view.h) */
	OP_EVENT_MEMORY,
	/* a stack with each sample and no sample files; the name is OP_STACKS_NAME */
	OP_EVENT_STACKS,
	/*
	 * the same for threads that do not run, by a program in the kernel; the name is
	 * OP_WAITS_NAME. It counts microseconds
	 */
	OP_EVENT_WAITS,
	OP_NR_EVENT_ROLES,
};

struct op_event {
	/* canonical; without '.' and '/', since it is part of file names */
	char name[OP_EVENT_NAME_BYTES];
	/*
	 * sampling period: events, or ns for TIMER; STACKS: ns of a busy CPU for which a sample
	 * stands, whatever its source is
	 */
	uint64_t count;
	uint32_t unit_mask;
	bool kernel, user;
	bool is_timer;	   /* TIMER */
	/* a software event with count 1: each event is a sample, and its count is `taken` */
	bool every_event;
	uint32_t type;	   /* perf_event_attr.type */
	uint64_t config;   /* perf_event_attr.config */
	/*
	 * The header field ctr_event: 0 for TIMER, otherwise a number of opd that is never reused.
	 * Raw events: bit 31 and the code, folded to 31 bits. Tracepoints: bit 30 and a hash of the
	 * name.
	 */
	uint32_t number;
	enum op_event_role role;
	/* SAMPLER: its settings; DERIVED: those of its sampler */
	struct op_ibs_sampler sampler;
	const struct op_ibs_event *derived;  /* DERIVED */
	/* DERIVED: the header field cpu_type, which gives `number` its meaning */
	uint32_t cpu_type;
	/* SAMPLER: the indices of its events in the list (event_list.h) */
	uint32_t first_derived, end_derived;
	uint32_t memory;                     /* SAMPLER: the index of its MEMORY event; 0: none */
	bool without_chain;                  /* no call chains, even when other events have them */
	bool calls_of_stacks; /* without_chain, and its calls are those of the stacks of STACKS */
	uint32_t stack_bytes; /* copied from the user stack with each sample; 0: none */
	bool with_cgroup;     /* samples with a stack have their cgroup, too */
	bool carries_amount; /* of a recording: samples of other events carry its counts */
	/* of a recording: its samples have stacks, copied or as chains; with these registers */
	bool has_stack;
	uint64_t stack_registers; /* perf_event_attr.sample_regs_user */
	/* STACKS: samples of a busy CPU per second, as the kernel is asked for; 0: by count */
	uint32_t rate_hz;
};

#endif
