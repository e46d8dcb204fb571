/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The work of a looker (pipeline/files/lookers.h): the answers to all questions. */
#ifndef OPD_LOOKER_H
#define OPD_LOOKER_H

#include "libop/base/compiler.h"
#include "libop/base/text.h"

/* For struct op_helper_kind. */
int opd_look_answer(const char *question, size_t nr_bytes, int fd, struct op_text *answer) OP_NONNULL;

#endif
