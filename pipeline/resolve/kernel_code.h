/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What the kernel reports of its own code. /proc/kallsyms has the bounds of its text, and the names
 * and addresses of code that is made at run time (BPF programs and trampolines). bpf(2) has the
 * lengths of BPF programs.
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
 * A function of the kernel in which the memory of the process goes away. Then the registers of user
 * code are still there, but the stack that they lead to is not.
 */
struct opd_memory_end {
	uint64_t start, end;
	bool is_exec; /* execve: there may be another stack already, that of the new program */
};

#define OPD_MEMORY_ENDS_MAX 16u

/*
 * The list has no lengths and no filters of classic BPF (sockets, seccomp). It has no BPF program
 * at all when net.core.bpf_jit_harden is set.
 */
struct opd_kallsyms {
	uint64_t text_start, text_end; /* 0, 0: hidden, or there is no list */
	struct opd_kallsym *made;      /* code made at run time, sorted by start */
	size_t nr_made, capacity;
	bool has_bpf; /* the list has BPF programs with their addresses */
	struct opd_memory_end memory_ends[OPD_MEMORY_ENDS_MAX];
	size_t nr_memory_ends;
};

/*
 * Reads PROC-PATH/kallsyms. A list that cannot be read is empty. 0 or -ENOMEM; opd_kallsyms_free
 * frees in any case.
 */
int opd_kallsyms_read(const char *proc_path, struct opd_kallsyms *kallsyms) OP_NONNULL OP_MUST_CHECK;
void opd_kallsyms_free(struct opd_kallsyms *kallsyms) OP_NONNULL;

/*
 * The address of _text in PROC-PATH/kallsyms; 0: hidden, or there is no list. Stops at that line,
 * because the whole list takes tens of milliseconds.
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
 * Reads the functions of all BPF programs through bpf(2). That needs CAP_SYS_ADMIN, which opd has
 * only at its start and as root; without it the result is empty. Filters of classic BPF are
 * missing. 0 or -ENOMEM; opd_bpf_code_free frees in any case.
 */
int opd_bpf_code_read(struct opd_bpf_code *code) OP_NONNULL OP_MUST_CHECK;
void opd_bpf_code_free(struct opd_bpf_code *code) OP_NONNULL;

#endif
