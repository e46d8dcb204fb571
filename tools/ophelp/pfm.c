/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The events that libpfm4 knows of this CPU. A file of its own, because the header of libpfm4
 * defines structures of the kernel again. Source: libpfm(3).
 */
#include <errno.h>
#include <inttypes.h>
#include <perfmon/pfmlib_perf_event.h>

#include "tools/ophelp/events.h"

#define NAME_BYTES 256

static bool encode(const char *name, uint64_t *ret_code)
{
	struct perf_event_attr attr = { .size = sizeof(attr) };
	pfm_perf_encode_arg_t arg = { .attr = &attr, .size = sizeof(arg) };

	if (pfm_get_os_event_encoding(name, PFM_PLM0 | PFM_PLM3, PFM_OS_PERF_EVENT, &arg) != PFM_SUCCESS)
		return false;
	*ret_code = attr.config;
	return attr.type == PERF_TYPE_RAW;
}

static int add_pfm_event(struct opr_help_events *events, const char *pmu, int index)
{
	pfm_event_info_t info = { .size = sizeof(info) };
	char name[NAME_BYTES], as[32];
	uint64_t code = 0;
	bool raw;

	if (pfm_get_event_info(index, PFM_OS_PERF_EVENT, &info) != PFM_SUCCESS)
		return 0;
	snprintf(name, sizeof(name), "%s::%s", pmu, info.name);
	raw = encode(name, &code);
	snprintf(as, sizeof(as), "r%" PRIx64, code);
	return opr_help_add(events, &(struct opr_help_event){ .name = name,
							      .description = (char *)(uintptr_t)info.desc,
							      .source = OPR_HELP_pfm,
							      .number = raw ? code : info.code,
							      .as = raw ? as : NULL });
}

/* libpfm4 also has the kernel's generic names. opd's own table has them already. */
static bool is_of_cpu(pfm_pmu_t pmu, pfm_pmu_info_t *info)
{
	*info = (pfm_pmu_info_t){ .size = sizeof(*info) };
	return pfm_get_pmu_info(pmu, info) == PFM_SUCCESS && info->is_present && strncmp(info->name, "perf", 4) != 0;
}

int opr_help_add_pfm(struct opr_help_events *events)
{
	pfm_pmu_info_t info;
	int err = 0;

	if (pfm_initialize() != PFM_SUCCESS)
		return 0;
	for (int pmu = 0; pmu < PFM_PMU_MAX && !err; pmu++) {
		if (!is_of_cpu((pfm_pmu_t)pmu, &info))
			continue;
		for (int i = info.first_event; i != -1 && !err; i = pfm_get_event_next(i))
			err = add_pfm_event(events, info.name, i);
	}
	pfm_terminate();
	return err;
}
