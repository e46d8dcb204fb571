/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/elf/lines.h"

#include <errno.h>
#include <inttypes.h>
#include <malloc.h>
#include <unistd.h>

#include "tools/common/log.h"
#include "tools/elf/bfd_file.h"

#define NR_PROBES       8
/* libbfd takes its functions from libiberty's objalloc, which asks malloc for so many bytes */
#define OBJALLOC_BYTES  4064
#define PIECES_MAX      (1u << 16) /* an allocator other than glibc's may never reach the end */
/* of .debug_info; libbfd refuses what a small file would be unpacked to */
#define PROBE_BYTES_MAX (64u << 20)

struct piece {
	struct piece *next;
};

struct opr_lines {
	bfd *abfd;
	asymbol **table;
	struct piece *pieces; /* of fill_heap */
};

/* ---- lookup ---- */

/* The file with debugging information: the image, else its debug file. The other one is closed. */
static bfd *choose_file(bfd *image, const char *path, const char *name, const char *root)
{
	bfd *debug;

	if (opr_bfd_has_debug_info(image))
		return image;
	debug = opr_bfd_open_debug_file(image, path, name, root);
	bfd_close(image);
	if (debug && opr_bfd_has_debug_info(debug))
		return debug;
	if (debug)
		bfd_close(debug);
	return NULL;
}

/*
 * Of functions with the same range libbfd takes the one at the highest address for the innermost.
 * So the heap must only grow. What is free in it is taken, as long as lines are read. What is
 * larger than the pieces of functions comes from mmap, and leaves no hole in the heap.
 */
static struct piece *fill_heap(void)
{
	uintptr_t end = (uintptr_t)sbrk(0);
	struct piece *pieces = NULL, *piece;

	mallopt(M_MMAP_THRESHOLD, 2 * OBJALLOC_BYTES);
	for (size_t i = 0; i < PIECES_MAX; i++) {
		piece = malloc(OBJALLOC_BYTES);
		if (!piece)
			break;
		piece->next = pieces;
		pieces = piece;
		if ((uintptr_t)piece >= end)
			break;
	}
	return pieces;
}

static void free_pieces(struct piece *pieces)
{
	for (struct piece *next; pieces; pieces = next) {
		next = pieces->next;
		free(pieces);
	}
}

static int open_file(const char *path, const char *name, const char *root, struct opr_lines **ret_lines)
{
	bfd *image = opr_bfd_open(path), *abfd;
	struct opr_lines *lines;
	bool is_damaged = false;
	long nr_symbols;
	asymbol **table;
	int err;

	if (!image)
		return -ENOEXEC;
	abfd = choose_file(image, path, name, root);
	table = abfd ? opr_bfd_read_table(abfd, &nr_symbols, &is_damaged) : NULL;
	lines = table ? malloc(sizeof(*lines)) : NULL;
	if (lines) {
		*lines = (struct opr_lines){ .abfd = abfd, .table = table };
		*ret_lines = lines;
		opr_bfd_listen();
		return 0;
	}
	err = table ? -ENOMEM : 0;
	if (abfd)
		bfd_close(abfd);
	free(table);
	return err;
}

int opr_lines_open(const char *path, const char *name, const char *root, struct opr_lines **ret_lines)
{
	struct piece *pieces = fill_heap();
	int err;

	*ret_lines = NULL;
	err = open_file(path, name, root, ret_lines);
	if (*ret_lines)
		(*ret_lines)->pieces = pieces;
	else
		free_pieces(pieces);
	return err;
}

/*
 * libbfd gets the symbols only to relocate the debugging information of a relocatable file.
 * Otherwise it would search all of them for the function of each address without a line. It gets an
 * empty table and not NULL, because without a table it does not unpack compressed sections.
 */
static bool find_place(struct opr_lines *lines, asection *section, uint64_t vma, struct opr_place *place)
{
	asymbol *none = NULL, **symbols = bfd_get_file_flags(lines->abfd) & HAS_RELOC ? lines->table : &none;
	uint64_t offset = vma - bfd_section_vma(section);

	*place = (struct opr_place){ NULL, NULL, 0 };
	return bfd_section_flags(section) & SEC_CODE && opr_bfd_has_addresses(section) && vma >= bfd_section_vma(section) &&
	       offset < bfd_section_size(section) &&
	       bfd_find_nearest_line(lines->abfd, section, symbols, offset, &place->file, &place->function, &place->line);
}

bool opr_lines_find(struct opr_lines *lines, uint64_t vma, const char **ret_file, unsigned int *ret_line)
{
	struct opr_place place;

	for (asection *section = lines->abfd->sections; section; section = section->next) {
		if (!find_place(lines, section, vma, &place) || !place.file || !place.line)
			continue;
		*ret_file = place.file;
		*ret_line = place.line;
		return true;
	}
	return false;
}

size_t opr_lines_places(struct opr_lines *lines, uint64_t vma, struct opr_place places[OPR_PLACES_MAX])
{
	asection *section = lines->abfd->sections;
	size_t nr_places = 1;

	while (section && !find_place(lines, section, vma, &places[0]))
		section = section->next;
	if (!section)
		return 0;
	while (nr_places < OPR_PLACES_MAX) {
		struct opr_place *place = &places[nr_places];

		*place = (struct opr_place){ NULL, NULL, 0 };
		if (!bfd_find_inliner_info(lines->abfd, &place->file, &place->function, &place->line))
			break;
		nr_places++;
	}
	return nr_places;
}

