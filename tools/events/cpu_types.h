/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The processor types of sample file headers, as oprofile 1.x numbers them. */
#ifndef OPR_CPU_TYPES_H
#define OPR_CPU_TYPES_H

#include "libop/base/compiler.h"

/* For reports: an arm64 host that oprofile has no name for. */
#define OPR_ARM64_PRETTY "ARMv8 PMU"

/* A type's name for reports; NULL: none. *ret_name, if not NULL: oprofile's short name. */
const char *opr_cpu_type(uint32_t cpu_type, const char **ret_name);

/* The same, by oprofile's short name ("x86-64/family10") or by the number in decimal. */
const char *opr_cpu_type_find(const char *name, const char **ret_name) OP_NONNULL;

#endif
