/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/events/event.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <strings.h>
#include <unistd.h>

#include "libop/events/event_ibs.h"
#include "libop/base/clock.h"
#include "libop/base/file.h"
#include "libop/base/nearest.h"
#include "libop/base/parse.h"
#include "libop/base/sys.h"
#include "libop/events/tracepoint.h"

/*
 * Not 1 ms: a timer in step with the scheduler's tick samples each time slice at the same moments.
 * Programs of a busy host then had 0.95 to 1.04 of their samples, as the phase was. With this
 * period they have 1.00 (doc/measurements.md).
 */
#define TIMER_PERIOD_NS        997000
#define TIMER_MIN_NS           10000
#define HARDWARE_MIN           500
#define SAMPLES_PER_CPU_SECOND 1000
#define CPU_SPEED_UNKNOWN_KHZ  2000000
#define RAW_NUMBER_BIT         0x80000000u
#define FIELDS                 5

enum kind { KIND_TIMER, KIND_CLOCK, KIND_COUNT, KIND_HARDWARE };

struct row {
	struct op_event_info info;
	enum kind kind;
	uint32_t number;
	uint32_t type;
	uint64_t config;
};

#define HARDWARE(nr, event_name, other, code, text)                                                                                \
	{                                                                                                                          \
		{ event_name, other, text, HARDWARE_MIN }, KIND_HARDWARE, 0x100 + (nr), PERF_TYPE_HARDWARE, PERF_COUNT_HW_##code   \
	}
#define SOFTWARE(nr, event_name, other, code, text)                                                                                \
	{                                                                                                                          \
		{ event_name, other, text, 1 }, KIND_COUNT, 0x200 + (nr), PERF_TYPE_SOFTWARE, PERF_COUNT_SW_##code                 \
	}
#define CLOCK(nr, event_name, code, text)                                                                                          \
	{                                                                                                                          \
		{ event_name, NULL, text, TIMER_MIN_NS }, KIND_CLOCK, 0x200 + (nr), PERF_TYPE_SOFTWARE, PERF_COUNT_SW_##code       \
	}

/* Sample files contain the numbers: a row never changes its number, and no number is reused. */
static const struct row rows[] = {
	{ { "TIMER", NULL, "Timer interrupts of busy CPUs, the count is a period in ns", TIMER_MIN_NS },
	  KIND_TIMER,
	  0,
	  PERF_TYPE_SOFTWARE,
	  PERF_COUNT_SW_CPU_CLOCK },
	HARDWARE(1, "cycles", "cpu-cycles", CPU_CYCLES, "CPU cycles"),
	HARDWARE(2, "instructions", NULL, INSTRUCTIONS, "Instructions retired"),
	HARDWARE(3, "cache-references", NULL, CACHE_REFERENCES, "Cache accesses"),
	HARDWARE(4, "cache-misses", NULL, CACHE_MISSES, "Cache misses"),
	HARDWARE(5, "branches", "branch-instructions", BRANCH_INSTRUCTIONS, "Branch instructions retired"),
	HARDWARE(6, "branch-misses", NULL, BRANCH_MISSES, "Mispredicted branch instructions"),
	HARDWARE(7, "bus-cycles", NULL, BUS_CYCLES, "Bus cycles"),
	HARDWARE(8, "stalled-cycles-frontend", "idle-cycles-frontend", STALLED_CYCLES_FRONTEND,
		 "Cycles without instructions to issue"),
	HARDWARE(9, "stalled-cycles-backend", "idle-cycles-backend", STALLED_CYCLES_BACKEND,
		 "Cycles in which nothing could retire"),
	HARDWARE(10, "ref-cycles", NULL, REF_CPU_CYCLES, "CPU cycles at the nominal frequency"),
	CLOCK(1, "cpu-clock", CPU_CLOCK, "Time of a CPU, idle or not, the count is a period in ns"),
	CLOCK(2, "task-clock", TASK_CLOCK, "Time that tasks run, the count is a period in ns"),
	SOFTWARE(3, "page-faults", "faults", PAGE_FAULTS, "Page faults"),
	SOFTWARE(4, "context-switches", "cs", CONTEXT_SWITCHES, "Context switches"),
	SOFTWARE(5, "cpu-migrations", "migrations", CPU_MIGRATIONS, "Tasks moved to another CPU"),
	SOFTWARE(6, "minor-faults", NULL, PAGE_FAULTS_MIN, "Page faults without I/O"),
	SOFTWARE(7, "major-faults", NULL, PAGE_FAULTS_MAJ, "Page faults that waited for I/O"),
	SOFTWARE(8, "alignment-faults", NULL, ALIGNMENT_FAULTS, "Unaligned accesses that the kernel completed"),
	SOFTWARE(9, "emulation-faults", NULL, EMULATION_FAULTS, "Instructions that the kernel emulated"),
	SOFTWARE(10, "cgroup-switches", NULL, CGROUP_SWITCHES, "Context switches to another control group"),
};

