/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Numbers from text: strict, with nothing left over. All return 0 or -EINVAL (not a number), -ERANGE (outside the limits). */
#ifndef OP_PARSE_H
#define OP_PARSE_H

#include "libop/base/compiler.h"

/* Decimal, 0x hexadecimal or 0 octal, as strtoull with base 0; no sign, no blanks. */
int op_parse_u64(const char *string, uint64_t min, uint64_t max, uint64_t *ret_value) OP_NONNULL OP_MUST_CHECK;

/* The same with a size suffix K, M or G (powers of 1024). Result in bytes. */
int op_parse_size_bytes(const char *string, uint64_t min, uint64_t max, uint64_t *ret_bytes) OP_NONNULL OP_MUST_CHECK;

/* yes/no, true/false, on/off, 1/0, in any case, as systemd's configuration files. */
int op_parse_bool(const char *string, bool *ret_value) OP_NONNULL OP_MUST_CHECK;

/*
 * A time span as systemd.time(7) has it, in microseconds: numbers with a unit, added up, "1h 30min", "2 weeks", "0.5d"; a number without a unit is in
 * seconds.
 */
int op_parse_span_us(const char *string, uint64_t *ret_us) OP_NONNULL OP_MUST_CHECK;

#endif
