/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What the user wants of stacks: opcontrol --stacks=, and the key STACKS of daemonrc.
 *
 *   on | off | event | RATE[:BYTES]
 *
 * Any thread.
 */
#ifndef OP_STACK_SETUP_H
#define OP_STACK_SETUP_H

#include "libop/base/compiler.h"
#include "libop/base/text.h"

#define OP_STACK_RATE_MAX 10000u /* samples of a CPU per second */
/*
 * A record has 64 KiB: this leaves room for everything else in it, with a kernel chain of
 * OP_CHAIN_DEPTH_MAX.
 */
#define OP_STACK_BYTES_MAX (62u * 1024)

enum op_stack_mode {
	OP_STACKS_CONFIGURED, /* as Stacks= of opd.conf says */
	OP_STACKS_OFF,
	OP_STACKS_ON,    /* an event of their own */
	OP_STACKS_EVENT, /* the configured events carry stacks */
};

struct op_stack_setup {
	enum op_stack_mode mode;
	uint64_t rate_hz; /* 0: StackRate= */
	bool has_bytes;   /* else StackBytes= */
	uint64_t bytes;   /* 0: no copy, the kernel follows frame pointers */
};

/* Reads the words above. False: they are wrong; the message is the caller's. */
bool op_stack_setup_parse(const char *words, struct op_stack_setup *ret_setup) OP_NONNULL OP_MUST_CHECK;

/* Adds the words; nothing for OP_STACKS_CONFIGURED. */
void op_stack_setup_format(const struct op_stack_setup *setup, struct op_text *text) OP_NONNULL;

#endif
