/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/events/ibs_request.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>

#include "libop/base/parse.h"

#define GRANULARITY      16u
#define FETCH_PERIOD_MIN 0x10u
/* Linux 6.15; a smaller one gave samples of the sampler itself before */
#define OP_PERIOD_MIN    0x90u
#define PERIOD_MAX       (OP_EVENT_COUNT_MAX & ~(uint64_t)(GRANULARITY - 1))

#define FETCH_CONFIG_RANDOM     (UINT64_C(1) << 57)
#define FETCH_CONFIG_L3_MISS    (UINT64_C(1) << 59)
#define OP_CONFIG_L3_MISS       (UINT64_C(1) << 16)
#define OP_CONFIG_DISPATCHED    (UINT64_C(1) << 19)
#define CONFIG_MAX_CNT          UINT64_C(0xffff)
#define OP_CONFIG_MAX_CNT_EXT   UINT64_C(0x7f00000)
#define CONFIG_MAX_CNT_SHIFT    4
#define CONFIG2_SOFTWARE_FILTER 1u

/*
 * An op with one of these facts is not a load that missed the data cache. Software prefetches have
 * no latency, and stores have one only as a part of a read-modify-write.
 */
#define NEVER_SLOW_LOADS                                                                                                           \
	(OP_IBS_FACT(OP_IBS_O_STORE) | OP_IBS_FACT(OP_IBS_O_STREAMING) | OP_IBS_FACT(OP_IBS_O_STORE_BANK) |                        \
	 OP_IBS_FACT(OP_IBS_O_PREFETCH) | OP_IBS_FACT(OP_IBS_O_DC_HIT) | OP_IBS_FACT(OP_IBS_O_BRANCH) |                            \
	 OP_IBS_FACT(OP_IBS_O_MISPREDICTED) | OP_IBS_FACT(OP_IBS_O_TAKEN) | OP_IBS_FACT(OP_IBS_O_RETURN) |                        \
	 OP_IBS_FACT(OP_IBS_O_FUSED))

/* ---- periods ---- */

static uint64_t period_min(enum op_ibs_kind kind)
{
	return kind == OP_IBS_FETCH ? FETCH_PERIOD_MIN : OP_PERIOD_MIN;
}

uint64_t op_ibs_period_nearest(enum op_ibs_kind kind, uint64_t period)
{
	period = op_min_u64(op_max_u64(period, period_min(kind)), PERIOD_MAX);
	return (period + GRANULARITY / 2) / GRANULARITY * GRANULARITY;
}

/*
 * The period in attr.config, where it is without attr.sample_period, as Linux 6.15 reads it. 0:
 * bits that no CPU has, or a period that the kernel refuses.
 */
static uint64_t config_period(enum op_ibs_kind kind, uint64_t config)
{
	uint64_t allowed = CONFIG_MAX_CNT, period = (config & CONFIG_MAX_CNT) << CONFIG_MAX_CNT_SHIFT;

	if (kind == OP_IBS_FETCH) {
		allowed |= FETCH_CONFIG_L3_MISS | FETCH_CONFIG_RANDOM;
	} else {
		allowed |= OP_CONFIG_L3_MISS | OP_CONFIG_DISPATCHED | OP_CONFIG_MAX_CNT_EXT;
		period |= config & OP_CONFIG_MAX_CNT_EXT;
	}
	return config & ~allowed || period < period_min(kind) ? 0 : period;
}

/* ---- specifications ---- */

struct number {
	const char *what;
	uint64_t max;
};

enum { COUNT, UNIT_MASK, KERNEL, USER, NR_NUMBERS };

static const struct number numbers[NR_NUMBERS] = {
	[COUNT] = { "count", OP_EVENT_COUNT_MAX },
	[UNIT_MASK] = { "unit mask", UINT32_MAX },
	[KERNEL] = { "kernel flag", 1 },
	[USER] = { "user flag", 1 },
};

/* The state of parsing a specification. */
struct reading {
	const struct op_ibs_host *host;
	struct op_ibs_request request;
	uint64_t values[NR_NUMBERS];
	size_t nr_values;
	unsigned int filters_read; /* a bit for each row of filters */
	struct op_text why;
};

