/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Applies the side band: mappings, exec, fork, exit, and run-time kernel code. It comes from one
 * ring per CPU that is never swapped. It is drained after a swap and before the frozen samples are
 * resolved, so everything that a frozen sample can lie in is known. Records of all CPUs are applied
 * in the order of their time stamps.
 *
 * Sync thread only.
 */
#ifndef OPD_SIDEBAND_H
#define OPD_SIDEBAND_H

#include "libop/base/compiler.h"
#include "pipeline/capture/cpu_rings.h"
#include "pipeline/resolve/resolver.h"

struct opd_sideband_loss {
	uint64_t nr_lost;  /* records; 0: none */
	uint64_t until_ns; /* all of them are older */
};

/*
 * Applies all records up to until_ns (OP_CLOCK, read after the swap); younger records stay. Dropped
 * records are counted in the CPU's sideband_lost. *ret_loss, always set, has those of this host's
 * CPUs: /proc must be read for them. 0; -ENOMEM: something could not be kept.
 */
int opd_sideband_drain(struct opd_capture *capture, struct opd_resolver *resolver, uint64_t until_ns,
		       struct opd_sideband_loss *ret_loss) OP_NONNULL OP_MUST_CHECK;

#endif
