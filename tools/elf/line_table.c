/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/elf/line_table.h"

#include <errno.h>

#include "libop/base/grow.h"
#include "libop/base/htable.h"
#include "libop/base/text.h"
#include "libop/process/threads.h"
#include "tools/common/child.h"
#include "tools/common/progress.h"
#include "tools/elf/lines.h"

#define NO_NAME       "??"         /* of a function, as addr2line shows it */
#define DEMANGLED_MAX (256u << 20) /* bytes of all strings; then names stay mangled */

#define BATCH_JOBS 64u /* of one child: enough to pay for its fork */

/* A child does the jobs in their order. For each it writes a record, and the table behind it. */
struct batch {
	struct opr_line_job *jobs;
	size_t nr_jobs;
	struct opr_child child;
};

struct record {
	uint64_t job;
	int64_t err;
	uint64_t nr_bytes;
};

/* A table is rows, frames, strings, and this. */
struct foot {
	uint64_t nr_rows, nr_frames, nr_string_bytes;
	uint32_t has_debug_info;
	uint32_t damage; /* 1 + offset in the strings, where the path follows; 0: none */
};

/* An inlined function, with offsets in the strings. */
struct packed_frame {
	uint32_t name, shown, file, line;
	uint32_t outer; /* 1 + index of an earlier frame; 0: the symbol has the call */
};

/* ---- in the child ---- */

/* A string or a frame that was added, by its contents. */
struct kept {
	struct op_hlink link;
	uint32_t place; /* offset of the string, or index of the frame */
};

struct writer {
	FILE *out;
	const struct opr_line_search *search;
	struct op_text strings, demangled;
	struct packed_frame *frames;
	size_t nr_frames, capacity;
	struct op_htable kept_strings, kept_frames;
	struct foot foot;
	int err;
};

static void keep(struct writer *writer, struct op_htable *table, uint64_t hash, uint32_t place)
{
	struct kept *kept = malloc(sizeof(*kept));

	if (kept)
		kept->place = place;
	if (!kept || op_htable_insert(table, &kept->link, hash)) {
		free(kept);
		writer->err = -ENOMEM;
	}
}

static uint32_t add_string(struct writer *writer, const char *string)
{
	size_t nr_bytes = strlen(string), offset = writer->strings.length;
	uint64_t hash = op_hash_bytes(0, string, nr_bytes);

	for (struct op_hlink *link = op_htable_first(&writer->kept_strings, hash); link; link = op_htable_next(link)) {
		uint32_t place = op_container_of(link, struct kept, link)->place;

		if (!strcmp(op_text_get(&writer->strings) + place, string))
			return place;
	}
	op_text_add_bytes(&writer->strings, string, nr_bytes + 1);
	if (writer->strings.failed || writer->strings.length > UINT32_MAX)
		writer->err = writer->strings.failed ? -ENOMEM : -EOVERFLOW;
	else
		keep(writer, &writer->kept_strings, hash, (uint32_t)offset);
	return (uint32_t)offset;
}

static uint64_t hash_frame(const struct packed_frame *frame)
{
	uint64_t hash = op_hash_add(frame->name, frame->file);

	return op_hash_add(op_hash_add(hash, frame->line), frame->outer);
}

/* Returns 1 + its index. `frame` has everything but the name that is shown. */
static uint32_t add_frame(struct writer *writer, struct packed_frame *frame, const char *name)
{
	uint64_t hash = hash_frame(frame);

	for (struct op_hlink *link = op_htable_first(&writer->kept_frames, hash); link; link = op_htable_next(link)) {
		uint32_t place = op_container_of(link, struct kept, link)->place;
		const struct packed_frame *other = &writer->frames[place];

		if (other->name == frame->name && other->file == frame->file && other->line == frame->line &&
		    other->outer == frame->outer)
			return place + 1;
	}
	frame->shown = frame->name;
	if (writer->strings.length < DEMANGLED_MAX && opr_demangle(&writer->demangled, name, writer->search->demangle))
		frame->shown = add_string(writer, op_text_get(&writer->demangled));
	if (!op_grow(&writer->frames, &writer->capacity, writer->nr_frames + 1) || writer->demangled.failed ||
	    writer->nr_frames >= UINT32_MAX) {
		writer->err = -ENOMEM;
		return 0;
	}
	writer->frames[writer->nr_frames] = *frame;
	keep(writer, &writer->kept_frames, hash, (uint32_t)writer->nr_frames);
	return (uint32_t)++writer->nr_frames;
}

