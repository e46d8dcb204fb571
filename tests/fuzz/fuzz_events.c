/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Fuzz target for descriptions of events. Input: length of the first file (2 bytes), then `events`
 * and `unit_masks` of a CPU, which may include themselves and those of another CPU. Every event is
 * found by its number, and its sets of masks can be read.
 */
#include "tests/fuzz/fuzz_dir.h"

#include <errno.h>

#include "tests/fuzz/fuzz_log.h"
#include "tools/events/description_files.h"

#define EVENTS_MAX 64 /* that are looked at */

static const char other_events[] = "event:0x01 counters:0 um:zero minimum:500 name:OTHER : of another CPU\n";
static const char other_masks[] = "name:zero type:mandatory default:0x0\n\t0x0 no unit mask\n";

static void check_event(const struct opr_event_files *files, const struct opr_event_row *event)
{
	const struct opr_event_row *found = opr_event_find(files, event->number, 0);
	const struct opr_mask_set *set;

	fuzz_check(event->name && *event->name && event->description && event->masks);
	fuzz_check(found && found->number == event->number);
	for (size_t i = 0; i < EVENTS_MAX && (set = opr_event_set(files, event, i)); i++)
		for (size_t j = 0; j < set->nr_values; j++)
			fuzz_check(set->values[j].description && opr_event_mask(files, event, set->values[j].value));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t nr_bytes)
{
	struct opr_event_files files = { 0 };
	struct fuzz_part parts[2];
	char path[FUZZ_PATH_BYTES];
	int err;

	if (!fuzz_split(bytes, nr_bytes, parts))
		return 0;
	fuzz_dir_path(path, "");
	fuzz_check(!setenv(OPR_EVENTS_DIR_ENV, path, 1));
	fuzz_check(fuzz_dir_write("other/events", other_events, strlen(other_events)) &&
		   fuzz_dir_write("other/unit_masks", other_masks, strlen(other_masks)));
	fuzz_check(fuzz_dir_write("cpu/events", parts[0].bytes, parts[0].nr_bytes) &&
		   fuzz_dir_write("cpu/unit_masks", parts[1].bytes, parts[1].nr_bytes));
	fuzz_nr_errors = 0;
	err = opr_event_files_read(&files, "cpu");
	fuzz_check(err != -ENOENT && (err ? fuzz_nr_errors > 0 : !fuzz_nr_errors));
	for (size_t i = 0; i < files.nr_events && i < EVENTS_MAX; i++)
		check_event(&files, &files.events[i]);
	opr_event_files_free(&files);
	return 0;
}
