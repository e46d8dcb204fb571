/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef BENCH_SIM_STACKS_H
#define BENCH_SIM_STACKS_H

#include "libop/base/compiler.h"

/*
 * Stacks of 256 CPUs in real time, in rings and at a rate as opd plans them for such a host, with
 * four programs whose shares of the time are known. Prints what came of it. False: an aim is
 * missed. Its session is left in TMPDIR.
 */
bool sim_stacks(uint64_t seconds) OP_MUST_CHECK;

#endif
