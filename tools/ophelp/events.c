/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/ophelp/events.h"

#include <errno.h>
#include <strings.h>

#include "tools/events/cpu_types.h"
#include "libop/base/grow.h"
#include "libop/base/nearest.h"
#include "tools/common/log.h"

#define TIMER_TYPE      "timer"
#define NAME_COLONS_MAX 16 /* of a specification, those between its fields too */

static int copy(char **to, const char *from)
{
	*to = from ? strdup(from) : NULL;
	return from && !*to ? -ENOMEM : 0;
}

static void free_event(struct opr_help_event *event)
{
	free(event->name);
	free(event->description);
	free(event->ext);
	free(event->as);
}

int opr_help_add(struct opr_help_events *events, const struct opr_help_event *event)
{
	struct opr_help_event added = *event;
	int err = copy(&added.name, event->name);

	err |= copy(&added.description, event->description ? event->description : "");
	err |= copy(&added.ext, event->ext);
	err |= copy(&added.as, event->as);
	if (err || !op_grow(&events->events, &events->capacity, events->nr_events + 1)) {
		free_event(&added);
		return opr_no_memory();
	}
	events->events[events->nr_events++] = added;
	return 0;
}

/* ---- a type of CPU ---- */

static int add_files(struct opr_help_events *events)
{
	int err = 0;

	for (size_t i = 0; i < events->files.nr_events && !err; i++) {
		const struct opr_event_row *row = &events->files.events[i];

		err = opr_help_add(events, &(struct opr_help_event){ .name = row->name,
								     .description = row->description,
								     .source = OPR_HELP_FILES,
								     .number = row->number,
								     .minimum = row->minimum,
								     .counters = row->counters,
								     .ext = row->ext,
								     .row = row });
	}
	return err;
}

int opr_help_set_type(struct opr_help_events *events, const char *name, const char *pretty)
{
	return copy(&events->cpu_type, name) | copy(&events->cpu_pretty, pretty) ? opr_no_memory() : 0;
}

int opr_help_read_type(struct opr_help_events *events, const char *cpu_type, bool name_only)
{
	const char *name = NULL, *pretty = opr_cpu_type_find(cpu_type, &name);
	int err;

	if (!pretty)
		return opr_error(-EINVAL, "%s: no such type of CPU", cpu_type);
	err = opr_help_set_type(events, name, pretty);
	if (err || name_only || !strcmp(name, TIMER_TYPE))
		return err;
	err = opr_event_files_read(&events->files, name);
	if (err == -ENOENT)
		opr_error(err,
			  "there are no descriptions of events for %s (" OPR_EVENTS_DIR_ENV " names a directory that has others)",
			  name);
	return err ? err : add_files(events);
}

/* ---- looking up ---- */

const struct opr_help_event *opr_help_find(const struct opr_help_events *events, const char *name)
{
	const struct opr_help_event *alike = NULL;

	for (size_t i = 0; i < events->nr_events; i++) {
		const struct opr_help_event *event = &events->events[i];

		if (!strcmp(event->name, name))
			return event;
		if (!alike && !strcasecmp(event->name, name))
			alike = event;
	}
	return alike;
}

int opr_help_refuse(const struct opr_help_events *events, const char *name)
{
	struct op_text hint = { 0 };
	struct op_nearest nearest;

	op_nearest_init(&nearest, name);
	for (size_t i = 0; i < events->nr_events; i++)
		op_nearest_try(&nearest, events->events[i].name);
	op_nearest_add_hint(&nearest, "", &hint);
	opr_error(-EINVAL, "no event named %s: ophelp lists them%s", name, op_text_get(&hint));
	op_text_free(&hint);
	return -EINVAL;
}

const struct opr_help_event *opr_help_take(const struct opr_help_events *events, char **spec)
{
	char *name = *spec, *colon = NULL;
	const struct opr_help_event *event = opr_help_find(events, name);
	char *ends[NAME_COLONS_MAX];
	size_t nr_ends = 0;

	for (colon = strchr(name, ':'); colon && nr_ends < NAME_COLONS_MAX; colon = strchr(colon + 1, ':'))
		ends[nr_ends++] = colon;
	if (event)
		*spec = NULL;
	while (!event && nr_ends) {
		colon = ends[--nr_ends];
		*colon = '\0';
		event = opr_help_find(events, name);
		*colon = ':';
		if (event)
			*spec = colon + 1;
	}
	return event;
}

const struct opr_mask_value *opr_help_mask(const struct opr_help_events *events, const struct opr_help_event *event,
					   const char *name)
{
	const struct opr_mask_set *set = event->row ? opr_event_set(&events->files, event->row, 0) : NULL;

	if (!name && !(name = set ? set->default_name : NULL))
		return NULL;
	for (size_t i = 0; event->row && (set = opr_event_set(&events->files, event->row, i)); i++)
		for (size_t j = 0; j < set->nr_values; j++)
			if (set->values[j].name && !strcmp(set->values[j].name, name))
				return &set->values[j];
	return NULL;
}

uint32_t opr_help_default_mask(const struct opr_help_events *events, const struct opr_help_event *event)
{
	const struct opr_mask_set *set = event->row ? opr_event_set(&events->files, event->row, 0) : NULL;
	const struct opr_mask_value *value = opr_help_mask(events, event, NULL);

	return value ? value->value : set ? set->default_value : 0;
}

void opr_help_free(struct opr_help_events *events)
{
	for (size_t i = 0; i < events->nr_events; i++)
		free_event(&events->events[i]);
	free(events->events);
	free(events->cpu_type);
	free(events->cpu_pretty);
	opr_event_files_free(&events->files);
	*events = (struct opr_help_events){ 0 };
}
