/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/elf/elf_file.h"

#include <elf.h>
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libop/base/file.h"
#include "libop/base/sys.h"

#define SECTIONS_MAX 65536 /* of a program or library; a relocatable file may have more */

/* Where the fields of the headers are: { in 32 bits, in 64 bits }. */
struct place {
	uint8_t offset, nr_bytes;
};

enum header_field {
	HEADER_TYPE,
	HEADER_MACHINE,
	HEADER_SECTIONS,
	HEADER_SECTION_BYTES,
	HEADER_NR_SECTIONS,
	HEADER_NAMES,
	NR_HEADER_FIELDS
};
enum section_field { NAME, TYPE, FLAGS, VMA, POSITION, NR_BYTES, LINK, NR_SECTION_FIELDS };

#define PLACE(type, field)                                                                                                         \
	{                                                                                                                          \
		offsetof(type, field), sizeof(((type *)0)->field)                                                                  \
	}
#define BOTH(kind, field)                                                                                                          \
	{                                                                                                                          \
		PLACE(Elf32_##kind, field), PLACE(Elf64_##kind, field)                                                             \
	}

static const struct place header_places[NR_HEADER_FIELDS][2] = {
	[HEADER_TYPE] = BOTH(Ehdr, e_type),         [HEADER_MACHINE] = BOTH(Ehdr, e_machine),
	[HEADER_SECTIONS] = BOTH(Ehdr, e_shoff),    [HEADER_SECTION_BYTES] = BOTH(Ehdr, e_shentsize),
	[HEADER_NR_SECTIONS] = BOTH(Ehdr, e_shnum), [HEADER_NAMES] = BOTH(Ehdr, e_shstrndx),
};

static const struct place section_places[NR_SECTION_FIELDS][2] = {
	[NAME] = BOTH(Shdr, sh_name), [TYPE] = BOTH(Shdr, sh_type),       [FLAGS] = BOTH(Shdr, sh_flags),
	[VMA] = BOTH(Shdr, sh_addr),  [POSITION] = BOTH(Shdr, sh_offset), [NR_BYTES] = BOTH(Shdr, sh_size),
	[LINK] = BOTH(Shdr, sh_link),
};

uint64_t opr_elf_number(const struct opr_elf *elf, const uint8_t *bytes, size_t nr_bytes)
{
	uint64_t number = 0;

	for (size_t i = 0; i < nr_bytes; i++)
		number |= (uint64_t)bytes[elf->is_big ? nr_bytes - 1 - i : i] << (8 * i);
	return number;
}

static uint64_t field_of(const struct opr_elf *elf, const uint8_t *bytes, const struct place places[2])
{
	const struct place *place = &places[elf->is_64];

	return opr_elf_number(elf, bytes + place->offset, place->nr_bytes);
}

/* 0; -EBADMSG: not within the file; another -errno. */
static int read_part(const struct opr_elf *elf, void *buffer, uint64_t nr_bytes, uint64_t position)
{
	size_t got = 0;
	int err;

	if (position > elf->file_bytes || nr_bytes > elf->file_bytes - position)
		return -EBADMSG;
	err = op_file_read_at(elf->fd, buffer, nr_bytes, (off_t)position, &got);
	return err ? err : got == nr_bytes ? 0 : -EBADMSG;
}

int opr_elf_read(const struct opr_elf *elf, const struct opr_elf_section *section, uint8_t **ret_bytes)
{
	uint8_t *bytes;
	int err;

	if (section->flags & SHF_COMPRESSED || section->type == SHT_NOBITS || section->nr_bytes > elf->file_bytes ||
	    section->nr_bytes > OPR_ELF_TABLE_BYTES_MAX)
		return -EBADMSG;
	bytes = malloc(section->nr_bytes + 1);
	if (!bytes)
		return -ENOMEM;
	err = read_part(elf, bytes, section->nr_bytes, section->position);
	if (err) {
		free(bytes);
		return err;
	}
	bytes[section->nr_bytes] = '\0';
	*ret_bytes = bytes;
	return 0;
}

static struct opr_elf_section section_at(const struct opr_elf *elf, const uint8_t *bytes)
{
	return (struct opr_elf_section){
		.type = (uint32_t)field_of(elf, bytes, section_places[TYPE]),
		.link = (uint32_t)field_of(elf, bytes, section_places[LINK]),
		.flags = field_of(elf, bytes, section_places[FLAGS]),
		.vma = field_of(elf, bytes, section_places[VMA]),
		.position = field_of(elf, bytes, section_places[POSITION]),
		.nr_bytes = field_of(elf, bytes, section_places[NR_BYTES]),
	};
}

/* Names stay "" when their table cannot be read. */
static int read_names(struct opr_elf *elf, const uint8_t *table, size_t entry_bytes, size_t names)
{
	uint8_t *strings = NULL;
	int err = names < elf->nr_sections ? opr_elf_read(elf, &elf->sections[names], &strings) : -EBADMSG;

	for (size_t i = 0; i < elf->nr_sections; i++) {
		uint64_t at = field_of(elf, table + i * entry_bytes, section_places[NAME]);

		elf->sections[i].name = !err && at < elf->sections[names].nr_bytes ? (const char *)strings + at : "";
	}
	elf->names = (char *)strings;
	return err == -EBADMSG ? 0 : err;
}

/* More than 0xff00 sections are counted in the first one. */
static int read_sections(struct opr_elf *elf, const uint8_t *header)
{
	uint64_t position = field_of(elf, header, header_places[HEADER_SECTIONS]);
	size_t entry_bytes = elf->is_64 ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr), names;
	uint8_t first[sizeof(Elf64_Shdr)] = { 0 }, *table;
	int err;

	if (!position)
		return 0;
	if (field_of(elf, header, header_places[HEADER_SECTION_BYTES]) != entry_bytes ||
	    read_part(elf, first, entry_bytes, position))
		return -ENOEXEC;
	elf->nr_sections = field_of(elf, header, header_places[HEADER_NR_SECTIONS]);
	if (!elf->nr_sections)
		elf->nr_sections = op_min_u64(field_of(elf, first, section_places[NR_BYTES]), SECTIONS_MAX + 1);
	names = field_of(elf, header, header_places[HEADER_NAMES]);
	if (names == SHN_XINDEX)
		names = field_of(elf, first, section_places[LINK]);
	if (elf->nr_sections > SECTIONS_MAX)
		return -ENOEXEC;
	table = malloc(elf->nr_sections * entry_bytes + 1);
	elf->sections = calloc(elf->nr_sections + 1, sizeof(*elf->sections));
	err = table && elf->sections ? read_part(elf, table, elf->nr_sections * entry_bytes, position) : -ENOMEM;
	for (size_t i = 0; i < elf->nr_sections && !err; i++)
		elf->sections[i] = section_at(elf, table + i * entry_bytes);
	if (!err)
		err = read_names(elf, table, entry_bytes, names);
	free(table);
	return err == -EBADMSG ? -ENOEXEC : err;
}

