/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/report/symbol_rows.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>

#include "libop/base/atomic.h"
#include "libop/base/threads.h"
#include "libop/base/grow.h"
#include "tools/common/log.h"

#define PARTS_OF_TURN 16

/* One node of one file, its key made a position in the image. */
struct point {
	uint64_t position;
	size_t class_index;
	uint64_t count;
};

struct points {
	struct point *points;
	size_t nr_points, capacity;
};

/* The samples of a part: of the file that was found, and of others that were at its path. */
struct part_points {
	struct points own, foreign;
};

static const struct opr_symbols no_symbols;

bool opr_counts_add(struct opr_counts *counts, size_t nr_classes, size_t *ret_index)
{
	if (!op_grow(&counts->values, &counts->capacity, counts->nr_values + nr_classes))
		return false;
	*ret_index = counts->nr_values;
	memset(counts->values + counts->nr_values, 0, nr_classes * sizeof(*counts->values));
	counts->nr_values += nr_classes;
	return true;
}

/* ---- the points of a part ---- */

static int add_points(struct points *points, const struct op_odb_samples *samples, size_t class_index, uint64_t offset)
{
	if (!op_grow(&points->points, &points->capacity, points->nr_points + samples->nr_nodes))
		return opr_no_memory();
	for (uint32_t i = 0; i < samples->nr_nodes; i++)
		points->points[points->nr_points++] =
			(struct point){ samples->nodes[i].key + offset, class_index, samples->nodes[i].value };
	return 0;
}

/* Files that are merged, those of one class, must be of one image. */
static int check_header(const struct opr_profile *profile, const struct opr_file *file, const struct op_odb_header *first,
			const struct op_odb_header *header)
{
	const char *session = profile->sessions[file->session].path;

	if (first->is_kernel != header->is_kernel)
		return opr_error(-EINVAL, "header is_kernel flags are different for %s/%s", session, file->path);
	if (first->mtime != header->mtime)
		return opr_error(-EINVAL, "header timestamps are different (%" PRIu64 ", %" PRIu64 ") for %s/%s", first->mtime,
				 header->mtime, session, file->path);
	return 0;
}

uint64_t opr_position_offset(const struct opr_image *image, bool is_kernel, uint64_t anon_start)
{
	if (opr_is_jit_object(image->image_name, image->name))
		return anon_start;
	return image->is_object && is_kernel ? image->symbols.start_offset : 0;
}

/* A key of the memory view is a place and what is said of it. */
static void take_facts(struct points *points, size_t first, uint64_t offset)
{
	for (size_t i = first; i < points->nr_points; i++) {
		uint64_t key = points->points[i].position - offset;

		points->points[i].position = op_memory_view_offset(key) + offset;
		points->points[i].class_index = key & (OPR_NR_FACTS - 1);
	}
}

/* Of a file of the image that was found; NULL: of another one. */
static int take_points(struct points *points, const struct opr_file *file, const struct op_odb_samples *samples,
		       const struct opr_image *image, bool facts)
{
	const struct op_odb_header *header = &samples->header;
	uint64_t offset = image ? opr_position_offset(image, header->is_kernel, header->anon_start) : 0;
	size_t first_point = points->nr_points;
	int err = add_points(points, samples, file->class_index, offset);

	if (!err && facts)
		take_facts(points, first_point, offset);
	return err;
}

static void free_points(struct part_points *points)
{
	free(points->own.points);
	free(points->foreign.points);
}

static int read_points(struct part_points *points, const struct opr_profile *profile, const struct opr_part *part,
		       struct opr_image_cache *cache, struct opr_image *image, bool facts)
{
	struct op_odb_header first = { 0 };
	int err = 0;

	points->own.nr_points = points->foreign.nr_points = 0;
	for (size_t i = 0; i < part->nr_files && !err; i++) {
		struct opr_file *file = &profile->files[part->first_file + i];
		struct op_odb_samples samples;
		bool own;

		err = opr_profile_read(profile, file, &samples);
		if (err < 0)
			return err;
		if (!i || file[-1].class_index != file->class_index)
			first = samples.header;
		err = check_header(profile, file, &first, &samples.header);
		own = opr_image_check(cache, image, file, &samples.header);
		if (!err)
			err = take_points(own ? &points->own : &points->foreign, file, &samples, own ? image : NULL, facts);
		op_odb_samples_free(&samples);
	}
	return err;
}

