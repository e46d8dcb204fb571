/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/events/user_events.h"

#include <assert.h>
#include <stdio.h>
#include <unistd.h>

#include "libop/base/sys.h"
#include "libop/events/tracepoint.h"
#include "tools/common/log.h"
#include "tools/events/pfm_names.h"

static_assert(OPR_PFM_ALIAS_BYTES == OP_EVENT_NAME_BYTES, "names have the same size in opd");

static bool is_name_of_opd(const char *spec)
{
	char name[OP_EVENT_NAME_BYTES];

	snprintf(name, sizeof(name), "%.*s", (int)strcspn(spec, ":"), spec);
	return op_event_description(name) != NULL;
}

int opr_event_parse(const char *spec, struct op_event *ret_event, char **ret_why)
{
	const char *pfm_why = NULL;
	char *own = NULL;
	int err = op_event_parse(spec, ret_event, ret_why), pfm_err;

	if (err != -EINVAL || is_name_of_opd(spec) || op_tracepoint_has_subsystem(spec))
		return err;
	pfm_err = opr_pfm_translate(spec, &own, &pfm_why);
	if (pfm_err == -ENOENT)
		return err;
	free(*ret_why);
	*ret_why = NULL;
	if (!pfm_err)
		pfm_err = op_event_parse(own, ret_event, ret_why);
	else if (pfm_err == -EINVAL && asprintf(ret_why, "event %s: %s", spec, pfm_why) < 0)
		pfm_err = -ENOMEM;
	free(own);
	return pfm_err;
}

static bool is_same(const struct op_event *a, const struct op_event *b)
{
	return !strcmp(a->name, b->name) && a->count == b->count && a->unit_mask == b->unit_mask;
}

int opr_event_check_new(const struct op_event *events, size_t nr_events, const struct op_event *event, const char *title,
			const char *shown)
{
	for (size_t i = 0; i < nr_events; i++)
		if (is_same(&events[i], event))
			return opr_error(-EINVAL, "%s%s: given twice, the samples of both would be in one file", title, shown);
	return 0;
}

int opr_event_try(struct perf_event_attr *attr)
{
	int fd;

	attr->disabled = 1;
	fd = op_sys_perf_event_open(attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}

bool opr_event_is_of_kernel(const struct op_event *event)
{
	if (!event->user || event->type == PERF_TYPE_TRACEPOINT)
		return true;
	return event->type == PERF_TYPE_SOFTWARE &&
	       (event->config == PERF_COUNT_SW_CONTEXT_SWITCHES || event->config == PERF_COUNT_SW_CPU_MIGRATIONS ||
		event->config == PERF_COUNT_SW_CGROUP_SWITCHES);
}