static int read_header(struct opr_elf *elf)
{
	uint8_t header[sizeof(Elf64_Ehdr)] = { 0 };
	struct stat st;
	int err = op_sys_fstat(elf->fd, &st);

	if (err)
		return err;
	elf->file_bytes = (uint64_t)st.st_size;
	if (!S_ISREG(st.st_mode) || read_part(elf, header, sizeof(Elf32_Ehdr), 0) || memcmp(header, ELFMAG, SELFMAG))
		return -ENOEXEC;
	elf->is_64 = header[EI_CLASS] == ELFCLASS64;
	elf->is_big = header[EI_DATA] == ELFDATA2MSB;
	if (elf->is_64 && read_part(elf, header, sizeof(Elf64_Ehdr), 0))
		return -ENOEXEC;
	elf->type = (uint16_t)field_of(elf, header, header_places[HEADER_TYPE]);
	elf->machine = (uint16_t)field_of(elf, header, header_places[HEADER_MACHINE]);
	return read_sections(elf, header);
}

int opr_elf_open(struct opr_elf *elf, int fd)
{
	int err;

	*elf = (struct opr_elf){ .fd = fd };
	if (fd < 0)
		return fd;
	err = read_header(elf);
	if (err)
		opr_elf_close(elf);
	return err;
}

void opr_elf_close(struct opr_elf *elf)
{
	if (elf->fd >= 0)
		close(elf->fd);
	free(elf->sections);
	free(elf->names);
	*elf = (struct opr_elf){ .fd = -1 };
}

const struct opr_elf_section *opr_elf_find(const struct opr_elf *elf, uint32_t type, const char *name)
{
	for (size_t i = 0; i < elf->nr_sections; i++)
		if (elf->sections[i].type == type && (!name || !strcmp(elf->sections[i].name, name)))
			return &elf->sections[i];
	return NULL;
}
