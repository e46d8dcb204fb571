/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/code/image_code.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>

#include "tools/common/child.h"
#include "tools/common/formatting.h"
#include "tools/common/log.h"
#include "tools/elf/lines.h"
#include "tools/symbols/image_cache.h"

#define FORMAT_BYTES 64
#define SECTIONS_MAX 65536
#define DIGITS_MAX   16 /* of an address */

struct request {
	const char *path, *name, *root;
	const struct opr_symbols *symbols; /* of the file; of the kernel for names of a core file */
	const struct opr_code_style *style;
	const struct opr_symbol_report *report;
	bool is_core, with_lines;
	const struct opr_symbol_row *const *rows;
	size_t nr_rows;
};

/* The child writes this, the sections, and for each row a head, its lines and its strings. */
struct preface {
	char format[FORMAT_BYTES];
	uint64_t digits;
	uint64_t nr_sections;
};

struct head {
	int64_t err;
	uint64_t nr_lines, nr_string_bytes;
};

struct sections {
	const struct opr_code_section *sections;
	size_t nr_sections;
};

/* In an image without symbols a detail is a position in the file. UINT64_MAX: not in code. */
static uint64_t address_of(const struct sections *sections, const struct opr_symbol_row *row, uint64_t position)
{
	if (row->symbol || row->symbols->nr_symbols)
		return position;
	for (size_t i = 0; i < sections->nr_sections; i++) {
		const struct opr_code_section *section = &sections->sections[i];

		if (position >= section->position && position - section->position < section->nr_bytes)
			return section->vma + (position - section->position);
	}
	return UINT64_MAX;
}

/* False: the file is not there, or is another one than that of the samples. */
static bool has_code(const struct opr_symbol_row *row)
{
	return row->symbol || (row->symbols && row->symbols->code_path);
}

/* ---- in the child ---- */

static int write_preface(FILE *out, const struct opr_code_reader *reader, const struct sections *sections)
{
	struct preface preface = { .digits = opr_code_digits(reader), .nr_sections = sections->nr_sections };

	snprintf(preface.format, sizeof(preface.format), "%s", opr_code_format(reader));
	fwrite(&preface, sizeof(preface), 1, out);
	fwrite(sections->sections, sizeof(*sections->sections), sections->nr_sections, out);
	return fflush(out) == EOF ? -EIO : 0;
}

static int compare_points(const void *left, const void *right)
{
	const struct opr_code_point *a = left, *b = right;

	return a->vma < b->vma ? -1 : a->vma > b->vma;
}

/* The addresses with samples of a row, sorted. NULL: no memory. */
static struct opr_code_point *points_of(const struct request *request, const struct opr_symbol_row *row,
					const struct sections *sections)
{
	const struct opr_symbol_report *report = request->report;
	struct opr_code_point *points = calloc(row->nr_details + 1, sizeof(*points));

	for (size_t i = 0; i < row->nr_details && points; i++) {
		const struct opr_detail *detail = &report->details[row->first_detail + i];

		points[i].vma = address_of(sections, row, detail->vma);
		for (size_t j = 0; j < report->nr_classes; j++)
			points[i].count += report->detail_counts.values[detail->counts + j];
	}
	if (points)
		qsort(points, row->nr_details, sizeof(*points), compare_points);
	return points;
}

/* The code around an address in no symbol: from the symbol before it to the one behind it. */
static struct opr_code_window hole_at(const struct opr_symbols *symbols, uint32_t index, uint64_t vma)
{
	const struct opr_section *section = &symbols->sections[index];
	struct opr_code_window hole = { section->vma, section->vma + (section->end - section->start) };
	uint64_t position = vma - section->vma + section->start;
	size_t nr = op_nr_leading(symbols->symbols, symbols->nr_symbols, symbol, symbol->start <= position);
	const struct opr_symbol *before = nr ? &symbols->symbols[nr - 1] : NULL;
	const struct opr_symbol *next = nr < symbols->nr_symbols ? &symbols->symbols[nr] : NULL;

	if (before && before->section == index)
		hole.start = before->vma + before->size;
	if (next && next->section == index)
		hole.end = next->vma;
	return hole;
}

