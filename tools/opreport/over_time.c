/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/opreport/over_time.h"

#include <errno.h>

#include "libop/base/clock.h"
#include "libop/base/grow.h"
#include "libop/base/htable.h"
#include "libop/session/layout.h"
#include "libop/timeline/read.h"
#include "tools/common/log.h"
#include "tools/common/progress.h"
#include "tools/profile/image_name.h"
#include "tools/profile/select_files.h"
#include "tools/profile/session_read.h"
#include "tools/report/make_rows.h"

#define ROWS_MAX   10u /* applications */
#define HOUR_NS    (3600ull * OP_NS_PER_S)
#define MINUTES_NS (3 * HOUR_NS) /* a longer time is shown by the hour */

enum match { OF_APPLICATION, OF_IMAGE, OF_FUNCTION };

/* Positions of a function that was asked for. */
struct range {
	const char *image;
	uint64_t start, end;
};

struct reading {
	struct opr_course *course;
	struct opr_run *run;
	const char *name;
	enum match match;
	struct range *ranges;
	size_t nr_ranges, capacity;
	size_t session;
	struct op_htable images; /* struct named of the session */
	const struct opr_class *class;
};

/* ---- what is looked for ---- */

static bool has_name(const char *full, const char *name)
{
	return !strcmp(full, name) || !strcmp(opr_base_name(full), name);
}

static int add_range(struct reading *reading, const struct opr_symbol_row *row)
{
	if (!op_grow(&reading->ranges, &reading->capacity, reading->nr_ranges + 1))
		return opr_no_memory();
	reading->ranges[reading->nr_ranges++] =
		(struct range){ row->image, row->symbol->start, row->symbol->start + row->symbol->size };
	return 0;
}

/* A function by its name, or by its name without arguments. */
static int find_functions(struct reading *reading)
{
	struct opr_words names = { 0 };
	int err = opr_words_add(&names, reading->name) < 0 ? opr_no_memory() : opr_run_to(reading->run, OPR_STEP_ROWS);
	struct opr_words bases = { 0 };

	if (!err)
		err = opr_symbol_names_find_bases(&names, &reading->run->images, &bases);
	for (size_t i = 0; i < reading->run->rows.nr_rows && !err; i++) {
		const struct opr_symbol_row *row = &reading->run->rows.rows[i];

		if (row->symbol && opr_symbol_is_named(&names, &bases, row->symbol, row->image))
			err = add_range(reading, row);
	}
	opr_words_free(&names);
	opr_words_free(&bases);
	return err;
}

static int find_match(struct reading *reading)
{
	static const char *const whats[] = { "application", "image", "function" };
	const struct opr_profile *profile = &reading->run->selection.profile;
	bool is_image = false, is_app = !reading->name;
	int err = 0;

	for (size_t i = 0; i < profile->nr_parts && reading->name; i++) {
		is_app |= has_name(profile->parts[i].app, reading->name);
		is_image |= has_name(profile->parts[i].image, reading->name);
	}
	reading->match = is_app ? OF_APPLICATION : is_image ? OF_IMAGE : OF_FUNCTION;
	if (reading->match == OF_FUNCTION)
		err = find_functions(reading);
	if (!err && reading->match == OF_FUNCTION && !reading->nr_ranges)
		err = opr_error(-ENOENT, "--over-time=%s: no application, image or function with samples has that name",
				reading->name);
	reading->course->what = whats[reading->match];
	return err;
}

struct app_sum {
	const char *app;
	uint64_t total;
};

static int compare_sums(const void *left, const void *right)
{
	const struct app_sum *a = left, *b = right;

	return a->total == b->total ? strcmp(a->app, b->app) : a->total < b->total ? 1 : -1;
}

/* The rows are the applications with most samples of the first class. */
static int choose_applications(struct reading *reading)
{
	const struct opr_profile *profile = &reading->run->selection.profile;
	struct app_sum *sums = calloc(profile->nr_parts + 1, sizeof(*sums));
	size_t nr_sums = 0;
	int err = sums ? 0 : opr_no_memory();

	for (size_t i = 0; i < profile->nr_parts && !err; i++) {
		const struct opr_part *part = &profile->parts[i];

		if (!nr_sums || strcmp(sums[nr_sums - 1].app, part->app) != 0)
			sums[nr_sums++].app = part->app;
		for (size_t f = part->first_file; f < part->first_file + part->nr_files; f++)
			if (!profile->files[f].class_index)
				sums[nr_sums - 1].total += profile->files[f].total;
	}
	if (nr_sums)
		qsort(sums, nr_sums, sizeof(*sums), compare_sums);
	for (size_t i = 0; i < nr_sums && i < ROWS_MAX && !err && sums[i].total; i++)
		err = opr_words_add(&reading->course->rows, sums[i].app) < 0 ? opr_no_memory() : 0;
	free(sums);
	return err;
}

