/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/events/ibs_cpu.h"

#include <errno.h>

#include "libop/base/parse.h"

#define FAMILY_LAST   0x1au
#define CPUID_BYTES   64
#define CPUID_FIELDS  4
#define ANY_MODEL     0, UINT32_MAX
#define FROM_MODEL(m) m, UINT32_MAX

#define OLD_NODES  (OP_IBS_NODE | OP_IBS_HIT_STATE)
#define OLD_STORES (OP_IBS_LD_BANK | OP_IBS_FORWARD | OP_IBS_CANCEL)
#define ZEN        (OP_IBS_MICROCODE | OP_IBS_FETCH_L2 | OP_IBS_L2 | OLD_NODES | OP_IBS_SRC_FAR | OP_IBS_DTLB_1G)
#define ZEN3_EARLY (OP_IBS_ERRATUM_1197 | OP_IBS_ERRATUM_1238 | OP_IBS_ERRATUM_1293 | OP_IBS_ERRATUM_1347)

struct generation {
	uint32_t family, model_first, model_last;
	uint32_t has, lacks; /* enum op_ibs_trait */
};

/* A CPU has the traits of all rows that match it; a later row may remove traits. */
static const struct generation generations[] = {
	{ 0x10, ANY_MODEL, OP_IBS_RESYNC | OLD_STORES | OP_IBS_ST_BANK | OLD_NODES | OP_IBS_SRC_L3 | OP_IBS_DTLB_1G, 0 },
	{ 0x12, ANY_MODEL, OP_IBS_RESYNC | OLD_STORES | OP_IBS_ST_BANK | OP_IBS_DTLB_1G, 0 },
	{ 0x14, ANY_MODEL, OP_IBS_RESYNC | OP_IBS_FORWARD | OP_IBS_ERRATUM_484, 0 },
	{ 0x15, ANY_MODEL, OLD_NODES | OP_IBS_DTLB_1G, 0 },
	{ 0x15, 0x00, 0x0f, OP_IBS_RESYNC | OLD_STORES | OP_IBS_SRC_L3 | OP_IBS_ERRATUM_717, 0 },
	{ 0x15, FROM_MODEL(0x30), OP_IBS_L2, 0 },
	{ 0x15, FROM_MODEL(0x60), OP_IBS_MICROCODE | OP_IBS_FETCH_L2, 0 },
	{ 0x16, ANY_MODEL, OP_IBS_FORWARD | OP_IBS_L2 | OP_IBS_DTLB_1G, 0 },
	{ 0x17, ANY_MODEL, ZEN, 0 },
	{ 0x18, ANY_MODEL, ZEN, 0 },
	{ 0x19, ANY_MODEL, ZEN, 0 },
	{ 0x19, 0x00, 0x0f, ZEN3_EARLY, OP_IBS_HIT_STATE },
	{ 0x19, 0x20, 0x5f, 0, OP_IBS_HIT_STATE },
	{ 0x1a, ANY_MODEL, ZEN, 0 },
	{ 0x1a, 0x00, 0x0f, OP_IBS_ERRATUM_1606, 0 },
	{ 0x1a, 0x50, 0x5f, OP_IBS_FETCH_GATED, 0 },
	{ 0x1a, 0x80, 0xaf, OP_IBS_FETCH_GATED, 0 },
	{ 0x1a, 0xc0, 0xcf, OP_IBS_FETCH_GATED, 0 },
};

void op_ibs_cpu_init(uint32_t family, uint32_t model, struct op_ibs_cpu *ret_cpu)
{
	uint32_t traits = family > FAMILY_LAST ? ZEN | OP_IBS_FETCH_GATED : 0;

	for (size_t i = 0; i < op_array_size(generations); i++) {
		const struct generation *row = &generations[i];

		if (row->family != family || model < row->model_first || model > row->model_last)
			continue;
		traits = (traits | row->has) & ~row->lacks;
	}
	*ret_cpu = (struct op_ibs_cpu){ .family = family, .model = model, .traits = traits };
}

void op_ibs_cpu_unknown(struct op_ibs_cpu *ret_cpu)
{
	*ret_cpu = (struct op_ibs_cpu){ .traits = OP_IBS_GUESSED };
}

/* The first row that matches: has all bits of `has` and none of `lacks`. */
static const struct {
	uint32_t has, lacks, traits;
} implied[] = {
	{ OP_IBS_CAP_ZEN4 | OP_IBS_CAP_DTLB_STATS, 0, ZEN | OP_IBS_FETCH_GATED },
	{ OP_IBS_CAP_ZEN4, 0, ZEN },
	{ OP_IBS_CAP_FETCH_EXTD_CTL, OP_IBS_CAP_OP_DATA4, (ZEN & ~OP_IBS_HIT_STATE) | ZEN3_EARLY },
	{ OP_IBS_CAP_FETCH_EXTD_CTL, 0, OP_IBS_MICROCODE | OP_IBS_FETCH_L2 | OP_IBS_L2 | OLD_NODES | OP_IBS_DTLB_1G },
	{ 0, 0, OP_IBS_ERRATUM_484 | OP_IBS_ERRATUM_717 },
};

void op_ibs_cpu_of_caps(uint32_t caps, struct op_ibs_cpu *ret_cpu)
{
	size_t i = 0;

	while ((caps & implied[i].has) != implied[i].has || caps & implied[i].lacks)
		i++;
	*ret_cpu = (struct op_ibs_cpu){ .traits = implied[i].traits | OP_IBS_GUESSED };
}

static const struct {
	uint32_t family, cpu_type;
} cpu_types[] = { { 0x10, 35 }, { 0x12, 51 }, { 0x14, 52 }, { 0x15, 53 } };

uint32_t op_ibs_cpu_type(const struct op_ibs_cpu *cpu)
{
	for (size_t i = 0; i < op_array_size(cpu_types); i++)
		if (cpu_types[i].family == cpu->family)
			return cpu_types[i].cpu_type;
	return OP_IBS_CPU_TYPE_GENERIC;
}

bool op_ibs_is_cpu_type(uint32_t cpu_type)
{
	for (size_t i = 0; i < op_array_size(cpu_types); i++)
		if (cpu_types[i].cpu_type == cpu_type)
			return true;
	return cpu_type == OP_IBS_CPU_TYPE_GENERIC;
}

int op_ibs_cpu_parse(const char *cpuid, struct op_ibs_cpu *ret_cpu)
{
	char copy[CPUID_BYTES], *rest = copy, *fields[CPUID_FIELDS];
	uint64_t numbers[CPUID_FIELDS] = { 0 };

	if (snprintf(copy, sizeof(copy), "%s", cpuid) >= (int)sizeof(copy))
		return -EINVAL;
	for (size_t i = 0; i < CPUID_FIELDS; i++) {
		fields[i] = strsep(&rest, ",");
		if (!fields[i] || (i && op_parse_u64(fields[i], 0, UINT32_MAX, &numbers[i]) < 0))
			return -EINVAL;
	}
	if (rest)
		return -EINVAL;
	if (strcmp(fields[0], "AuthenticAMD") != 0 && strcmp(fields[0], "HygonGenuine") != 0)
		return -ENODEV;
	op_ibs_cpu_init((uint32_t)numbers[1], (uint32_t)numbers[2], ret_cpu);
	return 0;
}