static const struct row raw_row = { { "raw", NULL, NULL, HARDWARE_MIN }, KIND_HARDWARE, 0, PERF_TYPE_RAW, 0 };
static const struct row tracepoint_row = { { "tracepoint", NULL, NULL, 1 }, KIND_COUNT, 0, PERF_TYPE_TRACEPOINT, 0 };

static const struct row *find_row(const char *name)
{
	for (size_t i = 0; i < op_array_size(rows); i++)
		if (!strcasecmp(name, rows[i].info.name) || (rows[i].info.also && !strcasecmp(name, rows[i].info.also)))
			return &rows[i];
	return NULL;
}

const struct op_event_info *op_event_info(size_t index)
{
	return index < op_array_size(rows) ? &rows[index].info : NULL;
}

const char *op_event_description(const char *name)
{
	const struct row *row = find_row(name);
	const struct op_ibs_event *ibs = op_ibs_event_of_session(name);

	if (ibs)
		return ibs->description;
	return row ? row->info.description : NULL;
}

const char *op_event_kind(uint32_t number)
{
	if (number & RAW_NUMBER_BIT)
		return "Raw event of the CPU";
	return number & OP_TRACEPOINT_NUMBER_BIT ? "Tracepoint of the kernel" : NULL;
}

static void fill_from_row(struct op_event *event, const struct row *row)
{
	snprintf(event->name, sizeof(event->name), "%s", row->info.name);
	event->is_timer = row->kind == KIND_TIMER;
	event->type = row->type;
	event->config = row->config;
	event->number = row->number;
}

/* A name for a raw event: it is a part of file names and of specifications. */
static bool is_alias(const char *name)
{
	size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-");

	return length && !name[length] && length < OP_EVENT_NAME_BYTES && !find_row(name) && !op_ibs_event_of_session(name);
}

/* rNNN or rNNN=NAME, 1 to 16 hexadecimal digits. The canonical name has no leading zeroes. */
static bool fill_raw(struct op_event *event, const char *name)
{
	size_t nr_digits = strspn(name + 1, "0123456789abcdefABCDEF");
	const char *alias = name[1 + nr_digits] == '=' ? name + 2 + nr_digits : NULL;

	if (tolower((unsigned char)name[0]) != 'r' || nr_digits < 1 || nr_digits > 16 ||
	    (alias ? !is_alias(alias) : name[1 + nr_digits]))
		return false;
	fill_from_row(event, &raw_row);
	event->config = strtoull(name + 1, NULL, 16);
	event->number = RAW_NUMBER_BIT | (uint32_t)((event->config ^ event->config >> 31 ^ event->config >> 62) & 0x7fffffff);
	if (alias)
		snprintf(event->name, sizeof(event->name), "%s", alias);
	else
		snprintf(event->name, sizeof(event->name), "r%" PRIx64, event->config);
	return true;
}

static bool fill_tracepoint(struct op_event *event, const char *name, struct op_text *why)
{
	if (strlen(name) >= sizeof(event->name)) {
		op_text_add(why, "its name is too long");
		return false;
	}
	fill_from_row(event, &tracepoint_row);
	if (!op_tracepoint_find(name, &event->config, why))
		return false;
	event->number = op_tracepoint_number(name);
	snprintf(event->name, sizeof(event->name), "%s", name);
	return true;
}

