/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The answers of a looker to questions about a Java machine (java_format.h). In the looker. */
#ifndef OPD_READERS_JAVA_H
#define OPD_READERS_JAVA_H

#include "libop/base/compiler.h"
#include "libop/base/text.h"

/* 0; -EINVAL: no such question; -errno: the process cannot be read. */
int opd_java_answer(const char *question, size_t nr_bytes, struct op_text *answer) OP_NONNULL;

#endif