static void complain_of_count(enum op_ibs_kind kind, const char *count, uint64_t nearest, struct op_text *why)
{
	op_text_printf(why, "a count of %s is not possible (at least %" PRIu64 ", a multiple of %u), the nearest is %" PRIu64,
		       count, period_min(kind), GRANULARITY, nearest);
}

static void read_number(const char *field, struct reading *reading)
{
	enum op_ibs_kind kind = reading->request.event->kind;
	const struct number *number;
	int err;

	if (reading->nr_values == NR_NUMBERS) {
		op_text_printf(&reading->why, "too many numbers: remove '%s' and what follows it", field);
		return;
	}
	number = &numbers[reading->nr_values];
	err = op_parse_u64(field, 0, number->max, &reading->values[reading->nr_values]);
	if (err == -ERANGE && reading->nr_values == COUNT)
		complain_of_count(kind, field, op_ibs_period_nearest(kind, UINT64_MAX), &reading->why);
	else if (err && reading->nr_values == COUNT)
		op_text_printf(&reading->why, "count '%s' is not a number", field);
	else if (err)
		op_text_printf(&reading->why, "%s '%s' is not a number within 0 to %" PRIu64, number->what, field, number->max);
	reading->nr_values++;
}

static void read_l3_miss(const char *value OP_UNUSED, struct reading *reading)
{
	reading->request.sampler.filter.l3_miss_only = true;
}

static void read_random(const char *value OP_UNUSED, struct reading *reading)
{
	reading->request.sampler.filter.random = true;
}

static void read_load_latency(const char *value, struct reading *reading)
{
	uint64_t cycles, nearest = OP_IBS_LD_LAT_MIN;
	int err = op_parse_u64(value, OP_IBS_LD_LAT_MIN, OP_IBS_LD_LAT_MAX, &cycles);

	if (!err) {
		reading->request.sampler.filter.load_latency = (uint32_t)cycles;
	} else if (err == -ERANGE) {
		if (op_parse_u64(value, 0, OP_IBS_LD_LAT_MIN, &cycles) < 0)
			nearest = OP_IBS_LD_LAT_MAX;
		op_text_printf(&reading->why, "a load latency of %s cycles is not possible, the nearest is %" PRIu64, value,
			       nearest);
	} else {
		op_text_printf(&reading->why, "load latency '%s' is not a number", value);
	}
}

struct filter_row {
	const char *word; /* ends with '=' when it has a value */
	void (*read)(const char *value, struct reading *reading);
	unsigned int kinds; /* a bit for each enum op_ibs_kind with this filter */
	uint32_t caps;
	const char *since;
};

static const struct filter_row filters[] = {
	{ "l3miss", read_l3_miss, 1u << OP_IBS_FETCH | 1u << OP_IBS_OP, OP_IBS_CAP_ZEN4, "Zen 4" },
	{ "rand", read_random, 1u << OP_IBS_FETCH, 0, NULL },
	{ "ldlat=", read_load_latency, 1u << OP_IBS_OP, OP_IBS_CAP_LD_LAT, "Zen 5" },
};

static const struct filter_row *find_filter(const char *field, const char **ret_value)
{
	for (size_t i = 0; i < op_array_size(filters); i++) {
		const char *word = filters[i].word;
		size_t length = strlen(word);

		if (strncmp(field, word, length) != 0 || (word[length - 1] != '=' && field[length]))
			continue;
		*ret_value = field + length;
		return &filters[i];
	}
	return NULL;
}

static void read_filter(const char *field, struct reading *reading)
{
	const char *value;
	const struct filter_row *row = find_filter(field, &value);

	if (row && reading->filters_read >> (row - filters) & 1)
		op_text_printf(&reading->why, "the filter '%s' is there twice", field);
	else if (!row)
		op_text_printf(&reading->why, "'%s' is not a filter (l3miss, ldlat=CYCLES, rand)", field);
	else if (!(row->kinds >> reading->request.event->kind & 1))
		op_text_printf(&reading->why, "the filter '%s' is for %s only", field,
			       reading->request.event->kind == OP_IBS_OP ? "fetches" : "ops");
	else if ((reading->host->caps & row->caps) != row->caps)
		op_text_printf(&reading->why, "this CPU does not have the filter '%s' (%s and later do)", field, row->since);
	else
		row->read(value, reading);
	if (row)
		reading->filters_read |= 1u << (row - filters);
}

