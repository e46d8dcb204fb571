/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/profile/recorded.h"

#include <errno.h>
#include <inttypes.h>

#include "libop/base/clock.h"
#include "libop/base/sys.h"
#include "tools/common/formatting.h"
#include "tools/common/log.h"
#include "tools/common/when.h"
#include "tools/profile/session_read.h"

#define NS_PER_US   1000u
#define HZ_PER_MHZ  1e6
#define HOSTS_SHOWN 5u
#define TIME_BYTES  80

/* ---- the sessions ---- */

/* A session that is being written has samples until now, or until sampling was stopped. */
static uint64_t end_of(const struct opr_session *session)
{
	const struct op_session_ledger *ledger = &session->ledger;

	if (ledger->ended == OP_SESSION_open && !ledger->is_stopped && opr_session_has_daemon(session))
		return op_max_u64(ledger->end_ns, op_sys_wall_ns());
	return ledger->end_ns;
}

static int add_session(struct opr_recorded *recorded, const struct opr_session *session)
{
	const struct op_session_ledger *ledger = &session->ledger;
	uint64_t end_ns = end_of(session);

	recorded->nr_sessions++;
	if (*ledger->host && !opr_words_have(&recorded->hosts, ledger->host) &&
	    opr_words_add(&recorded->hosts, ledger->host) < 0)
		return opr_no_memory();
	if (ledger->is_imported || !ledger->begin_ns)
		return 0;
	recorded->begin_ns = recorded->begin_ns ? op_min_u64(recorded->begin_ns, ledger->begin_ns) : ledger->begin_ns;
	recorded->end_ns = op_max_u64(recorded->end_ns, end_ns);
	recorded->recorded_ns += end_ns - ledger->begin_ns - op_min_u64(ledger->paused_ns, end_ns - ledger->begin_ns);
	recorded->has_pauses |= ledger->paused_ns >= OP_NS_PER_S;
	return 0;
}

int opr_recorded_make(struct opr_recorded *recorded, const struct opr_profile *profile)
{
	int err = 0;

	*recorded = (struct opr_recorded){ 0 };
	for (size_t i = 0; i < profile->nr_sessions && !err; i++)
		if (profile->sessions[i].parent == i && profile->sessions[i].has_ledger)
			err = add_session(recorded, &profile->sessions[i]);
	return err;
}

void opr_recorded_free(struct opr_recorded *recorded)
{
	if (!recorded)
		return;
	opr_words_free(&recorded->hosts);
	*recorded = (struct opr_recorded){ 0 };
}

/* ---- the events ---- */

double opr_seconds_of_sample(const struct opr_classes *classes, const struct opr_class *class, bool *ret_about)
{
	static const char *const clocks[] = { "TIMER", "cpu-clock", "task-clock" }, *const cycles[] = { "cycles", "ref-cycles" };
	double mhz = classes->header.cpu_speed_mhz;

	*ret_about = false;
	for (size_t i = 0; i < op_array_size(clocks); i++)
		if (!strcmp(class->event, clocks[i]))
			return (double)class->count / OP_NS_PER_S;
	*ret_about = true;
	for (size_t i = 0; i < op_array_size(cycles); i++)
		if (!strcmp(class->event, cycles[i]) && mhz > 0)
			return (double)class->count / (mhz * HZ_PER_MHZ);
	return 0;
}

static bool is_of_class(const struct op_ledger_event *event, const struct opr_class *class)
{
	return event->count == class->count && !strcmp(event->name, class->event) &&
	       (class->unit_mask == OP_CLASS_ALL || (int64_t)event->unit_mask == class->unit_mask);
}

