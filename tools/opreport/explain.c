/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/opreport/explain.h"

#include <errno.h>
#include <math.h>

#include "libop/base/clock.h"
#include "libop/base/sys.h"
#include "tools/common/formatting.h"
#include "tools/common/log.h"
#include "tools/common/when.h"
#include "tools/profile/image_name.h"
#include "tools/report/diff_rows.h"
#include "tools/report/run.h"
#include "tools/report/summary_rows.h"
#include "tools/report/symbol_sort.h"
#include "tools/stacks/arrange.h"
#include "tools/stacks/runtime_rows.h"
#include "tools/stacks/short_images.h"
#include "tools/stacks/wait_list.h"

#define DAY_NS     (86400ull * OP_NS_PER_S)
#define NS_PER_US  1000u
#define PATH_SHARE 4u /* a path goes on while it has one sample of so many of its program */

/* What one pass over a span makes. */
struct pass {
	struct opr_query query;
	struct opr_run run;
	struct opr_short_names names;
};

static void free_pass(struct pass *pass)
{
	opr_short_names_free(&pass->names);
	opr_run_free(&pass->run);
}

/* ---- facts ---- */

static const char *short_name(const struct pass *pass, const char *full)
{
	return opr_short_name(&pass->names, full) ?: opr_base_name(full);
}

/* Adds a fact with copies of the names. False: the list is full, or there is no memory. */
static bool add_fact(struct opr_fact_list *list, const char *name, const char *image, const struct opr_fact *fact)
{
	struct opr_fact *added = &list->facts[list->nr_facts];

	if (list->nr_facts == OPR_EXPLAIN_ROWS)
		return false;
	*added = *fact;
	added->name = strdup(name);
	added->image = image ? strdup(image) : NULL;
	list->nr_facts++;
	return added->name && (added->image || !image);
}

static int read_programs(struct opr_facts *facts, const struct pass *pass)
{
	const struct opr_selection *selection = &pass->run.selection;
	struct opr_summary summary = { 0 };
	int err = opr_summary_make(&summary, &selection->profile, selection->classes.nr_classes, false);

	for (size_t i = 0; i < summary.nr_applications && !err; i++) {
		const struct opr_count_row *row = &summary.applications[i].row;
		const struct opr_fact fact = { .samples = row->counts[0], .percent = opr_percent(row->counts[0], facts->samples) };

		if (!fact.samples || !add_fact(&facts->programs, short_name(pass, row->name), NULL, &fact))
			break;
	}
	opr_summary_free(&summary);
	return err;
}

static int read_functions(struct opr_facts *facts, struct pass *pass)
{
	const struct opr_words no_keys = { 0 };
	struct opr_symbol_report *rows = &pass->run.rows;
	struct opr_sort_order order = { 0 };
	uint64_t nr_unnamed = 0;
	const char *bad_key;
	int err = opr_sort_order_make(&order, &no_keys, &bad_key);

	if (!err)
		err = opr_symbol_sort(rows, &order);
	for (size_t i = 0; i < rows->nr_rows && !err; i++) {
		const struct opr_symbol_row *row = &rows->rows[i];
		uint64_t samples = rows->counts.values[row->counts];
		const struct opr_fact fact = { .samples = samples, .percent = opr_percent(samples, rows->totals[0]) };

		if (!row->is_rest && (!row->symbol || row->symbol->is_unnamed))
			nr_unnamed += samples;
		if (samples)
			add_fact(&facts->functions, row->name, short_name(pass, row->image), &fact);
	}
	facts->unnamed_percent = opr_percent(nr_unnamed, rows->totals[0]);
	return err;
}

static int read_samples(struct opr_facts *facts, struct pass *pass)
{
	const struct opr_selection *selection = &pass->run.selection;
	const struct opr_class *class = &selection->classes.classes[0];
	bool is_about;
	int err;

	facts->samples = pass->run.rows.totals[0];
	facts->begin_ns = selection->recorded.begin_ns;
	facts->end_ns = selection->recorded.end_ns;
	facts->cpu_seconds = opr_seconds_of_sample(&selection->classes, class, &is_about) * (double)facts->samples;
	facts->counts_time = facts->cpu_seconds > 0;
	facts->lost_percent = 100 * opr_lost_share(&selection->profile, class);
	if (asprintf(&facts->event, "%s:%llu", class->event, (unsigned long long)class->count) < 0)
		return opr_no_memory();
	if (selection->recorded.hosts.nr_words == 1) {
		facts->host = strdup(selection->recorded.hosts.words[0]);
		if (!facts->host)
			return opr_no_memory();
	}
	err = opr_short_names_make(&pass->names, &selection->profile, NULL);
	if (!err)
		err = read_programs(facts, pass);
	return err ? err : read_functions(facts, pass);
}

/* ---- stacks ---- */

