/* SPDX-License-Identifier: GPL-3.0-or-later */
/* opd_locate by a looker. Its looks go to files that anybody may have put there. */
#ifndef OPD_LOCATE_ASK_H
#define OPD_LOCATE_ASK_H

#include "libop/base/compiler.h"
#include "pipeline/files/locate.h"

/*
 * As opd_locate, by a looker when there is one (mapped->mount_views->lookers). Without an answer
 * the file is known by its record alone. Sync thread only.
 */
int opd_locate_ask(const struct opd_mapped *mapped, struct opd_located *ret_located) OP_NONNULL OP_MUST_CHECK;

/* The answer of a looker to OPD_LOOK_LOCATE. */
int opd_locate_answer(const char *question, size_t nr_bytes, struct op_text *answer) OP_NONNULL OP_MUST_CHECK;

#endif