double opr_lost_share(const struct opr_profile *profile, const struct opr_class *class)
{
	uint64_t received = 0, filtered = 0, lost_kernel = 0, lost = 0;
	bool is_known = false;

	for (size_t i = 0; i < profile->nr_sessions; i++) {
		const struct opr_session *session = &profile->sessions[i];

		for (size_t j = 0; session->parent == i && j < session->ledger.nr_events; j++) {
			const struct op_ledger_event *event = &session->ledger.events[j];

			if (!is_of_class(event, class))
				continue;
			is_known = true;
			received += event->received;
			filtered += event->filtered;
			lost_kernel += event->lost_kernel;
			lost += op_ledger_lost(event);
		}
	}
	return is_known ? op_ledger_loss_share(received, filtered, lost_kernel, lost) : -1;
}

/* ---- as text ---- */

void opr_format_utc(uint64_t ns, char text[OPR_UTC_BYTES])
{
	time_t seconds = (time_t)(ns / OP_NS_PER_S);
	struct tm tm = { 0 };

	gmtime_r(&seconds, &tm);
	if (!strftime(text, OPR_UTC_BYTES, "%Y-%m-%dT%H:%M:%SZ", &tm))
		*text = '\0';
}

/* "2026-11-21 03:00:00 to 04:00:00 CET": a second date, and two zones, only if they differ. */
static void add_times(struct op_text *text, const struct opr_recorded *recorded)
{
	time_t seconds[2] = { (time_t)(recorded->begin_ns / OP_NS_PER_S), (time_t)(recorded->end_ns / OP_NS_PER_S) };
	char first[TIME_BYTES] = "", second[TIME_BYTES] = "", zones[2][TIME_BYTES] = { "", "" };
	struct tm tm[2] = { { 0 }, { 0 } };
	bool same_day;

	for (size_t i = 0; i < 2; i++) {
		localtime_r(&seconds[i], &tm[i]);
		strftime(zones[i], sizeof(zones[i]), " %Z", &tm[i]);
	}
	same_day = tm[0].tm_year == tm[1].tm_year && tm[0].tm_yday == tm[1].tm_yday;
	strftime(first, sizeof(first), "%Y-%m-%d %H:%M:%S", &tm[0]);
	strftime(second, sizeof(second), same_day ? "%H:%M:%S" : "%Y-%m-%d %H:%M:%S", &tm[1]);
	op_text_printf(text, "%s%s to %s%s", first, strcmp(zones[0], zones[1]) ? zones[0] : "", second, zones[1]);
}

void opr_recorded_describe(const struct opr_recorded *recorded, struct op_text *text)
{
	size_t nr_hosts = recorded->hosts.nr_words;

	for (size_t i = 0; i < nr_hosts && i < HOSTS_SHOWN; i++)
		op_text_printf(text, "%s%s", i ? ", " : nr_hosts > 1 ? "Hosts: " : "Host: ", recorded->hosts.words[i]);
	if (nr_hosts > HOSTS_SHOWN)
		op_text_printf(text, " and %zu more", nr_hosts - HOSTS_SHOWN);
	op_text_add(text, nr_hosts ? "\n" : "");
	opr_recorded_time_describe(recorded, text);
}

void opr_recorded_time_describe(const struct opr_recorded *recorded, struct op_text *text)
{
	if (!recorded->begin_ns)
		return;
	op_text_add(text, "Time: ");
	add_times(text, recorded);
	op_text_add(text, recorded->has_pauses ? ", profiled " : ", ");
	opr_add_span(text, recorded->recorded_ns);
	if (recorded->nr_sessions > 1)
		op_text_printf(text, " in %zu sessions", recorded->nr_sessions);
	op_text_add_char(text, '\n');
}

static bool is_same_event(const struct opr_class *a, const struct opr_class *b)
{
	return a->count == b->count && a->unit_mask == b->unit_mask && !strcmp(a->event, b->event);
}

static void describe_event(const struct opr_profile *profile, const struct opr_classes *classes, size_t index, uint64_t total,
			   struct op_text *text)
{
	const struct opr_class *class = &classes->classes[index];
	bool is_about;
	double seconds = opr_seconds_of_sample(classes, class, &is_about) * (double)total, lost = opr_lost_share(profile, class);
	int nr_digits = seconds < 10 ? 2 : seconds < 1000 ? 1 : 0;

