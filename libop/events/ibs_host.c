/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/events/ibs_host.h"

#include <errno.h>
#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#endif

#include "libop/base/file.h"

#define FAMILY_FIRST    0x10u /* with IBS */
#define FAMILY_WITHOUT  0x11u
#define CAPS_DEFAULT    0x7u /* of a CPU with IBS but without a valid leaf */
#define PMU_TYPE_FORMAT "/sys/bus/event_source/devices/%s/type"

/* ---- CPUID ---- */

#if defined(__x86_64__) || defined(__i386__)

#define LEAF_IBS       0x8000001bu
#define LEAF_EXTENDED  0x80000001u
#define IBS_BIT        (1u << 10) /* of ECX */
#define HYPERVISOR_BIT (1u << 31) /* of ECX */
#define BASE_FAMILY    0xfu

static void read_cpuid(struct op_ibs_cpuid *ret_cpuid)
{
	struct op_ibs_cpuid cpuid = { .caps = 0 };
	uint32_t a = 0, b = 0, c = 0, d = 0;

	if (__get_cpuid(0, &a, &b, &c, &d)) {
		const uint32_t words[] = { b, d, c };

		memcpy(cpuid.vendor, words, sizeof(words));
	}
	if (__get_cpuid(1, &a, &b, &c, &d)) {
		uint32_t family = a >> 8 & 0xf;

		cpuid.family = family + (family == BASE_FAMILY ? a >> 20 & 0xff : 0);
		cpuid.model = (a >> 4 & 0xf) | (family == BASE_FAMILY ? a >> 12 & 0xf0 : 0);
		cpuid.is_guest = c & HYPERVISOR_BIT;
	}
	if (__get_cpuid(LEAF_EXTENDED, &a, &b, &c, &d))
		cpuid.has_ibs = c & IBS_BIT;
	if (cpuid.has_ibs && __get_cpuid(LEAF_IBS, &a, &b, &c, &d))
		cpuid.caps = a;
	*ret_cpuid = cpuid;
}

#else

static void read_cpuid(struct op_ibs_cpuid *ret_cpuid)
{
	*ret_cpuid = (struct op_ibs_cpuid){ .caps = 0 };
}

#endif

/* ---- the kernel ---- */

static uint32_t pmu_type(enum op_ibs_kind kind)
{
	char path[sizeof(PMU_TYPE_FORMAT) + 16];
	uint64_t type;

	snprintf(path, sizeof(path), PMU_TYPE_FORMAT, op_ibs_sampler_name(kind));
	return op_file_read_u64(path, 1, UINT32_MAX, &type) < 0 ? 0 : (uint32_t)type;
}

static const char *obstacle(const struct op_ibs_cpuid *cpuid, const uint32_t pmu_types[OP_IBS_NR_KINDS])
{
	if (strcmp(cpuid->vendor, "AuthenticAMD") != 0 && strcmp(cpuid->vendor, "HygonGenuine") != 0)
		return "IBS is a part of AMD's CPUs, and this one is another vendor's";
	if (cpuid->family < FAMILY_FIRST || cpuid->family == FAMILY_WITHOUT)
		return "this CPU has no IBS, only AMD's families 10h, 12h and later have it";
	if (!cpuid->has_ibs && cpuid->is_guest)
		return "the hypervisor hides the IBS of this CPU: sample on the host, or give the guest IBS "
		       "(TIMER works everywhere)";
	if (!cpuid->has_ibs)
		return "the firmware has not enabled the IBS of this CPU: look for 'IBS' in the firmware's setup, or update it";
	if (!pmu_types[OP_IBS_FETCH] && !pmu_types[OP_IBS_OP])
		return "the CPU has IBS but the kernel does not offer it: the firmware did not set up its interrupt "
		       "(look for IBS in dmesg), or the kernel was built without it";
	return NULL;
}

int op_ibs_host_make(const struct op_ibs_cpuid *cpuid, const uint32_t pmu_types[OP_IBS_NR_KINDS], struct op_ibs_host *ret_host,
		     const char **ret_why)
{
	const char *why = obstacle(cpuid, pmu_types);
	struct op_ibs_host host;

	if (why) {
		*ret_why = why;
		return -ENODEV;
	}
	op_ibs_cpu_init(cpuid->family, cpuid->model, &host.cpu);
	host.caps = cpuid->caps & OP_IBS_CAP_AVAIL ? cpuid->caps : CAPS_DEFAULT;
	memcpy(host.pmu_types, pmu_types, sizeof(host.pmu_types));
	/* A sampler without a PMU cannot be used, whatever the CPU says. */
	if (!host.pmu_types[OP_IBS_FETCH])
		host.caps &= ~(uint32_t)OP_IBS_CAP_FETCH;
	if (!host.pmu_types[OP_IBS_OP])
		host.caps &= ~(uint32_t)OP_IBS_CAP_OP;
	*ret_host = host;
	return 0;
}

int op_ibs_host_read(struct op_ibs_host *ret_host, const char **ret_why)
{
	uint32_t pmu_types[OP_IBS_NR_KINDS];
	struct op_ibs_cpuid cpuid;

	read_cpuid(&cpuid);
	for (enum op_ibs_kind kind = 0; kind < OP_IBS_NR_KINDS; kind++)
		pmu_types[kind] = pmu_type(kind);
	return op_ibs_host_make(&cpuid, pmu_types, ret_host, ret_why);
}
