/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/profile/losses.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <unistd.h>

#include "libop/events/event_list.h"
#include "libop/session/layout.h"
#include "libop/session/stats_files.h"
#include "tools/common/log.h"

#define LOSS_PREFIX    "lost_"
#define TOLERATED_PART 10000 /* for sessions without a ledger: one sample in so many may be lost */

/* Sums the numbers in dir_fd/<name>below of all names with that prefix. */
static uint64_t sum_stats(int dir_fd, const char *prefix, const char *below)
{
	int copy = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = copy >= 0 ? fdopendir(copy) : NULL;
	struct dirent *entry;
	uint64_t sum = 0;

	if (!dir && copy >= 0)
		close(copy);
	while (dir && (entry = readdir(dir))) {
		struct op_text path = { 0 };
		uint64_t value;

		if (strncmp(entry->d_name, prefix, strlen(prefix)))
			continue;
		op_text_printf(&path, "%s%s", entry->d_name, below);
		if (!op_stats_read(dir_fd, op_text_get(&path), &value))
			sum += value;
		op_text_free(&path);
	}
	if (dir)
		closedir(dir);
	return sum;
}

static void check_overflow(int stats_fd, const char *path)
{
	uint64_t overflows;

	if (op_stats_read(stats_fd, "event_lost_overflow", &overflows))
		return;
	if (!overflows)
		overflows = sum_stats(stats_fd, "cpu", "/sample_lost_overflow");
	if (overflows)
		opr_warn("%s/stats: the kernel's sample buffers overflowed: the profile is incomplete.", path);
}

static void check_losses(int stats_fd, const char *path)
{
	uint64_t total, lost;

	if (op_stats_read(stats_fd, "total_samples", &total))
		return;
	lost = sum_stats(stats_fd, LOSS_PREFIX, "");
	if (lost > total / TOLERATED_PART)
		opr_warn("Lost samples detected! %" PRIu64 " of %" PRIu64 ", see %s/stats for details.", lost, total, path);
}

/* ---- the ledger ---- */

static void trace_switches(const struct opr_session *session)
{
	struct op_wait_ledger waits = session->ledger.waits;
	char name[OP_WAIT_NUMBER_BYTES];
	struct op_text text = { 0 };
	const uint64_t *number;

	for (size_t i = 0; (number = op_wait_ledger_number(&waits, i, name)); i++)
		op_text_printf(&text, "%s %s %" PRIu64, i ? "," : "", name, *number);
	if (op_wait_ledger_is_used(&waits))
		opr_verbose(OPR_TOPIC_stats, "switches of %s:%s", session->path, op_text_get(&text));
	op_text_free(&text);
}

static void trace_ledger(const struct opr_session *session)
{
	for (size_t i = 0; i < session->ledger.nr_events; i++) {
		const struct op_ledger_event *event = &session->ledger.events[i];
		struct op_text text = { 0 };

		for (enum op_loss reason = 0; reason < OP_NR_LOSS; reason++)
			op_text_printf(&text, ", lost_%s %" PRIu64, op_loss_name(reason), event->lost[reason]);
		opr_verbose(OPR_TOPIC_stats,
			    "ledger of %s: %s:%" PRIu64 ":%" PRIu32 ": received %" PRIu64 ", stored %" PRIu64
			    ", unattributed %" PRIu64 ", filtered %" PRIu64 ", lost_kernel %" PRIu64 "%s",
			    session->path, event->name, event->count, event->unit_mask, event->received, event->stored,
			    event->unattributed, event->filtered, event->lost_kernel, op_text_get(&text));
		op_text_free(&text);
	}
	trace_switches(session);
}

static void name_losses(const struct op_session_ledger *ledger, uint64_t lost_kernel, struct op_text *text)
{
	if (lost_kernel)
		op_text_printf(text, ", lost_kernel %" PRIu64, lost_kernel);
	for (enum op_loss reason = 0; reason < OP_NR_LOSS; reason++) {
		uint64_t lost = op_session_ledger_lost(ledger, reason);

		if (lost)
			op_text_printf(text, ", lost_%s %" PRIu64, op_loss_name(reason), lost);
	}
}

/* A record of a wait that was lost is no loss of time: the next one of its thread has the time. */
static void check_waits(const struct opr_session *session)
{
	for (size_t i = 0; i < session->ledger.nr_events; i++) {
		const struct op_ledger_event *event = &session->ledger.events[i];
		uint64_t lost = op_ledger_lost(event);

		if (op_event_is_time(event->role) &&
		    op_ledger_loss_share(event->received, event->filtered, event->lost_kernel, lost) > OP_LOSS_TOLERATED)
			opr_warn("Lost waits detected! %.3g of %.3g s: %s/" OP_SESSION_LEDGER " has the details.",
				 (double)(lost + event->lost_kernel) / 1e6, (double)(event->received + event->lost_kernel) / 1e6,
				 session->path);
	}
}