bool op_event_number(const char *name, uint32_t *ret_number)
{
	const struct op_ibs_event *ibs = op_ibs_event_of_session(name);
	const struct row *row = find_row(name);
	struct op_event raw = { 0 };

	if (ibs)
		*ret_number = ibs->number;
	else if (row)
		*ret_number = row->number;
	else if (op_tracepoint_is_name(name))
		*ret_number = op_tracepoint_number(name);
	else if (!strchr(name, '=') && fill_raw(&raw, name))
		*ret_number = raw.number;
	else
		return false;
	return true;
}

bool op_event_is_raw_number(uint32_t number)
{
	return number & RAW_NUMBER_BIT;
}

/* Parses a number; a message about an error goes to `why`. */
static bool parse_field(const char *field, const char *what, uint64_t min, uint64_t max, uint64_t *ret_value, struct op_text *why)
{
	switch (op_parse_u64(field, min, max, ret_value)) {
	case 0:
		return true;
	case -ERANGE:
		op_text_printf(why, "%s %s is not within %" PRIu64 " to %" PRIu64, what, field, min, max);
		return false;
	default:
		op_text_printf(why, "%s '%s' is not a number", what, field);
		return false;
	}
}

/* An event whose name comes near. */
static void suggest(const char *name, struct op_text *why)
{
	const struct op_ibs_event *ibs;
	struct op_nearest nearest;

	op_nearest_init(&nearest, name);
	for (size_t i = 0; i < op_array_size(rows); i++) {
		op_nearest_try(&nearest, rows[i].info.name);
		if (rows[i].info.also)
			op_nearest_try(&nearest, rows[i].info.also);
	}
	for (size_t i = 0; (ibs = op_ibs_event(i)); i++)
		op_nearest_try(&nearest, ibs->name);
	op_nearest_add_hint(&nearest, "", why);
}

static bool parse_name(const char *name, struct op_event *event, const struct row **ret_row, struct op_text *why)
{
	const struct row *row = find_row(name);

	if (row) {
		fill_from_row(event, row);
	} else if (*name && fill_raw(event, name)) {
		row = &raw_row;
	} else if (op_tracepoint_is_name(name)) {
		if (!fill_tracepoint(event, name, why))
			return false;
		row = &tracepoint_row;
	} else {
		op_text_add(why, "there is no such event (opcontrol --list-events shows them all)");
		suggest(name, why);
		return false;
	}
	*ret_row = row;
	return true;
}

/* fields[0] is the name, the rest may be NULL. */
static bool parse_fields(char *const fields[FIELDS], struct op_event *event, struct op_text *why)
{
	uint64_t unit_mask = 0, kernel = 1, user = 1;
	const struct row *row;

	if (!parse_name(fields[0], event, &row, why))
		return false;
	if (!fields[1]) {
		op_text_printf(why, "the count is missing, write %s:COUNT", fields[0]);
		return false;
	}
	if (!parse_field(fields[1], row->kind == KIND_TIMER || row->kind == KIND_CLOCK ? "period in ns" : "count",
			 row->info.min_count, OP_EVENT_COUNT_MAX, &event->count, why))
		return false;
	if (fields[2] && !parse_field(fields[2], "unit mask", 0, UINT32_MAX, &unit_mask, why))
		return false;
	if (fields[3] && !parse_field(fields[3], "kernel flag", 0, 1, &kernel, why))
		return false;
	if (fields[4] && !parse_field(fields[4], "user flag", 0, 1, &user, why))
		return false;
	if (unit_mask)
		op_text_printf(why, "it has no unit masks, but %s is given", fields[2]);
	else if (!kernel && !user)
		op_text_add(why, "neither kernel nor user code is to be sampled");
	event->unit_mask = (uint32_t)unit_mask;
	event->kernel = kernel;
	event->user = user;
	event->every_event = row->kind == KIND_COUNT && event->count == 1;
	return !why->length;
}