	if (!strcmp(class->unit, "samples"))
		op_text_printf(text, "Samples: %" PRIu64 " of ", total);
	else
		op_text_printf(text, "Counted: %" PRIu64 " %s of ", total, class->unit);
	op_text_add_escaped(text, class->event);
	op_text_printf(text, ":%" PRIu64, class->count);
	if (seconds > 0)
		op_text_printf(text, ", %s%.*f CPU seconds", is_about ? "about " : "", nr_digits, seconds);
	if (lost >= 0)
		op_text_printf(text, ", %.3g %% lost", 100 * lost);
	op_text_add_char(text, '\n');
}

/* Classes of one event, as those of several CPUs, are one line. */
void opr_samples_describe(const struct opr_profile *profile, const struct opr_classes *classes, const uint64_t *totals,
			  struct op_text *text)
{
	for (size_t i = 0; i < classes->nr_classes; i++) {
		uint64_t total = 0;
		bool is_told = false;

		for (size_t j = 0; j < classes->nr_classes; j++) {
			if (!is_same_event(&classes->classes[i], &classes->classes[j]))
				continue;
			is_told |= j < i;
			total += totals[j];
		}
		if (!is_told)
			describe_event(profile, classes, i, total, text);
	}
}

void opr_stack_ends_describe(const uint64_t ends[OP_NR_STACK_ENDS], struct op_text *text)
{
	uint64_t total = 0;

	for (enum op_stack_end end = 0; end < OP_NR_STACK_ENDS; end++)
		total += ends[end];
	for (enum op_stack_end end = 0; end < OP_NR_STACK_ENDS; end++)
		if (ends[end] || end == OP_STACK_END_complete)
			op_text_printf(text, ", %.4g %% %s", opr_percent(ends[end], total), op_stack_end_name(end));
}

static bool is_same_ledger_event(const struct op_ledger_event *a, const struct op_ledger_event *b)
{
	return a->count == b->count && a->unit_mask == b->unit_mask && !strcmp(a->name, b->name);
}

/* Adds the ends of an event in all sessions. False: a row before this one has told it. */
static bool add_ends(const struct opr_profile *profile, const struct op_ledger_event *event, uint64_t ends[OP_NR_STACK_ENDS])
{
	bool is_told = false, is_before = true;

	for (size_t i = 0; i < profile->nr_sessions; i++) {
		const struct op_session_ledger *ledger = &profile->sessions[i].ledger;

		for (size_t j = 0; profile->sessions[i].parent == i && j < ledger->nr_events; j++) {
			is_before = is_before && &ledger->events[j] != event;
			if (!is_same_ledger_event(&ledger->events[j], event))
				continue;
			is_told |= is_before;
			for (size_t end = 0; end < OP_NR_STACK_ENDS; end++)
				ends[end] += ledger->events[j].ends[end];
		}
	}
	return !is_told;
}

void opr_ledger_stacks_describe(const struct opr_profile *profile, struct op_text *text)
{
	for (size_t i = 0; i < profile->nr_sessions; i++) {
		const struct op_session_ledger *ledger = &profile->sessions[i].ledger;

		for (size_t j = 0; profile->sessions[i].parent == i && j < ledger->nr_events; j++) {
			const struct op_ledger_event *event = &ledger->events[j];
			uint64_t ends[OP_NR_STACK_ENDS] = { 0 }, total = 0;

			if (!add_ends(profile, event, ends))
				continue;
			for (size_t end = 0; end < OP_NR_STACK_ENDS; end++)
				total += ends[end];
			if (!total)
				continue;
			if (op_event_is_time(event->role)) {
				op_text_add(text, "Waits: ");
				opr_add_span(text, total * 1000);
			} else {
				op_text_printf(text, "Stacks: %" PRIu64 " of ", total);
				op_text_add_escaped(text, event->name);
				op_text_printf(text, ":%" PRIu64, event->count);
			}
			opr_stack_ends_describe(ends, text);
			op_text_add_char(text, '\n');
		}
	}
}