/* True after a warning. */
static bool check_ledger_losses(const struct opr_session *session)
{
	uint64_t received = 0, filtered = 0, lost = 0, lost_kernel = 0;
	struct op_text reasons = { 0 };

	for (size_t i = 0; i < session->ledger.nr_events; i++) {
		const struct op_ledger_event *event = &session->ledger.events[i];

		if (op_event_is_time(event->role))
			continue;
		if (op_event_is_taken((enum op_event_role)event->role)) {
			received += event->received;
			filtered += event->filtered;
		}
		lost_kernel += event->lost_kernel;
		lost += op_ledger_lost(event);
	}
	if (op_ledger_loss_share(received, filtered, lost_kernel, lost) <= OP_LOSS_TOLERATED)
		return false;
	name_losses(&session->ledger, lost_kernel, &reasons);
	opr_warn("Lost samples detected! %" PRIu64 " of %" PRIu64 "%s: %s/" OP_SESSION_LEDGER " has the details.",
		 lost + lost_kernel, received + lost_kernel, op_text_get(&reasons), session->path);
	op_text_free(&reasons);
	return true;
}

/* Samples of two events can be compared only by the time in which each was counted. */
static void check_counted(const struct opr_session *session)
{
	struct op_text shares = { 0 };

	for (size_t i = 0; i < session->ledger.nr_events; i++) {
		const struct op_ledger_event *event = &session->ledger.events[i];

		if (op_ledger_counted_share(event) < OP_COUNTED_NEEDED)
			op_text_printf(&shares, "%s%s:%" PRIu64 " %.1f %%", shares.length ? ", " : "", event->name, event->count,
				       100 * op_ledger_counted_share(event));
	}
	if (shares.length)
		opr_warn("%s has more events than the CPUs have counters: these were counted for a part of the time (%s). Their "
			 "samples are of that part.",
			 session->path, op_text_get(&shares));
	op_text_free(&shares);
}

static bool adds_up(const struct op_session_ledger *ledger)
{
	for (size_t i = 0; i < ledger->nr_events; i++) {
		const struct op_ledger_event *event = &ledger->events[i];

		if (!op_ledger_adds_up(event) || event->unattributed > event->stored)
			return false;
	}
	return true;
}

/* ---- samples that are gone ---- */

/*
 * Sums the samples in the files of a session by event. 0 or -ENOMEM; too many events are -ENOMEM,
 * too.
 */
static int sum_samples(const struct opr_profile *profile, size_t session, struct op_session_ledger *sums)
{
	for (size_t i = 0; i < profile->nr_files; i++) {
		const struct opr_file *file = &profile->files[i];
		struct op_ledger_event event = { .count = file->name->count, .unit_mask = (uint32_t)file->name->unit_mask }, *row;

		if (file->session != session || file->name->has_callee)
			continue;
		snprintf(event.name, sizeof(event.name), "%s", file->name->event);
		event.role = op_ibs_event_of_session(event.name) ? OP_EVENT_DERIVED : OP_EVENT_PLAIN;
		row = op_session_ledger_row(sums, &event);
		if (!row)
			return -ENOMEM;
		row->stored += file->stored;
	}
	return 0;
}

/* The files of an open session may have more samples than its ledger. */
static void compare_event(const struct opr_session *session, const struct op_ledger_event *event, uint64_t found)
{
	if (!op_event_has_files((enum op_event_role)event->role) || found == event->stored)
		return;
	if (found < event->stored)
		opr_warn("%" PRIu64 " samples of %s:%" PRIu64 " are gone from %s: %" PRIu64
			 " were stored, and the sample files have %" PRIu64 ". The percentages are of the samples that are left.",
			 event->stored - found, event->name, event->count, session->path, event->stored, found);
	else if (session->ledger.ended != OP_SESSION_open)
		opr_warn("%s has %" PRIu64 " samples of %s:%" PRIu64 " in its files, but its ledger has stored %" PRIu64
			 ": see opcheck(1)",
			 session->path, found, event->name, event->count, event->stored);
}

/*
 * False when the session was cleared or continued since its ledger was read: then a difference says
 * nothing.
 */
