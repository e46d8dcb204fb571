/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/elf/lines.h"

#include <dwarf.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "libop/base/grow.h"
#include "libop/base/htable.h"
#include "libop/base/sys.h"
#include "libop/base/text.h"
#include "tools/common/log.h"
#include "tools/elf/bfd_file.h"
#include "tools/elf/dwarf_file.h"
#include "tools/elf/go_file.h"
#include "tools/elf/open_file.h"

#define NR_PROBES       8
#define DEPTH_MAX       1024u /* of entries in each other; what is deeper is left out */
#define NO_SCOPE        UINT32_MAX
#define PROBE_BYTES_MAX (64u << 20) /* of a file; libdw unpacks what is packed in it */

/* Addresses of a unit or of a scope. Sorted by their starts, among equal ones the widest first. */
struct span {
	uint64_t start, end;
	uint64_t last_end; /* of this span and of all before it */
	uint32_t of;
};

struct spans {
	struct span *spans;
	size_t nr, capacity;
};

/* A function with code, or an inlined one in its place. */
struct scope {
	Dwarf_Die die;
	uint32_t outer; /* NO_SCOPE: none */
	uint32_t depth;
	bool is_inlined;
};

struct unit {
	Dwarf_Die die;              /* of a split unit: its skeleton, which has the lines */
	Dwarf_Die files;            /* the names of call sites are numbers of its list of files */
	const char *dir;            /* relative paths of source files begin there; or NULL */
	bool has_lines, has_scopes; /* they were read */
	Dwarf_Lines *lines;
	size_t nr_lines;
	struct scope *scopes;
	size_t nr_scopes, capacity;
	struct spans spans; /* of the scopes */
};

/* The whole path of a source file, by the pointer that libdw has for its relative path. */
struct path {
	struct op_hlink link;
	const char *relative;
	char whole[];
};

struct opr_lines {
	struct opr_go_file go; /* without debugging information; then `file` is NULL */
	uint64_t go_steps;
	struct opr_dwarf *file;
	struct op_htable paths;
	struct unit *units;
	size_t nr_units, capacity;
	struct spans spans; /* of the units */
	char *missing;      /* the first .dwo file that was not found */
	size_t nr_missing;
	char damage[512];
};

/* ---- spans ---- */

static bool add_span(struct spans *spans, uint64_t start, uint64_t end, uint32_t of)
{
	if (start >= end)
		return true;
	if (!op_grow(&spans->spans, &spans->capacity, spans->nr + 1))
		return false;
	spans->spans[spans->nr++] = (struct span){ .start = start, .end = end, .of = of };
	return true;
}

static int compare_spans(const void *left, const void *right)
{
	const struct span *a = left, *b = right;

	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	if (a->end != b->end)
		return a->end > b->end ? -1 : 1;
	return a->of < b->of ? -1 : a->of > b->of;
}

static void sort_spans(struct spans *spans)
{
	uint64_t last_end = 0;

	if (spans->nr)
		qsort(spans->spans, spans->nr, sizeof(*spans->spans), compare_spans);
	for (size_t i = 0; i < spans->nr; i++)
		spans->spans[i].last_end = last_end = op_max_u64(last_end, spans->spans[i].end);
}

/* The last span with the address at or before *index, which is moved on. NULL: none. */
static const struct span *span_before(const struct spans *spans, uint64_t address, size_t *index)
{
	while (*index && spans->spans[*index - 1].last_end > address) {
		const struct span *span = &spans->spans[--*index];

		if (span->end > address)
			return span;
	}
	return NULL;
}

static size_t nr_spans_until(const struct spans *spans, uint64_t address)
{
	return op_nr_leading(spans->spans, spans->nr, span, span->start <= address);
}

/* Adds the addresses of an entry. False: no memory. */
static bool add_ranges(struct opr_lines *lines, struct spans *spans, Dwarf_Die *die, uint32_t of)
{
	Dwarf_Addr base = 0, start, end;
	ptrdiff_t offset = 0;

	while ((offset = dwarf_ranges(die, offset, &base, &start, &end)) > 0)
		if (!add_span(spans, start, end, of))
			return false;
	if (offset < 0)
		opr_dwarf_note(lines->file);
	return true;
}

