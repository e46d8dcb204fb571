/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/annotate_code.h"

#include <errno.h>

#include "tools/child.h"
#include "tools/report_log.h"

#define FORMAT_BYTES 64
#define SECTIONS_MAX 65536
#define DIGITS_MAX   16 /* of an address */

struct request {
	const char *path, *name;
	struct opr_symbol_options options;
	const struct opr_symbols *symbols; /* of the kernel, for its names */
	const struct opr_code_style *style;
	bool is_core;
	const struct opr_symbol_row *const *rows;
	size_t nr_rows;
};

/* What the child writes: this, sections, and for each row a head with lines and strings behind it. */
struct preface {
	char format[FORMAT_BYTES];
	uint64_t digits;
	uint64_t nr_sections;
};

struct head {
	int64_t err;
	uint64_t nr_lines, nr_string_bytes;
};

/* ---- in the child ---- */

static int write_preface(FILE *out, const struct opr_code_reader *reader)
{
	struct preface preface = { 0 };
	struct opr_code_section *sections = NULL;
	size_t nr_sections = 0;
	int err = opr_code_sections(reader, &sections, &nr_sections);

	if (err)
		return err;
	snprintf(preface.format, sizeof(preface.format), "%s", opr_code_format(reader));
	preface.digits = opr_code_digits(reader);
	preface.nr_sections = nr_sections;
	fwrite(&preface, sizeof(preface), 1, out);
	fwrite(sections, sizeof(*sections), nr_sections, out);
	free(sections);
	return fflush(out) == EOF ? -EIO : 0;
}

/* An image without symbols is listed whole. */
static int write_row(FILE *out, struct opr_code_reader *reader, const struct opr_symbol_row *row, struct opr_code *code)
{
	uint64_t start = row->symbol ? row->vma : 0;
	uint64_t end = row->symbol && row->symbol->size < UINT64_MAX - start ? start + row->symbol->size : UINT64_MAX;
	unsigned int section = row->symbol ? row->symbol->section : OPR_CODE_ALL_SECTIONS;
	struct head head = { 0 };

	opr_child_begin_step();
	opr_code_clear(code);
	head.err = opr_code_list(reader, section, start, end, code);
	if (!head.err) {
		head.nr_lines = code->nr_lines;
		head.nr_string_bytes = code->strings.length;
	}
	fwrite(&head, sizeof(head), 1, out);
	fwrite(code->lines, sizeof(*code->lines), head.nr_lines, out);
	fwrite(op_text_get(&code->strings), 1, head.nr_string_bytes, out);
	return fflush(out) == EOF ? -EIO : 0;
}

