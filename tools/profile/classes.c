/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/profile/classes.h"

#include <errno.h>
#include <inttypes.h>

#include "libop/events/event.h"
#include "tools/common/log.h"
#include "tools/common/option_values.h"
#include "tools/events/cpu_types.h"
#include "tools/events/description_files.h"

#define VALUES_MAX 20u /* in a message */

/* ---- finding ---- */

/* OP_CLASS_ALL, shown as "all", comes last. */
static int compare_numbers(int64_t a, int64_t b)
{
	uint64_t x = (uint64_t)a, y = (uint64_t)b;

	return x < y ? -1 : x > y;
}

/* Compares counts as decimal text, as oprofile does. */
static int compare_counts(uint64_t a, uint64_t b)
{
	char x[24], y[24];

	snprintf(x, sizeof(x), "%" PRIu64, a);
	snprintf(y, sizeof(y), "%" PRIu64, b);
	return strcmp(x, y);
}

static int compare_classes(const void *left, const void *right)
{
	const struct opr_class *a = left, *b = right;
	int order = compare_numbers(a->cpu, b->cpu);

	if (!order)
		order = compare_numbers(a->tgid, b->tgid);
	if (!order)
		order = compare_numbers(a->tid, b->tid);
	if (!order)
		order = compare_numbers(a->unit_mask, b->unit_mask);
	if (!order)
		order = strcmp(a->event, b->event);
	return order ? order : compare_counts(a->count, b->count);
}

static struct opr_class class_of(const struct opr_file *file, const struct opr_merge *merge)
{
	const struct op_sample_name *name = file->name;

	return (struct opr_class){
		.event = name->event,
		.count = name->count,
		.unit_mask = merge->unit_mask ? OP_CLASS_ALL : (int64_t)name->unit_mask,
		.tgid = merge->tgid ? OP_CLASS_ALL : name->tgid,
		.tid = merge->tid || merge->tgid ? OP_CLASS_ALL : name->tid,
		.cpu = merge->cpu ? OP_CLASS_ALL : name->cpu,
		.masks = merge->unit_mask ? name->unit_mask : 0,
		.first_file = file,
	};
}

/* Drops equal neighbours of a sorted list. Returns how many are left. */
static size_t drop_equal(struct opr_class *classes, size_t nr_classes)
{
	size_t nr_kept = 0;

	for (size_t i = 0; i < nr_classes; i++) {
		if (nr_kept && !compare_classes(&classes[nr_kept - 1], &classes[i])) {
			if (classes[i].first_file < classes[nr_kept - 1].first_file)
				classes[nr_kept - 1].first_file = classes[i].first_file;
			classes[nr_kept - 1].masks |= classes[i].masks;
			continue;
		}
		classes[nr_kept++] = classes[i];
	}
	return nr_kept;
}

static int find_classes(struct opr_classes *classes, struct opr_profile *profile, const struct opr_merge *merge)
{
	classes->classes = calloc(profile->nr_files, sizeof(*classes->classes));
	if (!classes->classes)
		return opr_no_memory();
	for (size_t i = 0; i < profile->nr_files; i++)
		classes->classes[i] = class_of(&profile->files[i], merge);
	qsort(classes->classes, profile->nr_files, sizeof(*classes->classes), compare_classes);
	classes->nr_classes = drop_equal(classes->classes, profile->nr_files);
	for (size_t i = 0; i < profile->nr_files; i++) {
		struct opr_class key = class_of(&profile->files[i], merge);
		const struct opr_class *found = bsearch(&key, classes->classes, classes->nr_classes, sizeof(key), compare_classes);

		profile->files[i].class_index = found ? (size_t)(found - classes->classes) : 0;
	}
	return 0;
}

/* ---- the axis ---- */

static int64_t value_on(const struct opr_class *class, enum opr_axis axis)
{
	return axis == OPR_AXIS_TGID ? class->tgid : axis == OPR_AXIS_TID ? class->tid : class->cpu;
}

