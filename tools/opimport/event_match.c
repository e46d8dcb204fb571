/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/opimport/event_match.h"

#include <ctype.h>
#include <errno.h>

#include "libop/base/clock.h"
#include "libop/base/htable.h"
#include "libop/session/ledger_file.h"

#define ANY_COUNT       "100000000" /* valid for every event of opd */
#define OTHER_NUMBER    0x80000000u /* set in the number of a raw event */
#define KEPT_CHARACTERS "_-+=,@"
#define RAW_OPS         0xc1u /* a raw event that counts dispatched ops, sampled by IBS */

/* Finds an event of opd. False: opd does not know it. */
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

void opi_event_name(const struct op_perf_event *from, struct op_event *ret_event)
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
	event.carries_amount = op_perf_is_only_read(from);
	event.without_chain = event.carries_amount || !(attr->sample_type & PERF_SAMPLE_CALLCHAIN);
	event.has_stack = !event.carries_amount && op_perf_has_stack(from);
	event.stack_registers = attr->sample_type & PERF_SAMPLE_REGS_USER ? attr->sample_regs_user : 0;
	*ret_event = event;
}

/* ---- names ---- */

/* A name in use. The hash table is for files with very many events of one name. */
struct name {
	struct op_hlink link;
	char name[OP_EVENT_NAME_BYTES];
	uint64_t count;
	unsigned int number; /* for the next event of that name */
};

/* The list of events that is being made. */
struct making {
	const struct op_ibs_host *host;
	struct op_event_list *list;
	struct op_htable names;
	size_t nr_room; /* for derived events */
};

static uint64_t hash_of(const struct op_event *event)
{
	return op_hash_bytes(event->count, event->name, strlen(event->name));
}

static struct name *find_name(const struct making *making, const struct op_event *event)
{
	for (struct op_hlink *link = op_htable_first(&making->names, hash_of(event)); link; link = op_htable_next(link)) {
		struct name *name = op_container_of(link, struct name, link);

		if (name->count == event->count && !strcmp(name->name, event->name))
			return name;
	}
	return NULL;
}

static int add_name(struct making *making, const struct op_event *event)
{
	struct name *name = calloc(1, sizeof(*name));

	if (!name)
		return -ENOMEM;
	memcpy(name->name, event->name, sizeof(name->name));
	name->count = event->count;
	name->number = 2;
	if (!op_htable_insert(&making->names, &name->link, hash_of(event)))
		return 0;
	free(name);
	return -ENOMEM;
}

static void free_name(struct op_hlink *link, void *arg OP_UNUSED)
{
	free(op_container_of(link, struct name, link));
}

/* Adds a number to the name of an event that would share the files of another one. */
static int make_unique(struct making *making, struct op_event *event)
{
	struct name *same = find_name(making, event);

	while (same && find_name(making, event))
		snprintf(event->name, sizeof(event->name), "%.*s_%u", OP_EVENT_NAME_BYTES - 12, same->name, same->number++);
	return add_name(making, event);
}

/* ---- samplers ---- */

/* The settings of the sampler of an event. */
static struct op_ibs_sampler sampler_of(const struct perf_event_attr *attr, enum op_ibs_kind kind)
{
	struct op_ibs_sampler sampler = { .kind = kind, .kernel = !attr->exclude_kernel, .user = !attr->exclude_user };

	op_ibs_attr_read(attr, &sampler);
	if (attr->type == PERF_TYPE_RAW)
		sampler.unit_mask = attr->config == RAW_OPS;
	sampler.count = attr->freq ? 1 : op_min_u64(op_max_u64(sampler.count, 1), OP_EVENT_COUNT_MAX);
	return sampler;
}

/* The number of events that are derived from a sampler, the one of the memory view too. */
static size_t nr_derived(enum op_ibs_kind kind)
{
	const struct op_ibs_event *row;
	size_t nr = kind == OP_IBS_OP;

	for (size_t i = 0; (row = op_ibs_event(i)); i++)
		nr += row->kind == kind;
	return nr;
}

static void make_sampler(struct making *making, const struct perf_event_attr *attr, enum op_ibs_kind kind, struct op_event *event)
{
	making->nr_room -= nr_derived(kind);
	event->role = OP_EVENT_SAMPLER;
	event->sampler = sampler_of(attr, kind);
	event->count = event->sampler.count;
	event->unit_mask = event->sampler.unit_mask;
	event->cpu_type = op_ibs_cpu_type(&making->host->cpu);
	event->number = 0;
	snprintf(event->name, sizeof(event->name), "%s", op_ibs_sampler_name(kind));
}

static int add_event(struct making *making, const struct op_perf_event *from, const struct op_perf_features *features)
{
	struct op_event event;
	enum op_ibs_kind kind;
	int err;

	opi_event_name(from, &event);
	if (op_perf_is_ibs(features, from, &kind) && making->nr_room >= nr_derived(kind))
		make_sampler(making, &from->attr, kind, &event);
	err = make_unique(making, &event);
	return err ? err : op_event_list_open(making->list, &event);
}

/* Derives all events: one that the CPU cannot count has no samples. */
static int derive(struct making *making, size_t index)
{
	struct op_event_list *list = making->list;
	const struct op_ibs_event *row;
	int err = 0;

	for (size_t i = 0; !err && (row = op_ibs_event(i)); i++) {
		struct op_event derived;

		if (row->kind != list->events[index].sampler.kind)
			continue;
		op_event_derive(row, &list->events[index].sampler, making->host, &derived);
		err = make_unique(making, &derived);
		if (!err)
			err = op_event_list_derive(list, index, &derived);
	}
	if (!err && list->events[index].sampler.kind == OP_IBS_OP)
		err = op_event_list_add_memory(list, index);
	return err;
}

bool opi_events_find_cpu(const struct op_perf_features *features, struct op_ibs_cpu *ret_cpu)
{
	bool is_known = features->cpu_id && !op_ibs_cpu_parse(features->cpu_id, ret_cpu);

	if (!is_known)
		op_ibs_cpu_unknown(ret_cpu);
	return is_known;
}

int opi_events_match(const struct op_perf_events *from, const struct op_perf_features *features, const struct op_stop *stop,
		     struct op_ibs_cpu *ret_cpu, struct op_event_list *ret_list)
{
	struct op_ibs_host host = { .caps = OP_IBS_CAPS_KNOWN };
	struct making making = {
		.host = &host,
		.list = ret_list,
		.nr_room = OP_SESSION_LEDGER_EVENTS_MAX - op_min_u64(from->nr_events, OP_SESSION_LEDGER_EVENTS_MAX),
	};
	int err = 0;

	opi_events_find_cpu(features, &host.cpu);
	for (size_t i = 0; !err && i < from->nr_events; i++)
		err = op_stop_is_set(stop) ? -EINTR : add_event(&making, &from->events[i], features);
	for (size_t i = 0; !err && i < from->nr_events; i++)
		if (ret_list->events[i].role == OP_EVENT_SAMPLER)
			err = op_stop_is_set(stop) ? -EINTR : derive(&making, i);
	op_htable_visit(&making.names, free_name, NULL);
	op_htable_free(&making.names);
	*ret_cpu = host.cpu;
	return err;
}