/* ---- functions of a unit ---- */

/* Whether entries of this kind may have code inside them. */
static bool may_have_code(int tag)
{
	switch (tag) {
	case DW_TAG_namespace:
	case DW_TAG_module:
	case DW_TAG_class_type:
	case DW_TAG_structure_type:
	case DW_TAG_union_type:
	case DW_TAG_interface_type:
	case DW_TAG_enumeration_type: /* Rust */
	case DW_TAG_subprogram:
	case DW_TAG_inlined_subroutine:
	case DW_TAG_lexical_block:
	case DW_TAG_try_block:
	case DW_TAG_catch_block:
	case DW_TAG_with_stmt:
	case DW_TAG_variant_part:
	case DW_TAG_variant:
		return true;
	default:
		return false;
	}
}

/* Adds a function. `*scope` is the one around it, and becomes its own if it has code. */
static bool add_scope(struct opr_lines *lines, struct unit *unit, Dwarf_Die *die, int tag, uint32_t *scope)
{
	size_t nr_spans = unit->spans.nr;

	if (!add_ranges(lines, &unit->spans, die, (uint32_t)unit->nr_scopes) ||
	    !op_grow(&unit->scopes, &unit->capacity, unit->nr_scopes + 1))
		return false;
	if (unit->spans.nr == nr_spans)
		return true;
	unit->scopes[unit->nr_scopes] = (struct scope){ .die = *die,
							.outer = *scope,
							.depth = *scope == NO_SCOPE ? 0 : unit->scopes[*scope].depth + 1,
							.is_inlined = tag == DW_TAG_inlined_subroutine };
	*scope = (uint32_t)unit->nr_scopes++;
	return true;
}

struct level {
	Dwarf_Die die;
	uint32_t scope; /* around it */
};

/* Walks all entries below `top` that may have code. */
static bool add_scopes(struct opr_lines *lines, struct unit *unit, Dwarf_Die *top)
{
	struct level *levels = calloc(DEPTH_MAX, sizeof(*levels));
	size_t depth = 0;
	bool sound = levels;

	if (sound && !dwarf_child(top, &levels[0].die)) {
		levels[0].scope = NO_SCOPE;
		depth = 1;
	}
	while (depth && sound) {
		struct level *level = &levels[depth - 1];
		uint32_t scope = level->scope;
		int tag = dwarf_tag(&level->die), next;

		if (tag == DW_TAG_subprogram || tag == DW_TAG_inlined_subroutine)
			sound = add_scope(lines, unit, &level->die, tag, &scope);
		if (may_have_code(tag) && depth < DEPTH_MAX && !dwarf_child(&level->die, &levels[depth].die)) {
			levels[depth++].scope = scope;
			continue;
		}
		while (depth && (next = dwarf_siblingof(&levels[depth - 1].die, &levels[depth - 1].die))) {
			if (next < 0)
				opr_dwarf_note(lines->file);
			depth--;
		}
	}
	free(levels);
	sort_spans(&unit->spans);
	return sound;
}

/* When an address of the unit is wanted: libdw opens the .dwo file. */
static void read_scopes(struct opr_lines *lines, struct unit *unit)
{
	Dwarf_Die split;
	char *missing;

	unit->has_scopes = true;
	if (opr_dwarf_split(lines->file, &unit->die, &split, &missing))
		unit->files = split;
	if (missing && !lines->nr_missing++)
		lines->missing = missing;
	else
		free(missing);
	if (!add_scopes(lines, unit, &unit->files))
		snprintf(lines->file->fault, sizeof(lines->file->fault), "it takes too much memory");
}

/* ---- opening ---- */

