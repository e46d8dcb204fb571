/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/session/ledger_file.h"

#include <errno.h>
#include <inttypes.h>

#include "libop/base/clock.h"
#include "libop/base/file.h"
#include "libop/base/parse.h"
#include "libop/base/sys.h"

#define HEAD      "opd-ledger 1"
#define MAX_BYTES (1u * 1024 * 1024)

static const char *const ends[OP_NR_SESSION_ENDS] = {
#define X(word) [OP_SESSION_##word] = #word,
	OP_SESSION_ENDS(X)
#undef X
};

static struct op_ledger_event *find_row(const struct op_session_ledger *ledger, const struct op_ledger_event *event)
{
	for (size_t i = 0; i < ledger->nr_events; i++) {
		struct op_ledger_event *row = &ledger->events[i];

		if (row->count == event->count && row->unit_mask == event->unit_mask && !strcmp(row->name, event->name))
			return row;
	}
	return NULL;
}

const struct op_ledger_event *op_session_ledger_find(const struct op_session_ledger *ledger, const struct op_ledger_event *event)
{
	return find_row(ledger, event);
}

struct op_ledger_event *op_session_ledger_row(struct op_session_ledger *ledger, const struct op_ledger_event *event)
{
	struct op_ledger_event *events, *row = find_row(ledger, event);

	if (row)
		return row;
	if (ledger->nr_events == OP_SESSION_LEDGER_EVENTS_MAX)
		return NULL;
	events = reallocarray(ledger->events, ledger->nr_events + 1, sizeof(*events));
	if (!events)
		return NULL;
	ledger->events = events;
	row = &events[ledger->nr_events++];
	*row = (struct op_ledger_event){ .count = event->count, .unit_mask = event->unit_mask, .role = event->role };
	memcpy(row->name, event->name, sizeof(row->name));
	return row;
}

static void set_name(char field[OP_SESSION_HOST_BYTES], const char *name)
{
	size_t length = name ? strlen(name) : 0;
	bool is_good = length < OP_SESSION_HOST_BYTES;

	for (size_t i = 0; i < length && is_good; i++)
		is_good = name[i] > ' ' && name[i] <= '~';
	memcpy(field, is_good && length ? name : "", is_good ? length + 1 : 1);
}

void op_session_ledger_set_host(struct op_session_ledger *ledger, const char *name)
{
	set_name(ledger->host, name);
}

void op_session_ledger_set_kernel(struct op_session_ledger *ledger, const char *release)
{
	set_name(ledger->kernel, release);
}

void op_session_ledger_set_cpu(struct op_session_ledger *ledger, const char *type)
{
	set_name(ledger->cpu, type);
}

/* ---- writing ---- */

static void add_time(struct op_text *text, const char *word, uint64_t ns)
{
	op_text_printf(text, "%s\t%" PRIu64 ".%09" PRIu64 "\n", word, ns / OP_NS_PER_S, ns % OP_NS_PER_S);
}

/* Readers skip rows of another word. */
static const char *word_of(const struct op_ledger_event *event)
{
	switch (event->role) {
	case OP_EVENT_SAMPLER:
		return "sampler";
	case OP_EVENT_STACKS:
		return "stacks";
	case OP_EVENT_WAITS:
		return "waits";
	default:
		return "event";
	}
}

static void add_event(struct op_text *text, const struct op_ledger_event *event)
{
	op_text_printf(text, "%s\t%s\t%" PRIu64 "\t%" PRIu32, word_of(event), event->name, event->count, event->unit_mask);
	op_text_printf(text, "\treceived=%" PRIu64 "\tstored=%" PRIu64 "\tunattributed=%" PRIu64 "\tlost_kernel=%" PRIu64,
		       event->received, event->stored, event->unattributed, event->lost_kernel);
	if (event->enabled_ns)
		op_text_printf(text, "\tenabled_ns=%" PRIu64 "\tcounted_ns=%" PRIu64, event->enabled_ns, event->counted_ns);
	if (event->filtered)
		op_text_printf(text, "\tfiltered=%" PRIu64, event->filtered);
	for (size_t i = 0; i < OP_NR_LOSS; i++)
		op_text_printf(text, "\tlost_%s=%" PRIu64, op_loss_name((enum op_loss)i), event->lost[i]);
	for (size_t i = 0; i < OP_NR_STACK_ENDS; i++)
		if (event->ends[i])
			op_text_printf(text, "\tend_%s=%" PRIu64, op_stack_end_name((enum op_stack_end)i), event->ends[i]);
	op_text_add_char(text, '\n');
}

