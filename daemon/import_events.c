/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <ctype.h>

#include "daemon/import.h"
#include "libop/clock.h"

#define ANY_COUNT       "100000000" /* one that every event of opd's may have */
#define OTHER_NUMBER    0x80000000u /* as raw events have it */
#define KEPT_CHARACTERS "_-+=,@"
#define RAW_OPS         0xc1u /* of a raw event, where the sampler takes its samples */

/* What opd itself calls it; false when it does not know the event. */
static bool find_known(uint32_t type, uint64_t config, struct op_event *ret_event)
{
	const struct op_event_info *info;

	for (size_t i = 0; (info = op_event_info(i)); i++) {
		char spec[OP_EVENT_NAME_BYTES + sizeof(ANY_COUNT)], *why;

		snprintf(spec, sizeof(spec), "%s:" ANY_COUNT, info->name);
		if (op_event_parse(spec, ret_event, &why) < 0) {
			free(why);
			continue;
		}
		if (!ret_event->is_timer && ret_event->type == type && ret_event->config == config)
			return true;
	}
	return false;
}

static void name_by_code(const struct perf_event_attr *attr, char name[OP_EVENT_NAME_BYTES])
{
	if (attr->type == PERF_TYPE_RAW)
		snprintf(name, OP_EVENT_NAME_BYTES, "r%llx", (unsigned long long)attr->config);
	else
		snprintf(name, OP_EVENT_NAME_BYTES, "type-%u-config-%llx", attr->type, (unsigned long long)attr->config);
}

static void clean(const char *from, char name[OP_EVENT_NAME_BYTES])
{
	size_t i;

	for (i = 0; i < OP_EVENT_NAME_BYTES - 1 && from[i]; i++)
		name[i] = isascii((unsigned char)from[i]) && (isalnum((unsigned char)from[i]) || strchr(KEPT_CHARACTERS, from[i]))
				  ? from[i]
				  : '_';
	name[i] = '\0';
}

static uint64_t count_of(const struct perf_event_attr *attr, bool is_clock)
{
	uint64_t count = attr->sample_period;

	if (attr->freq)
		count = is_clock && attr->sample_freq ? OP_NS_PER_S / attr->sample_freq : 1;
	return op_min_u64(op_max_u64(count, 1), OP_EVENT_COUNT_MAX);
}

void opd_import_name_event(const struct op_perf_event *from, struct op_event *ret_event)
{
	const struct perf_event_attr *attr = &from->attr;
	struct op_event event = { 0 };

	if (!find_known(attr->type, attr->config, &event)) {
		uint64_t code = attr->config ^ attr->config >> 31 ^ attr->config >> 62;

		event = (struct op_event){ .type = attr->type, .config = attr->config };
		event.number = OTHER_NUMBER | (uint32_t)(code & ~OTHER_NUMBER);
		name_by_code(attr, event.name);
	}
	if (from->name)
		clean(from->name, event.name);
	event.count = count_of(attr, op_event_is_clock(&event));
	event.kernel = !attr->exclude_kernel;
	event.user = !attr->exclude_user;
	event.every_event = false;
	event.without_chain = !(attr->sample_type & PERF_SAMPLE_CALLCHAIN);
	*ret_event = event;
}

static bool is_taken(const struct op_event *events, size_t nr_events, const struct op_event *event)
{
	for (size_t i = 0; i < nr_events; i++)
		if (events[i].count == event->count && !strcmp(events[i].name, event->name))
			return true;
	return false;
}

/* Two events that would share their files are told apart by a number. */
static void tell_apart(const struct op_event *events, size_t nr_events, struct op_event *event)
{
	char plain[OP_EVENT_NAME_BYTES];

	memcpy(plain, event->name, sizeof(plain));
	for (unsigned int number = 2; is_taken(events, nr_events, event); number++)
		snprintf(event->name, sizeof(event->name), "%.*s_%u", OP_EVENT_NAME_BYTES - 12, plain, number);
}

/* How the sampler of an event was set. */
static struct op_ibs_sampler sampler_of(const struct perf_event_attr *attr, enum op_ibs_kind kind)
{
	struct op_ibs_sampler sampler = { .kind = kind, .kernel = !attr->exclude_kernel, .user = !attr->exclude_user };

	op_ibs_attr_read(attr, &sampler);
	if (attr->type == PERF_TYPE_RAW)
		sampler.unit_mask = attr->config == RAW_OPS;
	sampler.count = attr->freq ? 1 : op_min_u64(op_max_u64(sampler.count, 1), OP_EVENT_COUNT_MAX);
	return sampler;
}

static int open_event(const struct op_perf_event *from, const struct op_perf_features *features, const struct op_ibs_host *host,
		      struct op_event_list *list)
{
	struct op_event event;
	enum op_ibs_kind kind;

	opd_import_name_event(from, &event);
	if (op_perf_is_ibs(features, from, &kind)) {
		event.role = OP_EVENT_SAMPLER;
		event.sampler = sampler_of(&from->attr, kind);
		event.count = event.sampler.count;
		event.unit_mask = event.sampler.unit_mask;
		event.cpu_type = op_ibs_cpu_type(&host->cpu);
		event.number = 0;
		snprintf(event.name, sizeof(event.name), "%s", op_ibs_sampler_name(kind));
	}
	tell_apart(list->events, list->nr_events, &event);
	return op_event_list_open(list, &event);
}

/* What the capabilities have no place for does not occur in the samples. */
static int derive(struct op_event_list *list, size_t index, const struct op_ibs_host *host)
{
	const struct op_ibs_event *row;
	int err = 0;

	for (size_t i = 0; !err && (row = op_ibs_event(i)); i++) {
		struct op_event derived;

		if (row->kind != list->events[index].sampler.kind)
			continue;
		op_event_derive(row, &list->events[index].sampler, host, &derived);
		tell_apart(list->events, list->nr_events, &derived);
		err = op_event_list_derive(list, index, &derived);
	}
	if (!err && list->events[index].sampler.kind == OP_IBS_OP)
		err = op_event_list_remember(list, index);
	return err;
}

bool opd_import_find_cpu(const struct op_perf_features *features, struct op_ibs_cpu *ret_cpu)
{
	bool is_known = features->cpu_id && !op_ibs_cpu_parse(features->cpu_id, ret_cpu);

	if (!is_known)
		op_ibs_cpu_unknown(ret_cpu);
	return is_known;
}

int opd_import_events(const struct op_perf_events *from, const struct op_perf_features *features, struct op_ibs_cpu *ret_cpu,
		      struct op_event_list *ret_list)
{
	struct op_ibs_host host = { .caps = OP_IBS_CAPS_KNOWN };
	int err = 0;

	opd_import_find_cpu(features, &host.cpu);
	for (size_t i = 0; !err && i < from->nr_events; i++)
		err = open_event(&from->events[i], features, &host, ret_list);
	for (size_t i = 0; !err && i < from->nr_events; i++)
		if (ret_list->events[i].role == OP_EVENT_SAMPLER)
			err = derive(ret_list, i, &host);
	*ret_cpu = host.cpu;
	return err;
}