static bool add_unit(struct opr_lines *lines, Dwarf_Die *die)
{
	size_t nr_spans = lines->spans.nr;
	Dwarf_Attribute dir;
	struct unit *unit;

	if (!op_grow(&lines->units, &lines->capacity, lines->nr_units + 1))
		return false;
	unit = &lines->units[lines->nr_units];
	*unit = (struct unit){ .die = *die, .files = *die };
	if (dwarf_attr(die, DW_AT_comp_dir, &dir))
		unit->dir = dwarf_formstring(&dir);
	if (!add_ranges(lines, &lines->spans, die, (uint32_t)lines->nr_units))
		return false;
	if (lines->spans.nr == nr_spans && dwarf_hasattr(die, DW_AT_stmt_list) && dwarf_tag(die) == DW_TAG_compile_unit) {
		/* Some compilers give no addresses to a unit, only to its functions. */
		read_scopes(lines, unit);
		for (size_t i = 0; i < unit->spans.nr; i++)
			if (!add_span(&lines->spans, unit->spans.spans[i].start, unit->spans.spans[i].end,
				      (uint32_t)lines->nr_units))
				return false;
	}
	lines->nr_units++;
	return true;
}

static int read_units(struct opr_lines *lines)
{
	Dwarf_CU *cu = NULL;
	Dwarf_Die die;
	uint8_t type;
	int result;

	while (!(result = dwarf_get_units(lines->file->dwarf, cu, &cu, NULL, &type, &die, NULL))) {
		if (dwarf_tag(&die) == DW_TAG_invalid && !lines->file->fault[0])
			snprintf(lines->file->fault, sizeof(lines->file->fault), "a unit of .debug_info has no entry");
		else if ((type == DW_UT_compile || type == DW_UT_skeleton) && !add_unit(lines, &die))
			return -ENOMEM;
	}
	if (result < 0)
		opr_dwarf_note(lines->file);
	sort_spans(&lines->spans);
	return 0;
}

static int open_units(struct opr_dwarf *file, struct opr_lines **ret_lines)
{
	struct opr_lines *lines = calloc(1, sizeof(*lines));
	int err;

	if (!lines) {
		opr_dwarf_close(file);
		return -ENOMEM;
	}
	lines->file = file;
	err = file->dwarf ? read_units(lines) : 0;
	if (err)
		opr_lines_close(lines);
	else
		*ret_lines = lines;
	return err;
}

static int open_go(const bfd *image, struct opr_lines **ret_lines)
{
	struct opr_go_file go = { 0 };
	struct opr_lines *lines;

	opr_go_file_open(&go, opr_bfd_fd(image));
	if (!go.bytes)
		return 0;
	lines = calloc(1, sizeof(*lines));
	if (!lines) {
		opr_go_file_close(&go);
		return -ENOMEM;
	}
	lines->go = go;
	lines->go_steps = OPR_GO_STEPS_MAX;
	*ret_lines = lines;
	return 0;
}

/* The lines are in the image, in its debug file, or in a table of Go. */
int opr_lines_open(const char *path, const char *name, const char *root, const struct opr_file_read *file_read,
		   struct opr_lines **ret_lines)
{
	bfd *image = opr_bfd_open(path);
	struct opr_dwarf *file;
	int err;

	*ret_lines = NULL;
	if (!image)
		return -ENOEXEC;
	if (file_read && !opr_is_file_read(opr_bfd_stat(image), file_read)) {
		bfd_close(image);
		return -ESTALE;
	}
	err = opr_dwarf_open_image(image, path, name, root, &file);
	if (!err)
		err = file ? open_units(file, ret_lines) : open_go(image, ret_lines);
	bfd_close(image);
	return err;
}

static void free_path(struct op_hlink *link, void *arg)
{
	op_htable_remove(arg, link);
	free(op_container_of(link, struct path, link));
}

void opr_lines_close(struct opr_lines *lines)
{
	if (!lines)
		return;
	for (size_t i = 0; i < lines->nr_units; i++) {
		free(lines->units[i].scopes);
		free(lines->units[i].spans.spans);
	}
	free(lines->units);
	op_htable_visit(&lines->paths, free_path, &lines->paths);
	op_htable_free(&lines->paths);
	free(lines->spans.spans);
	free(lines->missing);
	opr_dwarf_close(lines->file);
	opr_go_file_close(&lines->go);
	free(lines);
}

/* ---- lookup ---- */

