/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The side band: mappings, exec, fork, exit and run-time kernel code, from one ring per CPU that is never swapped. It is
 * drained after a swap and before the frozen samples are resolved, so whatever a frozen sample can lie in has been read.
 * Records of several CPUs are applied in the order of their time stamps.
 *
 * Sync thread only.
 */
#ifndef OPD_SIDEBAND_H
#define OPD_SIDEBAND_H

#include "daemon/capture/cpu_rings.h"
#include "daemon/resolve/resolver.h"
#include "libop/base/compiler.h"

struct opd_sideband_loss {
	uint64_t nr_lost;  /* records, 0: nothing is missing */
	uint64_t until_ns; /* the last of them is older than this */
};

/*
 * Applies everything up to until_ns (OP_CLOCK, read after the swap); younger records stay. What the writer dropped is
 * counted in the CPU's sideband_lost. What CPUs of this host lost is told by *ret_loss, which is always set: /proc has to be asked. 0;
 * -ENOMEM: something could not be kept.
 */
int opd_sideband_drain(struct opd_capture *capture, struct opd_resolver *resolver, uint64_t until_ns,
		       struct opd_sideband_loss *ret_loss) OP_NONNULL OP_MUST_CHECK;

#endif
