/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/optop/reading.h"

#include <errno.h>
#include <sys/stat.h>

#include "libop/base/grow.h"
#include "libop/base/htable.h"
#include "tools/common/log.h"
#include "tools/profile/image_name.h"
#include "tools/profile/selection.h"
#include "tools/report/make_rows.h"
#include "tools/stacks/arrange.h"
#include "tools/stacks/read_stacks.h"

#define PATH_PERCENT 1.0 /* paths with less are added up */
#define RETRIES      3   /* a file was removed while it was read */

static const struct opr_symbol_options symbol_options = { .demangle = OPR_DEMANGLE_NORMAL,
							   .sources = OPR_FROM_ALL & ~(uint32_t)OPR_FROM_DEBUGINFOD };

/* ---- bases ---- */

static int compare_keys(const void *left, const void *right)
{
	const struct top_base_count *a = left, *b = right;

	return a->key < b->key ? -1 : a->key > b->key;
}

static uint64_t base_of(const struct top_base *base, uint64_t key)
{
	const struct top_base_count wanted = { .key = key };
	const struct top_base_count *found =
		base->nr_counts ? bsearch(&wanted, base->counts, base->nr_counts, sizeof(wanted), compare_keys) : NULL;

	return found ? found->count : 0;
}

static int base_add(struct top_base *base, uint64_t key, uint64_t count)
{
	if (!op_grow(&base->counts, &base->capacity, base->nr_counts + 1))
		return opr_no_memory();
	base->counts[base->nr_counts++] = (struct top_base_count){ key, count };
	return 0;
}

/* Sorts the counts; counts of one key become one. */
static void base_finish(struct top_base *base)
{
	size_t nr = 0;

	if (base->nr_counts)
		qsort(base->counts, base->nr_counts, sizeof(*base->counts), compare_keys);
	for (size_t i = 0; i < base->nr_counts; i++) {
		if (nr && base->counts[nr - 1].key == base->counts[i].key)
			base->counts[nr - 1].count += base->counts[i].count;
		else
			base->counts[nr++] = base->counts[i];
	}
	base->nr_counts = nr;
}

void top_base_free(struct top_base *base)
{
	free(base->counts);
	*base = (struct top_base){ 0 };
}

/* A session that began after the base has none of its counts. */
static void begin_base(struct top_base *now, struct top_base *base, const struct opr_profile *profile)
{
	struct stat st;

	if (profile->nr_sessions && !fstat(profile->sessions[0].dir_fd, &st))
		now->session = st.st_ino;
	if (base->is_set && base->session != now->session) {
		top_base_free(base);
		base->session = now->session;
		base->is_set = true;
	}
}

static void end_base(struct top_base *now, struct top_base *base, bool keep)
{
	if (base->is_set && keep) {
		top_base_free(now);
		return;
	}
	top_base_free(base);
	*base = *now;
	base->is_set = true;
}

/* ---- rows ---- */

static int add_row(struct top_reading *reading, const char *name, const char *image, uint64_t key, uint64_t count)
{
	struct top_row *row;

	if (!op_grow(&reading->rows, &reading->capacity, reading->nr_rows + 1))
		return opr_no_memory();
	row = &reading->rows[reading->nr_rows];
	*row = (struct top_row){ .name = strdup(name), .image = strdup(image), .key = key, .count = count };
	if (row->name && row->image) {
		reading->nr_rows++;
		return 0;
	}
	free(row->name);
	free(row->image);
	return opr_no_memory();
}

static uint64_t key_of(uint64_t key, const char *text)
{
	return op_hash_bytes(key, text, strlen(text) + 1);
}

static void free_row(struct top_row *row)
{
	free(row->name);
	free(row->image);
}

static int compare_row_keys(const void *left, const void *right)
{
	const struct top_row *a = left, *b = right;

	return a->key < b->key ? -1 : a->key > b->key;
}

static int compare_rows(const void *left, const void *right)
{
	const struct top_row *a = left, *b = right;

	if (a->count != b->count)
		return a->count > b->count ? -1 : 1;
	return strcmp(a->name, b->name);
}

/* Rows with one key become one. */
static void merge_rows(struct top_reading *reading)
{
	size_t nr = 0;

	if (reading->nr_rows)
		qsort(reading->rows, reading->nr_rows, sizeof(*reading->rows), compare_row_keys);
	for (size_t i = 0; i < reading->nr_rows; i++) {
		if (nr && reading->rows[nr - 1].key == reading->rows[i].key) {
			reading->rows[nr - 1].count += reading->rows[i].count;
			free_row(&reading->rows[i]);
		} else {
			reading->rows[nr++] = reading->rows[i];
		}
	}
	reading->nr_rows = nr;
}