/* libdw leaves some paths relative to the directory of the compiler. */
static const char *whole_path(struct opr_lines *lines, const struct unit *unit, const char *relative)
{
	uint64_t hash = op_hash_u64((uintptr_t)relative);
	size_t nr_bytes;
	struct path *path;

	if (!relative || relative[0] == '/' || !unit->dir)
		return relative;
	for (struct op_hlink *link = op_htable_first(&lines->paths, hash); link; link = op_htable_next(link)) {
		path = op_container_of(link, struct path, link);
		if (path->relative == relative)
			return path->whole;
	}
	nr_bytes = strlen(unit->dir) + strlen(relative) + 2;
	path = malloc(sizeof(*path) + nr_bytes);
	if (!path || op_htable_insert(&lines->paths, &path->link, hash)) {
		free(path);
		return relative;
	}
	path->relative = relative;
	snprintf(path->whole, nr_bytes, "%s/%s", unit->dir, relative);
	return path->whole;
}

/* The row of the line table for an address: the last one at or before it. */
static bool find_line(struct opr_lines *lines, struct unit *unit, uint64_t address, struct opr_place *place)
{
	size_t low = 0, high;
	Dwarf_Line *row;
	Dwarf_Addr at;
	bool is_end = true;
	int line = 0;

	if (!unit->has_lines && dwarf_getsrclines(&unit->die, &unit->lines, &unit->nr_lines)) {
		opr_dwarf_note(lines->file);
		unit->nr_lines = 0;
	}
	unit->has_lines = true;
	for (high = unit->nr_lines; low < high;) {
		size_t middle = low + (high - low) / 2;

		if (!dwarf_lineaddr(dwarf_onesrcline(unit->lines, middle), &at) && at <= address)
			low = middle + 1;
		else
			high = middle;
	}
	row = low ? dwarf_onesrcline(unit->lines, low - 1) : NULL;
	if (!row || dwarf_lineendsequence(row, &is_end) || is_end || dwarf_lineno(row, &line) || line <= 0)
		return false;
	place->file = whole_path(lines, unit, dwarf_linesrc(row, NULL, NULL));
	place->line = (unsigned int)line;
	return place->file;
}

/* The unit of an address: of several the one whose range begins last, and has a line there. */
static struct unit *find_unit(struct opr_lines *lines, uint64_t address, struct opr_place *place)
{
	size_t index = nr_spans_until(&lines->spans, address);
	const struct span *span;
	struct unit *found = NULL;

	*place = (struct opr_place){ NULL, NULL, 0 };
	while ((span = span_before(&lines->spans, address, &index))) {
		struct unit *unit = &lines->units[span->of];

		if (find_line(lines, unit, address, place))
			return unit;
		found = found ? found : unit;
	}
	return found;
}

static uint64_t address_of(const struct opr_lines *lines, uint64_t vma)
{
	return vma + lines->file->text;
}

bool opr_lines_find(struct opr_lines *lines, uint64_t vma, const char **ret_file, unsigned int *ret_line)
{
	struct opr_place place;

	if (lines->go.bytes)
		return opr_go_line(&lines->go.table, vma, &lines->go_steps, ret_file, ret_line);
	if (!find_unit(lines, address_of(lines, vma), &place) || !place.file)
		return false;
	*ret_file = place.file;
	*ret_line = place.line;
	return true;
}

/* The innermost scope at an address. NULL: none. */
static const struct scope *find_scope(struct opr_lines *lines, struct unit *unit, uint64_t address)
{
	size_t index;
	const struct scope *found = NULL;
	const struct span *span;

	if (!unit->has_scopes)
		read_scopes(lines, unit);
	index = nr_spans_until(&unit->spans, address);
	while ((span = span_before(&unit->spans, address, &index)))
		if (!found || unit->scopes[span->of].depth > found->depth)
			found = &unit->scopes[span->of];
	return found;
}

static const char *name_of(Dwarf_Die *die)
{
	static const unsigned int names[] = { DW_AT_linkage_name, DW_AT_MIPS_linkage_name, DW_AT_name };
	Dwarf_Attribute attribute;
	const char *name = NULL;

	for (size_t i = 0; i < op_array_size(names) && !name; i++)
		if (dwarf_attr_integrate(die, names[i], &attribute))
			name = dwarf_formstring(&attribute);
	return name;
}

