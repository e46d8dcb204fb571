/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/symbols/debug_damage.h"

#include <inttypes.h>
#include <stdarg.h>

#include "tools/common/log.h"
#include "tools/symbols/bfd_file.h"
#include "tools/symbols/lines.h"

#define TEXT_BYTES      512
#define LIBBFD_PREFIX   "BFD: " /* before what libbfd's own handler writes */
#define NR_PROBES       8
#define PROBE_BYTES_MAX (64u << 20) /* of .debug_info; libbfd itself refuses what a small file would be unpacked to */

static bfd_error_handler_type libbfd_handler;
static char heard[TEXT_BYTES];
static bool listens;

/* ---- what libbfd says ---- */

/* libbfd's handler alone knows its formats, and it writes to stderr: which is a variable in glibc. */
static void hear(const char *format, va_list args)
{
	FILE *old = stderr, *stream = listens && !*heard ? fmemopen(heard, sizeof(heard) - 1, "w") : NULL;

	if (!stream)
		return;
	stderr = stream;
	libbfd_handler(format, args);
	stderr = old;
	fclose(stream);
	heard[strcspn(heard, "\n")] = '\0';
}

void opr_debug_hush(void)
{
	libbfd_handler = bfd_set_error_handler(hear);
}

void opr_debug_listen(void)
{
	memset(heard, 0, sizeof(heard));
	listens = true;
}

static const char *words(void)
{
	return heard + (strncmp(heard, LIBBFD_PREFIX, strlen(LIBBFD_PREFIX)) ? 0 : strlen(LIBBFD_PREFIX));
}

/* ---- the units of .debug_info ---- */

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

/* What is wrong with the unit at *at, which becomes the next one's place; NULL: nothing. */
static const char *look_at_unit(const struct units *units, uint64_t *at)
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

static const char *look_at_units(const struct units *units)
{
	const char *fault = units->nr_bytes ? NULL : "is not there";
	uint64_t at = 0, next = 0;

	while (!fault && next < units->nr_bytes) {
		at = next;
		fault = look_at_unit(units, &next);
	}
	if (!fault)
		return NULL;
	snprintf(heard, sizeof(heard), "the unit at 0x%" PRIx64 " of .debug_info %s", at, fault);
	return heard;
}

/* NULL also where there is another kind of debugging information. */
static const char *check_units(bfd *abfd)
{
	asection *info = find_section(abfd, ".debug_info", ".zdebug_info");
	asection *abbrev = find_section(abfd, ".debug_abbrev", ".zdebug_abbrev");
	struct units units = { .abfd = abfd, .nr_abbrev_bytes = abbrev ? bfd_section_size(abbrev) : 0 };
	const char *fault;

	if (!info)
		return NULL;
	if (!bfd_get_full_section_contents(abfd, info, &units.bytes))
		return *heard ? words() : "its .debug_info cannot be read";
	units.nr_bytes = bfd_section_size(info);
	fault = look_at_units(&units);
	free(units.bytes);
	return fault;
}

const char *opr_debug_damage(bfd *abfd, bool found)
{
	if (*heard)
		return words();
	return found ? NULL : check_units(abfd);
}

/* ---- a look at some addresses ---- */

static asection *largest_code(bfd *abfd)
{
	asection *largest = NULL;

	for (asection *section = abfd->sections; section; section = section->next)
		if (bfd_section_flags(section) & SEC_CODE && (!largest || bfd_section_size(section) > bfd_section_size(largest)))
			largest = section;
	return largest;
}

const char *opr_debug_probe(bfd *abfd)
{
	asection *code = largest_code(abfd), *info = find_section(abfd, ".debug_info", ".zdebug_info");
	struct opr_lines lines = { .abfd = abfd };
	bool found = false;

	if (!code || !info || op_min_u64(bfd_section_size(info), bfd_get_file_size(abfd)) > PROBE_BYTES_MAX)
		return NULL;
	opr_debug_listen();
	lines.table = opr_bfd_read_table(abfd);
	for (uint64_t i = 0; i < NR_PROBES && !*heard; i++) {
		uint64_t offset = bfd_section_size(code) / NR_PROBES * i;
		const char *file;
		unsigned int line;

		found |= opr_lines_find(&lines, bfd_section_vma(code) + offset, &file, &line);
	}
	free(lines.table);
	return opr_debug_damage(abfd, found);
}

void opr_debug_warn(const char *path, const char *damage)
{
	opr_warn("the debugging information of %s cannot be read in whole: %s", path, damage);
}
