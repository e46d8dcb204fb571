/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/oparchive/elf_extent.h"

#include <elf.h>
#include <errno.h>

#include "libop/base/file.h"

#define ENTRIES_MAX (1u << 20) /* of a table; a program may have a section for each function */
#define BLOCK_BYTES 65536u

/* A table of program or section headers. */
struct table {
	uint64_t position, nr_entries;
	size_t entry_bytes;
	bool is_of_sections;
};

struct elf {
	int fd;
	bool is_64;
	uint64_t file_bytes, end;
	struct table programs, sections;
};

static int read_whole(const struct elf *elf, void *buffer, size_t nr_bytes, uint64_t position)
{
	size_t got = 0;
	int err;

	if (position > elf->file_bytes || nr_bytes > elf->file_bytes - position)
		return -ENOEXEC;
	err = op_file_read_at(elf->fd, buffer, nr_bytes, (off_t)position, &got);
	return err ? err : got == nr_bytes ? 0 : -ENOEXEC;
}

static void reach(struct elf *elf, uint64_t position, uint64_t nr_bytes)
{
	uint64_t end = nr_bytes > elf->file_bytes ? elf->file_bytes : position + nr_bytes;

	if (position < elf->file_bytes)
		elf->end = op_max_u64(elf->end, op_min_u64(end, elf->file_bytes));
}

static Elf64_Shdr section_of(const struct elf *elf, const uint8_t *bytes)
{
	Elf64_Shdr wide;
	Elf32_Shdr narrow;

	if (elf->is_64) {
		memcpy(&wide, bytes, sizeof(wide));
		return wide;
	}
	memcpy(&narrow, bytes, sizeof(narrow));
	return (Elf64_Shdr){
		.sh_type = narrow.sh_type, .sh_offset = narrow.sh_offset, .sh_size = narrow.sh_size, .sh_info = narrow.sh_info
	};
}

static Elf64_Phdr program_of(const struct elf *elf, const uint8_t *bytes)
{
	Elf64_Phdr wide;
	Elf32_Phdr narrow;

	if (elf->is_64) {
		memcpy(&wide, bytes, sizeof(wide));
		return wide;
	}
	memcpy(&narrow, bytes, sizeof(narrow));
	return (Elf64_Phdr){ .p_offset = narrow.p_offset, .p_filesz = narrow.p_filesz };
}

static void reach_entry(struct elf *elf, const struct table *table, const uint8_t *bytes)
{
	if (table->is_of_sections) {
		Elf64_Shdr section = section_of(elf, bytes);

		if (section.sh_type != SHT_NOBITS && section.sh_type != SHT_NULL)
			reach(elf, section.sh_offset, section.sh_size);
	} else {
		Elf64_Phdr program = program_of(elf, bytes);

		reach(elf, program.p_offset, program.p_filesz);
	}
}

static int reach_table(struct elf *elf, const struct table *table)
{
	uint64_t position = table->position;
	uint8_t block[BLOCK_BYTES];
	int err = 0;

	if (table->nr_entries > ENTRIES_MAX)
		return -ENOEXEC;
	for (uint64_t left = table->nr_entries; left && !err;) {
		size_t nr_entries = op_min_u64(left, sizeof(block) / table->entry_bytes);

		err = read_whole(elf, block, nr_entries * table->entry_bytes, position);
		for (size_t i = 0; i < nr_entries && !err; i++)
			reach_entry(elf, table, block + i * table->entry_bytes);
		position += nr_entries * table->entry_bytes;
		left -= nr_entries;
	}
	reach(elf, table->position, table->nr_entries * table->entry_bytes);
	return err;
}

/* Numbers that do not fit into the ELF header are in the first section header. */
static int count_entries(struct elf *elf)
{
	uint8_t bytes[sizeof(Elf64_Shdr)];
	Elf64_Shdr first;
	int err;

	if (!elf->sections.position || (elf->sections.nr_entries && elf->programs.nr_entries != PN_XNUM))
		return 0;
	err = read_whole(elf, bytes, elf->sections.entry_bytes, elf->sections.position);
	if (err)
		return err;
	first = section_of(elf, bytes);
	if (!elf->sections.nr_entries)
		elf->sections.nr_entries = first.sh_size;
	if (elf->programs.nr_entries == PN_XNUM)
		elf->programs.nr_entries = first.sh_info;
	return 0;
}

#define TAKE_HEADER(elf, header, bits)                                                                                             \
	do {                                                                                                                       \
		if (((header)->e_phnum && (header)->e_phentsize != sizeof(Elf##bits##_Phdr)) ||                                    \
		    ((header)->e_shoff && (header)->e_shentsize != sizeof(Elf##bits##_Shdr)))                                      \
			return -ENOEXEC;                                                                                           \
		(elf)->programs = (struct table){ (header)->e_phoff, (header)->e_phnum, sizeof(Elf##bits##_Phdr), false };         \
		(elf)->sections = (struct table){ (header)->e_shoff, (header)->e_shoff ? (header)->e_shnum : 0,                    \
						  sizeof(Elf##bits##_Shdr), true };                                                \
		(elf)->end = sizeof(*(header));                                                                                    \
	} while (0)

static int read_header(struct elf *elf)
{
	const unsigned char data = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB;
	union {
		unsigned char ident[EI_NIDENT];
		Elf64_Ehdr wide;
		Elf32_Ehdr narrow;
	} header = { 0 };
	int err = read_whole(elf, &header.narrow, sizeof(header.narrow), 0);

	if (err)
		return err;
	if (memcmp(header.ident, ELFMAG, SELFMAG) != 0 || header.ident[EI_DATA] != data)
		return -ENOEXEC;
	elf->is_64 = header.ident[EI_CLASS] == ELFCLASS64;
	if (elf->is_64)
		err = read_whole(elf, &header.wide, sizeof(header.wide), 0);
	if (err)
		return err;
	if (elf->is_64)
		TAKE_HEADER(elf, &header.wide, 64);
	else
		TAKE_HEADER(elf, &header.narrow, 32);
	return 0;
}

int opr_elf_end(int fd, uint64_t file_bytes, uint64_t *ret_end)
{
	struct elf elf = { .fd = fd, .file_bytes = op_min_u64(file_bytes, INT64_MAX) };
	int err = read_header(&elf);

	if (err)
		return err;
	err = count_entries(&elf);
	if (err)
		return err;
	err = reach_table(&elf, &elf.programs);
	if (!err)
		err = reach_table(&elf, &elf.sections);
	if (!err)
		*ret_end = elf.end;
	return err;
}