void opr_lines_close(struct opr_lines *lines)
{
	if (!lines)
		return;
	bfd_close(lines->abfd);
	free(lines->table);
	free_pieces(lines->pieces);
	free(lines);
}

/* ---- damage: the unit headers of .debug_info (DWARF 5, section 7.5.1) ---- */

static char unit_fault[128];

struct units {
	bfd *abfd;
	bfd_byte *bytes;
	uint64_t nr_bytes, nr_abbrev_bytes;
};

static asection *find_section(bfd *abfd, const char *name, const char *packed_name)
{
	asection *section = bfd_get_section_by_name(abfd, name);

	return section ? section : bfd_get_section_by_name(abfd, packed_name);
}

/* Moves *at to the next unit. What is wrong with this one; NULL: nothing. */
static const char *check_unit(const struct units *units, uint64_t *at)
{
	const bfd_byte *unit = units->bytes + *at;
	uint64_t left = units->nr_bytes - *at, length, abbrev, first;
	unsigned int offset_bytes = 4, length_bytes = 4, version, kind;

	if (left < length_bytes)
		return "is cut";
	length = bfd_get_32(units->abfd, unit);
	if (length == UINT32_MAX && left >= 12) {
		length = bfd_get_64(units->abfd, unit + 4);
		length_bytes = 12;
		offset_bytes = 8;
	}
	if (length > left - length_bytes)
		return "goes beyond the end";
	*at += length_bytes + length;
	if (length < 4u + offset_bytes)
		return "is too short";
	version = (unsigned int)bfd_get_16(units->abfd, unit + length_bytes);
	if (version < 2 || version > 5)
		return "has a version that is not known";
	kind = version == 5 ? unit[length_bytes + 2] : 1;
	abbrev = length_bytes + (version == 5 ? 4 : 2);
	first = length_bytes + (version == 5 ? 4 : 3) + offset_bytes;
	abbrev = offset_bytes == 8 ? bfd_get_64(units->abfd, unit + abbrev) : bfd_get_32(units->abfd, unit + abbrev);
	if (abbrev >= units->nr_abbrev_bytes)
		return "has no abbreviations";
	if (kind == 1 && (first >= length_bytes + length || !unit[first]))
		return "has no entry";
	return NULL;
}

static const char *check_all_units(const struct units *units)
{
	const char *fault = units->nr_bytes ? NULL : "is not there";
	uint64_t at = 0, next = 0;

	while (!fault && next < units->nr_bytes) {
		at = next;
		fault = check_unit(units, &next);
	}
	if (!fault)
		return NULL;
	snprintf(unit_fault, sizeof(unit_fault), "the unit at 0x%" PRIx64 " of .debug_info %s", at, fault);
	return unit_fault;
}

/* NULL, too, for another kind of debugging information than DWARF. */
static const char *check_units(bfd *abfd)
{
	asection *info = find_section(abfd, ".debug_info", ".zdebug_info");
	asection *abbrev = find_section(abfd, ".debug_abbrev", ".zdebug_abbrev");
	struct units units = { .abfd = abfd, .nr_abbrev_bytes = abbrev ? bfd_section_size(abbrev) : 0 };
	const char *fault;

	if (!info)
		return NULL;
	if (!bfd_get_full_section_contents(abfd, info, &units.bytes))
		return opr_bfd_message() ? opr_bfd_message() : "its .debug_info cannot be read";
	units.nr_bytes = bfd_section_size(info);
	fault = check_all_units(&units);
	free(units.bytes);
	return fault;
}

static const char *find_damage(bfd *abfd, bool found)
{
	if (opr_bfd_message())
		return opr_bfd_message();
	return found ? NULL : check_units(abfd);
}

const char *opr_lines_damage(const struct opr_lines *lines, bool found, const char **ret_path)
{
	*ret_path = bfd_get_filename(lines->abfd);
	return find_damage(lines->abfd, found);
}

/* ---- a lookup of some addresses ---- */

static asection *largest_code(bfd *abfd)
{
	asection *largest = NULL;

	for (asection *section = abfd->sections; section; section = section->next)
		if (bfd_section_flags(section) & SEC_CODE && (!largest || bfd_section_size(section) > bfd_section_size(largest)))
			largest = section;
	return largest;
}

const char *opr_lines_probe(bfd *abfd)
{
	asection *code = largest_code(abfd), *info = find_section(abfd, ".debug_info", ".zdebug_info");
	struct opr_lines lines = { .abfd = abfd };
	bool found = false, is_damaged = false;
	long nr_symbols;

	if (!code || !info || op_min_u64(bfd_section_size(info), bfd_get_file_size(abfd)) > PROBE_BYTES_MAX)
		return NULL;
	opr_bfd_listen();
	lines.table = opr_bfd_read_table(abfd, &nr_symbols, &is_damaged);
	for (uint64_t i = 0; i < NR_PROBES && !opr_bfd_message(); i++) {
		uint64_t offset = bfd_section_size(code) / NR_PROBES * i;
		const char *file;
		unsigned int line;

		found |= opr_lines_find(&lines, bfd_section_vma(code) + offset, &file, &line);
	}
	free(lines.table);
	return find_damage(abfd, found);
}

void opr_lines_warn_damage(const char *path, const char *damage)
{
	opr_warn("the debugging information of %s cannot be read in whole: %s", path, damage);
}