/* The colon in the name of a tracepoint does not end a field: a name follows it. */
static char *after_subsystem(char *spec)
{
	char *colon = strchr(spec, ':');
	bool is_event;

	if (!colon || (!isalpha((unsigned char)colon[1]) && colon[1] != '_'))
		return spec;
	*colon = '\0';
	is_event = find_row(spec) || fill_raw(&(struct op_event){ 0 }, spec);
	*colon = ':';
	return is_event ? spec : colon + 1;
}

/* Cuts `spec` at its colons. False when there are more fields than an event has. */
static bool split(char *spec, char *fields[FIELDS])
{
	char *end = strchr(after_subsystem(spec), ':'), *rest = end ? end + 1 : NULL;
	size_t nr = 1;

	fields[0] = spec;
	if (end)
		*end = '\0';
	for (char *field; (field = strsep(&rest, ":"));) {
		if (nr == FIELDS)
			return false;
		fields[nr++] = field;
	}
	return true;
}

int op_event_parse(const char *spec, struct op_event *ret_event, char **ret_why)
{
	char *fields[FIELDS] = { NULL }, *copy;
	struct op_text why = { 0 };
	struct op_event event = { 0 };
	int err = op_event_ibs_parse(spec, ret_event, ret_why);

	if (err != -ENOENT)
		return err;
	copy = strdup(spec);
	if (!copy)
		return -ENOMEM;
	err = 0;
	if (!split(copy, fields))
		op_text_add(&why, "too many fields, an event is NAME:count[:unitmask[:kernel[:user]]]");
	else if (parse_fields(fields, &event, &why))
		*ret_event = event;
	if (why.failed)
		err = -ENOMEM;
	else if (why.length)
		err = op_event_refuse(spec, op_text_get(&why), ret_why);
	op_text_free(&why);
	free(copy);
	return err;
}

bool op_event_is_clock(const struct op_event *event)
{
	return event->type == PERF_TYPE_SOFTWARE &&
	       (event->config == PERF_COUNT_SW_CPU_CLOCK || event->config == PERF_COUNT_SW_TASK_CLOCK);
}

uint64_t op_event_min_count(const struct op_event *event)
{
	const struct row *row = find_row(event->name);

	if (event->role != OP_EVENT_PLAIN)
		return op_ibs_period_nearest(event->sampler.kind, 0);
	if (!row)
		row = event->type == PERF_TYPE_TRACEPOINT ? &tracepoint_row : &raw_row;
	return row->info.min_count;
}

/* The specification of a raw event with a name needs its code. */
static void format_code(const struct op_event *event, struct op_text *text)
{
	char name[OP_EVENT_NAME_BYTES];

	if (event->role != OP_EVENT_PLAIN || event->type != PERF_TYPE_RAW)
		return;
	snprintf(name, sizeof(name), "r%" PRIx64, event->config);
	if (strcmp(name, event->name) != 0)
		op_text_printf(text, "%s=", name);
}

void op_event_format(const struct op_event *event, struct op_text *text)
{
	format_code(event, text);
	op_text_printf(text, "%s:%" PRIu64 ":%" PRIu32 ":%d:%d", event->name, event->count, event->unit_mask, event->kernel,
		       event->user);
	if (event->role == OP_EVENT_DERIVED)
		op_ibs_filter_format(&event->sampler.filter, text);
}

static bool is_of_ibs(const struct op_event *event)
{
	return event->role != OP_EVENT_PLAIN && !op_event_is_stacks(event->role);
}

void op_event_set_stack_rate(struct op_event *event, uint32_t rate_hz)
{
	event->count = OP_NS_PER_S / rate_hz;
	event->rate_hz = op_event_is_clock(event) ? 0 : rate_hz;
}

void op_event_make_stacks(bool with_cycles, uint32_t rate_hz, uint32_t stack_bytes, struct op_event *ret_event)
{
	struct op_event event = { .role = OP_EVENT_STACKS, .kernel = true, .user = true, .stack_bytes = stack_bytes };

	fill_from_row(&event, find_row(with_cycles ? "cycles" : "TIMER"));
	snprintf(event.name, sizeof(event.name), OP_STACKS_NAME);
	op_event_set_stack_rate(&event, rate_hz);
	*ret_event = event;
}