/* The last place is in the symbol; each one before is an inlined function. Outer ones first. */
static uint32_t add_frames(struct writer *writer, const struct opr_place *places, size_t nr_places)
{
	uint32_t outer = 0;

	for (size_t i = nr_places - 1; i > 0 && !writer->err; i--) {
		const char *name = places[i - 1].function ? places[i - 1].function : NO_NAME;
		struct packed_frame frame = { .name = add_string(writer, name),
					      .file = add_string(writer, places[i].file ? places[i].file : ""),
					      .line = places[i].line,
					      .outer = outer };

		outer = add_frame(writer, &frame, name);
	}
	return outer;
}

static void write_row(struct writer *writer, struct opr_lines *lines, uint64_t vma)
{
	struct opr_place places[OPR_PLACES_MAX] = { { NULL, NULL, 0 } };
	struct opr_line_row row = { .vma = vma };
	size_t nr_places = 0;
	bool has_line;

	if (writer->search->with_frames)
		nr_places = opr_lines_places(lines, vma, places);
	else
		nr_places = opr_lines_find(lines, vma, &places[0].file, &places[0].line);
	has_line = nr_places && places[0].file && places[0].line;
	if (!has_line && nr_places < 2)
		return;
	row.file = add_string(writer, has_line ? places[0].file : "");
	row.line = has_line ? places[0].line : 0;
	row.frame = add_frames(writer, places, nr_places);
	fwrite(&row, sizeof(row), 1, writer->out);
	writer->foot.nr_rows++;
}

static void add_damage(struct writer *writer, struct opr_lines *lines)
{
	const char *path, *damage = opr_lines_damage(lines, writer->foot.nr_rows, &path);
	size_t offset = writer->strings.length;

	writer->foot.has_debug_info = true;
	if (!damage)
		return;
	op_text_add_bytes(&writer->strings, damage, strlen(damage) + 1);
	op_text_add_bytes(&writer->strings, path, strlen(path) + 1);
	if (writer->strings.failed || writer->strings.length >= UINT32_MAX)
		writer->err = writer->strings.failed ? -ENOMEM : -EOVERFLOW;
	writer->foot.damage = 1 + (uint32_t)offset;
}

static void free_kept(struct op_hlink *link, void *arg)
{
	op_htable_remove(arg, link);
	free(op_container_of(link, struct kept, link));
}

static void free_writer(struct writer *writer)
{
	op_htable_visit(&writer->kept_strings, free_kept, &writer->kept_strings);
	op_htable_visit(&writer->kept_frames, free_kept, &writer->kept_frames);
	op_htable_free(&writer->kept_strings);
	op_htable_free(&writer->kept_frames);
	op_text_free(&writer->strings);
	op_text_free(&writer->demangled);
	free(writer->frames);
}

static int write_table(FILE *out, const struct opr_line_job *job)
{
	const struct opr_line_search *search = &job->search;
	struct writer writer = { .out = out, .search = search };
	struct opr_lines *lines = NULL;
	int err;

	writer.err = opr_lines_open(search->path, search->name, search->root, search->file, &lines);
	for (size_t i = 0; i < job->nr_vmas && lines && !writer.err; i++)
		if (!i || job->vmas[i - 1] != job->vmas[i])
			write_row(&writer, lines, job->vmas[i]);
	if (!writer.err && lines)
		add_damage(&writer, lines);
	writer.foot.nr_frames = writer.nr_frames;
	writer.foot.nr_string_bytes = writer.strings.length;
	if (writer.nr_frames)
		fwrite(writer.frames, sizeof(*writer.frames), writer.nr_frames, out);
	fwrite(op_text_get(&writer.strings), 1, writer.strings.length, out);
	fwrite(&writer.foot, sizeof(writer.foot), 1, out);
	err = writer.err;
	free_writer(&writer);
	opr_lines_close(lines);
	return err;
}

