/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Code and methods of a Java machine. In the looker. The results are as java_format.h says. */
#ifndef OPD_JAVA_CODE_H
#define OPD_JAVA_CODE_H

#include "libop/base/compiler.h"
#include "libop/base/text.h"
#include "pipeline/readers/far_memory.h"
#include "pipeline/readers/java_format.h"

/* The code at an address. is_exact: of a leaf, not behind a call. */
int opd_java_read_place(struct opd_far_memory *memory, const struct opd_java_layout *layout, uint64_t pc, bool is_exact,
			struct opd_java_place *ret_place,
			struct opd_java_scope scopes[OPD_JAVA_SCOPES_MAX]) OP_NONNULL OP_MUST_CHECK;

/* Adds struct opd_java_method and what follows it. */
int opd_java_read_method(struct opd_far_memory *memory, const struct opd_java_layout *layout, uint64_t method,
			 struct op_text *ret_text) OP_NONNULL OP_MUST_CHECK;

int opd_java_fingerprint(struct opd_far_memory *memory, const struct opd_java_layout *layout, uint64_t address, bool is_method,
			 uint64_t *ret_fingerprint) OP_NONNULL OP_MUST_CHECK;

#endif
