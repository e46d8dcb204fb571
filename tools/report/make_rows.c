/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/report/make_rows.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>

#include "libop/base/atomic.h"
#include "libop/base/grow.h"
#include "libop/process/threads.h"
#include "tools/common/log.h"
#include "tools/profile/read_samples.h"
#include "tools/report/inlined.h"
#include "tools/report/symbol_rows.h"

#define PARTS_PER_BATCH 16

/* What the threads share. */
struct making {
	struct opr_symbol_report *report;
	const struct opr_profile *profile;
	const struct opr_query *query;
	const struct opr_words *bases;
	bool drops_rest; /* samples outside of all symbols are in no row, as in oprofile */
	struct part_images *images; /* of each part */
	bool *own; /* of each file: its samples are of the image file that was found */
	uint64_t next_part;
	pthread_mutex_t lock; /* of the report and the fields below */
	pthread_cond_t advanced;
	size_t nr_parts; /* parts whose rows are in the report */
	int err;
};

/* ---- images: one thread, because of the warnings ---- */

struct part_images {
	struct opr_image *image, *app;
};

/* Files of one class are added up, so they must be of one image. */
static int check_header(const struct opr_profile *profile, const struct opr_file *file, const struct op_odb_header *first)
{
	const struct op_odb_header *header = &file->header;
	const char *session = profile->sessions[file->session].path;

	if (first->is_kernel != header->is_kernel)
		return opr_error(-EINVAL, "header is_kernel flags are different for %s/%s", session, file->path);
	if (first->mtime != header->mtime)
		return opr_error(-EINVAL, "header timestamps are different (%" PRIu64 ", %" PRIu64 ") for %s/%s", first->mtime,
				 header->mtime, session, file->path);
	return 0;
}

static int find_images(const struct making *making, const struct opr_part *part, struct opr_image_cache *cache,
		       struct part_images *images)
{
	const struct opr_file *file = &making->profile->files[part->first_file], *first = file;
	int err;

	images->image = opr_image_cache_find(cache, part->image);
	images->app = opr_image_cache_find(cache, part->app);
	if (!images->image || !images->app)
		return -ENOMEM;
	err = opr_image_load(cache, images->image);
	for (size_t i = 0; i < part->nr_files && !err; i++, file++) {
		if (file->class_index != first->class_index)
			first = file;
		err = check_header(making->profile, file, &first->header);
		making->own[part->first_file + i] = opr_image_check(cache, images->image, file->path, &file->header);
	}
	return err;
}

/* ---- the samples of a part ---- */

/* One sample, its key made a position in the image. */
struct point {
	uint64_t position;
	size_t class_index;
	uint64_t count;
};

struct points {
	struct point *points;
	size_t nr_points, capacity;
};

uint64_t opr_position_offset(const struct opr_image *image, bool is_kernel, uint64_t anon_start)
{
	if (opr_is_jit_object(image->image_name, image->name))
		return anon_start;
	return image->is_object && is_kernel ? image->symbols.start_offset : 0;
}

/*
 * A key of the memory view is a position and facts about the access: each combination of facts is a
 * class.
 */
static struct point make_point(const struct op_odb_node *node, size_t class_index, bool facts)
{
	if (!facts)
		return (struct point){ node->key, class_index, node->value };
	return (struct point){ op_memory_view_offset(node->key), node->key & (OPR_NR_FACTS - 1), node->value };
}

static int add_points(struct points *points, const struct op_odb_samples *samples, size_t class_index, bool facts, uint64_t offset)
{
	if (!op_grow(&points->points, &points->capacity, points->nr_points + samples->nr_nodes))
		return opr_no_memory();
	for (uint32_t i = 0; i < samples->nr_nodes; i++) {
		struct point *point = &points->points[points->nr_points++];

		*point = make_point(&samples->nodes[i], class_index, facts);
		point->position += offset;
	}
	return 0;
}

static int compare_points(const void *left, const void *right)
{
	const struct point *a = left, *b = right;

	if (a->position != b->position)
		return a->position < b->position ? -1 : 1;
	return a->class_index < b->class_index ? -1 : a->class_index > b->class_index;
}