/* The group of the first event. */
static const struct opr_call_node *first_groups(const struct opr_call_tree *tree)
{
	const struct opr_call_node *node = tree->root.children;

	return node && node->function->place.label == OP_STACK_EVENT ? node->children : node;
}

static bool read_path(struct opr_hot_path *path, const struct opr_call_node *program, uint64_t nr_samples)
{
	const struct opr_call_node *node = program;

	path->program = strdup(program->function->name);
	while (node->children && node->children->function->kind != OPR_CALL_LESS &&
	       node->children->total * PATH_SHARE >= program->total) {
		node = node->children;
		if (opr_words_add(&path->frames, node->function->name) < 0)
			return false;
	}
	path->samples = node->total;
	path->percent = opr_percent(node->total, nr_samples);
	return path->program;
}

static int read_paths(struct opr_facts *facts, const struct opr_call_tree *tree)
{
	for (const struct opr_call_node *node = first_groups(tree); node && facts->nr_paths < OPR_EXPLAIN_PATHS; node = node->next)
		if (!read_path(&facts->paths[facts->nr_paths++], node, tree->root.total))
			return opr_no_memory();
	return 0;
}

static int read_services(struct opr_facts *facts, const struct opr_call_tree *tree)
{
	for (const struct opr_call_node *node = first_groups(tree); node; node = node->next) {
		const struct opr_fact fact = { .samples = node->total, .percent = opr_percent(node->total, tree->root.total) };

		if (!add_fact(&facts->services, node->function->name, NULL, &fact))
			break;
	}
	return 0;
}

/* Reads the stacks by application, or by cgroup. None is no error. */
static int read_stacks(struct opr_facts *facts, struct pass *pass, enum opr_by by)
{
	const struct opr_stack_patterns all = { 0 };
	struct opr_call_tree tree = { 0 }, arranged = { 0 };
	struct opr_stack_sums sums = { 0 };
	struct opr_query query = pass->query;
	uint64_t nr_left_out;
	int err;

	query.stacks = query.optional = 1;
	query.symbols = 0;
	query.by = by;
	err = opr_stacks_read(&tree, &sums, &pass->run.selection, &query, NULL);
	if (!err && sums.nr_samples) {
		opr_short_images_set(&pass->names, &tree, NULL);
		err = opr_call_tree_arrange(&arranged, &tree, &query, &all, &nr_left_out) ? opr_no_memory() : 0;
		if (!err)
			err = by ? read_services(facts, &arranged) : read_paths(facts, &arranged);
		facts->nr_stacks = sums.nr_samples;
		facts->nr_lost_stacks = sums.nr_lost;
		facts->complete_percent = opr_percent(sums.ends[OP_STACK_END_complete], sums.nr_samples);
	}
	opr_call_tree_free(&arranged);
	opr_call_tree_free(&tree);
	opr_stack_sums_free(&sums);
	return err;
}

/* Reads the functions of runtimes. None is no error. */
static int read_runtimes(struct opr_facts *facts, struct pass *pass)
{
	const struct opr_words no_keys = { 0 };
	struct opr_runtime_rows rows = { 0 };
	struct opr_sort_order order = { 0 };
	const char *bad_key;
	int err = opr_runtime_rows_read(&rows, &pass->run.selection, &pass->query);

	if (err || !rows.report.nr_rows)
		goto out;
	err = opr_sort_order_make(&order, &no_keys, &bad_key);
	if (err)
		goto out;
	err = opr_symbol_sort(&rows.report, &order);
	for (size_t i = 0; i < rows.report.nr_rows && !err; i++) {
		const struct opr_symbol_row *row = &rows.report.rows[i];
		uint64_t samples = rows.report.counts.values[row->counts];
		const struct opr_fact fact = { .samples = samples, .percent = opr_percent(samples, rows.report.totals[0]) };

		if (!samples || !add_fact(&facts->runtimes, row->name, row->image, &fact))
			break;
	}
out:
	opr_runtime_rows_free(&rows);
	return err;
}

static int add_wait(struct opr_facts *facts, const struct opr_wait_list *list, const struct opr_wait_row *row)
{
	struct opr_wait_fact *fact = &facts->waits[facts->nr_waits++];
	struct op_text states = { 0 };

	opr_wait_states_describe(row, &states);
	fact->name = strdup(row->function->name);
	fact->image = strdup(row->function->image);
	fact->states = op_text_steal(&states);
	fact->us = row->self_us;
	fact->nr_records = row->nr_records;
	fact->percent = opr_percent(row->self_us, list->all_us);
	return fact->name && fact->image && fact->states ? 0 : opr_no_memory();
}

