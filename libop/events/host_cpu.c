/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/events/host_cpu.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "libop/base/file.h"
#include "libop/base/parse.h"

#define DEVICES       "/sys/bus/event_source/devices/"
#define TIMER         "timer"
#define CPUINFO_BYTES (4u << 20)

/*
 * The PMU of the CPUs is "cpu" on x86. Where there may be several kinds of cores, each kind has a
 * PMU with a name of its own ("cpu_core", "armv8_pmuv3", "armv8_cortex_a72"), whose file "cpus"
 * says which cores are of this kind. Other PMUs have a file "cpumask".
 */
bool op_is_cpu_pmu(const char *name)
{
	char path[PATH_MAX];

	if (!strcmp(name, "cpu"))
		return true;
	snprintf(path, sizeof(path), DEVICES "%s/cpus", name);
	return !access(path, F_OK);
}

bool op_host_has_pmu(void)
{
	DIR *devices = opendir(DEVICES);
	bool has_pmu = false;

	for (struct dirent *entry; devices && !has_pmu && (entry = readdir(devices));)
		has_pmu = entry->d_name[0] != '.' && op_is_cpu_pmu(entry->d_name);
	if (devices)
		closedir(devices);
	return has_pmu;
}

/* A number behind "KEY<TAB>: " in /proc/cpuinfo; the first CPU's. */
static uint32_t find_number(const char *text, const char *key)
{
	uint64_t number = 0;

	for (const char *line = text; line && *line; line = strchr(line, '\n')) {
		char digits[16];

		line += *line == '\n';
		if (strncmp(line, key, strlen(key)) || (line[strlen(key)] != '\t' && line[strlen(key)] != ' '))
			continue;
		line += strcspn(line, ":\n");
		snprintf(digits, sizeof(digits), "%.*s", (int)strspn(line + 1 + (line[1] == ' '), "0123456789"),
			 line + 1 + (line[1] == ' '));
		return op_parse_u64(digits, 0, UINT32_MAX, &number) < 0 ? 0 : (uint32_t)number;
	}
	return 0;
}

/*
 * Source: oprofile-format, "cpu_type numbers"; the models of Intel: Intel SDM, volume 4, table 2-1.
 */
static const char *amd_type(uint32_t family)
{
	static const struct {
		uint32_t family;
		const char *type;
	} types[] = { { 0x6, "i386/athlon" },       { 0xf, "x86-64/hammer" },     { 0x10, "x86-64/family10" },
		      { 0x11, "x86-64/family11h" }, { 0x12, "x86-64/family12h" }, { 0x14, "x86-64/family14h" },
		      { 0x15, "x86-64/family15h" } };

	for (size_t i = 0; i < op_array_size(types); i++)
		if (types[i].family == family)
			return types[i].type;
	return "x86-64/generic";
}

static const char *intel_type(uint32_t family, uint32_t model)
{
	static const struct {
		uint8_t model;
		const char *type;
	} types[] = {
		{ 0x0e, "i386/core" },         { 0x0f, "i386/core_2" },         { 0x17, "i386/core_2" },
		{ 0x1d, "i386/core_2" },       { 0x1c, "i386/atom" },           { 0x26, "i386/atom" },
		{ 0x1a, "i386/nehalem" },      { 0x1e, "i386/nehalem" },        { 0x2e, "i386/nehalem" },
		{ 0x25, "i386/westmere" },     { 0x2c, "i386/westmere" },       { 0x2f, "i386/westmere" },
		{ 0x2a, "i386/sandybridge" },  { 0x2d, "i386/sandybridge" },    { 0x3a, "i386/ivybridge" },
		{ 0x3e, "i386/ivybridge" },    { 0x3c, "i386/haswell" },        { 0x3f, "i386/haswell" },
		{ 0x45, "i386/haswell" },      { 0x46, "i386/haswell" },        { 0x37, "i386/silvermont" },
		{ 0x4d, "i386/silvermont" },   { 0x3d, "i386/broadwell" },      { 0x47, "i386/broadwell" },
		{ 0x4f, "i386/broadwell" },    { 0x56, "i386/broadwell" },      { 0x4e, "i386/skylake" },
		{ 0x55, "i386/skylake" },      { 0x5e, "i386/skylake" },        { 0x8e, "i386/skylake" },
		{ 0x9e, "i386/skylake" },      { 0x5c, "i386/goldmont" },       { 0x5f, "i386/goldmont" },
		{ 0x7a, "i386/goldmontplus" }, { 0x57, "i386/knightslanding" }, { 0x85, "i386/knightslanding" },
	};

	for (size_t i = 0; family == 6 && i < op_array_size(types); i++)
		if (types[i].model == model)
			return types[i].type;
	return "i386/arch_perfmon";
}

/* "CPU part" of arm64; oprofile has names for few of them. */
static const char *arm_type(const char *text)
{
	static const struct {
		const char *line, *type;
	} types[] = { { "CPU part\t: 0xd03\n", "arm/armv8-ca53" }, { "CPU part\t: 0xd07\n", "arm/armv8-ca57" } };

	for (size_t i = 0; i < op_array_size(types); i++)
		if (strstr(text, "CPU implementer\t: 0x41\n") && strstr(text, types[i].line))
			return types[i].type;
	return "arm64";
}

const char *op_host_cpu_type(void)
{
	const char *type = TIMER;
	char *text = NULL;

	if (!op_host_has_pmu() || op_file_read(AT_FDCWD, "/proc/cpuinfo", CPUINFO_BYTES, &text) < 0)
		return TIMER;
	if (strstr(text, "AuthenticAMD") || strstr(text, "HygonGenuine"))
		type = amd_type(find_number(text, "cpu family"));
	else if (strstr(text, "GenuineIntel"))
		type = intel_type(find_number(text, "cpu family"), find_number(text, "model"));
	else if (strstr(text, "CPU implementer"))
		type = arm_type(text);
	free(text);
	return type;
}