static void add_switches(struct op_text *text, const struct op_wait_ledger *waits)
{
	struct op_wait_ledger copy = *waits;
	char name[OP_WAIT_NUMBER_BYTES];
	const uint64_t *number;

	op_text_add(text, "switches");
	for (size_t i = 0; (number = op_wait_ledger_number(&copy, i, name)); i++)
		op_text_printf(text, "\t%s=%" PRIu64, name, *number);
	op_text_add_char(text, '\n');
}

bool op_session_ledger_is_empty(const struct op_session_ledger *ledger)
{
	for (size_t i = 0; i < ledger->nr_events; i++)
		if (ledger->events[i].received || ledger->events[i].lost_kernel)
			return false;
	return true;
}

uint64_t op_session_ledger_lost(const struct op_session_ledger *ledger, enum op_loss reason)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < ledger->nr_events; i++)
		sum += op_event_is_time(ledger->events[i].role) ? 0 : ledger->events[i].lost[reason];
	return sum;
}

void op_session_ledger_format(const struct op_session_ledger *ledger, struct op_text *text)
{
	op_text_add(text, HEAD "\n");
	op_text_printf(text, "ended\t%s\n", ends[ledger->ended]);
	add_time(text, "begin", ledger->begin_ns);
	add_time(text, "end", ledger->end_ns);
	if (ledger->paused_ns)
		add_time(text, "paused", ledger->paused_ns);
	if (ledger->is_stopped && ledger->ended == OP_SESSION_open)
		op_text_add(text, "stopped\tyes\n");
	if (*ledger->host)
		op_text_printf(text, "host\t%s\n", ledger->host);
	if (*ledger->kernel)
		op_text_printf(text, "kernel\t%s\n", ledger->kernel);
	if (*ledger->cpu)
		op_text_printf(text, "cpu\t%s\n", ledger->cpu);
	if (ledger->is_imported)
		op_text_add(text, "imported\tyes\n");
	if (ledger->has_files && ledger->ended == OP_SESSION_stopped)
		op_text_printf(text, "files\t%" PRIu64 "\t%" PRIu64 "\n", ledger->files.nr, ledger->files.fingerprint);
	for (size_t i = 0; i < ledger->nr_events; i++)
		add_event(text, &ledger->events[i]);
	if (op_wait_ledger_is_used(&ledger->waits))
		add_switches(text, &ledger->waits);
}

int op_session_ledger_publish(const struct op_session_ledger *ledger, int dir_fd)
{
	struct op_text text = { 0 };
	int err;

	op_session_ledger_format(ledger, &text);
	err = text.failed ? -ENOMEM : op_file_publish(dir_fd, OP_SESSION_LEDGER, op_text_get(&text), 0644);
	op_text_free(&text);
	return err;
}

/* ---- reading ---- */

static int read_ended(struct op_session_ledger *ledger, char *rest)
{
	for (size_t i = 0; i < OP_NR_SESSION_ENDS; i++) {
		if (!strcmp(rest, ends[i])) {
			ledger->ended = (enum op_session_end)i;
			return 0;
		}
	}
	return -EINVAL;
}

static int read_begin(struct op_session_ledger *ledger, char *rest)
{
	return op_parse_time_ns(rest, &ledger->begin_ns);
}

static int read_end(struct op_session_ledger *ledger, char *rest)
{
	return op_parse_time_ns(rest, &ledger->end_ns);
}

static int read_paused(struct op_session_ledger *ledger, char *rest)
{
	return op_parse_time_ns(rest, &ledger->paused_ns);
}

static int read_stopped(struct op_session_ledger *ledger, char *rest)
{
	ledger->is_stopped = !strcmp(rest, "yes");
	return 0;
}

