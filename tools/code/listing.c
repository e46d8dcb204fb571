/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/code/listing.h"

#include <dis-asm.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>

#include "libop/base/grow.h"
#include "libop/base/htable.h"
#include "tools/code/core_file.h"
#include "tools/code/names.h"
#include "tools/elf/bfd_file.h"
#include "tools/elf/demangle.h"
#include "tools/elf/lines.h"
#include "tools/elf/open_file.h"

#define OWN_PROGRAM    "/proc/self/exe" /* has the machine of the running kernel */
#define ZEROS_MIN      8                /* so many zero bytes are left out */
#define END_ZEROS_MIN  3                /* the same at the end of a section */
#define NAME_BYTES_MAX 4096             /* of a label */
#define PIECE_BYTES    256              /* most pieces that libopcodes writes are shorter */
#define RAW_BYTES      4                /* in a line, when libopcodes does not say */
#define TAIL_BYTES     16               /* read behind a window, for its last instruction */
#define ALIGNMENT      16               /* of the first address that is disassembled */

struct opr_code_reader {
	bfd *abfd;
	struct opr_core core; /* memory of the kernel, when is_core */
	struct opr_lines *lines; /* NULL: not asked for */
	struct opr_code_names names;
	disassembler_ftype print;
	struct opr_code_style style;
	char *params; /* a copy of the disassembler options of the style */
	bool is_core;
};

/* The stream of libopcodes' callbacks. */
struct listing {
	struct opr_code_reader *reader;
	struct op_text instruction; /* what libopcodes writes */
	struct disassemble_info info;
};

/* A part of a section, or of memory (`section` NULL). */
struct area {
	asection *section;
	uint64_t start, end;
	const struct opr_code_point *points;
	size_t nr_points;
};

/* ---- what libopcodes calls ---- */

static int print_piece(void *stream, const char *format, ...) OP_PRINTF(2, 3);
static int print_styled(void *stream, enum disassembler_style style, const char *format, ...) OP_PRINTF(3, 4);

static int print_list(struct op_text *text, const char *format, va_list args) OP_PRINTF(2, 0);

static int print_list(struct op_text *text, const char *format, va_list args)
{
	char buffer[PIECE_BYTES], *piece = NULL;
	va_list again;
	int length;

	va_copy(again, args);
	length = vsnprintf(buffer, sizeof(buffer), format, args);
	if (length >= (int)sizeof(buffer))
		length = vasprintf(&piece, format, again);
	va_end(again);
	if (length < 0)
		return 0;
	op_text_add(text, piece ? piece : buffer);
	free(piece);
	return length;
}

static int print_piece(void *stream, const char *format, ...)
{
	struct listing *listing = stream;
	va_list args;
	int length;

	va_start(args, format);
	length = print_list(&listing->instruction, format, args);
	va_end(args);
	return length;
}

static int print_styled(void *stream, enum disassembler_style style OP_UNUSED, const char *format, ...)
{
	struct listing *listing = stream;
	va_list args;
	int length;

	va_start(args, format);
	length = print_list(&listing->instruction, format, args);
	va_end(args);
	return length;
}

static void add_name(const struct opr_code_reader *reader, struct op_text *text, const char *name)
{
	struct op_text demangled = { 0 };

	if (reader->style.demangle && opr_demangle(&demangled, name, OPR_DEMANGLE_NORMAL) && !demangled.failed)
		name = op_text_get(&demangled);
	op_text_printf(text, "%.*s", NAME_BYTES_MAX, name);
	op_text_free(&demangled);
}

static void print_address(bfd_vma vma, struct disassemble_info *info)
{
	struct listing *listing = op_container_of(info, struct listing, info);
	struct op_text *text = &listing->instruction;
	const struct opr_code_names *names = &listing->reader->names;
	const struct opr_code_name *name = opr_code_names_find(names, info->section, vma);

	op_text_printf(text, "%s%" PRIx64, names->nr_names ? "" : "0x", (uint64_t)vma);
	if (!names->nr_names || (!name && names->by_section))
		return;
	op_text_add(text, " <");
	add_name(listing->reader, text, name ? name->name : names->names->name);
	if (!name)
		op_text_printf(text, "-0x%" PRIx64, names->names->vma - (uint64_t)vma);
	else if (vma != name->vma)
		op_text_printf(text, "+0x%" PRIx64, (uint64_t)vma - name->vma);
	op_text_add_char(text, '>');
}