static int work(FILE *out, void *arg)
{
	const struct request *request = arg;
	struct opr_code_reader *reader = NULL;
	struct opr_symbols symbols = { 0 };
	struct opr_code code = { 0 };
	int err = 0;

	if (request->is_core) {
		err = opr_code_open_core(request->path, request->symbols, request->style, &reader);
	} else {
		if (request->options.lines)
			err = opr_symbols_read_bfd(&symbols, request->path, request->name, &request->options);
		if (!err)
			err = opr_code_open(request->path, &symbols, request->style, &reader);
	}
	if (!err)
		err = write_preface(out, reader);
	for (size_t i = 0; i < request->nr_rows && !err; i++)
		err = write_row(out, reader, request->rows[i], &code);
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

static int read_preface(struct opr_listing *listing, struct cursor *cursor)
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
	return (unsigned int)line->kind <= OPR_CODE_ZEROS && line->text < nr_string_bytes &&
	       (line->file == SIZE_MAX || line->file < nr_string_bytes) &&
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

static int read_rows(struct opr_listing *listing, const struct request *request, struct cursor *cursor)
{
	const void *bytes;
	int err = 0;

	for (size_t i = 0; i < request->nr_rows && !err && (bytes = take(cursor, 1, sizeof(struct head))); i++) {
		struct head head;

		memcpy(&head, bytes, sizeof(head));
		if (head.err)
			opr_warn("the code of %s in %s cannot be shown: %s", request->rows[i]->name, request->rows[i]->image_shown,
				 strerror((int)-head.err));
		else
			err = read_code(&listing->codes[i], &head, cursor);
	}
	return err;
}

static void warn(const struct request *request, int err)
{
	if (request->is_core)
		opr_warn("the kernel's code cannot be read from %s (%s): its symbols are left out. opd's --vmlinux names a file "
			 "that has it.",
			 request->path, strerror(-err));
	else
		opr_warn("the code of %s cannot be shown: %s", request->path, opr_child_reason(err));
}

/* What came before a crash is shown. */
static int run(struct opr_listing *listing, struct request *request)
{
	struct opr_child_result result = { 0 };
	struct opr_child child;
	struct cursor cursor;
	int err;

	opr_verbose(OPR_TOPIC_level1, "listing the code of %zu symbols of %s", request->nr_rows, request->path);
	err = opr_child_start(&child, work, request);
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
		warn(request, err ? err : result.err);
	return 0;
}

int opr_listing_make(struct opr_listing *listing, const struct opr_annotate *annotate, const struct opr_symbol_row *const *rows,
		     size_t nr_rows)
{
	struct opr_image *image = opr_image_cache_find(annotate->images, rows[0]->image);
	struct request request = { .style = &annotate->options->code_style, .rows = rows, .nr_rows = nr_rows };
	char *core = NULL;
	int err;

	if (!image)
		return -ENOMEM;
	listing->codes = calloc(nr_rows + 1, sizeof(*listing->codes));
	if (!listing->codes)
		return opr_no_memory();
	listing->nr_codes = nr_rows;
	request.is_core = !image->is_object && opr_identity_is_kallsyms(&image->identity);
	if (!image->path || (!image->is_object && !request.is_core))
		return 0;
	if (request.is_core) {
		core = opr_beside_kallsyms(image->path, OPR_KERNEL_CORE);
		if (!core)
			return opr_no_memory();
	}
	request.path = core ? core : image->path;
	request.name = image->name;
	request.symbols = &image->symbols;
	request.options = opr_image_options(annotate->images, image);
	request.options.lines = annotate->options->source || annotate->options->html;
	err = run(listing, &request);
	free(core);
	return err;
}

void opr_listing_free(struct opr_listing *listing)
{
	if (!listing)
		return;
	for (size_t i = 0; i < listing->nr_codes; i++)
		opr_code_free(&listing->codes[i]);
	free(listing->codes);
	free(listing->format);
	free(listing->sections);
	*listing = (struct opr_listing){ 0 };
}

/* ---- samples of an instruction ---- */

/* Details of an image without symbols are positions in the file. */
static uint64_t address_of(const struct opr_listing *listing, const struct opr_symbol_row *row, uint64_t position)
{
	if (row->symbol)
		return position;
	for (size_t i = 0; i < listing->nr_sections; i++) {
		const struct opr_code_section *section = &listing->sections[i];

		if (position >= section->position && position - section->position < section->nr_bytes)
			return section->vma + (position - section->position);
	}
	return UINT64_MAX;
}

bool opr_listing_sum(const struct opr_listing *listing, const struct opr_symbol_report *report, const struct opr_symbol_row *row,
		     uint64_t start, uint64_t end, size_t *detail, uint64_t *counts)
{
	bool any = false;

	memset(counts, 0, report->nr_classes * sizeof(*counts));
	for (; *detail < row->nr_details; ++*detail) {
		const struct opr_detail *next = &report->details[row->first_detail + *detail];
		uint64_t vma = address_of(listing, row, next->vma);

		if (vma == UINT64_MAX)
			continue; /* in no code */
		if (vma >= end)
			break;
		for (size_t i = 0; i < report->nr_classes && vma >= start; i++) {
			counts[i] += report->detail_counts.values[next->counts + i];
			any |= counts[i] != 0;
		}
	}
	return any;
}
