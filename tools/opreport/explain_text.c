/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The page of opreport --explain, as Markdown and as JSON. */
#include <inttypes.h>

#include "libop/base/clock.h"
#include "tools/common/formatting.h"
#include "tools/common/when.h"
#include "tools/opreport/explain.h"

#define NS_PER_US  1000u
#define PATH_NAMES 7u /* of a path, at most: the first two and the last ones */
#define PATH_FIRST 2u

/* How much of the facts the page has room for. */
struct room {
	size_t nr_rows;    /* of a list */
	size_t name_bytes; /* of a name */
};

static size_t longest_run(const char *text, char c)
{
	size_t longest = 0, run = 0;

	for (; *text; text++) {
		run = *text == c ? run + 1 : 0;
		longest = run > longest ? run : longest;
	}
	return longest;
}

static bool is_inside_character(char c)
{
	return ((unsigned char)c & 0xc0) == 0x80;
}

/* Adds a name as code of Markdown; a long one loses its middle. */
static void add_name(struct op_text *text, const char *name, size_t max_bytes)
{
	struct op_text escaped = { 0 }, shown = { 0 };
	const char *all;
	size_t nr_ticks, head = max_bytes / 2, tail;

	op_text_add_escaped(&escaped, name);
	all = op_text_get(&escaped);
	if (escaped.length > max_bytes) {
		tail = escaped.length - head;
		while (head && is_inside_character(all[head]))
			head--;
		while (is_inside_character(all[tail]))
			tail++;
		op_text_add_bytes(&shown, all, head);
		op_text_add(&shown, "...");
		op_text_add(&shown, all + tail);
	} else {
		op_text_add(&shown, all);
	}
	nr_ticks = longest_run(op_text_get(&shown), '`');
	for (size_t i = 0; i <= nr_ticks; i++)
		op_text_add_char(text, '`');
	op_text_printf(text, nr_ticks ? " %s " : "%s", op_text_get(&shown));
	for (size_t i = 0; i <= nr_ticks; i++)
		op_text_add_char(text, '`');
	op_text_free(&escaped);
	op_text_free(&shown);
}

static void add_time(struct op_text *text, uint64_t ns)
{
	char when[OPR_WHEN_BYTES];

	opr_when_format(ns / NS_PER_US, when);
	op_text_add(text, when);
}

static const char *plural(uint64_t number)
{
	return number == 1 ? "" : "s";
}

/* ---- sections ---- */

static void add_heading(const struct opr_facts *facts, struct op_text *text)
{
	op_text_add(text, "# What burned");
	if (facts->host) {
		op_text_add(text, " on ");
		op_text_add_escaped(text, facts->host);
	}
	if (facts->begin_ns) {
		op_text_add(text, ", ");
		add_time(text, facts->begin_ns);
		op_text_add(text, " to ");
		add_time(text, facts->end_ns);
	}
	op_text_printf(text, "\n\nopd took %" PRIu64 " sample%s of %s.", facts->samples, plural(facts->samples), facts->event);
	if (facts->counts_time) {
		op_text_printf(text, " They stand for %.6g CPU seconds", facts->cpu_seconds);
		if (facts->end_ns > facts->begin_ns)
			op_text_printf(text, ", so %.2f CPUs were busy on average",
				       facts->cpu_seconds * OP_NS_PER_S / (double)(facts->end_ns - facts->begin_ns));
		op_text_add_char(text, '.');
	}
	op_text_add(text, "\n");
}

static void add_list(const struct opr_fact_list *list, const char *title, const char *command, const char *unit,
		     const struct room *room, struct op_text *text)
{
	if (!list->nr_facts)
		return;
	op_text_printf(text, "\n## %s\n\n", title);
	for (size_t i = 0; i < list->nr_facts && i < room->nr_rows; i++) {
		const struct opr_fact *fact = &list->facts[i];

		op_text_add(text, "- ");
		add_name(text, fact->name, room->name_bytes);
		if (fact->image) {
			op_text_add(text, " of ");
			add_name(text, fact->image, room->name_bytes);
		}
		op_text_printf(text, " took %.2f %% (%" PRIu64 " %s%s).\n", fact->percent, fact->samples, unit,
			       plural(fact->samples));
	}
	op_text_printf(text, "\nMore: `%s`\n", command);
}