/* An instruction that is cut off at the end of the code is shown as far as it goes. */
static void ignore_error(int status OP_UNUSED, bfd_vma vma OP_UNUSED, struct disassemble_info *info OP_UNUSED)
{
}

/* ---- lines ---- */

static int add_line(struct opr_code *code, enum opr_code_kind kind, uint64_t vma, size_t text)
{
	if (!op_grow(&code->lines, &code->capacity, code->nr_lines + 1))
		return -ENOMEM;
	code->lines[code->nr_lines++] =
		(struct opr_code_line){ .kind = kind, .vma = vma, .text = text, .file = SIZE_MAX, .inlined = SIZE_MAX };
	return code->strings.failed ? -ENOMEM : 0;
}

static int add_named(struct opr_code *code, enum opr_code_kind kind, uint64_t vma, const char *name)
{
	size_t text = code->strings.length;

	op_text_printf(&code->strings, "%.*s", NAME_BYTES_MAX, name);
	op_text_add_bytes(&code->strings, "", 1);
	return add_line(code, kind, vma, text);
}

/* The last strings of instructions: neighbours share them. */
struct last {
	size_t file, inlined; /* offsets; SIZE_MAX: none */
};

static size_t share(struct opr_code *code, const char *string, size_t *last)
{
	if (*last == SIZE_MAX || strcmp(op_text_get(&code->strings) + *last, string)) {
		*last = code->strings.length;
		op_text_add_bytes(&code->strings, string, strlen(string) + 1);
	}
	return *last;
}

static void add_function(const struct opr_code_reader *reader, struct op_text *text, const struct opr_place *place)
{
	struct op_text shown = { 0 };
	const char *name = place->function ? place->function : "??";

	if (opr_demangle(&shown, name, reader->style.inlined_names) && !shown.failed)
		name = op_text_get(&shown);
	op_text_printf(text, "%.*s", NAME_BYTES_MAX, name);
	op_text_free(&shown);
}

static void add_inlined(const struct opr_code_reader *reader, struct opr_code *code, struct opr_code_line *line,
			const struct opr_place *places, size_t nr_places, struct last *last)
{
	struct op_text text = { 0 };

	for (size_t i = 0; i < nr_places; i++) {
		if (i)
			op_text_add(&text, i == 1 ? ", inlined by " : ", ");
		add_function(reader, &text, &places[i]);
		if (i && places[i].file)
			op_text_printf(&text, places[i].line ? " at %s:%u" : " at %s", places[i].file, places[i].line);
	}
	if (!text.failed)
		line->inlined = share(code, op_text_get(&text), &last->inlined);
	op_text_free(&text);
}

static void add_source(const struct listing *listing, struct opr_code *code, struct opr_code_line *line, struct last *last)
{
	const struct opr_code_reader *reader = listing->reader;
	struct opr_place places[OPR_PLACES_MAX];
	size_t nr_places;

	if (!reader->lines)
		return;
	places[0] = (struct opr_place){ 0 };
	if (reader->style.inlined)
		nr_places = opr_lines_places(reader->lines, line->vma, places);
	else
		nr_places = opr_lines_find(reader->lines, line->vma, &places[0].file, &places[0].line);
	if (nr_places && places[0].file && places[0].line) {
		line->file = share(code, places[0].file, &last->file);
		line->line = places[0].line;
	}
	if (nr_places > 1)
		add_inlined(reader, code, line, places, nr_places, last);
}

/* How many zero bytes are left out here. */
static size_t zeros_here(const uint8_t *bytes, size_t nr_bytes)
{
	size_t nr_zeros = 0;

	while (nr_zeros < nr_bytes && !bytes[nr_zeros])
		nr_zeros++;
	if (nr_zeros == nr_bytes)
		return nr_zeros >= END_ZEROS_MIN ? nr_zeros : 0;
	return nr_zeros >= ZEROS_MIN ? nr_zeros - nr_zeros % 4 : 0;
}