/* ---- bins ---- */

static int add_bin(struct opr_course *course, uint64_t begin_ns, uint64_t end_ns)
{
	struct opr_bin *bins = reallocarray(course->bins, course->nr_bins + 1, sizeof(*bins));

	if (!bins)
		return opr_no_memory();
	course->bins = bins;
	bins[course->nr_bins++] = (struct opr_bin){ .begin_ns = begin_ns, .end_ns = end_ns };
	return 0;
}

static int compare_bins(const void *left, const void *right)
{
	const struct opr_bin *a = left, *b = right;

	return (a->begin_ns > b->begin_ns) - (a->begin_ns < b->begin_ns);
}

/* Of an hour that has many blocks one is left. */
static void sort_bins(struct opr_course *course)
{
	uint64_t first_ns = UINT64_MAX, last_ns = 0;
	size_t nr_kept = 0;

	for (size_t i = 0; i < course->nr_bins; i++) {
		first_ns = op_min_u64(first_ns, course->bins[i].begin_ns);
		last_ns = op_max_u64(last_ns, course->bins[i].end_ns);
	}
	course->by_hour = course->nr_bins && last_ns - first_ns > MINUTES_NS;
	for (size_t i = 0; i < course->nr_bins && course->by_hour; i++) {
		course->bins[i].begin_ns -= course->bins[i].begin_ns % HOUR_NS;
		course->bins[i].end_ns = course->bins[i].begin_ns + HOUR_NS;
	}
	if (course->nr_bins)
		qsort(course->bins, course->nr_bins, sizeof(*course->bins), compare_bins);
	for (size_t i = 0; i < course->nr_bins; i++)
		if (!nr_kept || course->bins[nr_kept - 1].begin_ns != course->bins[i].begin_ns)
			course->bins[nr_kept++] = course->bins[i];
	course->nr_bins = nr_kept;
}

static struct opr_bin *find_bin(struct opr_course *course, uint64_t begin_ns)
{
	const struct opr_bin key = { .begin_ns = course->by_hour ? begin_ns - begin_ns % HOUR_NS : begin_ns };

	return bsearch(&key, course->bins, course->nr_bins, sizeof(key), compare_bins);
}

/* ---- a session ---- */

struct named {
	struct op_hlink link;
	uint64_t cookie;
	char *name;
	uint64_t offset; /* from a key to a position */
	size_t row;      /* of an application; SIZE_MAX: it has none */
};

static size_t row_of(const struct reading *reading, const char *app)
{
	for (size_t i = 0; i < reading->course->rows.nr_words && reading->match == OF_APPLICATION; i++)
		if (reading->name ? has_name(app, reading->name) : !strcmp(app, reading->course->rows.words[i]))
			return i;
	return SIZE_MAX;
}

static struct named *make_named(struct reading *reading, uint64_t cookie)
{
	struct opr_profile *profile = &reading->run->selection.profile;
	const struct op_dcookie_row *row = op_dcookie_row(profile->sessions[reading->session].images, cookie);
	const struct op_image_name name = op_dcookie_name(row);
	struct named *named = calloc(1, sizeof(*named));
	struct opr_image *image;

	if (!named)
		return NULL;
	named->cookie = cookie;
	named->name = opr_stack_image_name(profile, reading->session, &name);
	if (!named->name || op_htable_insert(&reading->images, &named->link, op_hash_u64(cookie))) {
		free(named->name);
		free(named);
		return NULL;
	}
	named->row = row_of(reading, named->name);
	for (size_t i = 0; i < reading->nr_ranges; i++) {
		if (strcmp(reading->ranges[i].image, named->name) != 0)
			continue;
		image = opr_image_cache_find(&reading->run->images, named->name);
		named->offset = image ? opr_position_offset(image, row->id.is_kernel, name.start) : 0;
		break;
	}
	return named;
}

