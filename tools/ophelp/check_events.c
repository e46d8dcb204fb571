/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <errno.h>
#include <inttypes.h>

#include "libop/base/parse.h"
#include "libop/events/tracepoint.h"
#include "tools/events/user_events.h"
#include "tools/ophelp/events.h"
#include "tools/common/log.h"

#define FIELDS      5 /* NAME:COUNT:MASK:KERNEL:USER */
#define NR_COUNTERS 32

struct request {
	const struct opr_help_event *event;
	uint64_t count, mask;
	int counter; /* -1: none yet, or none is needed */
};

/* ---- one event ---- */

static bool allows(const struct opr_mask_set *set, uint64_t mask)
{
	uint64_t all = 0;

	for (size_t i = 0; i < set->nr_values; i++) {
		if (set->values[i].value == mask)
			return true;
		all |= set->values[i].value;
	}
	return set->type == OPR_MASK_BITMASK && mask && !(mask & ~all);
}

static bool is_mask_allowed(const struct opr_help_events *events, const struct opr_help_event *event, uint64_t mask)
{
	const struct opr_mask_set *set = event->row ? opr_event_set(&events->files, event->row, 0) : NULL;

	if (!set)
		return !mask;
	for (size_t i = 0; (set = opr_event_set(&events->files, event->row, i)); i++)
		if (allows(set, mask))
			return true;
	return false;
}

static int take_count(const struct opr_help_check *check, const struct opr_help_event *event, const char *text, uint64_t *ret_count)
{
	uint64_t minimum = event->minimum * (check->callgraph ? OP_EVENT_CALLGRAPH_FACTOR : 1);

	if (check->ignore_count)
		return 0;
	if (!text || !*text)
		return opr_error(-EINVAL, "%s: the count is missing, write %s:COUNT", event->name, event->name);
	if (op_parse_u64(text, 0, UINT64_MAX, ret_count) < 0)
		return opr_error(-EINVAL, "%s: '%s' is no count", event->name, text);
	if (*ret_count < minimum)
		return opr_error(-EINVAL, "%s: count %" PRIu64 " is below the minimum of %" PRIu64, event->name, *ret_count,
				 minimum);
	return 0;
}

static int take_mask(const struct opr_help_events *events, struct request *request, const char *text)
{
	const struct opr_mask_value *named = text && *text ? opr_help_mask(events, request->event, text) : NULL;

	request->mask = named ? named->value : opr_help_default_mask(events, request->event);
	if (!text || !*text || named)
		return 0;
	if (op_parse_u64(text, 0, UINT32_MAX, &request->mask) < 0 || !is_mask_allowed(events, request->event, request->mask))
		return opr_error(-EINVAL, "%s: it has no unit mask %s", request->event->name, text);
	return 0;
}

static int take_flags(const struct request *request, char *const fields[FIELDS])
{
	for (size_t i = 3; i < FIELDS; i++)
		if (fields[i] && *fields[i] && strcmp(fields[i], "0") && strcmp(fields[i], "1"))
			return opr_error(-EINVAL, "%s: '%s' is neither 0 nor 1", request->event->name, fields[i]);
	return 0;
}

/* No list has an event that this host cannot count. Its own check knows the reason. */
static int fail_unknown(const struct opr_help_events *events, const char *spec)
{
	size_t length = op_tracepoint_has_subsystem(spec) ? strlen(spec) : strcspn(spec, ":");
	char *name = strndup(spec, length), *why = NULL;
	struct op_event event;
	int err;

	if (events->is_host && !opr_event_parse(spec, &event, &why) && op_event_check(&event, &why) < 0)
		err = opr_error(-EINVAL, "%s", why);
	else
		err = name ? opr_help_refuse(events, name) : opr_no_memory();
	free(name);
	free(why);
	return err;
}

static int read_request(const struct opr_help_events *events, const struct opr_help_check *check, char *spec,
			struct request *request)
{
	char *fields[FIELDS] = { NULL }, *rest = spec;
	int err;

	*request = (struct request){ .event = opr_help_take(events, &rest), .counter = -1 };
	if (!request->event)
		return fail_unknown(events, spec);
	for (size_t i = 1; i < FIELDS && rest; i++)
		fields[i] = strsep(&rest, ":");
	if (rest)
		return opr_error(-EINVAL, "%s: too many fields, an event is NAME:count[:unitmask[:kernel[:user]]]",
				 request->event->name);
	err = take_count(check, request->event, fields[1], &request->count);
	if (!err)
		err = take_mask(events, request, fields[2]);
	return err ? err : take_flags(request, fields);
}

/* ---- counters ---- */

/* Finds a counter for a request. A request that has the counter may move to another one. */
static bool assign(struct request *requests, size_t index, size_t *owners, bool *tried)
{
	uint32_t counters = requests[index].event->counters ? requests[index].event->counters : UINT32_MAX;

	for (size_t i = 0; i < NR_COUNTERS; i++) {
		if (!(counters & 1u << i) || tried[i])
			continue;
		tried[i] = true;
		if (owners[i] != SIZE_MAX && !assign(requests, owners[i], owners, tried))
			continue;
		owners[i] = index;
		requests[index].counter = (int)i;
		return true;
	}
	return false;
}

static int assign_all(struct request *requests, size_t nr_requests)
{
	size_t owners[NR_COUNTERS];

	for (size_t i = 0; i < NR_COUNTERS; i++)
		owners[i] = SIZE_MAX;
	for (size_t i = 0; i < nr_requests; i++) {
		bool tried[NR_COUNTERS] = { false };

		for (size_t j = 0; j < i; j++)
			if (requests[j].event == requests[i].event && requests[j].mask == requests[i].mask)
				return opr_error(-EINVAL, "%s: the same event twice", requests[i].event->name);
		if (!requests[i].event->ext && !assign(requests, i, owners, tried))
			return opr_error(-EINVAL, "%s: no counter is left for it", requests[i].event->name);
	}
	return 0;
}

static void write_requests(FILE *out, const struct request *requests, size_t nr_requests)
{
	for (size_t i = 0; i < nr_requests; i++) {
		if (requests[i].event->ext)
			fprintf(out, "%s ", requests[i].event->ext);
		else
			fprintf(out, "%d ", requests[i].counter);
	}
	fputc('\n', out);
}

int opr_help_check(FILE *out, const struct opr_help_events *events, const struct opr_words *specs,
		   const struct opr_help_check *check)
{
	struct request *requests = calloc(specs->nr_words + 1, sizeof(*requests));
	int err = requests ? 0 : opr_no_memory();

	for (size_t i = 0; i < specs->nr_words && !err; i++)
		err = read_request(events, check, specs->words[i], &requests[i]);
	if (!err)
		err = assign_all(requests, specs->nr_words);
	if (!err)
		write_requests(out, requests, specs->nr_words);
	free(requests);
	return err;
}