/* ---- the rows of a part ---- */

/* What a thread works on. */
struct builder {
	const struct making *making;
	struct opr_symbol_report batch; /* the rows of the batch that is being made */
	const struct opr_part *part;
	const struct opr_image *image, *app;
	struct points own;     /* samples of the image file that was found */
	struct points foreign; /* samples of other files that were at its path */
};

static int add_details(struct opr_symbol_report *report, const struct opr_symbols *symbols, const struct opr_symbol *symbol,
		       const struct point *points, size_t nr_points)
{
	size_t counts = 0;

	for (size_t i = 0; i < nr_points; i++) {
		if (!i || points[i - 1].position != points[i].position) {
			if (!op_grow(&report->details, &report->details_capacity, report->nr_details + 1) ||
			    !opr_counts_add(&report->detail_counts, report->nr_classes, &counts))
				return opr_no_memory();
			report->details[report->nr_details++] =
				(struct opr_detail){ symbol ? points[i].position - symbol->start + symbol->vma
							    : opr_symbols_vma(symbols, points[i].position),
						     counts };
		}
		report->detail_counts.values[counts + points[i].class_index] += points[i].count;
	}
	return 0;
}

static int add_row(struct builder *builder, const struct opr_symbols *symbols, const struct opr_symbol *symbol,
		   const struct point *points, size_t nr_points)
{
	struct opr_symbol_report *report = &builder->batch;
	bool is_rest = !symbol && opr_window_is_rest(points[0].position) && !builder->making->query->memory;
	const struct opr_symbol_row row = {
		.name = symbol ? symbol->shown : is_rest ? OPR_REST_NAME : builder->part->image,
		.is_rest = is_rest,
		.app = builder->part->app,
		.image = builder->part->image,
		.app_shown = builder->app->shown,
		.image_shown = builder->image->shown,
		.symbols = symbols,
		.symbol = symbol,
		.vma = symbol ? symbol->vma : 0,
	};
	size_t index = 0;
	int err = opr_symbol_report_add(report, &row, &index);

	if (err < 0)
		return err;
	for (size_t i = 0; i < nr_points; i++) {
		report->counts.values[report->rows[index].counts + points[i].class_index] += points[i].count;
		report->totals[points[i].class_index] += points[i].count;
	}
	if (builder->making->query->details || builder->making->query->inlined)
		err = add_details(report, symbols, symbol, points, nr_points);
	report->rows[index].nr_details = report->nr_details - report->rows[index].first_detail;
	return err;
}

static bool any_count(const struct point *points, size_t nr_points)
{
	for (size_t i = 0; i < nr_points; i++)
		if (points[i].count)
			return true;
	return false;
}

/* Names of inlined functions select, too; opr_split_inlined drops what is not wanted. */
static int add_wanted_row(struct builder *builder, const struct opr_symbols *symbols, const struct opr_symbol *symbol,
			  const struct point *points, size_t nr_points)
{
	const struct making *making = builder->making;

	if (!any_count(points, nr_points) ||
	    (!making->query->inlined && !opr_symbol_is_wanted(making->query, making->bases, symbol, builder->part->image)))
		return 0;
	return add_row(builder, symbols, symbol, points, nr_points);
}

/*
 * Adds a row for each symbol that has points, and one for the points outside of all symbols: those
 * of an image without symbols, or what its symbols do not have. What a minute does not keep apart
 * has a row of its own.
 */