static size_t raw_bytes_per_line(const struct disassemble_info *info)
{
	return info->bytes_per_line > 0 ? (size_t)info->bytes_per_line : RAW_BYTES;
}

/* The raw bytes of one line, in groups of the machine's byte order. */
static void add_raw(const struct disassemble_info *info, struct op_text *text, uint64_t vma, size_t nr_bytes, bool is_first)
{
	const uint8_t *bytes = (const uint8_t *)info->buffer + (vma - info->buffer_vma);
	size_t group = info->bytes_per_chunk > 0 ? (size_t)info->bytes_per_chunk : 1, nr_here = raw_bytes_per_line(info);
	bool is_little_endian = info->display_endian == BFD_ENDIAN_LITTLE;

	for (size_t i = 0; i < nr_here; i += group) {
		size_t nr_shown = op_min_u64(group, i < nr_bytes ? nr_bytes - i : 0);

		for (size_t j = 0; j < nr_shown; j++)
			op_text_printf(text, "%02x", bytes[i + (is_little_endian ? nr_shown - 1 - j : j)]);
		if (nr_shown)
			op_text_add_char(text, ' ');
		else if (is_first)
			op_text_printf(text, "%*s", (int)(2 * group + 1), "");
	}
	if (is_first)
		op_text_add_char(text, '\t');
}

/* Bytes that do not fit into the first line have more lines, with the same source. */
static int add_raw_lines(const struct listing *listing, struct opr_code *code, uint64_t vma, size_t nr_bytes)
{
	size_t instruction = code->nr_lines - 1, nr_here = raw_bytes_per_line(&listing->info);
	int err = 0;

	for (size_t at = nr_here; at < nr_bytes && !err; at += nr_here) {
		size_t text = code->strings.length;

		add_raw(&listing->info, &code->strings, vma + at, nr_bytes - at, false);
		op_text_add_bytes(&code->strings, "", 1);
		err = add_line(code, OPR_CODE_INSTRUCTION, vma + at, text);
		if (err)
			break;
		code->lines[code->nr_lines - 1].file = code->lines[instruction].file;
		code->lines[code->nr_lines - 1].line = code->lines[instruction].line;
		code->lines[code->nr_lines - 1].inlined = code->lines[instruction].inlined;
	}
	return err;
}

/* Disassembles into listing->instruction and returns the length. `left`: bytes that may be read. */
static size_t disassemble(struct listing *listing, uint64_t vma, size_t left)
{
	int nr_bytes;

	op_text_truncate(&listing->instruction, 0);
	nr_bytes = listing->reader->print(vma, &listing->info);
	return op_min_u64(nr_bytes > 0 ? (size_t)nr_bytes : 1, left);
}

static int add_instruction(struct listing *listing, struct opr_code *code, uint64_t vma, size_t left, struct last *last,
			   size_t *ret_bytes)
{
	bool raw = listing->reader->style.show_raw_insn;
	size_t text = code->strings.length;
	int err;

	*ret_bytes = disassemble(listing, vma, left);
	if (raw)
		add_raw(&listing->info, &code->strings, vma, *ret_bytes, true);
	op_text_add(&code->strings, op_text_get(&listing->instruction));
	op_text_add_bytes(&code->strings, "", 1);
	err = listing->instruction.failed ? -ENOMEM : add_line(code, OPR_CODE_INSTRUCTION, vma, text);
	if (!err)
		add_source(listing, code, &code->lines[code->nr_lines - 1], last);
	return !err && raw ? add_raw_lines(listing, code, vma, *ret_bytes) : err;
}

static int add_label(const struct listing *listing, struct opr_code *code, const struct opr_code_name *name, uint64_t vma)
{
	size_t text = code->strings.length;

	add_name(listing->reader, &code->strings, name->name);
	if (vma != name->vma)
		op_text_printf(&code->strings, "+0x%" PRIx64, vma - name->vma);
	op_text_add_bytes(&code->strings, "", 1);
	return add_line(code, OPR_CODE_LABEL, vma, text);
}