/* A name that cannot be shown is no damage. */
static int read_host(struct op_session_ledger *ledger, char *rest)
{
	op_session_ledger_set_host(ledger, rest);
	return 0;
}

static int read_kernel(struct op_session_ledger *ledger, char *rest)
{
	op_session_ledger_set_kernel(ledger, rest);
	return 0;
}

static int read_cpu(struct op_session_ledger *ledger, char *rest)
{
	op_session_ledger_set_cpu(ledger, rest);
	return 0;
}

static int read_imported(struct op_session_ledger *ledger, char *rest)
{
	ledger->is_imported = !strcmp(rest, "yes");
	return 0;
}

static int read_files(struct op_session_ledger *ledger, char *rest)
{
	struct op_session_files files = { 0 };
	const char *nr = strsep(&rest, "\t");
	int err = rest ? op_parse_decimal(nr, UINT64_MAX, &files.nr) : -EINVAL;

	if (!err)
		err = op_parse_decimal(rest, UINT64_MAX, &files.fingerprint);
	if (err)
		return err;
	ledger->files = files;
	ledger->has_files = true;
	return 0;
}

static uint64_t *number_of(struct op_ledger_event *event, const char *name)
{
	const struct {
		const char *name;
		uint64_t *number;
	} numbers[] = {
		{ "received", &event->received }, { "stored", &event->stored },           { "unattributed", &event->unattributed },
		{ "filtered", &event->filtered }, { "lost_kernel", &event->lost_kernel },
		{ "enabled_ns", &event->enabled_ns }, { "counted_ns", &event->counted_ns },
	};

	for (size_t i = 0; i < op_array_size(numbers); i++)
		if (!strcmp(name, numbers[i].name))
			return numbers[i].number;
	for (size_t i = 0; i < OP_NR_LOSS; i++)
		if (!strncmp(name, "lost_", 5) && !strcmp(name + 5, op_loss_name((enum op_loss)i)))
			return &event->lost[i];
	for (size_t i = 0; i < OP_NR_STACK_ENDS; i++)
		if (!strncmp(name, "end_", 4) && !strcmp(name + 4, op_stack_end_name((enum op_stack_end)i)))
			return &event->ends[i];
	return NULL;
}

/* Takes NAME=NUMBER apart. */
static int parse_number(char *word, uint64_t *ret_value)
{
	char *equals = strchr(word, '=');

	if (!equals)
		return -EINVAL;
	*equals = '\0';
	return op_parse_decimal(equals + 1, UINT64_MAX, ret_value);
}

/* A later opd may have more numbers. */
static int read_number(struct op_ledger_event *event, char *word)
{
	uint64_t value, *number;
	int err = parse_number(word, &value);

	number = err ? NULL : number_of(event, word);
	if (number)
		*number = value;
	return err;
}

static int read_row(struct op_session_ledger *ledger, char *rest, enum op_event_role role)
{
	char *name = strsep(&rest, "\t"), *count = strsep(&rest, "\t"), *mask = strsep(&rest, "\t"), *word;
	struct op_ledger_event event = { 0 }, *row;
	uint64_t value = 0;
	size_t nr_before = ledger->nr_events;
	int err = 0;

	if (!count || !mask || !*name || strlen(name) >= sizeof(event.name))
		return -EINVAL;
	memcpy(event.name, name, strlen(name) + 1);
	event.role = role == OP_EVENT_PLAIN && op_ibs_event_of_session(name) ? OP_EVENT_DERIVED : role;
	err = op_parse_decimal(count, UINT64_MAX, &event.count);
	if (!err)
		err = op_parse_decimal(mask, UINT32_MAX, &value);
	event.unit_mask = (uint32_t)value;
	while (!err && (word = strsep(&rest, "\t")))
		err = read_number(&event, word);
	if (err)
		return err;
	row = op_session_ledger_row(ledger, &event);
	if (!row)
		return ledger->nr_events == OP_SESSION_LEDGER_EVENTS_MAX ? -EINVAL : -ENOMEM;
	if (ledger->nr_events == nr_before)
		return -EINVAL; /* twice */
	*row = event;
	return 0;
}

