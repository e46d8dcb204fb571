/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Whether this host has IBS and, if not, the reason: from CPUID and from the PMUs of the kernel.
 * Any thread.
 */
#ifndef OP_IBS_HOST_H
#define OP_IBS_HOST_H

#include "libop/events/ibs_request.h"

#define OP_IBS_VENDOR_BYTES 13

/*
 * Source: AMD64 Architecture Programmer's Manual, volume 3, CPUID functions 0, 1, 8000_0001 and
 * 8000_001B.
 */
struct op_ibs_cpuid {
	char vendor[OP_IBS_VENDOR_BYTES];
	uint32_t family, model; /* extended parts added */
	bool is_guest;
	bool has_ibs;
	uint32_t caps;
};

/*
 * What may be sampled, by CPUID and PMU types; 0 is the type of a kind without a PMU. 0; -ENODEV
 * and *ret_why, a constant text with the reason and the remedy.
 */
int op_ibs_host_make(const struct op_ibs_cpuid *cpuid, const uint32_t pmu_types[OP_IBS_NR_KINDS], struct op_ibs_host *ret_host,
		     const char **ret_why) OP_NONNULL OP_MUST_CHECK;

/* The same for this host. */
int op_ibs_host_read(struct op_ibs_host *ret_host, const char **ret_why) OP_NONNULL OP_MUST_CHECK;

#endif