/* Reads what waited. No waits are no error. */
static int read_waits(struct opr_facts *facts, struct pass *pass)
{
	struct opr_call_tree tree = { 0 };
	struct opr_stack_sums sums = { 0 };
	struct opr_wait_list list = { 0 };
	struct opr_query query = pass->query;
	int err;

	query.stacks = query.optional = 1;
	query.symbols = 0;
	query.view = OPR_VIEW_WAIT;
	err = opr_stacks_read(&tree, &sums, &pass->run.selection, &query, NULL);
	if (!err)
		opr_short_images_set(&pass->names, &tree, NULL);
	if (!err)
		err = opr_wait_list_make(&list, &tree, false);
	facts->waited_us = list.all_us;
	facts->idle_us = list.idle_us;
	for (size_t i = 0; i < list.nr_rows && i < OPR_EXPLAIN_ROWS && !err; i++)
		err = add_wait(facts, &list, &list.rows[i]);
	opr_wait_list_free(&list);
	opr_call_tree_free(&tree);
	opr_stack_sums_free(&sums);
	return err;
}

/* ---- changes ---- */

static int add_changes(struct opr_comparison *comparison, const struct pass *pass, const struct opr_diff *diff,
		       const struct opr_symbol_report *before)
{
	const struct opr_symbol_report *rows = &diff->report;

	for (size_t i = 0; i < rows->nr_rows; i++) {
		const struct opr_symbol_row *row = &rows->rows[i];
		bool is_gone = isinf(row->changes[0].percent) && row->changes[0].percent < 0;
		uint64_t samples = is_gone ? 0 : rows->counts.values[row->counts];
		double percent = opr_percent(samples, rows->totals[0]);
		/* The share before follows from the share now and the change. */
		double share_before = (percent - row->changes[0].points) / 100;
		const struct opr_fact fact = { .samples = samples,
					       .before = (uint64_t)(share_before * (double)before->totals[0] + 0.5),
					       .percent = percent,
					       .points = row->changes[0].points };

		if (row->changes[0].is_noise)
			continue;
		comparison->nr_changed++;
		add_fact(&comparison->functions, row->name, short_name(pass, row->image), &fact);
	}
	return 0;
}

static int compare(struct opr_comparison *comparison, const struct pass *pass, struct pass *before)
{
	struct opr_words keys = { 0 };
	struct opr_sort_order order = { 0 };
	struct opr_diff diff = { 0 };
	const char *bad_key;
	int err = opr_words_add(&keys, opr_sort_words[OPR_SORT_change]) < 0 ? opr_no_memory() : 0;

	if (!err)
		err = opr_sort_order_make(&order, &keys, &bad_key);
	opr_words_free(&keys);
	if (!err)
		err = opr_diff_make(&diff, &pass->run.selection.classes, &before->run.rows, &pass->run.rows);
	if (!err)
		err = opr_symbol_sort(&diff.report, &order);
	if (!err)
		err = add_changes(comparison, pass, &diff, &before->run.rows);
	if (!err)
		comparison->samples = before->run.rows.totals[0];
	opr_diff_free(&diff);
	return err;
}

/* Whether both have the same first event, and no other ones. */
static bool are_alike(const struct opr_classes *a, const struct opr_classes *b)
{
	bool are = a->nr_classes == b->nr_classes;

	for (size_t i = 0; are && i < a->nr_classes; i++)
		are = !strcmp(a->classes[i].event, b->classes[i].event) && a->classes[i].count == b->classes[i].count;
	return are;
}

static int read_before(struct opr_comparison *comparison, const struct pass *pass, struct pass *before, uint64_t begin_ns)
{
	const struct opr_selection *selection = &before->run.selection;
	int err = opr_run_to(&before->run, OPR_STEP_SELECT);

	if (err == -ENOENT || (!err && !selection->profile.nr_files))
		return 0; /* OPR_NOT_KEPT */
	if (!err)
		err = opr_run_to(&before->run, OPR_STEP_READ);
	if (err)
		return err;
	if (selection->recorded.end_ns > begin_ns + OP_NS_PER_S)
		comparison->compared = OPR_NOT_APART;
	else if (!are_alike(&selection->classes, &pass->run.selection.classes))
		comparison->compared = OPR_NOT_ALIKE;
	else
		comparison->compared = OPR_IS_COMPARED;
	if (comparison->compared != OPR_IS_COMPARED)
		return 0;
	err = opr_run_to(&before->run, OPR_STEP_ROWS);
	return err ? err : compare(comparison, pass, before);
}

/* Compares with a span that begins earlier and is as long. */
static int read_comparison(struct opr_comparison *comparison, const struct pass *pass, const struct opr_words *words,
			   const struct opr_span *span, uint64_t earlier_us)
{
	struct pass before = { .query = pass->query };
	char range[OPR_SPAN_BYTES];
	int err;

	if (span->since_us < earlier_us)
		return 0;
	comparison->begin_ns = (span->since_us - earlier_us) * NS_PER_US;
	comparison->end_ns = (span->until_us - earlier_us) * NS_PER_US;
	opr_span_move(span, earlier_us, range);
	before.query.span = (struct opr_span_words){ .range = range };
	before.query.optional = 1;
	before.run.query = &before.query;
	before.run.words = words;
	err = read_before(comparison, pass, &before, pass->run.selection.recorded.begin_ns);
	free_pass(&before);
	return err;
}