static int write_batch(FILE *out, void *arg)
{
	const struct batch *batch = arg;
	int err = 0;

	for (size_t i = 0; i < batch->nr_jobs && !err; i++) {
		struct record record = { .job = i };
		char *bytes = NULL;
		size_t nr_bytes = 0;
		FILE *table;

		if (batch->jobs[i].done)
			continue;
		opr_child_begin_step();
		table = open_memstream(&bytes, &nr_bytes);
		record.err = table ? write_table(table, &batch->jobs[i]) : -ENOMEM;
		if (table && fclose(table) == EOF)
			record.err = -ENOMEM;
		record.nr_bytes = record.err ? 0 : nr_bytes;
		fwrite(&record, sizeof(record), 1, out);
		if (record.nr_bytes)
			fwrite(bytes, 1, nr_bytes, out);
		free(bytes);
		err = fflush(out) == EOF ? -EIO : 0;
	}
	return err;
}

/* ---- in the parent ---- */

/* The strings have nr_bytes, and a NUL behind them. */
static int read_damage(struct opr_line_table *table, const struct foot *foot)
{
	size_t offset = foot->damage - 1u, length;

	table->has_debug_info = foot->has_debug_info;
	if (!foot->damage)
		return 0;
	if (offset >= foot->nr_string_bytes)
		return -EBADMSG;
	length = strlen(table->strings + offset);
	if (offset + length + 1 >= foot->nr_string_bytes)
		return -EBADMSG;
	table->damage = table->strings + offset;
	table->damaged = table->damage + length + 1;
	return 0;
}

/* An outer frame is always an earlier one, so each chain ends. */
static int read_frames(struct opr_line_table *table, const char *bytes, const struct foot *foot)
{
	table->frames = calloc(foot->nr_frames + 1, sizeof(*table->frames));
	if (!table->frames)
		return -ENOMEM;
	for (size_t i = 0; i < foot->nr_frames; i++) {
		struct opr_frame *frame = &table->frames[i];
		struct packed_frame packed;

		memcpy(&packed, bytes + i * sizeof(packed), sizeof(packed));
		if (packed.outer > i || op_max_u64(op_max_u64(packed.name, packed.shown), packed.file) >= foot->nr_string_bytes)
			return -EBADMSG;
		*frame = (struct opr_frame){ .name = table->strings + packed.name,
					     .shown = table->strings + packed.shown,
					     .file = table->strings + packed.file,
					     .line = packed.line,
					     .outer = packed.outer ? &table->frames[packed.outer - 1] : NULL };
	}
	table->nr_frames = foot->nr_frames;
	return 0;
}

static int read_rows(struct opr_line_table *table, const char *bytes, const struct foot *foot)
{
	table->rows = calloc(foot->nr_rows + 1, sizeof(*table->rows));
	if (!table->rows)
		return -ENOMEM;
	memcpy(table->rows, bytes, foot->nr_rows * sizeof(*table->rows));
	for (size_t i = 0; i < foot->nr_rows; i++) {
		const struct opr_line_row *row = &table->rows[i];

		if (row->file >= foot->nr_string_bytes || row->frame > foot->nr_frames || (i && row[-1].vma > row->vma))
			return -EBADMSG;
	}
	table->nr_rows = foot->nr_rows;
	return 0;
}

static int read_table(const char *bytes, size_t nr_bytes, struct opr_line_table *table)
{
	size_t nr_left = nr_bytes - sizeof(struct foot), frames_at, strings_at;
	struct foot foot;
	int err;

	if (nr_bytes < sizeof(foot))
		return -EBADMSG;
	memcpy(&foot, bytes + nr_left, sizeof(foot));
	if (foot.nr_rows > nr_left / sizeof(*table->rows) || foot.nr_frames > nr_left / sizeof(struct packed_frame))
		return -EBADMSG;
	frames_at = foot.nr_rows * sizeof(*table->rows);
	strings_at = frames_at + foot.nr_frames * sizeof(struct packed_frame);
	if (strings_at > nr_left || foot.nr_string_bytes != nr_left - strings_at)
		return -EBADMSG;
	table->strings = malloc(foot.nr_string_bytes + 1);
	if (!table->strings)
		return -ENOMEM;
	memcpy(table->strings, bytes + strings_at, foot.nr_string_bytes);
	table->strings[foot.nr_string_bytes] = '\0';
	err = read_frames(table, bytes + frames_at, &foot);
	if (!err)
		err = read_rows(table, bytes, &foot);
	return err ? err : read_damage(table, &foot);
}

static int compare_vmas(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

	return a < b ? -1 : a > b;
}