static bool is_same_session(const struct opr_session *session)
{
	struct op_session_ledger now;
	bool same;

	if (op_session_ledger_read(session->dir_fd, &now, NULL))
		return false;
	same = now.begin_ns == session->ledger.begin_ns && now.ended == session->ledger.ended;
	op_session_ledger_free(&now);
	return same;
}

static void compare_sums(const struct opr_profile *profile, size_t index)
{
	const struct opr_session *session = &profile->sessions[index];
	struct op_session_ledger sums = { 0 };

	if (!sum_samples(profile, index, &sums) && is_same_session(session)) {
		for (size_t i = 0; i < session->ledger.nr_events; i++) {
			const struct op_ledger_event *sum = op_session_ledger_find(&sums, &session->ledger.events[i]);

			compare_event(session, &session->ledger.events[i], sum ? sum->stored : 0);
		}
	}
	op_session_ledger_free(&sums);
}

/* Where not all files are selected, only their number can be compared. */
static void compare_nr_files(const struct opr_session *session)
{
	const struct op_session_ledger *ledger = &session->ledger;
	size_t nr_files = session->list.nr_files + session->bad_paths.nr_words;

	if (ledger->has_files && nr_files < ledger->files.nr && is_same_session(session))
		opr_warn("%s had %" PRIu64 " sample files when it was closed, and has %zu: samples are gone", session->path,
			 ledger->files.nr, nr_files);
}

static void check_ledger(const struct opr_profile *profile, size_t index)
{
	const struct opr_session *session = &profile->sessions[index];

	if (session->ledger.ended != OP_SESSION_open && !adds_up(&session->ledger))
		opr_warn("%s/" OP_SESSION_LEDGER " does not add up: its losses may be wrong", session->path);
	if (!session->is_whole || (profile->archive && !opr_archive_is_whole(profile->archive, session->path)))
		return;
	if (session->nr_unselected)
		compare_nr_files(session);
	else
		compare_sums(profile, index);
}

/* ---- a session ---- */

static void check_stats(const struct opr_session *session, bool warned_of_losses)
{
	int fd = openat(session->dir_fd, "stats", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return;
	check_overflow(fd, session->path);
	if (!warned_of_losses)
		check_losses(fd, session->path);
	if (!faccessat(fd, OP_STATS_KERNEL_HIDDEN, F_OK, 0))
		opr_warn("kernel samples of %s have no symbols: the kernel's addresses were hidden (kernel.kptr_restrict) when "
			 "they were taken.",
			 session->path);
	if (!faccessat(fd, "throttled", F_OK, 0))
		opr_warn("Some of the events were throttled: %s/stats/throttled says which. Use a longer period.", session->path);
	close(fd);
}

/*
 * Reports how much opcontrol --image kept out of the sample files. IBS samplers are skipped: the
 * events that are derived from them have the numbers, in their own units.
 */
static void note_filtered(const struct opr_session *session)
{
	uint64_t received = 0, filtered = 0;
	bool is_derived = false;

	for (size_t i = 0; session->has_ledger && i < session->ledger.nr_events; i++) {
		const struct op_ledger_event *event = &session->ledger.events[i];

		if (!op_event_has_files((enum op_event_role)event->role))
			continue;
		received += event->received;
		filtered += event->filtered;
		is_derived |= event->role == OP_EVENT_DERIVED;
	}
	if (filtered)
		opr_note("%" PRIu64 " of %" PRIu64 " %s of %s were filtered when they were taken: opcontrol --image does not name "
			 "their images",
			 filtered, received, is_derived ? "counts" : "samples", session->path);
}

void opr_losses_note_filtered(const struct opr_profile *profile)
{
	for (size_t i = 0; i < profile->nr_sessions; i++)
		note_filtered(&profile->sessions[i]);
}

static void check_session(const struct opr_profile *profile, size_t index)
{
	const struct opr_session *session = &profile->sessions[index];
	bool warned_of_losses = false;

	note_filtered(session);
	if (session->has_ledger) {
		trace_ledger(session);
		warned_of_losses = check_ledger_losses(session);
		check_waits(session);
		check_counted(session);
		check_ledger(profile, index);
	}
	check_stats(session, warned_of_losses);
}

void opr_losses_check(const struct opr_profile *profile)
{
	size_t checked = SIZE_MAX;

	/* The parts of a session follow it, and it is checked once. */
	for (size_t i = 0; i < profile->nr_sessions; i++) {
		size_t parent = profile->sessions[i].parent;

		if (!profile->sessions[i].list.nr_files || parent == checked)
			continue;
		check_session(profile, parent);
		checked = parent;
	}
}
