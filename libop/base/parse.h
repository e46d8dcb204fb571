/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Strict parsing of numbers: the whole string must match. These functions return 0, -EINVAL (not a
 * number) or -ERANGE (outside the limits). Lines of /proc/kallsyms. Any thread.
 */
#ifndef OP_PARSE_H
#define OP_PARSE_H

#include "libop/base/compiler.h"

/* Decimal, hexadecimal with 0x or octal with 0, as strtoull with base 0; no sign, no blanks. */
int op_parse_u64(const char *string, uint64_t min, uint64_t max, uint64_t *ret_value) OP_NONNULL OP_MUST_CHECK;

/* Decimal digits only, without a leading zero. */
int op_parse_decimal(const char *string, uint64_t max, uint64_t *ret_value) OP_NONNULL OP_MUST_CHECK;

/* "SECONDS.NANOSECONDS": a decimal of op_parse_decimal and nine digits; nanoseconds. */
int op_parse_time_ns(const char *string, uint64_t *ret_ns) OP_NONNULL OP_MUST_CHECK;

/* op_parse_u64 with a suffix K, M or G (powers of 1024); bytes. */
int op_parse_size_bytes(const char *string, uint64_t min, uint64_t max, uint64_t *ret_bytes) OP_NONNULL OP_MUST_CHECK;

/*
 * A time span of systemd.time(7), in microseconds: a sum of numbers with units, such as "1h 30min",
 * "2 weeks" or "0.5d". A number without a unit means seconds.
 */
int op_parse_span_us(const char *string, uint64_t *ret_us) OP_NONNULL OP_MUST_CHECK;

/* A line of /proc/kallsyms (proc_kallsyms(5)). */
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