static int compare_points(const void *left, const void *right)
{
	const struct point *a = left, *b = right;

	if (a->position != b->position)
		return a->position < b->position ? -1 : 1;
	return a->class_index < b->class_index ? -1 : a->class_index > b->class_index;
}

/* ---- rows ---- */

struct builder {
	struct opr_symbol_report *report;
	struct opr_image_cache *cache;
	const struct opr_symbol_choice *choice;
	const struct opr_part *part;
	const struct opr_image *image, *app;
	const struct opr_symbols *symbols; /* of the image, or none */
};

static bool is_named(const struct opr_words *names, const struct opr_symbol *symbol, const char *image, bool demangled)
{
	if (!symbol)
		return opr_words_have(names, image);
	return opr_words_have(names, symbol->name) || (demangled && opr_words_have(names, symbol->shown));
}

bool opr_symbol_is_wanted(const struct opr_symbol_choice *choice, const struct opr_symbol *symbol, const char *image)
{
	if (choice->include->nr_words && !is_named(choice->include, symbol, image, choice->demangled))
		return false;
	return !is_named(choice->exclude, symbol, image, choice->demangled);
}

static int add_detail(struct opr_symbol_report *report, uint64_t vma, size_t *ret_counts)
{
	size_t counts;

	if (!op_grow(&report->details, &report->details_capacity, report->nr_details + 1))
		return opr_no_memory();
	if (!opr_counts_add(&report->detail_counts, report->nr_classes, &counts))
		return opr_no_memory();
	report->details[report->nr_details++] = (struct opr_detail){ vma, counts };
	*ret_counts = counts;
	return 0;
}

static int add_details(struct opr_symbol_report *report, const struct point *points, size_t nr_points, uint64_t vma_offset)
{
	size_t counts = 0;
	int err = 0;

	for (size_t i = 0; i < nr_points && !err; i++) {
		if (!i || points[i - 1].position != points[i].position)
			err = add_detail(report, points[i].position + vma_offset, &counts);
		if (!err)
			report->detail_counts.values[counts + points[i].class_index] += points[i].count;
	}
	return err;
}

int opr_symbol_report_add(struct opr_symbol_report *report, const struct opr_symbol_row *row, size_t *ret_index)
{
	struct opr_symbol_row *added;
	size_t counts;

	if (!op_grow(&report->rows, &report->rows_capacity, report->nr_rows + 1))
		return opr_no_memory();
	if (!opr_counts_add(&report->counts, report->nr_classes, &counts))
		return opr_no_memory();
	*ret_index = report->nr_rows;
	added = &report->rows[report->nr_rows++];
	report->nr_made = report->nr_rows;
	*added = *row;
	added->counts = counts;
	added->first_detail = report->nr_details;
	added->order = *ret_index;
	return 0;
}