static const struct named *find_named(struct reading *reading, uint64_t cookie)
{
	uint64_t hash = op_hash_u64(cookie);

	if (!op_dcookie_has(reading->run->selection.profile.sessions[reading->session].images, cookie))
		return NULL;
	for (struct op_hlink *link = op_htable_first(&reading->images, hash); link; link = op_htable_next(link)) {
		struct named *named = op_container_of(link, struct named, link);

		if (named->cookie == cookie)
			return named;
	}
	return make_named(reading, cookie);
}

static void free_named(struct op_hlink *link, void *arg)
{
	struct named *named = op_container_of(link, struct named, link);

	op_htable_remove(arg, link);
	free(named->name);
	free(named);
}

static bool is_of_class(const struct reading *reading, const char *event)
{
	const struct opr_class *class = reading->class;
	size_t length = strlen(class->event);
	char *end;

	if (strncmp(event, class->event, length) != 0 || event[length] != ':' ||
	    strtoull(event + length + 1, &end, 10) != class->count)
		return false;
	return *end == ':' && (class->unit_mask == OP_CLASS_ALL || strtoull(end + 1, NULL, 0) == (uint64_t) class->unit_mask);
}

static bool is_in_range(const struct reading *reading, const struct named *image, uint64_t key)
{
	for (size_t i = 0; i < reading->nr_ranges; i++)
		if (key + image->offset >= reading->ranges[i].start && key + image->offset < reading->ranges[i].end &&
		    !strcmp(reading->ranges[i].image, image->name))
			return true;
	return false;
}

/* The row of a node with samples; SIZE_MAX: none. `app`, `image`: of the node or one above it. */
static size_t row_of_node(struct reading *reading, const struct op_minute_node *node, uint64_t app, uint64_t image)
{
	const struct named *named = find_named(reading, reading->match == OF_APPLICATION ? app : image);

	if (!named)
		return SIZE_MAX;
	switch (reading->match) {
	case OF_APPLICATION:
		return named->row;
	case OF_IMAGE:
		return has_name(named->name, reading->name) ? 0 : SIZE_MAX;
	case OF_FUNCTION:
		return op_minute_is_code(node->kind) && is_in_range(reading, named, node->value) ? 0 : SIZE_MAX;
	}
	return SIZE_MAX;
}

/* Of each node: the event and images of it or of nodes above it. */
struct above {
	bool is_wanted;
	uint64_t app, image;
};

static int add_block(struct reading *reading, const struct op_minute *minute)
{
	struct opr_bin *bin = find_bin(reading->course, op_min_u64(minute->begin.wall_ns, minute->end.wall_ns));
	struct above *above = calloc(minute->nr_nodes + 1u, sizeof(*above));

	if (!above)
		return opr_no_memory();
	for (uint32_t i = 1; i < minute->nr_nodes && bin; i++) {
		const struct op_minute_node *node = &minute->nodes[i];
		size_t row;

		above[i] = above[node->parent];
		if (node->kind == OP_MINUTE_SAMPLES)
			above[i].is_wanted = is_of_class(reading, minute->texts[minute->events[node->value].text]);
		else if (node->kind == OP_MINUTE_APP)
			above[i].app = above[i].image = node->image;
		else if (node->kind == OP_MINUTE_IMAGE || op_minute_is_code(node->kind))
			above[i].image = node->image;
		if (!above[i].is_wanted || !(node->self | node->rest))
			continue;
		bin->total += node->self + node->rest;
		row = row_of_node(reading, node, above[i].app, above[i].image);
		if (row != SIZE_MAX)
			bin->values[row] += node->self + node->rest;
	}
	free(above);
	return 0;
}

/* ---- all sessions ---- */

/* Opens the timeline of a session, with the blocks of the span. NULL: it has none. */
static int open_timeline(const struct opr_profile *profile, size_t session, struct op_timeline **ret_timeline)
{
	uint64_t until_ns = profile->until_ns ? profile->until_ns : UINT64_MAX;
	int err = op_timeline_open(profile->sessions[session].dir_fd, OP_SESSION_TIMELINE, ret_timeline);

	if (err == -ENOENT || err == -EBADMSG) {
		opr_warn("%s has no timeline that can be read: its samples are not in the course", profile->sessions[session].path);
		*ret_timeline = NULL;
		return 0;
	}
	if (!err)
		err = op_timeline_select(*ret_timeline, profile->since_ns, until_ns);
	return err ? opr_error(err, "%s/" OP_SESSION_TIMELINE ": %s", profile->sessions[session].path, strerror(-err)) : 0;
}