static bool differ_on(const struct opr_class *a, const struct opr_class *b, enum opr_axis axis)
{
	if (axis == OPR_AXIS_EVENT)
		return a->unit_mask != b->unit_mask || a->count != b->count || strcmp(a->event, b->event);
	return value_on(a, axis) != value_on(b, axis);
}

static const struct {
	const char *parameter, *remedy;
	const char *description_prefix;
} axis_words[OPR_NR_AXES] = {
	[OPR_AXIS_EVENT] = { "event", "specify event:, count: or unit-mask:, or --merge unitmask", "" },
	[OPR_AXIS_TGID] = { "tgid", "specify tgid: or --merge tgid", "Processes with a thread group ID of " },
	[OPR_AXIS_TID] = { "tid", "specify tid: or --merge tid", "Processes with a thread ID of " },
	[OPR_AXIS_CPU] = { "cpu", "specify cpu: or --merge cpu", "Samples on CPU " },
};

static char *title_of(const struct opr_class *class, enum opr_axis axis)
{
	struct op_text title = { 0 };

	if (axis == OPR_AXIS_EVENT)
		op_text_printf(&title, "%s:%" PRIu64, class->event, class->count);
	else if (value_on(class, axis) == OP_CLASS_ALL)
		op_text_printf(&title, "%s:all", axis_words[axis].parameter);
	else
		op_text_printf(&title, "%s:%" PRId64, axis_words[axis].parameter, value_on(class, axis));
	return op_text_steal(&title);
}

static int compare_titles(const void *left, const void *right)
{
	return strverscmp(*(char *const *)left, *(char *const *)right);
}

/* Adds the different values of the classes on an axis, in order. */
static int list_values(const struct opr_classes *classes, enum opr_axis axis, struct op_text *values)
{
	char **titles = calloc(classes->nr_classes, sizeof(*titles));
	size_t nr_values = 0;
	bool complete = titles;

	for (size_t i = 0; i < classes->nr_classes && complete; i++) {
		titles[i] = title_of(&classes->classes[i], axis);
		complete = titles[i];
	}
	if (complete)
		qsort(titles, classes->nr_classes, sizeof(*titles), compare_titles);
	for (size_t i = 0; i < classes->nr_classes && complete; i++) {
		if (i && !strcmp(titles[i - 1], titles[i]))
			continue;
		if (nr_values++ < VALUES_MAX)
			op_text_printf(values, "%s%s", i ? "," : "", titles[i]);
	}
	if (nr_values > VALUES_MAX)
		op_text_printf(values, ",... (%zu in all)", nr_values);
	for (size_t i = 0; titles && i < classes->nr_classes; i++)
		free(titles[i]);
	free(titles);
	return complete && !values->failed ? 0 : -ENOMEM;
}

static int report_conflict(const struct opr_classes *classes, enum opr_axis shown, enum opr_axis other)
{
	struct op_text values = { 0 };
	int err = list_values(classes, shown, &values);

	if (err < 0)
		opr_no_memory();
	else
		err = opr_error(-EINVAL,
				"Already displaying results for parameter %s with values: %s which conflicts with parameter %s. "
				"Suggestion: %s",
				axis_words[shown].parameter, op_text_get(&values), axis_words[other].parameter,
				axis_words[shown].remedy);
	op_text_free(&values);
	return err;
}

/* Each thread is the only one of its process, so both axes are one. */
static bool tids_are_tgids(const struct opr_classes *classes)
{
	for (size_t i = 0; i < classes->nr_classes; i++)
		if (classes->classes[i].tid != classes->classes[i].tgid)
			return false;
	return true;
}

static void find_differences(const struct opr_classes *classes, bool differs[OPR_NR_AXES])
{
	for (enum opr_axis axis = 0; axis < OPR_NR_AXES; axis++)
		differs[axis] = false;
	for (size_t i = 1; i < classes->nr_classes; i++)
		for (enum opr_axis axis = 0; axis < OPR_NR_AXES; axis++)
			differs[axis] |= differ_on(&classes->classes[0], &classes->classes[i], axis);
	if (differs[OPR_AXIS_TGID] && differs[OPR_AXIS_TID] && (classes->may.chose_threads || tids_are_tgids(classes)))
		differs[OPR_AXIS_TGID] = false;
}

