/* SPDX-License-Identifier: GPL-3.0-or-later */
/* SIGINT, SIGTERM and SIGHUP end a program that has something to remove before. */
#ifndef OPR_INTERRUPT_H
#define OPR_INTERRUPT_H

#include "libop/base/stop.h"

/* From then on they set what *ret_stop points at, one for the whole program. Once, by the first thread. 0 or -errno. */
int opr_interrupt_catch(const struct op_stop **ret_stop) OP_NONNULL OP_MUST_CHECK;

#endif