static void add_path(const struct opr_hot_path *path, const struct room *room, struct op_text *text)
{
	size_t nr = path->frames.nr_words, nr_last = PATH_NAMES - PATH_FIRST;

	op_text_add(text, "- ");
	add_name(text, path->program, room->name_bytes);
	op_text_printf(text, ", %.2f %% of all stacks (%" PRIu64 "):", path->percent, path->samples);
	for (size_t i = 0; i < nr; i++) {
		if (nr > PATH_NAMES && i == PATH_FIRST) {
			op_text_printf(text, " > (%zu more)", nr - PATH_NAMES);
			i = nr - nr_last;
		}
		op_text_add(text, i ? " > " : " ");
		add_name(text, path->frames.words[i], room->name_bytes);
	}
	op_text_add(text, "\n");
}

static void add_paths(const struct opr_facts *facts, const struct room *room, struct op_text *text)
{
	if (!facts->nr_paths)
		return;
	op_text_add(text,
		    "\n## Hottest paths\n\nEach line follows most samples of a program as far as a quarter of them goes.\n\n");
	for (size_t i = 0; i < facts->nr_paths; i++)
		add_path(&facts->paths[i], room, text);
	op_text_printf(text, "\nMore: `opreport --stacks%s`\n", facts->options);
}

static void add_us(struct op_text *text, uint64_t us)
{
	struct opr_time_text time = opr_format_us(us);

	op_text_add(text, time.text + strspn(time.text, " "));
}

static void add_waits(const struct opr_facts *facts, const struct room *room, struct op_text *text)
{
	if (!facts->waited_us)
		return;
	op_text_add(text, "\n## Waits\n\nThreads waited ");
	add_us(text, facts->waited_us);
	op_text_add(text, ". In ");
	add_us(text, facts->idle_us);
	op_text_add(text, " of it they had no work.\n\n");
	for (size_t i = 0; i < facts->nr_waits && i < room->nr_rows; i++) {
		const struct opr_wait_fact *fact = &facts->waits[i];

		op_text_add(text, "- ");
		add_name(text, fact->name, room->name_bytes);
		op_text_add(text, " of ");
		add_name(text, fact->image, room->name_bytes);
		op_text_add(text, " waited ");
		add_us(text, fact->us);
		op_text_printf(text, ", %.2f %% (from %" PRIu64 " record%s): %s.\n", fact->percent, fact->nr_records,
			       plural(fact->nr_records), fact->states);
	}
	op_text_printf(text, "\nMore: `opreport -l --waits%s`\n", facts->options);
}

static void add_change(const struct opr_fact *fact, const struct room *room, struct op_text *text)
{
	op_text_add(text, "- ");
	add_name(text, fact->name, room->name_bytes);
	if (fact->image) {
		op_text_add(text, " of ");
		add_name(text, fact->image, room->name_bytes);
	}
	op_text_printf(text, ": %+.2f points, now %.2f %% (%" PRIu64 " sample%s, %" PRIu64 " before).\n", fact->points,
		       fact->percent, fact->samples, plural(fact->samples), fact->before);
}

static void add_comparison(const struct opr_comparison *comparison, const struct room *room, struct op_text *text)
{
	static const char *const whys[] = {
		[OPR_NOT_KEPT] = "no samples of that time are kept",
		[OPR_NOT_APART] = "the samples of both times are in one session, and nothing finer is kept of them",
		[OPR_NOT_ALIKE] = "the samples of that time are of other events",
		[OPR_IS_COMPARED] = NULL,
	};

	if (!comparison->begin_ns)
		return;
	op_text_printf(text, "\n## Against %s\n\n", comparison->name[0] == 'b' ? "the time before" : "the same time a day earlier");
	add_time(text, comparison->begin_ns);
	op_text_add(text, " to ");
	add_time(text, comparison->end_ns);
	if (comparison->compared != OPR_IS_COMPARED) {
		op_text_printf(text, ": not compared, since %s.\n", whys[comparison->compared]);
		return;
	}
	op_text_printf(text, ": %" PRIu64 " sample%s. Beyond the noise of counting, the share of %zu function%s changed%s\n",
		       comparison->samples, plural(comparison->samples), comparison->nr_changed, plural(comparison->nr_changed),
		       comparison->nr_changed ? ", most of all:\n" : ".");
	for (size_t i = 0; i < comparison->functions.nr_facts && i < room->nr_rows; i++)
		add_change(&comparison->functions.facts[i], room, text);
}

