/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/events/user_events.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>

#include "libop/events/tracepoint.h"
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