void op_event_make_waits(struct op_event *ret_event)
{
	*ret_event = (struct op_event){
		.name = OP_WAITS_NAME,
		.count = 1,
		.kernel = true,
		.user = true,
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_BPF_OUTPUT,
		.role = OP_EVENT_WAITS,
	};
}

static bool counts_time(const struct op_event *event)
{
	return op_event_is_clock(event) || (event->type == PERF_TYPE_HARDWARE && event->config == PERF_COUNT_HW_CPU_CYCLES);
}

void op_event_take_calls_of_stacks(struct op_event *events, size_t nr_events)
{
	const struct op_event *stacks = NULL;

	for (size_t i = 0; i < nr_events; i++)
		if (events[i].role == OP_EVENT_STACKS && events[i].stack_bytes)
			stacks = &events[i];
	for (size_t i = 0; stacks && i < nr_events; i++) {
		struct op_event *event = &events[i];

		if (event->role == OP_EVENT_PLAIN && counts_time(event) && event->kernel == stacks->kernel &&
		    event->user == stacks->user) {
			event->without_chain = event->calls_of_stacks = true;
			return;
		}
	}
}

void op_event_attr(const struct op_event *event, struct perf_event_attr *attr)
{
	if (is_of_ibs(event)) {
		op_ibs_attr(&event->sampler, event->type, attr);
		return;
	}
	attr->size = sizeof(*attr);
	attr->type = event->type;
	attr->config = event->config;
	attr->freq = event->rate_hz != 0;
	if (event->rate_hz)
		attr->sample_freq = event->rate_hz;
	else
		attr->sample_period = event->count;
	attr->exclude_kernel = !event->kernel;
	attr->exclude_hv = !event->kernel;
	attr->exclude_user = !event->user;
	attr->exclude_idle = event->is_timer;
}

static int first_online_cpu(void)
{
	char *text;
	int cpu = 0;

	if (op_file_read(AT_FDCWD, "/sys/devices/system/cpu/online", 4096, &text) < 0)
		return 0;
	if (isdigit((unsigned char)text[0]))
		cpu = (int)strtol(text, NULL, 10);
	free(text);
	return cpu;
}

int op_event_check(const struct op_event *event, char **ret_why)
{
	struct perf_event_attr attr = { .disabled = 1, .sample_type = PERF_SAMPLE_IP };
	char *why;
	int fd;

	op_event_attr(event, &attr);
	fd = op_sys_perf_event_open(&attr, -1, first_online_cpu(), -1, PERF_FLAG_FD_CLOEXEC);
	if (fd >= 0) {
		close(fd);
		return 0;
	}
	why = op_event_explain(event, fd);
	if (!why)
		return -ENOMEM;
	*ret_why = why;
	return fd;
}

struct explanation {
	int err;
	const char *hardware, *software;
	const char *ibs; /* NULL: as hardware */
};

#define NO_PMU                                                                                                                     \
	"this host has no hardware counter for it (in a virtual machine the hypervisor may hide the PMU); TIMER works everywhere"
#define NO_PERMISSION                                                                                                              \
	"not permitted: be root, or have CAP_PERFMON (above kernel.perf_event_paranoid=2 opd needs opd-events.socket, too), "      \
	"or lower kernel.perf_event_paranoid; a container may forbid perf_event_open"

#define NO_IBS "the kernel does not offer the IBS of this CPU (look for IBS in dmesg); TIMER works everywhere"

static const struct explanation explanations[] = {
	{ ENOENT, NO_PMU, "this kernel does not have it", NO_IBS },
	{ EOPNOTSUPP, NO_PMU, "this kernel cannot sample it", NO_IBS },
	{ ENODEV, NO_PMU, "the CPU is not online", NO_IBS },
	{ EACCES, NO_PERMISSION, NO_PERMISSION, NULL },
	{ EPERM, NO_PERMISSION, NO_PERMISSION, NULL },
	{ EINVAL, "the CPU does not know this code, or cannot leave out kernel or user code, or the count is outside its limits",
	  "this kernel does not know it",
	  "this kernel does not have this setting: to leave out kernel or user code needs Linux 6.14, ldlat= Linux 6.15" },
	{ EMFILE, "too many open files, raise the limit (ulimit -n, LimitNOFILE=)",
	  "too many open files, raise the limit (ulimit -n, LimitNOFILE=)", NULL },
	{ ENFILE, "too many open files in the system, raise fs.file-max", "too many open files in the system, raise fs.file-max",
	  NULL },
	{ ENOSPC, "more events than the CPU has counters", "more events than the kernel has room for",
	  "another event has the sampler of this CPU" },
	{ EBUSY, "another program uses the counters exclusively", "another program uses it exclusively",
	  "another program uses the sampler exclusively" },
	{ ENOSYS, "this kernel was built without perf events (CONFIG_PERF_EVENTS)",
	  "this kernel was built without perf events (CONFIG_PERF_EVENTS)", NULL },
	{ ENOMEM, "no memory", "no memory", NULL },
};