static void take_table(struct opr_line_job *job, const struct record *record, const char *bytes)
{
	job->done = true;
	job->err = (int)record->err;
	job->table = job->err ? NULL : calloc(1, sizeof(*job->table));
	if (!job->err)
		job->err = job->table ? read_table(bytes, record->nr_bytes, job->table) : -ENOMEM;
	if (!job->err)
		return;
	opr_line_table_free(job->table);
	job->table = NULL;
}

/* When a child failed, the first job without a result did it. Returns whether jobs are left. */
static bool take_batch(struct batch *batch, const struct opr_child_result *result)
{
	struct record record;
	size_t next = 0;

	for (size_t at = 0; result->nr_bytes - at >= sizeof(record); at += record.nr_bytes) {
		memcpy(&record, result->bytes + at, sizeof(record));
		at += sizeof(record);
		if (record.job >= batch->nr_jobs || record.nr_bytes > result->nr_bytes - at)
			break;
		if (!batch->jobs[record.job].done)
			take_table(&batch->jobs[record.job], &record, result->bytes + at);
	}
	while (next < batch->nr_jobs && batch->jobs[next].done)
		next++;
	if (next == batch->nr_jobs)
		return false;
	batch->jobs[next].done = true;
	batch->jobs[next].err = result->err ? result->err : -EBADMSG;
	return next + 1 < batch->nr_jobs;
}

static int finish_batch(struct batch *batch)
{
	struct opr_child_result result = { 0 };
	bool is_left = true;
	int err = 0;

	while (!err && is_left) {
		err = opr_child_wait(&batch->child, &result);
		is_left = !err && take_batch(batch, &result);
		if (!err && result.err == -EINTR)
			err = -EINTR;
		opr_child_result_free(&result);
		if (!err && is_left)
			err = opr_child_start(&batch->child, write_batch, batch);
	}
	return err;
}

int opr_line_tables_make(struct opr_line_job *jobs, size_t nr_jobs)
{
	struct batch batches[OP_THREADS_MAX];
	size_t nr_cpus = op_nr_cpus(), nr_done = 0, nr_batches, next = 0;
	int err = 0;

	for (size_t i = 0; i < nr_jobs; i++)
		if (jobs[i].nr_vmas)
			qsort(jobs[i].vmas, jobs[i].nr_vmas, sizeof(*jobs[i].vmas), compare_vmas);
	while (!err && next < nr_jobs) {
		size_t nr_each = op_min_u64(BATCH_JOBS, (nr_jobs - next + nr_cpus - 1) / nr_cpus);

		for (nr_batches = 0; nr_batches < nr_cpus && next < nr_jobs && !err; nr_batches += !err) {
			struct batch *batch = &batches[nr_batches];

			*batch = (struct batch){ .jobs = jobs + next, .nr_jobs = op_min_u64(nr_each, nr_jobs - next) };
			err = opr_child_start(&batch->child, write_batch, batch);
			next += batch->nr_jobs;
		}
		for (size_t i = 0; i < nr_batches; i++) {
			int batch_err = finish_batch(&batches[i]);

			err = err ? err : batch_err;
			nr_done += batches[i].nr_jobs;
			if (nr_jobs > 1)
				opr_progress_count("reading the source lines of images", nr_done, nr_jobs);
		}
	}
	for (size_t i = 0; err && i < nr_jobs; i++) {
		opr_line_table_free(jobs[i].table);
		jobs[i].table = NULL;
	}
	return err;
}

static const struct opr_line_row *find_row(const struct opr_line_table *table, uint64_t vma)
{
	size_t index = op_nr_leading(table->rows, table->nr_rows, row, row->vma < vma);

	return index < table->nr_rows && table->rows[index].vma == vma ? &table->rows[index] : NULL;
}

bool opr_line_table_find(const struct opr_line_table *table, uint64_t vma, const char **ret_file, unsigned int *ret_line)
{
	const struct opr_line_row *row = find_row(table, vma);

	if (!row || !row->line)
		return false;
	*ret_file = table->strings + row->file;
	*ret_line = row->line;
	return true;
}

const struct opr_frame *opr_line_table_frame(const struct opr_line_table *table, uint64_t vma)
{
	const struct opr_line_row *row = find_row(table, vma);

	return row && row->frame ? &table->frames[row->frame - 1] : NULL;
}

void opr_line_table_free(struct opr_line_table *table)
{
	if (!table)
		return;
	free(table->rows);
	free(table->frames);
	free(table->strings);
	free(table);
}