static int add_rows(struct builder *builder, const struct opr_symbols *symbols, struct points *points)
{
	size_t next, nr_rest = 0, first = 0, end;
	int err = 0;

	if (points->nr_points)
		qsort(points->points, points->nr_points, sizeof(*points->points), compare_points);
	for (size_t i = 0; i < points->nr_points && !err; i = next) {
		const struct opr_symbol *symbol = opr_symbols_find(symbols, points->points[i].position);

		next = i + 1;
		while (symbol && next < points->nr_points && points->points[next].position - symbol->start < symbol->size)
			next++;
		if (symbol)
			err = add_wanted_row(builder, symbols, symbol, &points->points[i], next - i);
		else
			points->points[nr_rest++] = points->points[i];
	}
	if (err || (symbols->nr_symbols && builder->making->drops_rest))
		return err;
	/* They are sorted: code, the rest of a window, addresses of a kernel that is not known. */
	while (first < nr_rest && !opr_window_is_rest(points->points[first].position))
		first++;
	end = first;
	while (end < nr_rest && opr_window_is_rest(points->points[end].position))
		end++;
	err = add_wanted_row(builder, symbols, NULL, points->points + first, end - first);
	if (end > first)
		memmove(points->points + first, points->points + end, (nr_rest - end) * sizeof(*points->points));
	return err ? err : add_wanted_row(builder, symbols, NULL, points->points, nr_rest - (end - first));
}

static int make_part(struct builder *builder, size_t index)
{
	static const struct opr_symbols no_symbols;
	const struct making *making = builder->making;
	const struct opr_part *part = &making->profile->parts[index];
	int err = 0;

	builder->part = part;
	builder->image = making->images[index].image;
	builder->app = making->images[index].app;
	builder->own.nr_points = builder->foreign.nr_points = 0;
	for (size_t i = part->first_file; i < part->first_file + part->nr_files && !err; i++) {
		struct opr_file *file = &making->profile->files[i];
		struct op_odb_samples samples;
		uint64_t offset = 0;

		err = opr_samples_take(making->profile, file, &samples);
		if (err)
			return err;
		if (making->own[i])
			offset = opr_position_offset(builder->image, samples.header.is_kernel, samples.header.anon_start);
		err = add_points(making->own[i] ? &builder->own : &builder->foreign, &samples, file->class_index,
				 making->query->memory, offset);
		op_odb_samples_free(&samples);
	}
	if (!err)
		err = add_rows(builder, &builder->image->symbols, &builder->own);
	return err ? err : add_rows(builder, &no_symbols, &builder->foreign);
}

/* ---- batches of parts, by 1 to n threads ---- */

static int append_counts(struct opr_counts *to, const struct opr_counts *from)
{
	if (!op_grow(&to->values, &to->capacity, to->nr_values + from->nr_values))
		return opr_no_memory();
	if (from->nr_values)
		memcpy(to->values + to->nr_values, from->values, from->nr_values * sizeof(*to->values));
	to->nr_values += from->nr_values;
	return 0;
}

static int append(struct opr_symbol_report *report, const struct opr_symbol_report *batch)
{
	size_t first_count = report->counts.nr_values, first_detail_count = report->detail_counts.nr_values;
	int err = append_counts(&report->counts, &batch->counts);

	if (!err)
		err = append_counts(&report->detail_counts, &batch->detail_counts);
	if (err)
		return err;
	if (!op_grow(&report->rows, &report->rows_capacity, report->nr_rows + batch->nr_rows) ||
	    !op_grow(&report->details, &report->details_capacity, report->nr_details + batch->nr_details))
		return opr_no_memory();
	for (size_t i = 0; i < batch->nr_rows; i++) {
		struct opr_symbol_row *row = &report->rows[report->nr_rows];

		*row = batch->rows[i];
		row->order = report->nr_rows++;
		row->counts += first_count;
		row->first_detail += report->nr_details;
	}
	for (size_t i = 0; i < batch->nr_details; i++) {
		struct opr_detail *detail = &report->details[report->nr_details + i];

		*detail = batch->details[i];
		detail->counts += first_detail_count;
	}
	report->nr_details += batch->nr_details;
	report->nr_made = report->nr_rows;
	for (size_t i = 0; i < report->nr_classes; i++)
		report->totals[i] += batch->totals[i];
	return 0;
}

/*
 * Waits until all earlier batches are in the report and appends this one, so the order of rows does
 * not depend on the threads. `err` is the error of the batch. False after any error.
 */
