/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Source: libpfm(3), pfm_get_os_event_encoding(3). */
#include "tools/events/pfm_names.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <perfmon/pfmlib_perf_event.h>
#include <stdlib.h>
#include <string.h>

/* Where the name ends: before the colon of the first field that is a number. */
static size_t name_length(const char *spec)
{
	for (const char *colon = strchr(spec, ':'); colon; colon = strchr(colon + 1, ':'))
		if (isdigit((unsigned char)colon[1]))
			return (size_t)(colon - spec);
	return strlen(spec);
}

/* Returns what opr_pfm_translate returns. */
static int encode(const char *name, uint64_t *ret_code, const char **ret_why)
{
	struct perf_event_attr attr = { .size = sizeof(attr) };
	pfm_perf_encode_arg_t arg = { .attr = &attr, .size = sizeof(arg) };
	int result;

	if (pfm_initialize() != PFM_SUCCESS)
		return -ENOENT;
	result = pfm_get_os_event_encoding(name, PFM_PLM0 | PFM_PLM3, PFM_OS_PERF_EVENT, &arg);
	pfm_terminate();
	if (result == PFM_ERR_NOTFOUND || result == PFM_ERR_NOTSUPP)
		return -ENOENT;
	*ret_why = pfm_strerror(result);
	if (result != PFM_SUCCESS)
		return -EINVAL;
	*ret_why = "opd has a name of its own for it (opcontrol --list-events)";
	if (attr.type < PERF_TYPE_RAW)
		return -EINVAL;
	*ret_why = "it counts outside of the cores of the CPU, where nothing can be sampled";
	if (attr.type != PERF_TYPE_RAW)
		return -EINVAL;
	*ret_why = "it needs more than a code, and opd keeps only a code";
	if (attr.config1 || attr.config2)
		return -EINVAL;
	*ret_code = attr.config;
	return 0;
}

/* The event and its masks, without the PMU, as a part of a file name. */
static void make_alias(const char *name, char *alias, size_t nr_bytes)
{
	const char *pmu_end = strstr(name, "::");

	snprintf(alias, nr_bytes, "%s", pmu_end ? pmu_end + 2 : name);
	for (char *c = alias; *c; c++)
		if (!isalnum((unsigned char)*c))
			*c = '_';
}

int opr_pfm_translate(const char *spec, char **ret_spec, const char **ret_why)
{
	size_t length = name_length(spec);
	char *name = strndup(spec, length), alias[OPR_PFM_ALIAS_BYTES];
	uint64_t code = 0;
	int err = name ? encode(name, &code, ret_why) : -ENOMEM;

	if (!err) {
		make_alias(name, alias, sizeof(alias));
		err = asprintf(ret_spec, "r%" PRIx64 "=%s%s", code, alias, spec + length) < 0 ? -ENOMEM : 0;
	}
	free(name);
	return err;
}