/* How many bytes are before the next name. An instruction begins there in any case. */
static size_t bytes_of_name(const struct listing *listing, const struct opr_code_name *name, uint64_t vma, size_t left)
{
	const struct opr_code_name *next = name ? opr_code_names_next(&listing->reader->names, name) : NULL;

	return next && next->vma - vma < left ? (size_t)(next->vma - vma) : left;
}

/* Disassembles from `vma` on and adds the lines from `shown` to `end`, exclusive. */
static int list_bytes(struct listing *listing, struct opr_code *code, uint64_t vma, uint64_t shown, uint64_t end)
{
	const struct disassemble_info *info = &listing->info;
	struct last last = { SIZE_MAX, SIZE_MAX };
	size_t step = 0;
	int err = 0;

	for (uint64_t at = vma; at < end && !err; at += step) {
		const struct opr_code_name *name = opr_code_names_find(&listing->reader->names, info->section, at);
		size_t left = info->buffer_length - (size_t)(at - vma), left_of_name = bytes_of_name(listing, name, at, left);

		if (at >= shown && name && (name->vma == at || at == vma))
			err = add_label(listing, code, name, at);
		if (err)
			break;
		step = listing->reader->style.disassemble_zeroes ? 0 : zeros_here(info->buffer + (at - vma), left_of_name);
		if (at < shown)
			step = step ? step : disassemble(listing, at, left);
		else if (step)
			err = add_named(code, OPR_CODE_ZEROS, at, "...");
		else
			err = add_instruction(listing, code, at, left, &last, &step);
		if (step > left_of_name)
			step = left_of_name;
	}
	return err;
}

/* ---- sections ---- */

/* The width of addresses in objdump: the digits of `end` and one, rounded up to fours. */
static unsigned int columns(const struct opr_code_reader *reader, uint64_t end)
{
	unsigned int nr_digits = 0;

	for (; end; end >>= 4)
		nr_digits++;
	return (unsigned int)op_min_u64(4 * (nr_digits / 4 + 1), opr_code_digits(reader));
}

static void begin_listing(struct listing *listing, struct opr_code_reader *reader)
{
	struct disassemble_info *info = &listing->info;

	*listing = (struct listing){ .reader = reader };
	init_disassemble_info(info, listing, print_piece, print_styled);
	info->flavour = bfd_get_flavour(reader->abfd);
	info->arch = bfd_get_arch(reader->abfd);
	info->mach = bfd_get_mach(reader->abfd);
	info->endian = bfd_big_endian(reader->abfd) ? BFD_ENDIAN_BIG : BFD_ENDIAN_LITTLE;
	info->endian_code = info->endian;
	info->octets_per_byte = 1;
	info->disassembler_options = reader->params;
	info->print_address_func = print_address;
	info->memory_error_func = ignore_error;
	disassemble_init_for_target(info);
}

static int read_area(const struct opr_code_reader *reader, asection *section, uint64_t start, uint64_t end, uint8_t **ret_bytes,
		     size_t *ret_nr_bytes)
{
	uint8_t *bytes;

	if (!section)
		return opr_core_read(&reader->core, start, end - start, ret_bytes, ret_nr_bytes);
	bytes = malloc((size_t)(end - start));
	if (!bytes)
		return -ENOMEM;
	if (!bfd_get_section_contents(reader->abfd, section, bytes, (file_ptr)(start - bfd_section_vma(section)), end - start)) {
		free(bytes);
		return -EIO;
	}
	*ret_bytes = bytes;
	*ret_nr_bytes = (size_t)(end - start);
	return 0;
}

/* Reads the area from `read_from` to `read_to` and lists the window. */
static int list_window(struct opr_code_reader *reader, const struct area *area, const struct opr_code_window *window,
		       uint64_t read_from, uint64_t read_to, struct opr_code *code)
{
	struct listing listing;
	uint8_t *bytes = NULL;
	size_t nr_bytes = 0;
	int err = read_area(reader, area->section, read_from, read_to, &bytes, &nr_bytes);

	if (err)
		return err;
	begin_listing(&listing, reader);
	listing.info.buffer = bytes;
	listing.info.buffer_vma = read_from;
	listing.info.buffer_length = nr_bytes;
	listing.info.section = area->section;
	listing.info.stop_vma = read_from + nr_bytes;
	err = list_bytes(&listing, code, read_from, window->start, op_min_u64(window->end, read_from + nr_bytes));
	disassemble_free_target(&listing.info);
	op_text_free(&listing.instruction);
	free(bytes);
	return err;
}

