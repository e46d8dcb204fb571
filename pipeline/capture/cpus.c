/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pipeline/capture/cpus.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <sys/stat.h>

#define MAX_FREQ_PATH  "/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq"
#define CPU_NUMBER_MAX 65535

static int add_range(uint32_t first, uint32_t last, uint32_t **cpus, size_t *nr_cpus)
{
	uint32_t *more = realloc(*cpus, (*nr_cpus + last - first + 1) * sizeof(*more));

	if (!more)
		return -ENOMEM;
	*cpus = more;
	for (uint32_t cpu = first; cpu <= last; cpu++)
		more[(*nr_cpus)++] = cpu;
	return 0;
}

static int parse_range(const char **list, uint32_t *ret_first, uint32_t *ret_last)
{
	unsigned long first, last;
	char *end;

	if (!isdigit((unsigned char)**list))
		return -EINVAL;
	first = last = strtoul(*list, &end, 10);
	if (*end == '-') {
		if (!isdigit((unsigned char)end[1]))
			return -EINVAL;
		last = strtoul(end + 1, &end, 10);
	}
	if (first > last || last > CPU_NUMBER_MAX)
		return -EINVAL;
	*ret_first = (uint32_t)first;
	*ret_last = (uint32_t)last;
	*list = end;
	return 0;
}

static int parse_list(const char *list, uint32_t **ret_cpus, size_t *ret_nr_cpus)
{
	uint32_t *cpus = NULL, first, last;
	size_t nr_cpus = 0;
	int err;

	do {
		err = parse_range(&list, &first, &last);
		if (!err)
			err = add_range(first, last, &cpus, &nr_cpus);
	} while (!err && *list++ == ',');
	if (!err && list[-1] && list[-1] != '\n')
		err = -EINVAL;
	if (err) {
		free(cpus);
		return err;
	}
	*ret_cpus = cpus;
	*ret_nr_cpus = nr_cpus;
	return 0;
}

int opd_cpus_read(const char *path, uint32_t **ret_cpus, size_t *ret_nr_cpus)
{
	FILE *file = fopen(path, "re");
	char line[4096];
	int err = -EINVAL;

	if (!file)
		return -errno;
	if (fgets(line, sizeof(line), file))
		err = parse_list(line, ret_cpus, ret_nr_cpus);
	fclose(file);
	return err;
}

bool opd_cpus_has(const uint32_t *cpus, size_t nr_cpus, uint32_t cpu)
{
	for (size_t i = 0; i < nr_cpus; i++)
		if (cpus[i] == cpu)
			return true;
	return false;
}

double opd_cpu_speed_mhz(void)
{
	double mhz = 0, khz;
	char line[512];
	FILE *file = fopen(MAX_FREQ_PATH, "re");

	if (file) {
		if (fscanf(file, "%lf", &khz) == 1)
			mhz = khz / 1000;
		fclose(file);
	}
	file = mhz > 0 ? NULL : fopen("/proc/cpuinfo", "re");
	while (file && mhz <= 0 && fgets(line, sizeof(line), file))
		if (sscanf(line, "cpu MHz : %lf", &mhz) != 1)
			mhz = 0;
	if (file)
		fclose(file);
	return mhz;
}

uint64_t opd_cpu_online_id(uint32_t cpu)
{
	static const char *const names[] = { "topology", "cache" };
	char path[64];
	struct stat st;

	for (size_t i = 0; i < op_array_size(names); i++) {
		snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%" PRIu32 "/%s", cpu, names[i]);
		if (!stat(path, &st))
			return st.st_ino;
	}
	return 0;
}