static Dwarf_Word number_of(Dwarf_Die *die, unsigned int name)
{
	Dwarf_Attribute attribute;
	Dwarf_Word number;

	return dwarf_attr(die, name, &attribute) && !dwarf_formudata(&attribute, &number) ? number : 0;
}

/* The call of an inlined function is a place in the function around it. */
static void set_call(struct opr_lines *lines, struct unit *unit, Dwarf_Die *inlined, struct opr_place *place)
{
	Dwarf_Word file = number_of(inlined, DW_AT_call_file), line = number_of(inlined, DW_AT_call_line);
	Dwarf_Files *files;
	size_t nr_files;

	place->line = line <= INT32_MAX ? (unsigned int)line : 0;
	if (dwarf_getsrcfiles(&unit->files, &files, &nr_files))
		opr_dwarf_note(lines->file);
	else if (file < nr_files)
		place->file = whole_path(lines, unit, dwarf_filesrc(files, file, NULL, NULL));
}

size_t opr_lines_places(struct opr_lines *lines, uint64_t vma, struct opr_place places[OPR_PLACES_MAX])
{
	const struct scope *scope;
	size_t nr_places = 1;
	struct unit *unit;
	uint64_t address;

	if (lines->go.bytes) {
		places[0] = (struct opr_place){ NULL, NULL, 0 };
		return opr_lines_find(lines, vma, &places[0].file, &places[0].line);
	}
	address = address_of(lines, vma);
	unit = find_unit(lines, address, &places[0]);
	scope = unit ? find_scope(lines, unit, address) : NULL;
	while (scope) {
		Dwarf_Die die = scope->die;

		places[nr_places - 1].function = name_of(&die);
		if (!scope->is_inlined || scope->outer == NO_SCOPE || nr_places == OPR_PLACES_MAX)
			break;
		places[nr_places] = (struct opr_place){ NULL, NULL, 0 };
		set_call(lines, unit, &die, &places[nr_places++]);
		scope = &unit->scopes[scope->outer];
	}
	return unit ? nr_places : 0;
}

/* ---- damage ---- */

const char *opr_lines_damage(struct opr_lines *lines, bool found, const char **ret_path)
{
	const char *fault, *units = NULL;

	*ret_path = "";
	if (lines->go.bytes)
		return NULL;
	fault = lines->file->fault[0] ? lines->file->fault : NULL;
	*ret_path = lines->file->path;
	if (!found || fault)
		units = opr_dwarf_check_units(lines->file);
	if (units)
		return units;
	if (fault || !lines->nr_missing)
		return fault;
	if (lines->nr_missing == 1)
		snprintf(lines->damage, sizeof(lines->damage), "%s is missing", lines->missing);
	else
		snprintf(lines->damage, sizeof(lines->damage), "%s and %zu other files are missing", lines->missing,
			 lines->nr_missing - 1);
	return lines->damage;
}

static asection *largest_code(bfd *abfd)
{
	asection *largest = NULL;

	for (asection *section = abfd->sections; section; section = section->next)
		if (bfd_section_flags(section) & SEC_CODE && opr_bfd_has_addresses(section) &&
		    (!largest || bfd_section_size(section) > bfd_section_size(largest)))
			largest = section;
	return largest;
}

const char *opr_lines_probe(bfd *abfd, const char *root)
{
	static char text[512];
	asection *code = largest_code(abfd);
	struct opr_lines *lines = NULL;
	struct opr_dwarf *file;
	const char *path, *damage;
	unsigned int line;
	bool found = false;

	if (!code || bfd_get_file_size(abfd) > PROBE_BYTES_MAX)
		return NULL;
	if (opr_dwarf_open(abfd, root, &file) || open_units(file, &lines))
		return NULL;
	for (uint64_t i = 0; i < NR_PROBES; i++)
		found |= opr_lines_find(lines, bfd_section_vma(code) + bfd_section_size(code) / NR_PROBES * i, &path, &line);
	damage = opr_lines_damage(lines, found, &path);
	if (damage)
		snprintf(text, sizeof(text), "%s", damage);
	opr_lines_close(lines);
	return damage ? text : NULL;
}

void opr_lines_warn_damage(const char *path, const char *damage)
{
	opr_warn("the debugging information of %s cannot be read completely: %s", path, damage);
}