static void add_gaps(const struct opr_facts *facts, struct op_text *text)
{
	op_text_add(text, "\n## What is missing\n\n");
	if (facts->lost_percent < 0)
		op_text_add(text, "- Whether samples were lost is not known.\n");
	else
		op_text_printf(text, "- %.3g %% of the samples were lost.\n", facts->lost_percent);
	if (facts->unnamed_percent > 0)
		op_text_printf(text,
			       "- %.2f %% of the samples have no function name. `opreport --images%s` says what would help.\n",
			       facts->unnamed_percent, facts->options);
	if (!facts->nr_stacks)
		op_text_add(text, "- There are no stacks, so no callers: `opcontrol --stacks` turns them on.\n");
	else
		op_text_printf(text, "- %.2f %% of %" PRIu64 " stacks are complete, and %" PRIu64 " stack samples were lost.\n",
			       facts->complete_percent, facts->nr_stacks, facts->nr_lost_stacks);
}

static void write_page(const struct opr_facts *facts, const struct room *room, struct op_text *text)
{
	struct op_text command = { 0 };

	add_heading(facts, text);
	op_text_printf(&command, "opreport%s", facts->options);
	add_list(&facts->programs, "Programs", op_text_get(&command), "sample", room, text);
	op_text_truncate(&command, 0);
	op_text_printf(&command, "opreport -l%s", facts->options);
	add_list(&facts->functions, "Functions", op_text_get(&command), "sample", room, text);
	op_text_truncate(&command, 0);
	op_text_printf(&command, "opreport -l --runtime%s", facts->options);
	add_list(&facts->runtimes, "Functions of runtimes", op_text_get(&command), "stack", room, text);
	op_text_truncate(&command, 0);
	op_text_printf(&command, "opreport --stacks --by=cgroup%s", facts->options);
	add_list(&facts->services, "Services", op_text_get(&command), "stack", room, text);
	op_text_free(&command);
	add_paths(facts, room, text);
	add_waits(facts, room, text);
	for (size_t i = 0; i < op_array_size(facts->comparisons); i++)
		add_comparison(&facts->comparisons[i], room, text);
	add_gaps(facts, text);
}

void opr_explain_text(const struct opr_facts *facts, struct op_text *text)
{
	static const struct room rooms[] = { { OPR_EXPLAIN_ROWS, 72 }, { OPR_EXPLAIN_ROWS, 40 }, { 3, 40 }, { 2, 24 }, { 1, 16 } };
	size_t begin = text->length;

	for (size_t i = 0; i < op_array_size(rooms); i++) {
		op_text_truncate(text, begin);
		write_page(facts, &rooms[i], text);
		if (text->length - begin <= OPR_EXPLAIN_BYTES)
			return;
	}
}

/* ---- JSON ---- */

static void add_member(struct op_text *text, const char *name, const char *value)
{
	op_text_printf(text, "\"%s\": ", name);
	if (!value) {
		op_text_add(text, "null");
		return;
	}
	op_text_add_char(text, '"');
	op_text_add_json(text, value);
	op_text_add_char(text, '"');
}

static void add_json_list(struct op_text *text, const char *name, const struct opr_fact_list *list, bool is_change)
{
	op_text_printf(text, "\"%s\": [", name);
	for (size_t i = 0; i < list->nr_facts; i++) {
		const struct opr_fact *fact = &list->facts[i];

		op_text_add(text, i ? ",\n    { " : "\n    { ");
		add_member(text, "name", fact->name);
		if (fact->image) {
			op_text_add(text, ", ");
			add_member(text, "image", fact->image);
		}
		op_text_printf(text, ", \"samples\": %" PRIu64 ", \"percent\": %.6g", fact->samples, fact->percent);
		if (is_change)
			op_text_printf(text, ", \"samples-before\": %" PRIu64 ", \"points\": %.6g", fact->before, fact->points);
		op_text_add(text, " }");
	}
	op_text_add(text, "]");
}

static void add_json_path(struct op_text *text, const struct opr_hot_path *path)
{
	op_text_add(text, "\n    { ");
	add_member(text, "program", path->program);
	op_text_printf(text, ", \"samples\": %" PRIu64 ", \"percent\": %.6g, \"frames\": [", path->samples, path->percent);
	for (size_t i = 0; i < path->frames.nr_words; i++) {
		op_text_add(text, i ? ", \"" : "\"");
		op_text_add_json(text, path->frames.words[i]);
		op_text_add_char(text, '"');
	}
	op_text_add(text, "] }");
}