static const char *reason_of(const struct explanation *explanation, const struct op_event *event)
{
	if (is_of_ibs(event) && explanation->ibs)
		return explanation->ibs;
	if (!is_of_ibs(event) && (event->type == PERF_TYPE_SOFTWARE || event->type == PERF_TYPE_TRACEPOINT))
		return explanation->software;
	return explanation->hardware;
}

char *op_event_explain(const struct op_event *event, int err)
{
	struct op_text text = { 0 };
	const char *reason = NULL;

	if (err < 0)
		err = -err;
	for (size_t i = 0; i < op_array_size(explanations); i++)
		if (explanations[i].err == err)
			reason = reason_of(&explanations[i], event);
	op_text_printf(&text, "event %s: %s", event->name, reason ? reason : strerror(err));
	return op_text_steal(&text);
}

/*
 * Counts this process for a moment: some hypervisors offer a PMU that never counts. A user may be
 * allowed to count user-space code alone.
 */
static bool counts_here(const struct op_event *event)
{
	struct perf_event_attr attr = { 0 };
	uint64_t count = 0;
	ssize_t nr;
	int fd;

	op_event_attr(event, &attr);
	fd = op_sys_perf_event_open(&attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd == -EACCES) {
		attr.exclude_kernel = attr.exclude_hv = 1;
		fd = op_sys_perf_event_open(&attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	}
	if (fd < 0)
		return false;
	for (volatile unsigned int i = 0; i < 100000; i++)
		;
	nr = op_sys_read(fd, &count, sizeof(count));
	close(fd);
	return nr == sizeof(count) && count;
}

/* The highest frequency of the first CPU in kHz; 0: not known. */
static uint64_t cpu_speed_khz(void)
{
	uint64_t khz = 0;
	char *text;

	if (!op_file_read_u64("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq", 1, UINT64_MAX / 1000, &khz))
		return khz;
	if (!op_file_read(AT_FDCWD, "/proc/cpuinfo", OP_FILE_MAX_BYTES, &text)) {
		const char *line = strstr(text, "cpu MHz"), *colon = line ? strchr(line, ':') : NULL;
		double mhz = colon ? strtod(colon + 1, NULL) : 0;

		if (mhz > 0 && mhz < 1e6)
			khz = (uint64_t)(mhz * 1000);
		free(text);
	}
	return khz;
}

static uint64_t round_to_three_digits(uint64_t value)
{
	uint64_t unit = 1;

	while (value / unit >= 1000)
		unit *= 10;
	return (value + unit / 2) / unit * unit;
}

void op_event_default(struct op_event *ret_event, bool *ret_has_pmu)
{
	struct op_event event = { .kernel = true, .user = true };
	uint64_t khz;

	fill_from_row(&event, find_row("cycles"));
	khz = cpu_speed_khz();
	event.count = round_to_three_digits((khz ? khz : CPU_SPEED_UNKNOWN_KHZ) * 1000 / SAMPLES_PER_CPU_SECOND);
	event.count = op_min_u64(op_max_u64(event.count, HARDWARE_MIN), OP_EVENT_COUNT_MAX);
	*ret_has_pmu = counts_here(&event);
	if (!*ret_has_pmu) {
		fill_from_row(&event, find_row("TIMER"));
		event.count = TIMER_PERIOD_NS;
	}
	*ret_event = event;
}
