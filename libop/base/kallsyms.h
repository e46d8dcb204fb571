/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The lines of /proc/kallsyms (proc_kallsyms(5)). Any thread. */
#ifndef OP_KALLSYMS_H
#define OP_KALLSYMS_H

#include "libop/base/compiler.h"

struct op_kallsyms_line {
	uint64_t address;   /* 0: hidden by kernel.kptr_restrict */
	char type;          /* as nm(1) prints it */
	const char *name;
	const char *module; /* without brackets, "bpf" for BPF code; NULL: the kernel itself */
};

/*
 * Parses "ADDRESS TYPE NAME\t[MODULE]\n"; the module and the newline may be missing. The strings
 * point into `line`, which changes. False: the line has another form.
 */
bool op_kallsyms_parse(char *line, struct op_kallsyms_line *ret_line) OP_NONNULL OP_MUST_CHECK;

#endif