static int read_event(struct op_session_ledger *ledger, char *rest)
{
	return read_row(ledger, rest, OP_EVENT_PLAIN);
}

static int read_sampler(struct op_session_ledger *ledger, char *rest)
{
	return read_row(ledger, rest, OP_EVENT_SAMPLER);
}

static int read_stacks(struct op_session_ledger *ledger, char *rest)
{
	return read_row(ledger, rest, OP_EVENT_STACKS);
}

static int read_waits(struct op_session_ledger *ledger, char *rest)
{
	return read_row(ledger, rest, OP_EVENT_WAITS);
}

/* A later opd may have more numbers. */
static void set_switches(struct op_wait_ledger *waits, const char *word, uint64_t value)
{
	char name[OP_WAIT_NUMBER_BYTES];
	uint64_t *number;

	for (size_t i = 0; (number = op_wait_ledger_number(waits, i, name)); i++)
		if (!strcmp(name, word))
			*number = value;
}

static int read_switches(struct op_session_ledger *ledger, char *rest)
{
	int err = 0;
	char *word;

	while (!err && (word = strsep(&rest, "\t"))) {
		uint64_t value;

		err = parse_number(word, &value);
		if (!err)
			set_switches(&ledger->waits, word, value);
	}
	return err;
}

static const struct {
	const char *word;
	int (*read)(struct op_session_ledger *ledger, char *rest);
} readers[] = {
	{ "ended", read_ended }, { "begin", read_begin }, { "end", read_end },
	{ "paused", read_paused }, { "stopped", read_stopped },
	{ "host", read_host },   { "kernel", read_kernel }, { "cpu", read_cpu },
	{ "imported", read_imported }, { "files", read_files },
	{ "event", read_event }, { "sampler", read_sampler }, { "stacks", read_stacks },
	{ "waits", read_waits }, { "switches", read_switches },
};

static int read_line(struct op_session_ledger *ledger, char *line)
{
	char *rest = line, *word = strsep(&rest, "\t");

	for (size_t i = 0; i < op_array_size(readers); i++)
		if (!strcmp(word, readers[i].word))
			return rest ? readers[i].read(ledger, rest) : -EINVAL;
	return 0;
}

static int read_text(struct op_session_ledger *ledger, char *text, unsigned int *ret_line)
{
	char *line = strsep(&text, "\n");
	int err = strcmp(line, HEAD) ? -EINVAL : 0;

	for (*ret_line = 1; !err && text && *text; (*ret_line)++) {
		line = strsep(&text, "\n");
		/* a last line without an end is torn */
		err = text ? read_line(ledger, line) : -EINVAL;
	}
	if (!err && ledger->end_ns < ledger->begin_ns)
		err = -EINVAL;
	return err == -EINVAL || err == -ERANGE ? -EBADMSG : err;
}

int op_session_ledger_read(int dir_fd, struct op_session_ledger *ret_ledger, unsigned int *ret_line)
{
	struct op_session_ledger ledger = { 0 };
	unsigned int line = 0;
	char *text;
	int err = op_file_read_own(dir_fd, OP_SESSION_LEDGER, MAX_BYTES, &text, NULL);

	if (!err) {
		err = read_text(&ledger, text, &line);
		free(text);
	} else if (err == -EFBIG || err == -EINVAL) {
		err = -EBADMSG;
	}
	if (err == -EBADMSG && ret_line)
		*ret_line = line;
	if (err)
		op_session_ledger_free(&ledger);
	else
		*ret_ledger = ledger;
	return err;
}

void op_session_ledger_guess_times(struct op_session_ledger *ledger, int dir_fd)
{
	struct op_sys_times times;

	if (op_sys_times(dir_fd, &times) < 0)
		return;
	ledger->end_ns = times.changed_ns;
	ledger->begin_ns = times.made_ns ? op_min_u64(times.made_ns, times.changed_ns) : times.changed_ns;
}

void op_session_ledger_free(struct op_session_ledger *ledger)
{
	if (!ledger)
		return;
	free(ledger->events);
	*ledger = (struct op_session_ledger){ 0 };
}