static int add_gap(struct opr_code *code, uint64_t start, uint64_t end)
{
	char text[64];

	if (start >= end)
		return 0;
	snprintf(text, sizeof(text), "0x%" PRIx64 " bytes are left out", end - start);
	return add_named(code, OPR_CODE_GAP, start, text);
}

static uint64_t lead_of(const struct area *area, const struct opr_code_window *window)
{
	uint64_t start = window->start > OPR_CODE_LEAD_BYTES ? window->start - OPR_CODE_LEAD_BYTES : 0;

	return op_max_u64(start - start % ALIGNMENT, area->start);
}

/* The area begins with its name, also when a gap follows. */
static int list_windows(struct opr_code_reader *reader, const struct area *area, const struct opr_code_window *windows,
			size_t nr_windows, struct opr_code *code)
{
	const struct opr_code_name *name = opr_code_names_find(&reader->names, area->section, area->start);
	const struct listing listing = { .reader = reader };
	uint64_t at = area->start;
	int err = name && windows->start > at ? add_label(&listing, code, name, at) : 0;

	for (size_t i = 0; i < nr_windows && !err; i++) {
		err = add_gap(code, at, windows[i].start);
		at = windows[i].end;
		if (!err)
			err = list_window(reader, area, &windows[i], lead_of(area, &windows[i]),
					  area->end - at > TAIL_BYTES ? at + TAIL_BYTES : area->end, code);
	}
	return err ? err : add_gap(code, at, area->end);
}

static int add_section(const struct opr_code_reader *reader, const struct area *area, struct opr_code *code)
{
	int err;

	if (!area->section)
		return 0;
	err = add_named(code, OPR_CODE_SECTION, area->start, bfd_section_name(area->section));
	if (!err)
		code->lines[code->nr_lines - 1].line =
			columns(reader, bfd_section_vma(area->section) + bfd_section_size(area->section));
	return err;
}

/* *left is how many bytes windows may still have. */
static int list_area(struct opr_code_reader *reader, const struct area *area, uint64_t *left, struct opr_code *code)
{
	const struct opr_code_window whole = { area->start, area->end };
	struct opr_code_window *windows = NULL;
	size_t nr_windows = 0;
	int err;

	if (area->end - area->start <= OPR_CODE_BYTES_MAX) {
		err = add_section(reader, area, code);
		return err ? err : list_window(reader, area, &whole, whole.start, whole.end, code);
	}
	err = opr_code_windows(area->points, area->nr_points, area->start, area->end, *left, &windows, &nr_windows);
	if (!err && nr_windows) {
		*left -= opr_code_windows_bytes(windows, nr_windows, area->start);
		err = add_section(reader, area, code);
		if (!err)
			err = list_windows(reader, area, windows, nr_windows, code);
	}
	free(windows);
	return err;
}

int opr_code_list(struct opr_code_reader *reader, unsigned int section_index, uint64_t start, uint64_t end,
		  const struct opr_code_point *points, size_t nr_points, struct opr_code *code)
{
	bool any = section_index == OPR_CODE_ALL_SECTIONS || !reader->names.by_section;
	struct area area = { NULL, start, end, points, nr_points };
	uint64_t left = OPR_CODE_BYTES_MAX;
	int err = 0;

	if (reader->is_core)
		return end > start ? list_area(reader, &area, &left, code) : 0;
	for (asection *section = reader->abfd->sections; section && !err; section = section->next) {
		uint64_t vma = bfd_section_vma(section), nr_bytes = bfd_section_size(section);
		bool code_of_file = (bfd_section_flags(section) & (SEC_CODE | SEC_HAS_CONTENTS)) == (SEC_CODE | SEC_HAS_CONTENTS);

		area.section = section;
		area.start = op_max_u64(start, vma);
		area.end = op_min_u64(end, vma + nr_bytes);
		if (code_of_file && (any || section->index == section_index) && nr_bytes && vma < end && vma + nr_bytes > start &&
		    vma + nr_bytes > vma)
			err = list_area(reader, &area, &left, code);
	}
	return err;
}