/* ---- all ---- */

/* Adds an option for a shell. */
static void add_option(struct op_text *text, const char *option, const char *value)
{
	op_text_printf(text, " %s'", option);
	for (; *value; value++) {
		if (*value == '\'')
			op_text_add(text, "'\\'");
		op_text_add_char(text, *value);
	}
	op_text_add_char(text, '\'');
}

/* Times are absolute, so that the commands mean the same tomorrow. */
static int make_options(struct opr_facts *facts, const struct opr_query *query, const struct opr_words *words,
			const struct opr_span *span)
{
	struct op_text text = { 0 };
	char when[OPR_WHEN_BYTES];

	if (query->session_dir)
		add_option(&text, "--session-dir=", query->session_dir);
	if (span->is_given && span->since_us) {
		opr_when_format(span->since_us, when);
		add_option(&text, "--since=", when);
	}
	if (span->is_given && span->until_us != UINT64_MAX) {
		opr_when_format(span->until_us, when);
		add_option(&text, "--until=", when);
	}
	for (size_t i = 0; i < words->nr_words; i++)
		add_option(&text, "", words->words[i]);
	if (text.failed)
		return opr_no_memory();
	facts->options = op_text_steal(&text) ?: strdup("");
	return facts->options ? 0 : opr_no_memory();
}

/* The span that the user means; one that goes on ends now. */
static int find_span(struct opr_span *span, const struct opr_query *query)
{
	int err = opr_span_parse(span, &query->span);
	uint64_t now_us = op_sys_wall_ns() / NS_PER_US;

	if (err || !span->is_given)
		return err;
	if (span->until_us == UINT64_MAX || span->until_us > now_us)
		span->until_us = now_us;
	return 0;
}

static int read_comparisons(struct opr_facts *facts, const struct pass *pass, const struct opr_words *words)
{
	/* that of whole minutes */
	struct opr_span span = { .since_us = facts->begin_ns / NS_PER_US, .until_us = facts->end_ns / NS_PER_US };
	int err;

	facts->comparisons[0].name = "before";
	facts->comparisons[1].name = "yesterday";
	if (span.until_us <= span.since_us)
		return 0;
	err = read_comparison(&facts->comparisons[0], pass, words, &span, span.until_us - span.since_us);
	return err ? err : read_comparison(&facts->comparisons[1], pass, words, &span, DAY_NS / NS_PER_US);
}

int opr_facts_read(struct opr_facts *facts, const struct opr_query *query, const struct opr_words *words)
{
	struct pass pass = { .query = *query };
	struct opr_span span;
	int err = find_span(&span, query);

	pass.query.symbols = pass.query.long_names = 1;
	pass.query.totals_only = 0;
	pass.run.query = &pass.query;
	pass.run.words = words;
	if (!err)
		err = make_options(facts, query, words, &span);
	if (!err)
		err = opr_run_to(&pass.run, OPR_STEP_ROWS);
	if (!err)
		err = read_samples(facts, &pass);
	if (!err)
		err = read_stacks(facts, &pass, OPR_BY_CGROUP);
	if (!err)
		err = read_stacks(facts, &pass, OPR_BY_NONE);
	if (!err)
		err = read_runtimes(facts, &pass);
	if (!err)
		err = read_waits(facts, &pass);
	if (!err)
		err = read_comparisons(facts, &pass, words);
	free_pass(&pass);
	return err;
}

static void free_list(struct opr_fact_list *list)
{
	for (size_t i = 0; i < list->nr_facts; i++) {
		free(list->facts[i].name);
		free(list->facts[i].image);
	}
}

void opr_facts_free(struct opr_facts *facts)
{
	free(facts->host);
	free(facts->event);
	free(facts->options);
	free_list(&facts->programs);
	free_list(&facts->functions);
	free_list(&facts->services);
	free_list(&facts->runtimes);
	for (size_t i = 0; i < facts->nr_paths; i++) {
		free(facts->paths[i].program);
		opr_words_free(&facts->paths[i].frames);
	}
	for (size_t i = 0; i < facts->nr_waits; i++) {
		free(facts->waits[i].name);
		free(facts->waits[i].image);
		free(facts->waits[i].states);
	}
	for (size_t i = 0; i < op_array_size(facts->comparisons); i++)
		free_list(&facts->comparisons[i].functions);
	*facts = (struct opr_facts){ 0 };
}
