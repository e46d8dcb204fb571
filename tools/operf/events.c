/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/operf/events.h"

#include <errno.h>
#include <fcntl.h>

#include "libop/base/file.h"
#include "pipeline/capture/stack_event.h"
#include "tools/common/log.h"
#include "tools/events/user_events.h"

#define STACK_RATE_HZ 99u
#define STACK_BYTES   8192u

#define PARANOID_PATH "/proc/sys/kernel/perf_event_paranoid"

static int read_paranoid(void)
{
	char *text;
	int paranoid = 2;

	if (op_file_read(AT_FDCWD, PARANOID_PATH, 32, &text) < 0)
		return paranoid;
	paranoid = (int)strtol(text, NULL, 10);
	free(text);
	return paranoid;
}

static int try_event(const struct op_event *event)
{
	struct perf_event_attr attr = { .sample_type = PERF_SAMPLE_IP };

	op_event_attr(event, &attr);
	return opr_event_try(&attr);
}

static int explain_refusal(const struct op_event *event, int err)
{
	int paranoid = read_paranoid();

	if (err == -EACCES && paranoid > 2)
		return opr_error(err,
				 "event %s: kernel.perf_event_paranoid is %d, so users may sample nothing here: "
				 "'sysctl kernel.perf_event_paranoid=2' (as root) allows them their own programs",
				 event->name, paranoid);
	return opr_error(err, "event %s: not permitted: perhaps this container forbids perf_event_open", event->name);
}

/* Leaves the kernel out where this user may not sample it. */
static int fit(struct op_event *event, bool *ret_user_only)
{
	int err = try_event(event);

	if (opr_event_is_refusal(err) && event->kernel) {
		bool only_kernel = opr_event_is_of_kernel(event);

		event->kernel = false;
		event->user = true;
		err = try_event(event);
		if (!err && only_kernel)
			return opr_error(-EACCES,
					 "event %s: only the kernel has samples of it, and kernel.perf_event_paranoid is %d: "
					 "run operf as root, or 'sysctl kernel.perf_event_paranoid=1' (as root) allows it",
					 event->name, read_paranoid());
		*ret_user_only = true;
	}
	if (opr_event_is_refusal(err))
		return explain_refusal(event, err);
	return err ? opr_error_why(err, op_event_explain(event, err)) : 0;
}

/* System-wide, everything is as for opd. */
static int check_wide(const struct op_event *event)
{
	char *why = NULL;
	int err = op_event_check(event, &why);

	if (!opr_event_is_refusal(err))
		return opr_error_why(err, why);
	free(why);
	return opr_error(err, "--system-wide: not permitted: it needs root, CAP_PERFMON, or kernel.perf_event_paranoid=0 or less; "
			       "'operf COMMAND' profiles a program of your own");
}

static int check_count(const struct opf_options *options, const struct op_event *event)
{
	uint64_t min = op_event_min_count(event) * OP_EVENT_CALLGRAPH_FACTOR;

	if (!options->callgraph || event->count >= min)
		return 0;
	return opr_error(-EINVAL, "event %s: with --callgraph the count must be %ju or more, %d times the usual minimum",
			 event->name, (uintmax_t)min, OP_EVENT_CALLGRAPH_FACTOR);
}

static int parse(const struct opf_options *options, const char *spec, struct op_event *ret_event)
{
	char *why = NULL;
	int err = opr_event_parse(spec, ret_event, &why);

	return opr_error_why(err, why) ? err : check_count(options, ret_event);
}

/* One more event, which has no sample files. There is room for it. */
static int add_stacks(const struct opf_options *options, struct op_event *events, size_t *nr, bool *ret_user_only)
{
	struct op_event *event = &events[*nr];

	op_event_make_stacks(false, STACK_RATE_HZ, STACK_BYTES, event);
	event->kernel = false;
	event->with_cgroup = opd_stack_event_knows_cgroups();
	for (size_t i = 0; i < *nr; i++)
		event->kernel |= events[i].kernel;
	(*nr)++;
	return options->system_wide ? check_wide(event) : fit(event, ret_user_only);
}

/* The wanted events, each checked. Freed by the caller. */
static int read_events(const struct opf_options *options, struct op_event **ret_events, size_t *ret_nr, bool *ret_user_only)
{
	size_t nr = op_max_u64(options->events.nr_words, 1);
	struct op_event *events = calloc(nr + 1, sizeof(*events));
	bool has_pmu;
	int err = !events ? opr_no_memory() : nr > OP_EVENTS_MAX ? opr_error(-EINVAL, "no more than %d events", OP_EVENTS_MAX) : 0;

	for (size_t i = 0; !err && i < options->events.nr_words; i++) {
		err = parse(options, options->events.words[i], &events[i]);
		if (!err)
			err = opr_event_check_new(events, i, &events[i], "event ", events[i].name);
	}
	if (err)
		goto fail;
	if (!options->events.nr_words)
		op_event_default(&events[0], &has_pmu);
	for (size_t i = 0; !err && i < nr; i++)
		err = options->system_wide ? check_wide(&events[i]) : fit(&events[i], ret_user_only);
	if (!err && options->stacks)
		err = add_stacks(options, events, &nr, ret_user_only);
	if (err)
		goto fail;
	if (options->callgraph)
		op_event_take_calls_of_stacks(events, nr);
	*ret_events = events;
	*ret_nr = nr;
	return 0;

fail:
	free(events);
	return err;
}

int opf_events_make(const struct opf_options *options, struct op_event_list *ret_list, bool *ret_user_only)
{
	struct op_event *events = NULL;
	char *why = NULL;
	size_t nr = 0;
	int err;

	*ret_user_only = false;
	err = read_events(options, &events, &nr, ret_user_only);
	if (err)
		return err;
	err = op_event_list_make(events, nr, ret_list, &why);
	free(events);
	return opr_error_why(err, why);
}

void opf_note_user_only(void)
{
	opr_note("kernel.perf_event_paranoid is %d: operf samples user-space code only (root, or a value of 1, adds the kernel)",
		 read_paranoid());
}