/* The first one that the CPU has; every CPU has the last. */
static uint32_t default_mask(enum op_ibs_kind kind, uint32_t caps)
{
	const struct op_ibs_unit_mask *mask;

	for (size_t i = 0; (mask = op_ibs_unit_mask(kind, i)); i++)
		if ((caps & mask->caps) == mask->caps)
			return mask->value;
	return 0;
}

static void check_mask(uint32_t value, struct reading *reading)
{
	const struct op_ibs_unit_mask *mask;

	for (size_t i = 0; (mask = op_ibs_unit_mask(reading->request.event->kind, i)); i++)
		if (mask->value == value)
			break;
	if (!mask)
		op_text_printf(&reading->why, "it has no unit mask %" PRIu32 " (ophelp lists those it has)", value);
	else if ((reading->host->caps & mask->caps) != mask->caps)
		op_text_printf(&reading->why, "this CPU cannot count dispatched ops, leave out unit mask %" PRIu32, value);
}

static void check_count(enum op_ibs_kind kind, uint64_t count, struct op_text *why)
{
	uint64_t nearest = op_ibs_period_nearest(kind, count);
	char digits[24];

	snprintf(digits, sizeof(digits), "%" PRIu64, count);
	if (count != nearest)
		complain_of_count(kind, digits, nearest, why);
}

/*
 * With a load latency the kernel drops all samples but those of loads that missed the data cache.
 */
static bool is_of_slow_loads(const struct op_ibs_event *event)
{
	return event->kind != OP_IBS_OP || !(event->facts & NEVER_SLOW_LOADS);
}

/* Sets the sampler from the numbers of the specification. */
static void take_numbers(struct reading *reading)
{
	struct op_ibs_sampler *sampler = &reading->request.sampler;
	enum op_ibs_kind kind = reading->request.event->kind;
	const uint64_t *values = reading->values;
	size_t nr = reading->nr_values;

	sampler->kind = kind;
	sampler->count = values[COUNT];
	sampler->unit_mask = nr > UNIT_MASK ? (uint32_t)values[UNIT_MASK] : default_mask(kind, reading->host->caps);
	sampler->kernel = nr > KERNEL ? values[KERNEL] : true;
	sampler->user = nr > USER ? values[USER] : true;
	if (!nr)
		op_text_printf(&reading->why, "the count is missing, write %s:COUNT", reading->request.event->name);
	else if (!sampler->kernel && !sampler->user)
		op_text_add(&reading->why, "neither kernel nor user code is to be sampled");
	else
		check_count(kind, sampler->count, &reading->why);
	if (!reading->why.length)
		check_mask(sampler->unit_mask, reading);
}

static void read_fields(char *rest, struct reading *reading)
{
	const struct op_ibs_event *event = reading->request.event;

	for (char *field; !reading->why.length && (field = strsep(&rest, ":"));) {
		if (isalpha((unsigned char)field[0]))
			read_filter(field, reading);
		else
			read_number(field, reading);
	}
	if (!reading->why.length)
		take_numbers(reading);
	if (!reading->why.length && reading->request.sampler.filter.load_latency && !is_of_slow_loads(event))
		op_text_add(&reading->why, "ldlat= keeps only loads that missed the data cache, and this event counts other ops");
	if (!reading->why.length && !op_ibs_event_is_there(event, &reading->host->cpu, reading->host->caps))
		op_text_add(&reading->why, "the IBS of this CPU does not have it");
}

int op_event_refuse(const char *spec, const char *why, char **ret_why)
{
	char *line;

	if (asprintf(&line, "event %s: %s", spec, why) < 0)
		return -ENOMEM;
	*ret_why = line;
	return -EINVAL;
}

int op_ibs_request_parse(const char *spec, const struct op_ibs_host *host, struct op_ibs_request *ret_request, char **ret_why)
{
	struct reading reading = { .host = host };
	char *copy = strdup(spec), *rest = copy, *name;
	int err = 0;

	if (!copy)
		return -ENOMEM;
	name = strsep(&rest, ":");
	reading.request.event = op_ibs_event_find(name);
	if (!reading.request.event) {
		err = -ENOENT;
	} else {
		read_fields(rest, &reading);
		if (reading.why.failed)
			err = -ENOMEM;
		else if (reading.why.length)
			err = op_event_refuse(spec, op_text_get(&reading.why), ret_why);
		else
			*ret_request = reading.request;
	}
	op_text_free(&reading.why);
	free(copy);
	return err;
}

