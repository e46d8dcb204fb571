/* SPDX-License-Identifier: GPL-3.0-or-later */
/* --history: the sessions that are kept, what their timelines have, and the gaps in them. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "libop/base/clock.h"
#include "libop/base/grow.h"
#include "libop/base/sys.h"
#include "libop/session/contents.h"
#include "libop/session/layout.h"
#include "libop/session/ledger_file.h"
#include "libop/session/walk.h"
#include "libop/timeline/read.h"
#include "tools/common/formatting.h"
#include "tools/common/log.h"
#include "tools/common/session_dir.h"
#include "tools/common/when.h"
#include "tools/opcontrol/opcontrol.h"

#define NS_PER_US    1000u
#define UTC_BYTES    40
#define SHORT_GAP_NS (2 * OP_NS_PER_S) /* less is the time between two blocks */

struct gap {
	uint64_t begin_ns, end_ns;
	uint32_t reason;
};

struct kept {
	char *name;
	uint64_t begin_ns, end_ns; /* of the session; 0: not known */
	uint64_t bytes;            /* on the disk */
	bool has_timeline;
	uint64_t timeline_bytes, first_ns, last_ns, shortest_ns, longest_ns, nr_blocks;
	struct gap *gaps;
	size_t nr_gaps, capacity;
};

struct history {
	int samples_fd;
	struct kept *kept;
	size_t nr_kept, capacity;
};

static const char *reason_word(uint32_t reason)
{
	static const char *const words[OP_NR_GAPS] = {
		[OP_GAP_NONE] = "no reason is known",
		[OP_GAP_FIRST] = "the session began",
		[OP_GAP_OFF] = "opd did not run",
		[OP_GAP_BOOT] = "the host was off",
		[OP_GAP_SUSPENDED] = "the host was suspended",
		[OP_GAP_PAUSED] = "profiling was off (opcontrol --stop)",
		[OP_GAP_UNWRITTEN] = "minutes could not be written",
		[OP_GAP_DISABLED] = "the timeline was off (TimelineInterval=0)",
		[OP_GAP_REMOVED] = "older minutes were removed",
	};

	return reason < OP_NR_GAPS ? words[reason] : "a reason that this version does not know";
}

/* ---- reading ---- */

static int add_gap(struct kept *kept, const struct gap *gap)
{
	if (!op_grow(&kept->gaps, &kept->capacity, kept->nr_gaps + 1))
		return -ENOMEM;
	kept->gaps[kept->nr_gaps++] = *gap;
	return 0;
}

static int add_block(struct kept *kept, const struct op_timeline_tail *tail)
{
	uint64_t begin_ns = tail->begin.wall_ns, length_ns = tail->end.mono_ns - tail->begin.mono_ns;
	int err = 0;

	if (kept->nr_blocks && tail->gap != OP_GAP_NONE && begin_ns > kept->last_ns + SHORT_GAP_NS)
		err = add_gap(kept, &(struct gap){ kept->last_ns, begin_ns, tail->gap });
	kept->first_ns = kept->nr_blocks ? op_min_u64(kept->first_ns, begin_ns) : begin_ns;
	kept->last_ns = op_max_u64(kept->last_ns, tail->end.wall_ns);
	kept->shortest_ns = kept->nr_blocks ? op_min_u64(kept->shortest_ns, length_ns) : length_ns;
	kept->longest_ns = op_max_u64(kept->longest_ns, length_ns);
	kept->nr_blocks++;
	return err;
}

static int read_timeline(struct kept *kept, int dir_fd)
{
	struct op_timeline *timeline;
	struct op_block block;
	int err = op_timeline_open(dir_fd, OP_SESSION_TIMELINE, &timeline);

	if (err == -ENOENT)
		return 0;
	if (err && err != -ENOMEM) {
		opr_warn("%s/" OP_SESSION_TIMELINE ": %s", kept->name,
			 err == -EBADMSG ? "no timeline, or of a later version" : strerror(-err));
		return 0;
	}
	if (!err)
		err = op_timeline_select(timeline, 0, UINT64_MAX);
	for (size_t i = 0; !err && i < op_timeline_nr_selected(timeline); i++)
		if (!op_timeline_block(timeline, i, &block))
			err = add_block(kept, &block.tail);
	kept->has_timeline = true;
	kept->timeline_bytes = op_timeline_bytes(timeline);
	op_timeline_close(timeline);
	return err;
}

/* Fills in what is known of the session whose directory is open. */
static int read_session(struct kept *kept, int dir_fd)
{
	struct op_session_ledger ledger;

	if (!op_session_ledger_read(dir_fd, &ledger, NULL)) {
		kept->begin_ns = ledger.begin_ns;
		kept->end_ns = ledger.end_ns;
		op_session_ledger_free(&ledger);
	}
	(void)!op_session_disk_bytes(dir_fd, ".", &kept->bytes);
	return read_timeline(kept, dir_fd) == -ENOMEM ? -ENOMEM : 0;
}

