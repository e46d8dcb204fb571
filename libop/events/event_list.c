/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/events/event_list.h"

#include <errno.h>

#include "libop/base/grow.h"

#define MEMORY_NAME "IBS_OP_MEMORY"

static int append(struct op_event_list *list, const struct op_event *event)
{
	if (!op_grow(&list->events, &list->capacity, list->nr_events + 1))
		return -ENOMEM;
	list->events[list->nr_events++] = *event;
	return 0;
}

int op_event_list_open(struct op_event_list *list, const struct op_event *event)
{
	int err = append(list, event);

	list->nr_opened += !err;
	return err;
}

int op_event_list_derive(struct op_event_list *list, size_t sampler, const struct op_event *derived)
{
	uint32_t index = (uint32_t)list->nr_events;
	int err = append(list, derived);

	if (err)
		return err;
	if (list->events[sampler].end_derived == 0)
		list->events[sampler].first_derived = index;
	list->events[sampler].end_derived = index + 1;
	return 0;
}

/* File names have only the count and the unit mask. */
static bool shares_memory(const struct op_event *sampler, const struct op_event *memory)
{
	return memory->role == OP_EVENT_MEMORY && memory->count == sampler->count && memory->unit_mask == sampler->unit_mask;
}

int op_event_list_add_memory(struct op_event_list *list, size_t sampler)
{
	struct op_event memory = list->events[sampler];
	int err;

	for (uint32_t i = 0; i < list->nr_events; i++) {
		if (!shares_memory(&memory, &list->events[i]))
			continue;
		list->events[sampler].memory = i;
		return 0;
	}
	memory.role = OP_EVENT_MEMORY;
	memory.number = 0;
	memory.first_derived = memory.end_derived = 0;
	snprintf(memory.name, sizeof(memory.name), MEMORY_NAME);
	err = append(list, &memory);
	if (!err)
		list->events[sampler].memory = (uint32_t)(list->nr_events - 1);
	return err;
}

static int open_sampler(struct op_event_list *list, const struct op_ibs_sampler *sampler, const struct op_event *derived)
{
	struct op_event event = *derived;

	event.role = OP_EVENT_SAMPLER;
	event.number = 0;
	event.derived = NULL;
	event.sampler = *sampler;
	snprintf(event.name, sizeof(event.name), "%s", op_ibs_sampler_name(sampler->kind));
	return op_event_list_open(list, &event);
}

/* Adds a sampler for each kind of the wanted events. */
static int open_samplers(struct op_event_list *list, const struct op_event *wanted, size_t nr_wanted, char **ret_why)
{
	struct op_ibs_request *requests = calloc(nr_wanted + 1, sizeof(*requests));
	struct op_ibs_plan plan;
	size_t nr_requests = 0;
	int err = requests ? 0 : -ENOMEM;

	for (size_t i = 0; !err && i < nr_wanted; i++)
		if (wanted[i].role == OP_EVENT_DERIVED)
			requests[nr_requests++] =
				(struct op_ibs_request){ .event = wanted[i].derived, .sampler = wanted[i].sampler };
	if (!err)
		err = op_ibs_plan(requests, nr_requests, &plan, ret_why);
	free(requests);
	for (size_t s = 0; !err && s < plan.nr_samplers; s++) {
		size_t i = 0;

		while (wanted[i].role != OP_EVENT_DERIVED || wanted[i].sampler.kind != plan.samplers[s].kind)
			i++;
		err = open_sampler(list, &plan.samplers[s], &wanted[i]);
	}
	return err;
}

static int derive_wanted(struct op_event_list *list, size_t sampler, const struct op_event *wanted, size_t nr_wanted)
{
	enum op_ibs_kind kind = list->events[sampler].sampler.kind;
	int err = 0;

	for (size_t i = 0; !err && i < nr_wanted; i++)
		if (wanted[i].role == OP_EVENT_DERIVED && wanted[i].sampler.kind == kind)
			err = op_event_list_derive(list, sampler, &wanted[i]);
	if (!err && kind == OP_IBS_OP)
		err = op_event_list_add_memory(list, sampler);
	return err;
}

int op_event_list_make(const struct op_event *wanted, size_t nr_wanted, struct op_event_list *ret_list, char **ret_why)
{
	struct op_event_list list = { .events = NULL };
	int err = 0;

	for (size_t i = 0; !err && i < nr_wanted; i++)
		if (wanted[i].role == OP_EVENT_PLAIN || op_event_is_stacks(wanted[i].role))
			err = op_event_list_open(&list, &wanted[i]);
	if (!err)
		err = open_samplers(&list, wanted, nr_wanted, ret_why);
	for (size_t s = 0; !err && s < list.nr_opened; s++)
		if (list.events[s].role == OP_EVENT_SAMPLER)
			err = derive_wanted(&list, s, wanted, nr_wanted);
	if (err)
		op_event_list_free(&list);
	else
		*ret_list = list;
	return err;
}

void op_event_list_free(struct op_event_list *list)
{
	free(list->events);
	*list = (struct op_event_list){ .events = NULL };
}

size_t op_event_nr_opened(const struct op_event *events, size_t nr_events)
{
	size_t nr = 0;

	while (nr < nr_events && op_event_is_taken(events[nr].role))
		nr++;
	return nr;
}

bool op_events_have_cgroup(const struct op_event *events, size_t nr_events)
{
	for (size_t i = 0; i < nr_events; i++)
		if (events[i].with_cgroup)
			return true;
	return false;
}

bool op_event_is_taken(enum op_event_role role)
{
	return role == OP_EVENT_PLAIN || role == OP_EVENT_SAMPLER || op_event_is_stacks(role);
}

bool op_event_has_files(enum op_event_role role)
{
	return role == OP_EVENT_PLAIN || role == OP_EVENT_DERIVED;
}