/* Lists the code of an image with symbols that has samples and is in none of them. */
static int list_holes(struct opr_code_reader *reader, const struct opr_symbol_row *row, const struct opr_code_point *points,
		      struct opr_code *code)
{
	struct opr_code_window hole = { 0 };
	uint32_t section = 0;
	int err = 0;

	for (size_t i = 0; i < row->nr_details && !err; i++) {
		if (points[i].vma < hole.end || !opr_symbols_section(row->symbols, points[i].vma, &section))
			continue;
		hole = hole_at(row->symbols, section, points[i].vma);
		err = opr_code_list(reader, section, hole.start, hole.end, points, row->nr_details, code);
	}
	return err;
}

/* A row without a symbol is the whole image, or what its symbols do not have. */
static int list_row(struct opr_code_reader *reader, const struct opr_symbol_row *row, const struct opr_code_point *points,
		    struct opr_code *code)
{
	uint64_t start = row->symbol ? row->vma : 0;
	uint64_t end = row->symbol && row->symbol->size < UINT64_MAX - start ? start + row->symbol->size : UINT64_MAX;
	unsigned int section = row->symbol ? row->symbol->section : OPR_CODE_ALL_SECTIONS;

	if (!row->symbol && row->symbols->nr_symbols)
		return list_holes(reader, row, points, code);
	return opr_code_list(reader, section, start, end, points, row->nr_details, code);
}

static int write_row(FILE *out, struct opr_code_reader *reader, const struct request *request, const struct opr_symbol_row *row,
		     const struct sections *sections, struct opr_code *code)
{
	struct opr_code_point *points = points_of(request, row, sections);
	struct head head = { 0 };

	if (!points)
		return -ENOMEM;
	opr_child_begin_step();
	opr_code_clear(code);
	if (has_code(row))
		head.err = list_row(reader, row, points, code);
	free(points);
	if (!head.err) {
		head.nr_lines = code->nr_lines;
		head.nr_string_bytes = code->strings.length;
	}
	fwrite(&head, sizeof(head), 1, out);
	if (head.nr_lines)
		fwrite(code->lines, sizeof(*code->lines), head.nr_lines, out);
	fwrite(op_text_get(&code->strings), 1, head.nr_string_bytes, out);
	return fflush(out) == EOF ? -EIO : 0;
}

static int open_code(const struct request *request, struct opr_code_reader **ret_reader)
{
	struct opr_lines *lines = NULL;
	int err = 0;

	if (request->is_core)
		return opr_code_open_core(request->path, request->symbols, request->style, ret_reader);
	if (request->with_lines)
		err = opr_lines_open(request->path, request->name, request->root, &request->symbols->file, &lines);
	return err ? err : opr_code_open(request->path, &request->symbols->file, lines, request->style, ret_reader);
}

static int list_rows(FILE *out, void *arg)
{
	const struct request *request = arg;
	struct opr_code_reader *reader = NULL;
	struct opr_code_section *list = NULL;
	struct opr_code code = { 0 };
	struct sections sections = { 0 };
	int err = open_code(request, &reader);

	if (err)
		return err;
	err = opr_code_sections(reader, &list, &sections.nr_sections);
	if (err)
		return err;
	sections.sections = list;
	err = write_preface(out, reader, &sections);
	for (size_t i = 0; i < request->nr_rows && !err; i++)
		err = write_row(out, reader, request, request->rows[i], &sections, &code);
	return err;
}

/* ---- in the parent ---- */

struct cursor {
	const char *bytes;
	size_t nr_bytes;
};

static const void *take(struct cursor *cursor, uint64_t nr_items, size_t item_bytes)
{
	const char *bytes = cursor->bytes;

	if (nr_items > cursor->nr_bytes / item_bytes)
		return NULL;
	cursor->bytes += nr_items * item_bytes;
	cursor->nr_bytes -= nr_items * item_bytes;
	return bytes;
}

