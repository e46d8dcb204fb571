/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the file does not say, and samples that may be wrong. */
#include <errno.h>

#include "libop/perf/data_shape.h"
#include "tools/opimport/event_match.h"
#include "tools/opimport/opimport.h"
#include "tools/common/log.h"

/* ---- guesses ---- */

static void print_recognised(const struct op_perf_event *event, const char *name)
{
	const char *sampler = op_ibs_sampler_name((enum op_ibs_kind)(event->recognised - 1));

	if (event->attr.type < PERF_TYPE_MAX)
		printf("%s: its samples are the registers of %s, which took them\n", name, sampler);
	else
		printf("%s: the file has no list of PMUs, but its samples are the registers of %s\n", name, sampler);
}

static void print_guess(const struct op_perf_features *features, const struct op_perf_event *event)
{
	struct op_event named;

	opi_event_name(event, &named);
	if (event->recognised)
		print_recognised(event, named.name);
	else if (event->attr.type >= PERF_TYPE_MAX && op_perf_may_be_ibs(features, event))
		printf("%s: the file has no list of PMUs, and its samples have data that are not recognised: if they are registers "
		       "of IBS, "
		       "--ibs-op=%u or --ibs-fetch=%u makes IBS_ events of them\n",
		       named.name, event->attr.type, event->attr.type);
}

void opi_report_guesses(const struct op_perf_data *data)
{
	const struct op_perf_events *events = op_perf_data_events(data);
	const struct op_perf_features *features = op_perf_data_features(data);
	enum op_ibs_kind kind;
	struct op_ibs_cpu cpu;
	bool has_ibs = false;

	for (size_t i = 0; i < events->nr_events; i++) {
		print_guess(features, &events->events[i]);
		has_ibs |= op_perf_is_ibs(features, &events->events[i], &kind);
	}
	if (has_ibs && !opi_events_find_cpu(features, &cpu))
		puts("the file names no CPU that has IBS: what the registers mean is taken from their capability word; where that "
		     "does not say it, "
		     "loads from beyond L1 have no source, and fetches without a physical address are in IBS_FETCH_ALL alone");
}

/* ---- doubts ---- */

static bool warn_of(uint64_t count, const char *file, const char *what)
{
	if (count)
		opr_error(-EBADMSG, "%s: %llu %s", file, (unsigned long long)count, what);
	return count;
}

/* Of all events but the memory view, which has no samples. */
static uint64_t nr_lost(const struct opi_import *import, enum op_loss reason)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < opi_import_nr_events(import); i++) {
		struct op_ledger_event event;

		opi_import_ledger(import, i, &event);
		sum += event.role == OP_EVENT_MEMORY ? 0 : event.lost[reason];
	}
	return sum;
}

/* Samples of the file that are not in the session. */
static bool warn_of_losses(const struct opi_import *import, const char *file)
{
	bool is_any = false;

	for (enum op_loss reason = 0; reason < OP_NR_LOSS; reason++) {
		uint64_t amount = reason == OP_LOSS_undecodable ? 0 : nr_lost(import, reason);

		if (amount)
			opr_error(-EIO, "%s: %llu samples are not in the session: %s", file, (unsigned long long)amount,
				  op_loss_meaning(reason));
		is_any |= amount;
	}
	return is_any;
}

bool opi_report_doubts(const struct op_perf_data *data, const struct opi_import *import, const char *file)
{
	struct opi_import_counts counts;
	bool is_wrong;

	opi_import_counts(import, &counts);
	if (counts.nr_unknown)
		opr_warn("%s: %llu samples are of events that the file does not list, and are not in the session", file,
			 (unsigned long long)counts.nr_unknown);
	if (counts.nr_lost_unknown)
		opr_warn(
			"%s: %llu samples were lost when it was recorded, of events that the file does not list, or lists too late",
			file, (unsigned long long)counts.nr_lost_unknown);
	is_wrong =
		warn_of(counts.nr_unordered, file, "records came after younger ones were counted: samples may be on wrong images");
	is_wrong |=
		warn_of(counts.nr_unannounced, file,
			"samples are of events that the file lists after other samples were counted, and are not in the session");
	is_wrong |= warn_of(opi_import_nr_outdated(import, op_perf_data_events(data)), file,
			    "events may be counted under wrong names: the file describes them, or their CPU, after their samples");
	is_wrong |= warn_of(counts.nr_undivided, file,
			    "events of IBS are in the session as their samples alone: it has no room for more IBS_ events");
	is_wrong |= warn_of(counts.nr_merged, file,
			    "counts are filed under too-many-images, since the session may have no more files or room "
			    "(MaxSampleFiles, SessionKeepFree)");
	is_wrong |= warn_of(counts.nr_not_split, file,
			    "counts are not kept apart by thread, process or CPU, since the session may have no more files or room "
			    "(MaxSampleFiles, "
			    "SessionKeepFree)");
	is_wrong |=
		warn_of(counts.nr_lost_calls, file,
			"calls are not in the session: there was no file or no room for them (MaxSampleFiles, SessionKeepFree)");
	is_wrong |= warn_of_losses(import, file);
	if (counts.timeline_error)
		opr_warn("%s: the session has no timeline: %s", file, strerror(-counts.timeline_error));
	return is_wrong;
}
