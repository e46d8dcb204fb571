/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/events/event_ibs.h"

#include <errno.h>

static bool names_ibs(const char *spec)
{
	char name[OP_EVENT_NAME_BYTES];
	size_t length = strcspn(spec, ":");

	if (length >= sizeof(name))
		return false;
	snprintf(name, sizeof(name), "%.*s", (int)length, spec);
	return op_ibs_event_find(name);
}

void op_event_derive(const struct op_ibs_event *from, const struct op_ibs_sampler *sampler, const struct op_ibs_host *host,
		     struct op_event *ret_event)
{
	struct op_event event = {
		.count = sampler->count,
		.unit_mask = sampler->unit_mask,
		.kernel = sampler->kernel,
		.user = sampler->user,
		.type = host->pmu_types[sampler->kind],
		.number = from->number,
		.role = OP_EVENT_DERIVED,
		.sampler = *sampler,
		.derived = from,
		.cpu_type = op_ibs_cpu_type(&host->cpu),
	};

	snprintf(event.name, sizeof(event.name), "%s", from->name);
	*ret_event = event;
}

int op_event_ibs_parse(const char *spec, struct op_event *ret_event, char **ret_why)
{
	struct op_ibs_request request;
	struct op_ibs_host host;
	const char *obstacle;
	int err;

	if (!names_ibs(spec))
		return -ENOENT;
	if (op_ibs_host_read(&host, &obstacle) < 0)
		return op_event_refuse(spec, obstacle, ret_why);
	err = op_ibs_request_parse(spec, &host, &request, ret_why);
	if (!err)
		op_event_derive(request.event, &request.sampler, &host, ret_event);
	return err;
}