static int choose_axis(struct opr_classes *classes)
{
	bool differs[OPR_NR_AXES], chosen = false;

	find_differences(classes, differs);
	classes->axis = OPR_AXIS_EVENT;
	for (enum opr_axis axis = 0; axis < OPR_NR_AXES; axis++) {
		if (!differs[axis])
			continue;
		if (chosen && !classes->any_axes)
			return report_conflict(classes, classes->axis, axis);
		classes->axis = axis;
		chosen = true;
	}
	return 0;
}

/* ---- merging unasked ---- */

static int compare_ids(const void *left, const void *right)
{
	const int64_t *a = left, *b = right;

	return *a < *b ? -1 : *a > *b;
}

/* How many different values the classes have on an axis. 0: no memory. */
static size_t count_values(const struct opr_classes *classes, enum opr_axis axis)
{
	int64_t *values = calloc(classes->nr_classes, sizeof(*values));
	size_t nr_values = 0;

	for (size_t i = 0; values && i < classes->nr_classes; i++)
		values[i] = value_on(&classes->classes[i], axis);
	if (values)
		qsort(values, classes->nr_classes, sizeof(*values), compare_ids);
	for (size_t i = 0; values && i < classes->nr_classes; i++)
		nr_values += !i || values[i] != values[i - 1];
	free(values);
	return nr_values;
}

static void tell_merged(const struct opr_classes *classes, const struct opr_merge *before, const struct opr_merge *merge)
{
	const struct {
		bool merged;
		enum opr_axis axis;
		const char *what, *remedy;
	} axes[] = {
		{ merge->tgid && !before->tgid, OPR_AXIS_TGID, "processes", "tgid:all" },
		{ merge->tid && !before->tid, OPR_AXIS_TID, "threads", "tid:all" },
		{ merge->cpu && !before->cpu, OPR_AXIS_CPU, "CPUs", "cpu:all" },
	};
	struct op_text what = { 0 }, remedy = { 0 };

	for (size_t i = 0; i < op_array_size(axes); i++) {
		size_t nr_values = axes[i].merged ? count_values(classes, axes[i].axis) : 0;

		if (nr_values < 2)
			continue;
		op_text_printf(&what, "%s%zu %s", what.length ? ", " : "", nr_values, axes[i].what);
		op_text_printf(&remedy, "%s%s", remedy.length ? ", " : "", axes[i].remedy);
	}
	if (what.length)
		opr_note("the samples of %s are summed; to have a column for each: %s", op_text_get(&what), op_text_get(&remedy));
	op_text_free(&what);
	op_text_free(&remedy);
}

static bool differ_in_several(const bool differs[OPR_NR_AXES])
{
	size_t nr_axes = 0;

	for (enum opr_axis axis = 0; axis < OPR_NR_AXES; axis++)
		nr_axes += differs[axis];
	return nr_axes > 1;
}

/* What to merge so that the classes differ in one way: first threads, then CPUs. */
static struct opr_merge choose_merge(const struct opr_classes *classes, const struct opr_merge *wanted)
{
	struct opr_merge merge = *wanted;
	bool differs[OPR_NR_AXES];

	find_differences(classes, differs);
	if (classes->may.threads && (differs[OPR_AXIS_TGID] || differs[OPR_AXIS_TID])) {
		merge.tid = true;
		merge.tgid |= !classes->may.chose_processes;
	}
	differs[OPR_AXIS_TID] &= !merge.tid;
	differs[OPR_AXIS_TGID] &= !merge.tgid;
	if (classes->may.cpus && differ_in_several(differs))
		merge.cpu = true;
	return merge;
}

/* Finds the classes again if some are to be merged. */
static int merge_unasked(struct opr_classes *classes, struct opr_profile *profile, const struct opr_merge *wanted)
{
	struct opr_merge merge;

	if (classes->any_axes)
		return 0;
	merge = choose_merge(classes, wanted);
	if (merge.tid == wanted->tid && merge.tgid == wanted->tgid && merge.cpu == wanted->cpu)
		return 0;
	tell_merged(classes, wanted, &merge);
	free(classes->classes);
	return find_classes(classes, profile, &merge);
}