void op_ibs_filter_format(const struct op_ibs_filter *filter, struct op_text *text)
{
	if (filter->l3_miss_only)
		op_text_add(text, ":l3miss");
	if (filter->random)
		op_text_add(text, ":rand");
	if (filter->load_latency)
		op_text_printf(text, ":ldlat=%" PRIu32, filter->load_latency);
}

/* ---- samplers ---- */

/* The setting in which two events of a kind differ, or NULL. */
static const char *difference(const struct op_ibs_sampler *a, const struct op_ibs_sampler *b)
{
	if (a->count != b->count)
		return "count";
	if (a->unit_mask != b->unit_mask)
		return "unit mask";
	if (a->kernel != b->kernel || a->user != b->user)
		return "choice of kernel and user code";
	if (a->filter.l3_miss_only != b->filter.l3_miss_only || a->filter.random != b->filter.random ||
	    a->filter.load_latency != b->filter.load_latency)
		return "filter";
	return NULL;
}

int op_ibs_plan(const struct op_ibs_request *requests, size_t nr_requests, struct op_ibs_plan *ret_plan, char **ret_why)
{
	const struct op_ibs_request *first[OP_IBS_NR_KINDS] = { NULL };
	struct op_ibs_plan plan = { .nr_samplers = 0 };

	for (size_t i = 0; i < nr_requests; i++) {
		const struct op_ibs_request *request = &requests[i], **of_kind = &first[request->sampler.kind];
		const char *what = *of_kind ? difference(&(*of_kind)->sampler, &request->sampler) : NULL;
		char why[256];

		if (what) {
			snprintf(why, sizeof(why),
				 "its %s differs from that of %s, but both events use the same samples: make "
				 "the two equal",
				 what, (*of_kind)->event->name);
			return op_event_refuse(request->event->name, why, ret_why);
		}
		if (!*of_kind) {
			*of_kind = request;
			plan.samplers[plan.nr_samplers++] = request->sampler;
		}
	}
	*ret_plan = plan;
	return 0;
}

void op_ibs_attr(const struct op_ibs_sampler *sampler, uint32_t pmu_type, struct perf_event_attr *attr)
{
	const struct op_ibs_filter *filter = &sampler->filter;
	bool is_fetch = sampler->kind == OP_IBS_FETCH;

	attr->size = sizeof(*attr);
	attr->type = pmu_type;
	attr->sample_period = sampler->count;
	if (filter->l3_miss_only)
		attr->config |= is_fetch ? FETCH_CONFIG_L3_MISS : OP_CONFIG_L3_MISS;
	if (is_fetch && filter->random)
		attr->config |= FETCH_CONFIG_RANDOM;
	if (!is_fetch && sampler->unit_mask & 1)
		attr->config |= OP_CONFIG_DISPATCHED;
	attr->config1 = filter->load_latency;
	attr->exclude_kernel = !sampler->kernel;
	attr->exclude_user = !sampler->user;
	if (!sampler->kernel || !sampler->user)
		attr->config2 = CONFIG2_SOFTWARE_FILTER;
}

void op_ibs_attr_read(const struct perf_event_attr *attr, struct op_ibs_sampler *sampler)
{
	bool is_fetch = sampler->kind == OP_IBS_FETCH;

	sampler->count = attr->sample_period ? attr->sample_period : config_period(sampler->kind, attr->config);
	sampler->unit_mask = !is_fetch && attr->config & OP_CONFIG_DISPATCHED;
	sampler->filter = (struct op_ibs_filter){
		.l3_miss_only = attr->config & (is_fetch ? FETCH_CONFIG_L3_MISS : OP_CONFIG_L3_MISS),
		.random = is_fetch && attr->config & FETCH_CONFIG_RANDOM,
		.load_latency = is_fetch ? 0 : (uint32_t)attr->config1,
	};
}