static int list_bins(struct opr_course *course, const struct op_timeline *timeline)
{
	int err = 0;

	for (size_t i = 0; i < op_timeline_nr_selected(timeline) && !err; i++) {
		struct op_block block;

		if (!op_timeline_block(timeline, i, &block))
			err = add_bin(course, op_block_first_ns(&block.tail), op_block_last_ns(&block.tail));
	}
	return err;
}

static int read_session(struct reading *reading, struct op_timeline *timeline)
{
	struct op_minute minute;
	uint64_t offset, nr_damaged;
	int err = op_minute_init(&minute, 0) ? opr_no_memory() : 0;

	while (!err && !(err = op_timeline_next(timeline, &minute))) {
		opr_progress("reading the timeline");
		err = add_block(reading, &minute);
	}
	op_minute_free(&minute);
	nr_damaged = op_timeline_nr_damaged(timeline, &offset);
	if (nr_damaged)
		opr_warn("%s/" OP_SESSION_TIMELINE ": %llu damaged place%s, the first at byte %llu, %s left out" OPR_REPAIR_HINT,
			 reading->run->selection.profile.sessions[reading->session].path, (unsigned long long)nr_damaged,
			 nr_damaged == 1 ? "" : "s", (unsigned long long)offset, nr_damaged == 1 ? "is" : "are");
	op_htable_visit(&reading->images, free_named, &reading->images);
	op_htable_free(&reading->images);
	return err == -ENODATA ? 0 : err;
}

static int make_values(struct opr_course *course)
{
	for (size_t i = 0; i < course->nr_bins; i++) {
		course->bins[i].values = calloc(course->rows.nr_words + 1, sizeof(uint64_t));
		if (!course->bins[i].values)
			return opr_no_memory();
	}
	return 0;
}

static int read_timelines(struct reading *reading, struct op_timeline **timelines)
{
	const struct opr_profile *profile = &reading->run->selection.profile;
	int err = 0;

	for (size_t i = 0; i < profile->nr_sessions && !err; i++) {
		if (profile->sessions[i].parent != i || !profile->sessions[i].images)
			continue;
		err = open_timeline(profile, i, &timelines[i]);
		if (!err && timelines[i])
			err = list_bins(reading->course, timelines[i]);
	}
	sort_bins(reading->course);
	if (!err && !reading->course->nr_bins)
		err = opr_error(-ENOENT,
				"no timeline has that time: opd writes one each TimelineInterval=, and opcontrol --history lists "
				"what is kept");
	if (!err)
		err = make_values(reading->course);
	for (reading->session = 0; reading->session < profile->nr_sessions && !err; reading->session++)
		if (timelines[reading->session])
			err = read_session(reading, timelines[reading->session]);
	for (size_t i = 0; i < profile->nr_sessions; i++)
		op_timeline_close(timelines[i]);
	return err;
}

int opr_course_read(struct opr_course *course, struct opr_run *run, const char *name)
{
	struct reading reading = { .course = course, .run = run, .name = name };
	struct op_timeline **timelines = calloc(run->selection.profile.nr_sessions + 1, sizeof(struct op_timeline *));
	int err = timelines ? find_match(&reading) : opr_no_memory();

	reading.class = &run->selection.classes.classes[0];
	if (!err && asprintf(&course->event, "%s:%llu", reading.class->event, (unsigned long long)reading.class->count) < 0)
		err = opr_no_memory();
	if (!err && name)
		err = opr_words_add(&course->rows, name) < 0 ? opr_no_memory() : 0;
	else if (!err)
		err = choose_applications(&reading);
	if (!err)
		err = read_timelines(&reading, timelines);
	free(timelines);
	free(reading.ranges);
	return err;
}

void opr_course_free(struct opr_course *course)
{
	for (size_t i = 0; i < course->nr_bins; i++)
		free(course->bins[i].values);
	free(course->bins);
	free(course->event);
	opr_words_free(&course->rows);
	*course = (struct opr_course){ 0 };
}
