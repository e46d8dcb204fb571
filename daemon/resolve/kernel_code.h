/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What the kernel tells of its own code: /proc/kallsyms has the bounds of its text, and the names and addresses of code that was
 * made at run time (BPF programs and trampolines); bpf(2) has the lengths of BPF programs.
 *
 * Any thread.
 */
#ifndef OPD_KERNEL_CODE_H
#define OPD_KERNEL_CODE_H

#include "libop/base/compiler.h"

struct opd_kallsym {
	uint64_t start;
	char *name;
};

/*
 * /proc/kallsyms has no lengths, and no filters of classic BPF (sockets, seccomp). It has no BPF program at all when
 * net.core.bpf_jit_harden is set.
 */
struct opd_kallsyms {
	uint64_t text_start, text_end; /* 0, 0: hidden, or there is no list */
	struct opd_kallsym *made;      /* at run time, sorted by start */
	size_t nr_made, capacity;
	bool has_bpf; /* BPF programs are listed with their addresses */
};

/* Reads PROC-PATH/kallsyms; a list that cannot be read is an empty one. 0 or -ENOMEM; opd_kallsyms_free frees in any case. */
int opd_kallsyms_read(const char *proc_path, struct opd_kallsyms *kallsyms) OP_NONNULL OP_MUST_CHECK;
void opd_kallsyms_free(struct opd_kallsyms *kallsyms) OP_NONNULL;

/*
 * The address of _text in PROC-PATH/kallsyms; 0: hidden, or there is no list. Reads only up to that line, because the whole list
 * takes tens of milliseconds.
 */
uint64_t opd_kallsyms_text(const char *proc_path) OP_NONNULL OP_MUST_CHECK;

struct opd_bpf_code {
	struct opd_bpf_function {
		uint64_t start; /* address */
		uint32_t nr_bytes;
	} * functions; /* of all programs */
	size_t nr_functions, capacity;
};

/*
 * Asks bpf(2) for the functions of all BPF programs. That needs CAP_SYS_ADMIN, which opd has at most at its start, as root; a
 * kernel that refuses has no programs. Filters of classic BPF have no number there and are missing. 0 or -ENOMEM;
 * opd_bpf_code_free frees in any case.
 */
int opd_bpf_code_read(struct opd_bpf_code *code) OP_NONNULL OP_MUST_CHECK;
void opd_bpf_code_free(struct opd_bpf_code *code) OP_NONNULL;

#endif
