/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What /proc/kallsyms tells of a kernel: where its text lies, and where code begins that was made at run time (BPF programs and trampolines). The list has no
 * lengths, leaves out filters of classic BPF (sockets, seccomp), and all BPF programs where net.core.bpf_jit_harden is set.
 *
 * Any thread.
 */
#ifndef OPD_KALLSYMS_H
#define OPD_KALLSYMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libop/base/compiler.h"

struct opd_kallsym {
	uint64_t start;
	char *name;
};

struct opd_kallsyms {
	uint64_t text_start, text_end; /* 0, 0: hidden, or there is no list */
	struct opd_kallsym *made;      /* at run time, by start */
	size_t nr_made, capacity;
	bool has_bpf; /* BPF programs are among it, with their addresses */
};

/* Reads PROC-PATH/kallsyms; a list that cannot be read is an empty one. 0 or -ENOMEM; opd_kallsyms_free frees in any case. */
int opd_kallsyms_read(const char *proc_path, struct opd_kallsyms *kallsyms) OP_NONNULL OP_MUST_CHECK;

/* Where _text is by PROC-PATH/kallsyms, of which no more is read than up to there: the whole takes tens of milliseconds. 0: hidden, or there is no list. */
uint64_t opd_kallsyms_text(const char *proc_path) OP_NONNULL OP_MUST_CHECK;

void opd_kallsyms_free(struct opd_kallsyms *kallsyms) OP_NONNULL;

#endif