static int add_row(struct builder *builder, const struct opr_symbol *symbol, const struct point *points, size_t nr_points)
{
	struct opr_symbol_report *report = builder->report;
	const struct opr_symbol_row row = {
		.name = symbol ? symbol->shown : builder->part->image,
		.app = builder->part->app,
		.image = builder->part->image,
		.app_shown = builder->app->shown,
		.image_shown = builder->image->shown,
		.symbols = builder->symbols,
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
	if (builder->choice->details)
		err = add_details(report, points, nr_points, symbol ? symbol->vma - symbol->start : 0);
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

/* Gives the points to the symbols. */
static int add_rows(struct builder *builder, const struct opr_symbols *symbols, struct points *points)
{
	size_t next;
	int err = 0;

	builder->symbols = symbols;
	if (points->nr_points)
		qsort(points->points, points->nr_points, sizeof(*points->points), compare_points);
	for (size_t i = 0; i < points->nr_points && !err; i = next) {
		const struct point *first = &points->points[i];
		const struct opr_symbol *symbol = opr_symbols_find(symbols, first->position);

		next = i + 1;
		if (!symbol && symbols->nr_symbols)
			continue;
		while (next < points->nr_points && (!symbol || points->points[next].position - symbol->start < symbol->size))
			next++;
		if (any_count(first, next - i) && opr_symbol_is_wanted(builder->choice, symbol, builder->part->image))
			err = add_row(builder, symbol, first, next - i);
	}
	return err;
}

static int add_part(struct builder *builder, const struct opr_profile *profile, struct part_points *points)
{
	struct opr_image *image = opr_image_cache_find(builder->cache, builder->part->image);
	struct opr_image *app = opr_image_cache_find(builder->cache, builder->part->app);
	int err;

	if (!image || !app)
		return -ENOMEM;
	builder->image = image;
	builder->app = app;
	err = opr_image_load(builder->cache, image);
	if (!err)
		err = read_points(points, profile, builder->part, builder->cache, image, builder->choice->facts);
	if (!err)
		err = add_rows(builder, &image->symbols, &points->own);
	return err ? err : add_rows(builder, &no_symbols, &points->foreign);
}

/* ---- parts by several threads ---- */

/* What is asked of the images of all parts before there are threads: it may have to be told, in their order. */
struct part_images {
	struct opr_image *image, *app;
};

/* Threads make the rows of some parts in memory of their own, which a cache holds, and put them in their turn where they stay. */
struct making {
	const struct opr_symbol_report *report; /* where they stay: room for as many as there are samples */
	const struct opr_profile *profile;
	struct opr_image_cache *cache;
	const struct opr_symbol_choice *choice;
	const struct part_images *images; /* of each part */
	const bool *own;                  /* of each file: its samples are of the image that was found */
	uint64_t next;                    /* part, of all threads together */
	pthread_mutex_t lock;
	pthread_cond_t moved;
	size_t nr_parts, nr_rows; /* that are there, or are being copied */
	int err;
};

static int check_part(const struct opr_profile *profile, const struct opr_part *part, struct opr_image_cache *cache,
		      struct part_images *images, bool *own)
{
	const struct opr_file *file = &profile->files[part->first_file], *first = file;
	int err;

	images->image = opr_image_cache_find(cache, part->image);
	images->app = opr_image_cache_find(cache, part->app);
	if (!images->image || !images->app)
		return -ENOMEM;
	err = opr_image_load(cache, images->image);
	for (size_t i = 0; i < part->nr_files && !err; i++, file++) {
		if (file->class_index != first->class_index)
			first = file;
		err = check_header(profile, file, &first->header, &file->header);
		own[part->first_file + i] = opr_image_check(cache, images->image, file, &file->header);
	}
	return err;
}

static int make_part(struct builder *builder, const struct making *making, size_t index, struct part_points *points)
{
	const struct opr_part *part = &making->profile->parts[index];
	int err = 0;

	builder->part = part;
	builder->image = making->images[index].image;
	builder->app = making->images[index].app;
	points->own.nr_points = points->foreign.nr_points = 0;
	for (size_t i = part->first_file; i < part->first_file + part->nr_files && !err; i++) {
		struct opr_file *file = &making->profile->files[i];
		struct points *into = making->own[i] ? &points->own : &points->foreign;

		err = take_points(into, file, &file->kept, making->own[i] ? builder->image : NULL, builder->choice->facts);
		op_odb_samples_free(&file->kept);
	}
	if (!err)
		err = add_rows(builder, &builder->image->symbols, &points->own);
	return err ? err : add_rows(builder, &no_symbols, &points->foreign);
}

/* In the order of parts. Where the rows go is known then; they are copied when the next thread may have its turn. */
static size_t take_turn(struct making *making, size_t first, size_t end, const struct opr_symbol_report *made, int err)
{
	size_t at;

	pthread_mutex_lock(&making->lock);
	while (making->nr_parts != first)
		pthread_cond_wait(&making->moved, &making->lock);
	at = making->nr_rows;
	making->nr_rows += made->nr_rows;
	making->nr_parts = end;
	making->err = making->err ? making->err : err;
	for (size_t i = 0; i < made->nr_classes; i++)
		making->report->totals[i] += made->totals[i];
	pthread_cond_broadcast(&making->moved);
	pthread_mutex_unlock(&making->lock);
	return at;
}

static void put_rows(const struct opr_symbol_report *report, size_t at, const struct opr_symbol_report *made)
{
	for (size_t i = 0; i < made->nr_rows; i++) {
		struct opr_symbol_row *row = &report->rows[at + i];

		*row = made->rows[i];
		row->order = at + i;
		row->counts += at * report->nr_classes;
	}
	if (made->nr_rows)
		memcpy(report->counts.values + at * report->nr_classes, made->counts.values,
		       made->nr_rows * report->nr_classes * sizeof(*made->counts.values));
}

static void make_parts(void *arg)
{
	struct making *making = arg;
	uint64_t *totals = calloc(making->report->nr_classes, sizeof(*totals));
	struct opr_symbol_report made = { .nr_classes = making->report->nr_classes, .totals = totals };
	struct builder builder = { .report = &made, .cache = making->cache, .choice = making->choice };
	struct part_points points = { 0 };
	size_t first, nr_parts = making->profile->nr_parts;

	while (totals && (first = op_fetch_add_relaxed(&making->next, PARTS_OF_TURN)) < nr_parts) {
		size_t end = op_min_u64(first + PARTS_OF_TURN, nr_parts);
		int err = 0;

		made.nr_rows = made.counts.nr_values = 0;
		memset(totals, 0, made.nr_classes * sizeof(*totals));
		for (size_t i = first; i < end && !err; i++)
			if (!making->profile->parts[i].callee)
				err = make_part(&builder, making, i, &points);
		put_rows(making->report, take_turn(making, first, end, &made, err), &made);
	}
	opr_symbol_report_free(&made);
	free_points(&points);
}

/* So many rows at the most. False without memory, and then the report has none still. */
static bool make_room(struct opr_symbol_report *report, const struct opr_profile *profile)
{
	size_t nr_rows = 1;

	for (size_t i = 0; i < profile->nr_files; i++)
		nr_rows += profile->files[i].callee ? 0 : profile->files[i].kept.nr_nodes;
	report->rows = reallocarray(NULL, nr_rows, sizeof(*report->rows));
	report->counts.values = reallocarray(NULL, nr_rows * report->nr_classes, sizeof(*report->counts.values));
	if (report->rows && report->counts.values) {
		report->rows_capacity = nr_rows;
		report->counts.capacity = nr_rows * report->nr_classes;
		return true;
	}
	free(report->rows);
	free(report->counts.values);
	report->rows = NULL;
	report->counts.values = NULL;
	return false;
}

static int make_by_threads(struct opr_symbol_report *report, const struct opr_profile *profile, struct opr_image_cache *cache,
			   const struct opr_symbol_choice *choice, size_t nr_threads)
{
	struct part_images *images = calloc(profile->nr_parts, sizeof(*images));
	bool *own = calloc(profile->nr_files, sizeof(*own));
	struct making making = { .report = report,
				 .profile = profile,
				 .cache = cache,
				 .choice = choice,
				 .images = images,
				 .own = own,
				 .lock = PTHREAD_MUTEX_INITIALIZER,
				 .moved = PTHREAD_COND_INITIALIZER };
	int err = images && own ? 0 : opr_no_memory();

	for (size_t i = 0; i < profile->nr_parts && !err; i++)
		if (!profile->parts[i].callee)
			err = check_part(profile, &profile->parts[i], cache, &images[i], own);
	if (!err) {
		op_run_threads(nr_threads, make_parts, &making);
		err = making.err ? making.err : making.nr_parts == profile->nr_parts ? 0 : opr_no_memory();
	}
	report->nr_rows = report->nr_made = making.nr_rows;
	report->counts.nr_values = making.nr_rows * report->nr_classes;
	free(images);
	free(own);
	return err;
}

/* 0: one thread makes them: there are few parts, samples have to be read again, or details are wanted, which are many. */
static size_t nr_makers(const struct opr_profile *profile, const struct opr_symbol_choice *choice)
{
	size_t nr_threads = op_min_u64(op_nr_cpus(), profile->nr_parts / PARTS_OF_TURN);

	return nr_threads < 2 || profile->nr_unkept || profile->totals_only || choice->details ? 0 : nr_threads;
}

/* ---- source lines ---- */

static int find_line(struct opr_symbol_row *row)
{
	const char *file;
	unsigned int line;

	if (row->file || !opr_symbols_line(row->symbols, row->vma, &file, &line))
		return 0;
	row->file = strdup(file);
	row->line = line;
	return row->file ? 0 : opr_no_memory();
}

/* Addresses of all rows that are of this image's symbols; as many as there are when vmas is NULL. */
static size_t collect_vmas(const struct opr_symbol_report *report, const struct opr_symbols *symbols, uint64_t *vmas)
{
	size_t nr_vmas = 0;

	for (size_t i = 0; i < report->nr_rows; i++) {
		const struct opr_symbol_row *row = &report->rows[i];

		if (row->symbols != symbols)
			continue;
		for (size_t j = 0; vmas && j < row->nr_details; j++)
			vmas[nr_vmas + j] = report->details[row->first_detail + j].vma;
		nr_vmas += row->nr_details;
		if (vmas)
			vmas[nr_vmas] = row->vma;
		nr_vmas++;
	}
	return nr_vmas;
}

static int find_lines_of(struct opr_symbol_report *report, struct opr_image_cache *cache, const struct opr_symbol_row *row)
{
	struct opr_image *image = opr_image_cache_find(cache, row->image);
	size_t nr_vmas;
	uint64_t *vmas;
	int err;

	if (!image)
		return -ENOMEM;
	if (image->has_lines)
		return 0;
	nr_vmas = collect_vmas(report, &image->symbols, NULL);
	vmas = calloc(nr_vmas + 1, sizeof(*vmas));
	if (!vmas)
		return opr_no_memory();
	collect_vmas(report, &image->symbols, vmas);
	err = opr_image_find_lines(cache, image, vmas, nr_vmas);
	free(vmas);
	return err;
}

int opr_symbol_report_find_lines(struct opr_symbol_report *report, struct opr_image_cache *cache)
{
	int err = 0;

	for (size_t i = 0; i < cache->nr_images; i++)
		cache->images[i].has_lines = false;
	for (size_t i = 0; i < report->nr_rows && !err; i++)
		err = find_lines_of(report, cache, &report->rows[i]);
	for (size_t i = 0; i < report->nr_rows && !err; i++)
		err = find_line(&report->rows[i]);
	return err;
}

/* ---- the report ---- */

/* The symbols of all images at once. */
static int read_images(struct opr_image_cache *cache, const struct opr_profile *profile)
{
	struct opr_image **images = calloc(2 * profile->nr_parts + 1, sizeof(*images));
	size_t nr_images = 0;
	int err = images ? 0 : opr_no_memory();

	for (size_t i = 0; i < profile->nr_parts && !err; i++) {
		const struct opr_part *part = &profile->parts[i];
		struct opr_image *image = opr_image_cache_find(cache, part->image);
		struct opr_image *callee = part->callee ? opr_image_cache_find(cache, part->callee) : image;

		if (!image || !callee) {
			err = -ENOMEM;
			break;
		}
		images[nr_images++] = image;
		if (callee != image)
			images[nr_images++] = callee;
	}
	if (!err)
		err = opr_image_cache_read(cache, images, nr_images);
	free(images);
	return err;
}

int opr_symbol_report_make(struct opr_symbol_report *report, const struct opr_profile *profile, size_t nr_classes,
			   struct opr_image_cache *cache, const struct opr_symbol_choice *choice)
{
	struct builder builder = { .report = report, .cache = cache, .choice = choice };
	struct part_points points = { 0 };
	size_t nr_threads;
	int err = 0;

	report->nr_classes = report->nr_limits = nr_classes;
	report->totals = calloc(nr_classes, sizeof(*report->totals));
	if (!report->totals)
		return opr_no_memory();
	err = read_images(cache, profile);
	nr_threads = nr_makers(profile, choice);
	if (!err && nr_threads && make_room(report, profile)) {
		err = make_by_threads(report, profile, cache, choice, nr_threads);
	} else {
		for (size_t i = 0; i < profile->nr_parts && !err; i++) {
			builder.part = &profile->parts[i];
			if (!builder.part->callee)
				err = add_part(&builder, profile, &points);
		}
	}
	if (!err && choice->lines)
		err = opr_symbol_report_find_lines(report, cache);
	free_points(&points);
	return err;
}

static bool reaches(const struct opr_symbol_report *report, const struct opr_symbol_row *row, double percent)
{
	for (size_t i = 0; i < report->nr_limits; i++) {
		double count = (double)report->counts.values[row->counts + i], total = (double)report->totals[i];

		if ((total > 0 ? 100.0 * count / total : 0) >= percent)
			return true;
	}
	return false;
}

void opr_symbol_report_limit(struct opr_symbol_report *report, double percent)
{
	size_t nr_kept = 0;

	for (size_t i = 0; i < report->nr_rows; i++) {
		struct opr_symbol_row row;

		if (report->rows[i].hidden || !reaches(report, &report->rows[i], percent))
			continue;
		if (i != nr_kept) {
			row = report->rows[i];
			report->rows[i] = report->rows[nr_kept];
			report->rows[nr_kept] = row;
		}
		nr_kept++;
	}
	report->nr_rows = nr_kept;
}

void opr_symbol_report_top(struct opr_symbol_report *report, size_t nr_rows)
{
	if (report->nr_rows > nr_rows)
		report->nr_rows = nr_rows;
}

void opr_symbol_report_free(struct opr_symbol_report *report)
{
	if (!report)
		return;
	for (size_t i = 0; i < report->nr_made; i++)
		free(report->rows[i].file);
	free(report->rows);
	free(report->details);
	free(report->counts.values);
	free(report->detail_counts.values);
	free(report->totals);
	*report = (struct opr_symbol_report){ 0 };
}