/* ---- descriptions ---- */

/*
 * oprofile's name for the CPU, if the ledgers of all sessions say the same. opd files events of a
 * PMU under the type of the timer, too (doc/format.md).
 */
static const char *recorded_cpu(const struct opr_profile *profile)
{
	const char *cpu = NULL;

	for (size_t i = 0; i < profile->nr_sessions; i++) {
		const struct opr_session *session = &profile->sessions[i];

		if (session->parent != i)
			continue;
		if (cpu && strcmp(session->ledger.cpu, cpu) != 0)
			return "";
		cpu = session->ledger.cpu;
	}
	return cpu ? cpu : "";
}

static char *describe_cpu(const struct opr_profile *profile, const struct op_odb_header *header)
{
	const char *cpu = header->cpu_type == OP_CPU_TYPE_TIMER ? recorded_cpu(profile) : "";
	const char *name, *pretty = *cpu ? opr_cpu_type_find(cpu, &name) : opr_cpu_type(header->cpu_type, NULL);
	struct op_text text = { 0 };

	if (!pretty)
		pretty = !strcmp(cpu, "arm64") ? OPR_ARM64_PRETTY : cpu;
	op_text_printf(&text, "CPU: %s", pretty);
	if (header->cpu_speed_mhz > 0)
		op_text_printf(&text, ", speed %g MHz (estimated)", header->cpu_speed_mhz);
	return op_text_steal(&text);
}

static void describe_counted(struct op_text *text, const char *name, const char *what, const char *mask_text,
			     const struct op_odb_header *header, uint32_t mask)
{
	op_text_printf(text, "Counted %s events (%s) with a unit mask of 0x%02" PRIx32 " (%s) count %" PRIu32, name, what, mask,
		       mask_text, header->ctr_count);
}

/*
 * Describes the event by the event files of the CPU. -ENOENT, without a message: they do not have
 * it.
 */
static int describe_by_files(struct op_text *text, const struct op_odb_header *header, uint32_t mask)
{
	struct opr_event_files files = { 0 };
	const struct opr_event_row *event;
	const char *cpu_name = NULL, *mask_text;
	int err = opr_cpu_type(header->cpu_type, &cpu_name) ? opr_event_files_read(&files, cpu_name) : -ENOENT;

	event = err ? NULL : opr_event_find(&files, header->ctr_event, mask);
	if (event) {
		mask_text = opr_event_mask(&files, event, mask);
		if (!mask_text && !mask && !*event->masks)
			mask_text = "No unit mask";
		describe_counted(text, event->name, event->description, mask_text ? mask_text : "multiple flags", header, mask);
	}
	opr_event_files_free(&files);
	return err || event ? err : -ENOENT;
}

static int describe_event(const struct opr_class *class, const struct op_odb_header *header, char **ret_text)
{
	struct op_text text = { 0 };
	uint32_t mask = class->masks ? class->masks : header->ctr_um;
	const char *what = header->ctr_event ? op_event_description(class->event) : NULL;
	int err = 0;

	if (!what && header->cpu_type == OP_CPU_TYPE_TIMER)
		what = op_event_kind(header->ctr_event);
	if (header->cpu_type != OP_CPU_TYPE_TIMER) {
		err = describe_by_files(&text, header, mask);
		if (err == -ENOENT && what) {
			describe_counted(&text, class->event, what, mask ? "multiple flags" : "No unit mask", header, mask);
			err = 0;
		} else if (err == -ENOENT) {
			fprintf(stderr, "Could not locate event %" PRIu32 "\n", header->ctr_event);
			op_text_add(&text, "Unknown event");
			err = 0;
		}
	} else if (what) {
		describe_counted(&text, class->event, what, mask ? "multiple flags" : "No unit mask", header, mask);
	} else {
		op_text_add(&text, "Profiling through timer interrupt");
	}
	if (err < 0) {
		op_text_free(&text);
		return err;
	}
	*ret_text = op_text_steal(&text);
	return *ret_text ? 0 : opr_no_memory();
}