/* Of all counts so far, leaves those since the base. Rows without any go. */
static int subtract_base(struct top_reading *reading, struct top_base *now, const struct top_base *base)
{
	size_t nr = 0;
	int err = 0;

	merge_rows(reading);
	for (size_t i = 0; i < reading->nr_rows && !err; i++)
		err = base_add(now, reading->rows[i].key, reading->rows[i].count);
	base_finish(now);
	for (size_t i = 0; i < reading->nr_rows; i++) {
		struct top_row *row = &reading->rows[i];
		uint64_t before = base->is_set ? base_of(base, row->key) : row->count;

		if (row->count > before && !err) {
			row->count -= before;
			reading->total += row->count;
			reading->rows[nr++] = *row;
		} else {
			free_row(row);
		}
	}
	reading->nr_rows = nr;
	if (nr)
		qsort(reading->rows, nr, sizeof(*reading->rows), compare_rows);
	return err;
}

void top_reading_free(struct top_reading *reading)
{
	for (size_t i = 0; i < reading->nr_rows; i++)
		free_row(&reading->rows[i]);
	free(reading->rows);
	free(reading->event);
	*reading = (struct top_reading){ 0 };
}

/* ---- from the sample files ---- */

static int set_event(struct top_reading *reading, const struct opr_classes *classes, size_t event)
{
	const struct opr_class *class = &classes->classes[event];

	reading->nr_events = classes->nr_classes;
	if (asprintf(&reading->event, "%s:%llu", class->event, (unsigned long long)class->count) < 0) {
		reading->event = NULL;
		return opr_no_memory();
	}
	return 0;
}

static int add_images(struct top_reading *reading, const struct opr_profile *profile, size_t class)
{
	int err = 0;

	for (size_t i = 0; i < profile->nr_files && !err; i++) {
		const struct opr_file *file = &profile->files[i];

		if (file->class_index == class)
			err = add_row(reading, opr_base_name(file->image), "", key_of(0, file->image), file->total);
	}
	return err;
}

static int add_functions(struct top_reading *reading, struct opr_selection *selection, size_t class)
{
	const struct opr_words none = { 0 };
	const struct opr_symbol_choice choice = { .include = &none, .exclude = &none };
	struct opr_symbol_report report = { 0 };
	struct opr_image_cache cache = { 0 };
	int err = opr_image_cache_init(&cache, &selection->profile, &selection->finder, &symbol_options);

	if (!err)
		err = opr_image_cache_read(&cache);
	if (!err)
		err = opr_symbol_report_make(&report, &selection->profile, selection->classes.nr_classes, &cache, &choice);
	for (size_t i = 0; i < report.nr_rows && !err; i++) {
		const struct opr_symbol_row *row = &report.rows[i];
		uint64_t key = op_hash_add(key_of(key_of(0, row->name), row->image), row->vma);

		err = add_row(reading, row->name, opr_base_name(row->image_shown), key, report.counts.values[row->counts + class]);
	}
	opr_symbol_report_free(&report);
	opr_image_cache_free(&cache);
	return err;
}

static int read_samples(struct top_reading *reading, struct top_base *now, struct top_base *base, const struct top_wish *wish,
			struct opr_selection *selection)
{
	size_t class;
	int err = opr_selection_read(selection);

	if (err)
		return err;
	class = wish->event % selection->classes.nr_classes;
	begin_base(now, base, &selection->profile);
	err = set_event(reading, &selection->classes, class);
	if (!err)
		err = wish->view == TOP_IMAGES ? add_images(reading, &selection->profile, class) :
						 add_functions(reading, selection, class);
	return err ? err : subtract_base(reading, now, base);
}

/* ---- from the stacks ---- */

/* Leaves the samples of each node since the base. A node is known by the names on the way to it. */
static int subtract_tree(struct opr_call_tree *tree, struct top_base *now, const struct top_base *base)
{
	uint64_t keys[OPR_CALL_DEPTH_MAX + 2] = { 0 };
	int err = 0;

	for (struct opr_call_node *node = opr_call_next(&tree->root); node && !err; node = opr_call_next(node)) {
		size_t depth = opr_call_depth(node);
		uint64_t before;

		keys[depth] = key_of(key_of(op_hash_add(keys[depth - 1], node->function->kind), node->function->name),
				     node->function->image);
		before = base->is_set ? base_of(base, keys[depth]) : node->self;
		err = node->self ? base_add(now, keys[depth], node->self) : 0;
		node->self -= before < node->self ? before : node->self;
	}
	base_finish(now);
	return err;
}

static int add_groups(struct top_reading *reading, const struct opr_call_tree *tree)
{
	int err = 0;

	for (const struct opr_call_node *node = opr_call_next(&tree->root); node && !err; node = opr_call_next(node))
		if (node->function->kind == OPR_CALL_GROUP && node->total) {
			err = add_row(reading, node->function->name, "", 0, node->total);
			if (!err)
				reading->rows[reading->nr_rows - 1].depth = (unsigned int)opr_call_depth(node) - 1;
		}
	return err;
}

