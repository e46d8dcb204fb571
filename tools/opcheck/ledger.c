/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/opcheck/ledger.h"

#include <errno.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libop/events/event_list.h"
#include "libop/session/dcookie.h"
#include "libop/session/stats_files.h"
#include "libop/session/sum.h"
#include "tools/opcheck/findings.h"
#include "tools/opcheck/timeline.h"

struct comparison {
	struct opk_check *check;
	const struct opk_found *found;
	struct op_session_ledger ledger;
};

/* A sampler has no files of its own: what its ledger says counts. */
static uint64_t stored_in_files(const struct comparison *comparison, const struct op_ledger_event *event)
{
	const struct op_ledger_event *sum = op_session_ledger_find(&comparison->found->sums, event);

	if (event->role == OP_EVENT_SAMPLER)
		return event->stored;
	return sum ? sum->stored : 0;
}

static int rewrite_ledger(struct comparison *comparison)
{
	int err = op_session_ledger_correct(&comparison->ledger, &comparison->found->sums);

	return err ? err : op_session_ledger_publish(&comparison->ledger, comparison->check->dir_fd);
}

/* What is wrong with the first event that does not add up; NULL: all add up. */
static const char *find_fault(const struct comparison *comparison, char detail[160])
{
	const struct op_session_ledger *ledger = &comparison->ledger, *sums = &comparison->found->sums;

	for (size_t i = 0; i < ledger->nr_events; i++) {
		const struct op_ledger_event *event = &ledger->events[i];
		uint64_t in_files = stored_in_files(comparison, event);

		snprintf(detail, 160, "%.40s:%" PRIu64 ": %" PRIu64 " stored, %" PRIu64 " in the files", event->name, event->count,
			 event->stored, in_files);
		if (event->stored != in_files)
			return "the ledger does not say what the sample files hold";
		if (!op_ledger_adds_up(event) || event->unattributed > event->stored)
			return "the ledger does not add up";
	}
	for (size_t i = 0; i < sums->nr_events; i++) {
		snprintf(detail, 160, "%.40s:%" PRIu64, sums->events[i].name, sums->events[i].count);
		if (!op_session_ledger_find(ledger, &sums->events[i]))
			return "the ledger has not all events of the sample files";
	}
	return NULL;
}

/* Whether the next daemon corrects the ledger. */
static bool is_unfinished(const struct comparison *comparison)
{
	return comparison->ledger.ended == OP_SESSION_open || comparison->check->unclean;
}

/* Whether the ledger only lacks the samples after a killed daemon wrote it last. */
static bool is_behind(const struct comparison *comparison)
{
	const struct op_session_ledger *ledger = &comparison->ledger;

	if (!is_unfinished(comparison) || comparison->found->changed)
		return false;
	for (size_t i = 0; i < ledger->nr_events; i++)
		if (ledger->events[i].stored > stored_in_files(comparison, &ledger->events[i]))
			return false;
	return true;
}

static void compare_ledger(struct comparison *comparison)
{
	struct opk_check *check = comparison->check;
	char detail[160] = "";
	struct opk_problem problem = {
		.path = OP_SESSION_LEDGER, .fault = find_fault(comparison, detail), .detail = detail
	};

	if (!problem.fault)
		return;
	if (is_behind(comparison) && !check->repair)
		opk_note(check, OP_SESSION_LEDGER,
			 "the last samples are missing, because the daemon was killed; the next "
			 "daemon adds them");
	else
		opk_report(check, &problem, check->repair ? rewrite_ledger(comparison) : 0);
}

/*
 * The genuine tools warn by these numbers. They may be larger than the ledger's: they also count
 * samples that were lost with their files, and those of a daemon before opd.
 */
static void check_stats(const struct comparison *comparison)
{
	struct opk_check *check = comparison->check;
	uint64_t wanted[OP_STATS_NR] = { 0 }, found;
	char path[64], detail[96];
	struct opk_problem problem = { .path = path, .fault = "it says less than the ledger", .detail = detail };
	int stats_fd = is_unfinished(comparison) ? -ENOENT : op_stats_open(check->dir_fd, false);

	if (stats_fd < 0)
		return;
	op_stats_add(&comparison->ledger, wanted);
	for (enum op_stats_number i = 0; i < OP_STATS_NR; i++) {
		snprintf(path, sizeof(path), "stats/%s", op_stats_name(i));
		if (opk_is_other(check, path, S_IFREG))
			continue; /* opk_check_leftovers has reported it */
		if (op_stats_read(stats_fd, op_stats_name(i), &found))
			found = 0;
		snprintf(detail, sizeof(detail), "%" PRIu64 ", not %" PRIu64, found, wanted[i]);
		if (found < wanted[i])
			opk_report(check, &problem, check->repair ? op_stats_write(stats_fd, i, wanted[i]) : 0);
	}
	close(stats_fd);
}

/* From the sample files and the times of the directory. */
static int make_ledger(struct comparison *comparison)
{
	struct op_session_ledger *ledger = &comparison->ledger;
	int dir_fd = comparison->check->dir_fd, err;

	*ledger = (struct op_session_ledger){ .ended = comparison->check->end };
	op_session_ledger_guess_times(ledger, dir_fd);
	err = rewrite_ledger(comparison);
	if (!err)
		err = op_stats_raise(dir_fd, ledger);
	op_session_ledger_free(ledger);
	return err;
}

static void report_missing(struct comparison *comparison)
{
	struct opk_check *check = comparison->check;
	struct opk_problem problem = { .path = OP_SESSION_LEDGER,
				       .fault = "the ledger is missing, but opd made this session",
				       .detail = "" };

	if (!check->nr_files || check->live)
		return;
	if (comparison->found->has_images)
		opk_report(check, &problem, check->repair ? make_ledger(comparison) : 0);
	else
		opk_note(check, OP_SESSION_LEDGER, "the ledger is missing: opd did not make this session");
}

int opk_ledger_check(struct opk_check *check, const struct opk_found *found)
{
	struct comparison comparison = { .check = check, .found = found };
	struct op_session_ledger *ledger = &comparison.ledger;
	bool aside = opk_put_other_aside(check, OP_SESSION_LEDGER, S_IFREG, "not a regular file");
	unsigned int line = 0;
	char fault[64];
	int err = aside ? -ENOENT : op_session_ledger_read(check->dir_fd, ledger, &line);

	if (err == -EBADMSG) {
		snprintf(fault, sizeof(fault), "line %u is invalid", line);
		opk_put_aside(check, OP_SESSION_LEDGER, fault, 0, "");
		aside = true;
		err = -ENOENT;
	}
	if (err == -ENOENT && (!aside || check->repair))
		report_missing(&comparison);
	if (err)
		return err == -ENOENT ? 0 : err;
	for (size_t i = 0; i < ledger->nr_events; i++)
		check->nr_samples += ledger->events[i].role == OP_EVENT_SAMPLER ? ledger->events[i].stored : 0;
	if (!found->has_images && check->nr_files)
		opk_note(check, OP_DCOOKIE_FILE, "the table of images is missing: images are known by their names only");
	if (!check->live) {
		compare_ledger(&comparison);
		check_stats(&comparison);
	}
	err = opk_timeline_check(check, found, ledger);
	op_session_ledger_free(ledger);
	return err;
}