static void add_json_time(struct op_text *text, const char *name, uint64_t ns)
{
	char when[OPR_UTC_BYTES];

	opr_format_utc(ns, when);
	add_member(text, name, ns ? when : NULL);
}

static void add_json_comparison(struct op_text *text, const struct opr_comparison *comparison)
{
	static const char *const words[] = { [OPR_NOT_KEPT] = "not-kept",
					     [OPR_NOT_APART] = "not-apart",
					     [OPR_NOT_ALIKE] = "not-alike",
					     [OPR_IS_COMPARED] = "compared" };

	op_text_add(text, "\n    { ");
	add_member(text, "against", comparison->name);
	op_text_add(text, ", ");
	add_json_time(text, "begin", comparison->begin_ns);
	op_text_add(text, ", ");
	add_json_time(text, "end", comparison->end_ns);
	op_text_add(text, ", ");
	add_member(text, "state", words[comparison->compared]);
	op_text_printf(text, ", \"samples\": %" PRIu64 ", \"changed\": %zu,\n      ", comparison->samples, comparison->nr_changed);
	add_json_list(text, "functions", &comparison->functions, true);
	op_text_add(text, " }");
}

void opr_explain_json(const struct opr_facts *facts, struct op_text *text)
{
	op_text_add(text, "{\n  ");
	add_member(text, "host", facts->host);
	op_text_add(text, ", ");
	add_json_time(text, "begin", facts->begin_ns);
	op_text_add(text, ", ");
	add_json_time(text, "end", facts->end_ns);
	op_text_add(text, ",\n  ");
	add_member(text, "event", facts->event);
	op_text_printf(text, ", \"samples\": %" PRIu64 ", \"cpu-seconds\": ", facts->samples);
	op_text_printf(text, facts->counts_time ? "%.6g" : "null", facts->cpu_seconds);
	op_text_add(text, ", \"lost-percent\": ");
	op_text_printf(text, facts->lost_percent >= 0 ? "%.6g" : "null", facts->lost_percent);
	op_text_printf(text, ", \"unnamed-percent\": %.6g,\n  ", facts->unnamed_percent);
	add_member(text, "options", facts->options);
	op_text_add(text, ",\n  ");
	add_json_list(text, "programs", &facts->programs, false);
	op_text_add(text, ",\n  ");
	add_json_list(text, "functions", &facts->functions, false);
	op_text_add(text, ",\n  ");
	add_json_list(text, "runtimes", &facts->runtimes, false);
	op_text_add(text, ",\n  ");
	add_json_list(text, "services", &facts->services, false);
	op_text_printf(text,
		       ",\n  \"stacks\": %" PRIu64 ", \"lost-stacks\": %" PRIu64 ", \"complete-percent\": %.6g,\n  \"paths\": [",
		       facts->nr_stacks, facts->nr_lost_stacks, facts->complete_percent);
	for (size_t i = 0; i < facts->nr_paths; i++) {
		op_text_add(text, i ? "," : "");
		add_json_path(text, &facts->paths[i]);
	}
	op_text_printf(text, "],\n  \"waited-us\": %" PRIu64 ", \"idle-us\": %" PRIu64 ", \"waits\": [",
		       facts->waited_us, facts->idle_us);
	for (size_t i = 0; i < facts->nr_waits; i++) {
		op_text_add(text, i ? ",\n    { " : "\n    { ");
		add_member(text, "name", facts->waits[i].name);
		op_text_add(text, ", ");
		add_member(text, "image", facts->waits[i].image);
		op_text_printf(text, ", \"us\": %" PRIu64 ", \"percent\": %.6g, \"records\": %" PRIu64 ", ", facts->waits[i].us,
			       facts->waits[i].percent, facts->waits[i].nr_records);
		add_member(text, "states", facts->waits[i].states);
		op_text_add(text, " }");
	}
	op_text_add(text, "],\n  \"comparisons\": [");
	for (size_t i = 0; i < op_array_size(facts->comparisons); i++) {
		op_text_add(text, i ? "," : "");
		add_json_comparison(text, &facts->comparisons[i]);
	}
	op_text_add(text, "]\n}\n");
}
