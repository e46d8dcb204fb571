/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/report/callgraph.h"

#include <errno.h>
#include <inttypes.h>

#include "libop/base/htable.h"
#include "libop/base/grow.h"
#include "tools/common/log.h"
#include "tools/profile/read_samples.h"
#include "tools/report/make_rows.h"
#include "tools/report/symbol_rows.h"

/* One call of a callgraph file: the rows of both ends. */
struct call {
	size_t caller, callee;
	size_t class_index;
	uint64_t count;
};

/* A row in the hash table, found by application, image and symbol. */
struct end {
	struct op_hlink link;
	size_t index;
};

struct builder {
	struct opr_callgraph *graph;
	struct opr_symbol_report *report;
	struct opr_image_cache *cache;
	const struct opr_query *query;
	const struct opr_words *bases;
	const struct opr_part *part;
	/* NULL: libraries are merged, each image is its own application */
	const struct opr_image *app;
	struct op_htable ends;
	struct call *calls;
	size_t nr_calls, capacity;
};

/* ---- the ends of arcs ---- */

static uint64_t hash_row(const struct opr_symbol_row *row)
{
	uint64_t hash = op_hash_bytes(0, row->app, strlen(row->app));

	hash = op_hash_bytes(hash, row->image, strlen(row->image));
	return op_hash_add(hash, (uint64_t)(uintptr_t)row->symbol);
}

static int insert_end(struct builder *builder, size_t index)
{
	struct end *end = malloc(sizeof(*end));

	if (!end)
		return opr_no_memory();
	end->index = index;
	if (op_htable_insert(&builder->ends, &end->link, hash_row(&builder->report->rows[index])) < 0) {
		free(end);
		return opr_no_memory();
	}
	return 0;
}

static bool find_end(const struct builder *builder, const struct opr_symbol_row *row, size_t *ret_index)
{
	for (struct op_hlink *link = op_htable_first(&builder->ends, hash_row(row)); link; link = op_htable_next(link)) {
		size_t index = op_container_of(link, struct end, link)->index;
		const struct opr_symbol_row *found = &builder->report->rows[index];

		if (found->symbol == row->symbol && found->symbols == row->symbols && !strcmp(found->app, row->app) &&
		    !strcmp(found->image, row->image)) {
			*ret_index = index;
			return true;
		}
	}
	return false;
}

/* Finds the row of a symbol, or adds one without samples. */
static int get_end(struct builder *builder, const struct opr_image *image, const struct opr_symbol *symbol, size_t *ret_index)
{
	const struct opr_image *app = builder->app ? builder->app : image;
	const struct opr_symbol_row row = {
		.name = symbol ? symbol->shown : image->name,
		.app = app->name,
		.image = image->name,
		.app_shown = app->shown,
		.image_shown = image->shown,
		.symbols = &image->symbols,
		.symbol = symbol,
		.vma = symbol ? symbol->vma : 0,
		.hidden = !opr_symbol_is_wanted(builder->query, builder->bases, symbol, image->name),
	};
	int err;

	if (find_end(builder, &row, ret_index))
		return 0;
	err = opr_symbol_report_add(builder->report, &row, ret_index);
	return err ? err : insert_end(builder, *ret_index);
}

/* ---- reading ---- */

static int add_call(struct builder *builder, const struct call *call)
{
	if (!op_grow(&builder->calls, &builder->capacity, builder->nr_calls + 1))
		return opr_no_memory();
	builder->calls[builder->nr_calls++] = *call;
	return 0;
}

/* Caller or callee of the arcs of a file. */
struct side {
	const struct opr_image *image;
	uint64_t offset;
};

/*
 * Finds the symbol of a key. False: the image has symbols, but none there, and oprofile drops such
 * a call. Otherwise it is one of the image as a whole.
 */
static bool find_symbol(const struct builder *builder, const struct side *side, uint64_t key, const struct opr_symbol **ret_symbol)
{
	*ret_symbol = opr_symbols_find(&side->image->symbols, key + side->offset);
	return *ret_symbol || !side->image->symbols.nr_symbols || !opr_sources_are_genuine(builder->cache->naming->sources);
}

static void warn_of_hyperspace(const struct side *callee, uint64_t key)
{
	const struct opr_symbols *symbols = &callee->image->symbols;
	const struct opr_symbol *last = &symbols->symbols[symbols->nr_symbols - 1];

	opr_warn("dropping hyperspace sample at offset %" PRIx64 " >= %" PRIx64 " for binary %s", key + callee->offset,
		 last->start + last->size, callee->image->shown);
}

static int add_calls(struct builder *builder, const struct op_odb_samples *samples, size_t class_index, const struct side *caller,
		     const struct side *callee)
{
	bool warned = false;
	int err = 0;

	for (uint32_t i = 0; i < samples->nr_nodes && !err; i++) {
		uint64_t from = samples->nodes[i].key >> 32, to = samples->nodes[i].key & UINT32_MAX;
		struct call call = { .class_index = class_index, .count = samples->nodes[i].value };
		const struct opr_symbol *calling, *called;

		if (!find_symbol(builder, callee, to, &called)) {
			if (!warned)
				warn_of_hyperspace(callee, to);
			warned = true;
			continue;
		}
		if (!find_symbol(builder, caller, from, &calling))
			continue;
		err = get_end(builder, caller->image, calling, &call.caller);
		if (!err)
			err = get_end(builder, callee->image, called, &call.callee);
		if (!err)
			err = add_call(builder, &call);
	}
	return err;
}