static bool append_in_turn(struct making *making, size_t first, size_t end, const struct opr_symbol_report *batch, int err)
{
	bool ok;

	pthread_mutex_lock(&making->lock);
	while (making->nr_parts != first)
		pthread_cond_wait(&making->advanced, &making->lock);
	if (!err && !making->err)
		err = append(making->report, batch);
	making->nr_parts = end;
	making->err = making->err ? making->err : err;
	ok = !making->err;
	pthread_cond_broadcast(&making->advanced);
	pthread_mutex_unlock(&making->lock);
	return ok;
}

static int make_batch(struct builder *builder, size_t first, size_t end)
{
	struct opr_symbol_report *batch = &builder->batch;
	int err = 0;

	batch->nr_rows = batch->nr_details = batch->counts.nr_values = batch->detail_counts.nr_values = 0;
	memset(batch->totals, 0, batch->nr_classes * sizeof(*batch->totals));
	for (size_t i = first; i < end && !err; i++)
		if (!builder->making->profile->parts[i].callee)
			err = make_part(builder, i);
	return err;
}

/* A thread makes each batch in its own memory, which fits into its cache, and then appends it. */
static void make_batches(void *arg)
{
	struct making *making = arg;
	size_t nr_classes = making->report->nr_classes, nr_parts = making->profile->nr_parts, first, end;
	struct builder builder = { .making = making,
				   .batch = { .nr_classes = nr_classes, .totals = calloc(nr_classes, sizeof(uint64_t)) } };
	bool ok = builder.batch.totals;

	while (ok && (first = op_fetch_add_relaxed(&making->next_part, PARTS_PER_BATCH)) < nr_parts) {
		end = op_min_u64(first + PARTS_PER_BATCH, nr_parts);
		ok = append_in_turn(making, first, end, &builder.batch, make_batch(&builder, first, end));
	}
	opr_symbol_report_free(&builder.batch);
	free(builder.own.points);
	free(builder.foreign.points);
}

/*
 * Samples that were not kept are read again by one thread only, because messages come from one
 * thread.
 */
static size_t choose_nr_threads(const struct opr_profile *profile)
{
	return profile->nr_unkept ? 1 : op_min_u64(op_nr_cpus(), profile->nr_parts / PARTS_PER_BATCH);
}

static void drop_details(struct opr_symbol_report *report)
{
	for (size_t i = 0; i < report->nr_rows; i++)
		report->rows[i].nr_details = 0;
	report->nr_details = 0;
}

int opr_symbol_report_make(struct opr_symbol_report *report, const struct opr_profile *profile, size_t nr_classes,
			   struct opr_image_cache *cache, const struct opr_query *query, const struct opr_words *bases)
{
	struct making making = { .report = report,
				 .profile = profile,
				 .query = query,
				 .bases = bases,
				 .drops_rest = opr_sources_are_genuine(cache->naming->sources),
				 .images = calloc(profile->nr_parts + 1, sizeof(*making.images)),
				 .own = calloc(profile->nr_files + 1, sizeof(*making.own)),
				 .lock = PTHREAD_MUTEX_INITIALIZER,
				 .advanced = PTHREAD_COND_INITIALIZER };
	int err = 0;

	report->nr_classes = report->nr_limits = nr_classes;
	report->totals = calloc(nr_classes, sizeof(*report->totals));
	if (!report->totals || !making.images || !making.own)
		err = opr_no_memory();
	for (size_t i = 0; i < profile->nr_parts && !err; i++)
		if (!profile->parts[i].callee)
			err = find_images(&making, &profile->parts[i], cache, &making.images[i]);
	if (err)
		goto out;
	op_run_threads(choose_nr_threads(profile), make_batches, &making);
	err = making.err ? making.err : making.nr_parts == profile->nr_parts ? 0 : opr_no_memory();
	if (err)
		goto out;
	if (query->lines || query->frames || query->inlined)
		err = opr_symbol_report_find_lines(report, cache, query->frames || query->inlined);
	if (!err && query->inlined)
		err = opr_split_inlined(report, query, bases);
	if (!err && query->lines)
		err = opr_symbol_report_set_lines(report);
out:
	if (query->inlined && !query->details)
		drop_details(report);
	free(making.images);
	free(making.own);
	return err;
}