static int read_preface(struct opr_image_code *listing, struct cursor *cursor)
{
	const void *bytes = take(cursor, 1, sizeof(struct preface)), *sections;
	struct preface preface;

	if (!bytes)
		return -EBADMSG;
	memcpy(&preface, bytes, sizeof(preface));
	sections = take(cursor, preface.nr_sections, sizeof(*listing->sections));
	if (!sections || preface.nr_sections > SECTIONS_MAX || preface.digits > DIGITS_MAX)
		return -EBADMSG;
	listing->digits = (unsigned int)preface.digits;
	listing->format = strndup(preface.format, sizeof(preface.format));
	listing->sections = calloc(preface.nr_sections + 1, sizeof(*listing->sections));
	if (!listing->format || !listing->sections)
		return -ENOMEM;
	memcpy(listing->sections, sections, preface.nr_sections * sizeof(*listing->sections));
	listing->nr_sections = preface.nr_sections;
	return 0;
}

static bool is_sound(const struct opr_code_line *line, uint64_t nr_string_bytes)
{
	return (unsigned int)line->kind <= OPR_CODE_GAP && line->text < nr_string_bytes &&
	       (line->file == SIZE_MAX || line->file < nr_string_bytes) &&
	       (line->inlined == SIZE_MAX || line->inlined < nr_string_bytes) &&
	       (line->kind != OPR_CODE_SECTION || line->line <= DIGITS_MAX);
}

static int read_code(struct opr_code *code, const struct head *head, struct cursor *cursor)
{
	const void *lines = take(cursor, head->nr_lines, sizeof(*code->lines));
	const char *strings = lines ? take(cursor, head->nr_string_bytes, 1) : NULL;

	if (!strings)
		return -EBADMSG;
	code->lines = calloc(head->nr_lines + 1, sizeof(*code->lines));
	if (!code->lines)
		return -ENOMEM;
	memcpy(code->lines, lines, head->nr_lines * sizeof(*code->lines));
	code->capacity = head->nr_lines + 1;
	op_text_add_bytes(&code->strings, strings, head->nr_string_bytes);
	if (code->strings.failed)
		return -ENOMEM;
	for (size_t i = 0; i < head->nr_lines; i++)
		if (!is_sound(&code->lines[i], head->nr_string_bytes))
			return -EBADMSG;
	code->nr_lines = head->nr_lines;
	return 0;
}

/* Sets the reason, unless there is one. */
static void set_reason(struct opr_image_code *listing, const char *format, ...) OP_PRINTF(2, 3);

static void set_reason(struct opr_image_code *listing, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	if (!listing->reason && vasprintf(&listing->reason, format, args) < 0)
		listing->reason = NULL;
	va_end(args);
}

static int read_rows(struct opr_image_code *listing, const struct request *request, struct cursor *cursor)
{
	const void *bytes;
	int err = 0;

	for (size_t i = 0; i < request->nr_rows && !err && (bytes = take(cursor, 1, sizeof(struct head))); i++) {
		struct head head;

		memcpy(&head, bytes, sizeof(head));
		if (head.err)
			set_reason(listing, "the code of %s cannot be shown: %s", request->rows[i]->name,
				    strerror((int)-head.err));
		else
			err = read_code(&listing->codes[i], &head, cursor);
	}
	return err;
}

static void set_reason_of_error(struct opr_image_code *listing, const struct request *request, int err)
{
	if (request->is_core)
		set_reason(listing, "the kernel's code cannot be read from %s (%s). opd's --vmlinux names a file that has it.",
			    request->path, strerror(-err));
	else
		set_reason(listing, "the code of %s cannot be shown: %s", request->path, opr_child_reason(err));
}

/* Rows that the child finished before it failed are shown. */
static int run_child(struct opr_image_code *listing, struct request *request)
{
	struct opr_child_result result = { 0 };
	struct opr_child child;
	struct cursor cursor;
	int err;

	opr_verbose(OPR_TOPIC_level1, "listing the code of %zu symbols of %s", request->nr_rows, request->path);
	err = opr_child_start(&child, list_rows, request);
	if (!err)
		err = opr_child_wait(&child, &result);
	if (err)
		return opr_error(err, "%s: %s", request->path, strerror(-err));
	cursor = (struct cursor){ result.bytes, result.nr_bytes };
	if (result.nr_bytes)
		err = read_preface(listing, &cursor);
	if (!err && result.nr_bytes)
		err = read_rows(listing, request, &cursor);
	opr_child_result_free(&result);
	if (err == -ENOMEM)
		return opr_no_memory();
	if (err || result.err)
		set_reason_of_error(listing, request, err ? err : result.err);
	return 0;
}