static char *describe_class(const struct opr_class *class, enum opr_axis axis)
{
	struct op_text text = { 0 };

	if (value_on(class, axis) == OP_CLASS_ALL)
		op_text_printf(&text, "%sall", axis_words[axis].description_prefix);
	else
		op_text_printf(&text, "%s%" PRId64, axis_words[axis].description_prefix, value_on(class, axis));
	return op_text_steal(&text);
}

static const char *unit_of(const struct opr_class *class)
{
	const struct op_ibs_event *event = op_ibs_event_of_session(class->event);

	return event ? op_ibs_event_unit(event) : "samples";
}

/* Describes a class; from the first class also the head of the report. */
static int describe(struct opr_classes *classes, const struct opr_profile *profile, size_t index)
{
	bool by_event = classes->axis == OPR_AXIS_EVENT;
	struct opr_class *class = &classes->classes[index];
	const struct op_odb_header *header = &class->first_file->header;
	int err = 0;

	class->title = title_of(class, classes->axis);
	if (!class->title)
		return opr_no_memory();
	class->unit = unit_of(class);
	if (!index) {
		classes->header = *header;
		classes->cpu_line = describe_cpu(profile, header);
	}
	if (!index && !by_event)
		err = describe_event(class, header, &classes->event_line);
	if (!err && by_event)
		err = describe_event(class, header, &class->description);
	else if (!err)
		class->description = describe_class(class, classes->axis);
	if (err < 0)
		return err;
	return class->description && classes->cpu_line ? 0 : opr_no_memory();
}

int opr_classes_find(struct opr_classes *classes, struct opr_profile *profile, const struct opr_merge *merge)
{
	int err = find_classes(classes, profile, merge);

	if (!err)
		err = merge_unasked(classes, profile, merge);
	if (!err)
		err = choose_axis(classes);
	for (size_t i = 0; i < classes->nr_classes && !err; i++)
		err = describe(classes, profile, i);
	return err;
}

void opr_classes_free(struct opr_classes *classes)
{
	if (!classes)
		return;
	for (size_t i = 0; i < classes->nr_classes; i++) {
		free(classes->classes[i].title);
		free(classes->classes[i].description);
	}
	free(classes->classes);
	free(classes->cpu_line);
	free(classes->event_line);
	*classes = (struct opr_classes){ 0 };
}

/* ---- --merge ---- */

static const struct {
	const char *word;
	struct opr_merge merge;
} merges[] = {
	{ "cpu", { .cpu = true } },
	{ "lib", { .lib = true } },
	{ "library", { .lib = true } },
	{ "tid", { .tid = true } },
	{ "tgid", { .tgid = true, .tid = true } },
	{ "unitmask", { .unit_mask = true } },
	{ "all", { .cpu = true, .lib = true, .tid = true, .tgid = true, .unit_mask = true } },
};

static bool add_merge(struct opr_merge *merge, const char *word)
{
	for (size_t i = 0; i < op_array_size(merges); i++) {
		const struct opr_merge *more = &merges[i].merge;

		if (strcmp(word, merges[i].word))
			continue;
		merge->cpu |= more->cpu;
		merge->lib |= more->lib;
		merge->tid |= more->tid;
		merge->tgid |= more->tgid;
		merge->unit_mask |= more->unit_mask;
		merge->is_chosen |= more->cpu || more->tid;
		return true;
	}
	return false;
}

int opr_take_merge(void *field, const char *value)
{
	static const char *const words[] = { "cpu", "lib", "tid", "tgid", "unitmask", "all" };
	struct opr_merge_option *option = field;

	if (opr_take_words(&option->words, value) < 0)
		return -ENOMEM;
	option->merge = (struct opr_merge){ 0 };
	for (size_t i = 0; i < option->words.nr_words; i++)
		if (!add_merge(&option->merge, option->words.words[i]))
			return opr_refuse_word("unknown merge option", option->words.words[i], words, op_array_size(words));
	return 0;
}
