/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/events/cpu_types.h"

#include "libop/base/parse.h"

/*
 * The types of x86 and arm64. Rows without a name are other types of oprofile 1.x: their numbers
 * are valid.
 */
#define NR_CPU_TYPES 88

static const struct {
	const char *name;
	const char *pretty;
} cpu_types[NR_CPU_TYPES] = {
	[0] = { "i386/ppro", "Pentium Pro" },
	[1] = { "i386/pii", "PII" },
	[2] = { "i386/piii", "PIII" },
	[3] = { "i386/athlon", "Athlon" },
	[4] = { "timer", "CPU with timer interrupt" },
	[5] = { "i386/p4", "P4 / Xeon" },
	[6] = { "x86-64/hammer", "AMD64 processors" },
	[7] = { "i386/p4-ht", "P4 / Xeon with 2 hyper-threads" },
	[9] = { "i386/p6_mobile", "Pentium M (P6 core)" },
	[30] = { "i386/core", "Core Solo / Duo" },
	[32] = { "i386/core_2", "Core 2" },
	[35] = { "x86-64/family10", "AMD64 family10" },
	[41] = { "i386/arch_perfmon", "Intel Architectural Perfmon" },
	[42] = { "x86-64/family11h", "AMD64 family11h" },
	[44] = { "i386/core_i7", "Intel Core/i7" },
	[45] = { "i386/atom", "Intel Atom" },
	[47] = { "i386/nehalem", "Intel Nehalem microarchitecture" },
	[51] = { "x86-64/family12h", "AMD64 family12h" },
	[52] = { "x86-64/family14h", "AMD64 family14h" },
	[53] = { "x86-64/family15h", "AMD64 family15h" },
	[54] = { "i386/westmere", "Intel Westmere microarchitecture" },
	[57] = { "i386/sandybridge", "Intel Sandy Bridge microarchitecture" },
	[63] = { "i386/ivybridge", "Intel Ivy Bridge microarchitecture" },
	[67] = { "i386/haswell", "Intel Haswell microarchitecture" },
	[69] = { "x86-64/generic", "AMD64 generic" },
	[74] = { "i386/silvermont", "Intel Silvermont microarchitecture" },
	[77] = { "i386/broadwell", "Intel Broadwell microarchitecture" },
	[78] = { "arm/armv8-ca57", "ARM Cortex-A57" },
	[79] = { "arm/armv8-ca53", "ARM Cortex-A53" },
	[80] = { "i386/skylake", "Intel Skylake microarchitecture" },
	[81] = { "i386/goldmont", "Intel Goldmont microarchitecture" },
	[82] = { "i386/goldmontplus", "Intel Goldmont Plus microarchitecture" },
	[86] = { "i386/knightslanding", "Intel Knights Landing" },
};

const char *opr_cpu_type(uint32_t cpu_type, const char **ret_name)
{
	if (cpu_type >= NR_CPU_TYPES)
		return NULL;
	if (ret_name)
		*ret_name = cpu_types[cpu_type].name ? cpu_types[cpu_type].name : "unknown";
	return cpu_types[cpu_type].pretty ? cpu_types[cpu_type].pretty : "unknown processor type";
}

const char *opr_cpu_type_find(const char *name, const char **ret_name)
{
	uint64_t number;

	if (!op_parse_u64(name, 0, NR_CPU_TYPES - 1, &number))
		return cpu_types[number].name ? opr_cpu_type((uint32_t)number, ret_name) : NULL;
	for (uint32_t i = 0; i < NR_CPU_TYPES; i++)
		if (cpu_types[i].name && !strcmp(cpu_types[i].name, name))
			return opr_cpu_type(i, ret_name);
	return NULL;
}