/* Whether all samples of a function are in one function that it called. */
static bool has_one_way(const struct opr_call_node *node)
{
	return node->function->kind != OPR_CALL_GROUP && !node->self && node->children && !node->children->next &&
	       node->children->function->kind != OPR_CALL_LESS;
}

/* What is left out below a function is its samples less those of the rows below it. */
static bool has_row(const struct opr_call_node *node)
{
	return node->function->kind != OPR_CALL_LESS || !node->parent->parent;
}

/* Functions on the same way share a row: "main > run > step". */
static int add_paths(struct top_reading *reading, const struct opr_call_tree *tree)
{
	/* of a row, plus 1, by the depth of its last node */
	unsigned int indents[OPR_CALL_DEPTH_MAX + 2] = { 0 };
	int err = 0;

	for (const struct opr_call_node *node = opr_call_next(&tree->root), *last; node && !err; node = opr_call_next(last)) {
		size_t depth = opr_call_depth(node);
		struct op_text name = { 0 };

		last = node;
		if (!has_row(node))
			continue;
		op_text_add(&name, node->function->name);
		while (has_one_way(last)) {
			last = last->children;
			op_text_printf(&name, " > %s", last->function->name);
		}
		err = name.failed ? opr_no_memory() :
				    add_row(reading, op_text_get(&name), last->function->image, 0, node->total);
		if (!err)
			reading->rows[reading->nr_rows - 1].depth = indents[depth - 1];
		indents[opr_call_depth(last)] = indents[depth - 1] + 1;
		op_text_free(&name);
	}
	return err;
}

static int read_stacks(struct top_reading *reading, struct top_base *now, struct top_base *base, const struct top_wish *wish,
		       struct opr_selection *selection)
{
	static const enum opr_by groups[TOP_NR_VIEWS] = { [TOP_NAMES] = OPR_BY_COMM, [TOP_CGROUPS] = OPR_BY_CGROUP };
	const struct opr_stack_choice choice = { .by = groups[wish->view] };
	const struct opr_arranging arranging = {
		.threshold = wish->view == TOP_PATHS ? PATH_PERCENT : 0, .depth = SIZE_MAX, .top = SIZE_MAX
	};
	struct opr_call_tree all = { 0 }, tree = { 0 };
	struct opr_stack_sums sums = { 0 };
	uint64_t nr_left_out;
	int err = opr_selection_read(selection);

	if (!err)
		err = opr_stacks_read(&all, &sums, selection, &symbol_options, &choice);
	if (!err) {
		begin_base(now, base, &selection->profile);
		err = subtract_tree(&all, now, base);
	}
	if (!err)
		err = opr_call_tree_arrange(&tree, &all, &arranging, &nr_left_out) ? opr_no_memory() : 0;
	if (!err && tree.root.total)
		err = wish->view == TOP_PATHS ? add_paths(reading, &tree) : add_groups(reading, &tree);
	reading->total = tree.root.total;
	reading->nr_events = 1;
	if (!err && sums.events.nr_words) {
		reading->event = strndup(sums.events.words[0], strcspn(sums.events.words[0], ":"));
		err = reading->event ? 0 : opr_no_memory();
	}
	opr_stack_sums_free(&sums);
	opr_call_tree_free(&tree);
	opr_call_tree_free(&all);
	return err;
}

/* ---- a reading ---- */

static int read_once(struct top_reading *reading, struct top_base *base, const struct top_wish *wish)
{
	const struct opr_words no_path = { 0 };
	bool of_stacks = wish->view != TOP_FUNCTIONS && wish->view != TOP_IMAGES;
	const struct opr_selection_options options = { .session_dir = wish->session_dir,
						       .image_path = &no_path,
						       .merge = { .lib = true },
						       .totals_only = wish->view == TOP_IMAGES,
						       .sessions_only = of_stacks };
	struct opr_selection selection = { 0 };
	struct top_base now = { 0 };
	int err = opr_selection_open(&selection, &options, wish->words);

	if (!err)
		err = of_stacks ? read_stacks(reading, &now, base, wish, &selection) :
				  read_samples(reading, &now, base, wish, &selection);
	opr_selection_free(&selection);
	if (err) {
		top_base_free(&now);
		top_reading_free(reading);
	} else {
		end_base(&now, base, wish->keep_base);
	}
	return err;
}

int top_read(struct top_reading *reading, struct top_base *base, const struct top_wish *wish)
{
	int err = read_once(reading, base, wish);

	for (int i = 0; i < RETRIES && err == -ESTALE; i++)
		err = read_once(reading, base, wish);
	return err;
}
