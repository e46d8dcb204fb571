/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * How long the code of the BPF programs is that are loaded, which /proc/kallsyms does not tell. The kernel says it by bpf(2) to who has CAP_SYS_ADMIN, and
 * opd has that at the start at most, as root. Filters of classic BPF have no number there, and are not told of.
 */
#ifndef OPD_BPF_CODE_H
#define OPD_BPF_CODE_H

#include <stddef.h>
#include <stdint.h>

#include "libop/base/compiler.h"

struct opd_bpf_code {
	struct opd_bpf_function {
		uint64_t start; /* address */
		uint32_t nr_bytes;
	} * functions; /* of all programs */
	size_t nr_functions, capacity;
};

/* Asks for all programs; a kernel that does not tell has none. 0 or -ENOMEM, with what came before. */
int opd_bpf_code_read(struct opd_bpf_code *code) OP_NONNULL OP_MUST_CHECK;

/* Allowed on zeroed code. */
void opd_bpf_code_free(struct opd_bpf_code *code) OP_NONNULL;

#endif