static int list_code(struct opr_image_code *listing, const struct opr_code_query *query, struct opr_image *image,
		     const struct opr_symbol_row *const *rows, size_t nr_rows)
{
	struct request request = {
		.path = image->path,
		.name = image->name,
		.root = opr_image_options(query->images, image).root,
		.symbols = &image->symbols,
		.style = query->style,
		.report = query->report,
		.is_core = !image->is_object,
		.with_lines = query->lines,
		.rows = rows,
		.nr_rows = nr_rows,
	};
	char *core = request.is_core ? opr_beside_kallsyms(image->path, OPR_KERNEL_CORE) : NULL;
	int err;

	if (request.is_core && !core)
		return opr_no_memory();
	if (core)
		request.path = core;
	err = run_child(listing, &request);
	free(core);
	return err;
}

/* ---- samples of a line ---- */

/* Samples before this address belong to the line. */
static uint64_t end_of_line(const struct opr_code *code, size_t index)
{
	for (size_t i = index + 1; i < code->nr_lines; i++)
		if (code->lines[i].vma != code->lines[index].vma)
			return code->lines[i].vma;
	return UINT64_MAX;
}

bool opr_image_code_sum(const struct opr_image_code *listing, const struct opr_symbol_row *row, const struct opr_code *code,
			size_t line, size_t *detail, uint64_t *counts)
{
	const struct sections sections = { listing->sections, listing->nr_sections };
	const struct opr_symbol_report *report = listing->report;
	uint64_t start = code->lines[line].vma, end = end_of_line(code, line);
	bool any = false;

	memset(counts, 0, report->nr_classes * sizeof(*counts));
	for (; *detail < row->nr_details; ++*detail) {
		const struct opr_detail *next = &report->details[row->first_detail + *detail];
		uint64_t vma = address_of(&sections, row, next->vma);

		if (vma == UINT64_MAX)
			continue;
		if (vma >= end)
			break;
		for (size_t i = 0; i < report->nr_classes && vma >= start; i++) {
			counts[i] += report->detail_counts.values[next->counts + i];
			any |= counts[i] != 0;
		}
	}
	return any;
}

/* ---- samples whose code is not listed ---- */

static const char *reason_of_search(const struct opr_image *image)
{
	switch (image->state) {
	case OPR_IMAGE_HAS_NO_FILE:
		if (image->image_name->kind != OP_IMAGE_ANON)
			return "that is no file with code";
		if (!strncmp(image->image_name->name, "[vdso]", strlen("[vdso]")))
			return "the kernel maps it into processes, and the session does not know of which build it was";
		return "the session does not have the contents of that memory; of JIT code, a jitdump is kept";
	case OPR_IMAGE_UNREADABLE:
		return "its file could not be read";
	case OPR_IMAGE_REPLACED:
	case OPR_IMAGE_OTHER_KERNEL:
		return "another file took its place";
	case OPR_IMAGE_AMBIGUOUS:
		return "more than one file may be it";
	case OPR_IMAGE_FOUND:
	case OPR_IMAGE_NOT_FOUND:
		break;
	}
	return "its file could not be found";
}

/* Why rows of an image whose file was found are not listed. */
static const char *reason_of_rows(const struct opr_image_code *listing, const struct opr_image *image,
				  const struct opr_symbol_row *const *rows, size_t nr_rows)
{
	bool any_empty = false;

	for (size_t i = 0; i < nr_rows; i++) {
		if (!has_code(rows[i]) && rows[i]->symbols != &image->symbols)
			return "they are of another file than the one that is there";
		any_empty |= !listing->codes[i].nr_lines;
	}
	if (!image->is_object && !opr_identity_is_kallsyms(&image->identity))
		return "that is no object file";
	if (!image->is_object && !image->symbols.nr_symbols)
		return "the kernel's symbols are not known";
	if (any_empty && opr_is_jit_object(image->image_name, image->name))
		return "the session has names of this code, and not the code: a jitdump has both, a perf map has names";
	return "they are in no section of code, in zero bytes, or in large code beyond the 16 MiB that are shown";
}