int opr_code_sections(const struct opr_code_reader *reader, struct opr_code_section **ret_sections, size_t *ret_nr_sections)
{
	struct opr_code_section *sections = calloc(bfd_count_sections(reader->abfd) + 1, sizeof(*sections));
	size_t nr_sections = 0;

	if (!sections)
		return -ENOMEM;
	for (asection *section = reader->is_core ? NULL : reader->abfd->sections; section; section = section->next)
		if (bfd_section_flags(section) & SEC_CODE)
			sections[nr_sections++] = (struct opr_code_section){ (uint64_t)section->filepos, bfd_section_vma(section),
									     bfd_section_size(section) };
	*ret_sections = sections;
	*ret_nr_sections = nr_sections;
	return 0;
}

/* ---- open and close ---- */

static int add_kernel_names(struct opr_code_names *names, const struct opr_symbols *symbols)
{
	int err = 0;

	for (size_t i = 0; i < symbols->nr_symbols && !err; i++)
		err = opr_code_names_add(names, 0, symbols->symbols[i].vma, symbols->symbols[i].name, 0);
	opr_code_names_sort(names);
	return err;
}

/* `kernel`: symbols for the names of a core file; NULL for an object file. */
static int init_reader(struct opr_code_reader *reader, const char *path, const struct opr_symbols *kernel,
		       const struct opr_code_style *style)
{
	reader->abfd = opr_bfd_open(kernel ? OWN_PROGRAM : path);
	if (!reader->abfd)
		return -ENOEXEC;
	reader->print =
		disassembler(bfd_get_arch(reader->abfd), bfd_big_endian(reader->abfd), bfd_get_mach(reader->abfd), reader->abfd);
	if (!reader->print)
		return -ENOEXEC;
	if (style)
		reader->style = *style;
	if (reader->style.disassembler_options) {
		reader->params = strdup(reader->style.disassembler_options);
		if (!reader->params)
			return -ENOMEM;
	}
	return kernel ? add_kernel_names(&reader->names, kernel) : opr_code_names_read(&reader->names, reader->abfd);
}

int opr_code_open(const char *path, const struct opr_file_read *file, struct opr_lines *lines,
		  const struct opr_code_style *style, struct opr_code_reader **ret_reader)
{
	struct opr_code_reader *reader = calloc(1, sizeof(*reader));
	int err;

	if (!reader)
		return -ENOMEM;
	reader->core.fd = -1;
	reader->lines = lines;
	err = init_reader(reader, path, NULL, style);
	if (!err && !opr_is_file_read(opr_bfd_stat(reader->abfd), file))
		err = -ESTALE;
	if (err)
		opr_code_close(reader);
	else
		*ret_reader = reader;
	return err;
}

int opr_code_open_core(const char *path, const struct opr_symbols *symbols, const struct opr_code_style *style,
		       struct opr_code_reader **ret_reader)
{
	struct opr_code_reader *reader = calloc(1, sizeof(*reader));
	int err;

	if (!reader)
		return -ENOMEM;
	reader->is_core = true;
	err = opr_core_open(&reader->core, path);
	if (!err)
		err = init_reader(reader, path, symbols, style);
	if (err)
		opr_code_close(reader);
	else
		*ret_reader = reader;
	return err;
}

unsigned int opr_code_digits(const struct opr_code_reader *reader)
{
	return (unsigned int)bfd_arch_bits_per_address(reader->abfd) / 4;
}

const char *opr_code_format(const struct opr_code_reader *reader)
{
	return bfd_get_target(reader->abfd);
}

void opr_code_close(struct opr_code_reader *reader)
{
	if (!reader)
		return;
	opr_code_names_free(&reader->names);
	opr_core_close(&reader->core);
	if (reader->abfd)
		bfd_close(reader->abfd);
	free(reader->params);
	free(reader);
}

void opr_code_clear(struct opr_code *code)
{
	code->nr_lines = 0;
	op_text_truncate(&code->strings, 0);
}

void opr_code_free(struct opr_code *code)
{
	if (!code)
		return;
	free(code->lines);
	op_text_free(&code->strings);
	*code = (struct opr_code){ 0 };
}