/* Leaves out arcs from a kernel whose file is not found, as oprofile does. */
static int read_file(struct builder *builder, const struct opr_profile *profile, struct opr_file *file, struct opr_image *caller,
		     const struct opr_image *callee)
{
	struct side from = { .image = caller }, to = { .image = callee };
	struct op_odb_samples samples;
	int err = opr_samples_take(profile, file, &samples);

	if (err < 0)
		return err;
	if (opr_image_check(builder->cache, caller, file->path, &samples.header) && (!samples.header.is_kernel || caller->path)) {
		from.offset = opr_position_offset(caller, samples.header.is_kernel, samples.header.anon_start);
		to.offset = opr_position_offset(callee, samples.header.cg_to_is_kernel, samples.header.cg_to_anon_start);
		err = add_calls(builder, &samples, file->class_index, &from, &to);
	}
	op_odb_samples_free(&samples);
	return err;
}

static int read_part(struct builder *builder, const struct opr_profile *profile)
{
	const struct opr_part *part = builder->part;
	struct opr_image *caller = opr_image_cache_find(builder->cache, part->image);
	struct opr_image *callee = opr_image_cache_find(builder->cache, part->callee);
	int err;

	builder->app = profile->merges_libs ? NULL : opr_image_cache_find(builder->cache, part->app);
	if (!caller || !callee || (!builder->app && !profile->merges_libs))
		return -ENOMEM;
	err = opr_image_load(builder->cache, caller);
	if (!err)
		err = opr_image_load(builder->cache, callee);
	for (size_t i = 0; i < part->nr_files && !err; i++)
		err = read_file(builder, profile, &profile->files[part->first_file + i], caller, callee);
	return err;
}

/* ---- adding up ---- */

static int compare_sizes(size_t a, size_t b)
{
	return a < b ? -1 : a > b;
}

static int compare_calls(const void *left, const void *right)
{
	const struct call *a = left, *b = right;
	int order = compare_sizes(a->caller, b->caller);

	return order ? order : compare_sizes(a->callee, b->callee);
}

static int compare_callees(const void *left, const void *right)
{
	const struct opr_arc *a = left, *b = right;
	int order = compare_sizes(a->callee, b->callee);

	return order ? order : compare_sizes(a->caller, b->caller);
}

static int add_up(struct builder *builder)
{
	struct opr_callgraph *graph = builder->graph;
	struct opr_symbol_report *report = builder->report;
	struct opr_arc *arc = NULL;

	graph->by_caller = calloc(builder->nr_calls + 1, sizeof(*graph->by_caller));
	graph->by_callee = calloc(builder->nr_calls + 1, sizeof(*graph->by_callee));
	if (!graph->by_caller || !graph->by_callee)
		return opr_no_memory();
	if (builder->nr_calls)
		qsort(builder->calls, builder->nr_calls, sizeof(*builder->calls), compare_calls);
	for (size_t i = 0; i < builder->nr_calls; i++) {
		const struct call *call = &builder->calls[i];

		if (!arc || arc->caller != call->caller || arc->callee != call->callee) {
			arc = &graph->by_caller[graph->nr_arcs++];
			*arc = (struct opr_arc){ .caller = call->caller, .callee = call->callee };
			if (!opr_counts_add(&report->counts, report->nr_classes, &arc->counts))
				return opr_no_memory();
		}
		report->counts.values[arc->counts + call->class_index] += call->count;
	}
	memcpy(graph->by_callee, graph->by_caller, graph->nr_arcs * sizeof(*graph->by_callee));
	qsort(graph->by_callee, graph->nr_arcs, sizeof(*graph->by_callee), compare_callees);
	return 0;
}

static int keep_nodes(struct opr_callgraph *graph, const struct opr_symbol_report *report)
{
	graph->nodes = calloc(report->nr_rows + 1, sizeof(*graph->nodes));
	if (!graph->nodes)
		return opr_no_memory();
	if (report->nr_rows)
		memcpy(graph->nodes, report->rows, report->nr_rows * sizeof(*graph->nodes));
	graph->nr_nodes = report->nr_rows;
	return 0;
}

static void free_end(struct op_hlink *link, void *arg OP_UNUSED)
{
	free(op_container_of(link, struct end, link));
}

static int build(struct builder *builder, const struct opr_profile *profile)
{
	struct opr_symbol_report *report = builder->report;
	int err = 0;

	for (size_t i = 0; i < report->nr_rows && !err; i++)
		err = insert_end(builder, i);
	report->nr_limits = 1;
	for (size_t i = 0; i < profile->nr_parts && !err; i++) {
		builder->part = &profile->parts[i];
		if (builder->part->callee)
			err = read_part(builder, profile);
	}
	if (err)
		return err;
	err = add_up(builder);
	if (!err && builder->query->lines)
		err = opr_symbol_report_find_lines(report, builder->cache, false) ?: opr_symbol_report_set_lines(report);
	return err ? err : keep_nodes(builder->graph, report);
}

int opr_callgraph_make(struct opr_callgraph *graph, struct opr_symbol_report *report, const struct opr_profile *profile,
		       struct opr_image_cache *cache, const struct opr_query *query, const struct opr_words *bases)
{
	struct builder builder = { .graph = graph, .report = report, .cache = cache, .query = query, .bases = bases };
	int err = build(&builder, profile);

	op_htable_visit(&builder.ends, free_end, NULL);
	op_htable_free(&builder.ends);
	free(builder.calls);
	return err;
}

void opr_callgraph_free(struct opr_callgraph *graph)
{
	if (!graph)
		return;
	free(graph->nodes);
	free(graph->by_caller);
	free(graph->by_callee);
	*graph = (struct opr_callgraph){ 0 };
}