/* Adds samples of a row that are beside no instruction; `line_counts` is scratch memory. */
static void add_unlisted(const struct opr_image_code *listing, const struct opr_symbol_row *row, const struct opr_code *code,
			 uint64_t *counts, uint64_t *line_counts)
{
	const struct opr_symbol_report *report = listing->report;
	size_t detail = 0;

	for (size_t i = 0; i < report->nr_classes; i++)
		counts[i] += report->counts.values[row->counts + i];
	for (size_t i = 0; i < code->nr_lines; i++) {
		if (code->lines[i].kind != OPR_CODE_INSTRUCTION)
			continue;
		opr_image_code_sum(listing, row, code, i, &detail, line_counts);
		for (size_t j = 0; j < report->nr_classes; j++)
			counts[j] -= line_counts[j];
	}
}

/* "599 samples (42.1234%)", with one number for each event. NULL: no samples, or no memory. */
static char *name_samples(const struct opr_symbol_report *report, const uint64_t *counts)
{
	struct op_text numbers = { 0 }, shares = { 0 }, text = { 0 };
	bool any = false;

	for (size_t i = 0; i < report->nr_classes; i++) {
		const struct opr_percent_text share = opr_format_percent(counts[i], report->totals[i]);

		op_text_printf(&numbers, "%s%" PRIu64, i ? ", " : "", counts[i]);
		op_text_printf(&shares, "%s%s%%", i ? ", " : "", share.text + strspn(share.text, " "));
		any |= counts[i];
	}
	if (any)
		op_text_printf(&text, "%s samples (%s)", op_text_get(&numbers), op_text_get(&shares));
	op_text_free(&numbers);
	op_text_free(&shares);
	return any ? op_text_steal(&text) : NULL;
}

static int warn_unlisted(const struct opr_image_code *listing, const struct opr_image *image,
			 const struct opr_symbol_row *const *rows, size_t nr_rows)
{
	const struct opr_symbol_report *report = listing->report;
	uint64_t *counts = calloc(2 * report->nr_classes, sizeof(*counts));
	char *samples;

	if (!counts)
		return opr_no_memory();
	for (size_t i = 0; i < nr_rows; i++)
		add_unlisted(listing, rows[i], &listing->codes[i], counts, counts + report->nr_classes);
	samples = name_samples(report, counts);
	if (samples)
		opr_warn("no code is shown for %s of %s: %s", samples, image->shown,
			 listing->reason ? listing->reason
			 : image->state != OPR_IMAGE_FOUND ? reason_of_search(image)
					 : reason_of_rows(listing, image, rows, nr_rows));
	free(samples);
	free(counts);
	return 0;
}

int opr_image_code_list(struct opr_image_code *listing, const struct opr_code_query *query,
			const struct opr_symbol_row *const *rows, size_t nr_rows)
{
	struct opr_image *image = opr_image_cache_find(query->images, rows[0]->image);
	int err = 0;

	if (!image)
		return -ENOMEM;
	listing->report = query->report;
	listing->codes = calloc(nr_rows + 1, sizeof(*listing->codes));
	if (!listing->codes)
		return opr_no_memory();
	listing->nr_codes = nr_rows;
	if (image->path && (image->is_object || opr_identity_is_kallsyms(&image->identity)))
		err = list_code(listing, query, image, rows, nr_rows);
	return err || query->quiet ? err : warn_unlisted(listing, image, rows, nr_rows);
}

void opr_image_code_free(struct opr_image_code *listing)
{
	if (!listing)
		return;
	for (size_t i = 0; i < listing->nr_codes; i++)
		opr_code_free(&listing->codes[i]);
	free(listing->codes);
	free(listing->format);
	free(listing->sections);
	free(listing->reason);
	*listing = (struct opr_image_code){ 0 };
}