static int add_session(const char *name, void *arg)
{
	struct history *history = arg;
	int fd, err = -ENOMEM;

	if (*name == '.')
		return 0;
	fd = openat(history->samples_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return 0; /* it was removed, or is no directory */
	if (op_grow(&history->kept, &history->capacity, history->nr_kept + 1)) {
		struct kept *kept = &history->kept[history->nr_kept++];

		*kept = (struct kept){ .name = strdup(name) };
		if (kept->name)
			err = read_session(kept, fd);
	}
	close(fd);
	return err;
}

static int compare_kept(const void *left, const void *right)
{
	const struct kept *a = left, *b = right;

	if (a->begin_ns != b->begin_ns)
		return a->begin_ns < b->begin_ns ? -1 : 1;
	return strcmp(a->name, b->name);
}

static int read_history(const char *session_dir, struct history *history)
{
	struct op_text path = { 0 };
	int err;

	op_text_printf(&path, "%s/samples", session_dir);
	history->samples_fd = open(op_text_get(&path), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	err = history->samples_fd < 0 ? -errno : op_session_visit_dir(history->samples_fd, ".", add_session, history);
	if (err)
		opr_fail_open(err, op_text_get(&path));
	if (history->samples_fd >= 0)
		close(history->samples_fd);
	op_text_free(&path);
	if (history->nr_kept)
		qsort(history->kept, history->nr_kept, sizeof(*history->kept), compare_kept);
	return err;
}

/* ---- text ---- */

static void show_time(const char *before, uint64_t ns)
{
	char when[OPR_WHEN_BYTES];

	opr_when_format(ns / NS_PER_US, when);
	printf("%s%s", before, ns ? when : "an unknown time");
}

static void show_length(const char *before, uint64_t ns)
{
	struct op_text text = { 0 };

	opr_add_span(&text, ns);
	printf("%s%s", before, op_text_get(&text));
	op_text_free(&text);
}

static void show_bytes(uint64_t bytes)
{
	if (bytes < 10 << 20)
		printf("%" PRIu64 " KiB", (bytes + 1023) >> 10);
	else
		printf("%" PRIu64 " MiB", bytes >> 20);
}

static void show_timeline(const struct kept *kept)
{
	uint64_t length_ns = kept->last_ns > kept->first_ns ? kept->last_ns - kept->first_ns : 0;

	if (!kept->nr_blocks) {
		puts(kept->has_timeline ? "  timeline: nothing yet"
					: "  timeline: none, so the session can only be asked as a whole");
		return;
	}
	printf("  timeline: %" PRIu64 " block%s of ", kept->nr_blocks, kept->nr_blocks == 1 ? "" : "s");
	show_length("", kept->shortest_ns);
	if (kept->longest_ns >= kept->shortest_ns + OP_NS_PER_S)
		show_length(" to ", kept->longest_ns);
	show_time(", from ", kept->first_ns);
	show_time(" to ", kept->last_ns);
	fputs(", ", stdout);
	show_bytes(kept->timeline_bytes);
	if (length_ns) {
		fputs(", ", stdout);
		show_bytes((uint64_t)((double)kept->timeline_bytes * 3600 * OP_NS_PER_S / (double)length_ns));
		fputs(" an hour", stdout);
	}
	putchar('\n');
	for (size_t i = 0; i < kept->nr_gaps; i++) {
		show_time("  gap from ", kept->gaps[i].begin_ns);
		show_time(" to ", kept->gaps[i].end_ns);
		printf(": %s\n", reason_word(kept->gaps[i].reason));
	}
}

static void show_text(const struct history *history)
{
	for (size_t i = 0; i < history->nr_kept; i++) {
		const struct kept *kept = &history->kept[i];

		opr_write_escaped(stdout, kept->name);
		show_time(": from ", kept->begin_ns);
		show_time(" to ", kept->end_ns);
		fputs(", ", stdout);
		show_bytes(kept->bytes);
		putchar('\n');
		show_timeline(kept);
	}
	if (!history->nr_kept)
		puts("Nothing is kept yet: opcontrol --start begins a session.");
}

/* ---- JSON ---- */

static void show_json(const struct history *history)
{
	struct op_text text = { 0 };

	op_text_add(&text, "{ \"sessions\": [");
	for (size_t i = 0; i < history->nr_kept; i++) {
		const struct kept *kept = &history->kept[i];

		op_text_printf(&text, "%s\n  { \"name\": \"", i ? "," : "");
		op_text_add_json(&text, kept->name);
		op_text_printf(&text,
			       "\", \"begin_ns\": %" PRIu64 ", \"end_ns\": %" PRIu64 ", \"bytes\": %" PRIu64
			       ",\n    \"timeline\": { \"blocks\": %" PRIu64 ", \"bytes\": %" PRIu64 ", \"begin_ns\": %" PRIu64
			       ", \"end_ns\": %" PRIu64 ", \"shortest_ns\": %" PRIu64 ", \"longest_ns\": %" PRIu64 ", \"gaps\": [",
			       kept->begin_ns, kept->end_ns, kept->bytes, kept->nr_blocks, kept->timeline_bytes, kept->first_ns,
			       kept->last_ns, kept->shortest_ns, kept->longest_ns);
		for (size_t g = 0; g < kept->nr_gaps; g++)
			op_text_printf(&text, "%s{ \"begin_ns\": %" PRIu64 ", \"end_ns\": %" PRIu64 ", \"reason\": \"%s\" }",
				       g ? ", " : "", kept->gaps[g].begin_ns, kept->gaps[g].end_ns,
				       reason_word(kept->gaps[g].reason));
		op_text_add(&text, "] } }");
	}
	op_text_add(&text, " ] }\n");
	fputs(op_text_get(&text), stdout);
	op_text_free(&text);
}

int ctl_run_history(struct opcontrol *ctl)
{
	struct history history = { 0 };
	struct op_setup setup;
	bool has_setup = ctl_note_setup(ctl, &setup);
	int err = read_history(has_setup && setup.session_dir ? setup.session_dir : ctl->session_dir, &history);

	if (has_setup)
		op_setup_free(&setup);
	if (!err && ctl->format == CTL_JSON)
		show_json(&history);
	else if (!err)
		show_text(&history);
	for (size_t i = 0; i < history.nr_kept; i++) {
		free(history.kept[i].name);
		free(history.kept[i].gaps);
	}
	free(history.kept);
	return err ? 1 : 0;
}
