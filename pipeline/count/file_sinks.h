/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The sinks of every session: its sample files and its file of stacks. Sync thread only. */
#ifndef OPD_FILE_SINKS_H
#define OPD_FILE_SINKS_H

#include "libop/base/compiler.h"
#include "pipeline/count/state.h"

/* Begins the list of sinks with those of the session. Other sinks are added behind them. */
void opd_file_sinks_open(struct opd_count *count) OP_NONNULL;

#endif
