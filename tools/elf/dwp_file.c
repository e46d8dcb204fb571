/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/elf/dwp_file.h"

#include <errno.h>
#include <gelf.h>
#include <sys/mman.h>
#include <unistd.h>

#include "libop/base/sys.h"

#define NR_COLUMNS_MAX 8u
#define INDEX_HEAD     16u
#define WRITTEN_MAX    (1ull << 30) /* bytes of all units; each has the strings of the package */

/* The numbers of sections in the index. Version 2 is that of GNU for DWARF 4. */
static const char *const names_2[] = { NULL, ".debug_info.dwo",       NULL, ".debug_abbrev.dwo", ".debug_line.dwo",
				       NULL, ".debug_str_offsets.dwo" };
static const char *const names_5[] = { NULL, ".debug_info.dwo",        NULL, ".debug_abbrev.dwo",  ".debug_line.dwo",
				       NULL, ".debug_str_offsets.dwo", NULL, ".debug_rnglists.dwo" };

struct opr_dwp {
	Elf *elf;
	int fd;
	const uint8_t *index;
	size_t nr_index_bytes;
	unsigned int version;
	uint32_t nr_columns, nr_units, nr_slots;
	bool is_big;
	uint64_t nr_written;
};

static uint64_t number_at(const struct opr_dwp *dwp, uint64_t offset, size_t nr_bytes)
{
	uint64_t number = 0;

	for (size_t i = 0; i < nr_bytes; i++)
		number |= (uint64_t)dwp->index[offset + i] << 8 * (dwp->is_big ? nr_bytes - 1 - i : i);
	return number;
}

static Elf_Data *find_section(const struct opr_dwp *dwp, const char *wanted)
{
	size_t names;
	GElf_Shdr header;

	if (elf_getshdrstrndx(dwp->elf, &names) < 0)
		return NULL;
	for (Elf_Scn *section = elf_nextscn(dwp->elf, NULL); section; section = elf_nextscn(dwp->elf, section)) {
		const char *name = gelf_getshdr(section, &header) ? elf_strptr(dwp->elf, names, header.sh_name) : NULL;

		if (!name || strcmp(name, wanted) != 0)
			continue;
		if (header.sh_flags & SHF_COMPRESSED && elf_compress(section, 0, 0) < 0)
			return NULL;
		return elf_getdata(section, NULL);
	}
	return NULL;
}

/* The tables of hashes, of rows, of offsets and of sizes lie within the section. */
static bool read_head(struct opr_dwp *dwp)
{
	uint64_t nr_cells;

	if (dwp->nr_index_bytes < INDEX_HEAD)
		return false;
	dwp->version = (unsigned int)number_at(dwp, 0, 4) == 2 ? 2 : (unsigned int)number_at(dwp, 0, 2);
	dwp->nr_columns = (uint32_t)number_at(dwp, 4, 4);
	dwp->nr_units = (uint32_t)number_at(dwp, 8, 4);
	dwp->nr_slots = (uint32_t)number_at(dwp, 12, 4);
	if ((dwp->version != 2 && dwp->version != 5) || !dwp->nr_columns || dwp->nr_columns > NR_COLUMNS_MAX)
		return false;
	nr_cells = (uint64_t)dwp->nr_columns * (1 + 2 * (uint64_t)dwp->nr_units);
	return 12 * (uint64_t)dwp->nr_slots + 4 * nr_cells <= dwp->nr_index_bytes - INDEX_HEAD;
}

struct opr_dwp *opr_dwp_open(int fd)
{
	struct opr_dwp *dwp = calloc(1, sizeof(*dwp));
	const char *ident;
	Elf_Data *index;

	if (!dwp) {
		close(fd);
		return NULL;
	}
	*dwp = (struct opr_dwp){ .fd = fd };
	elf_version(EV_CURRENT);
	dwp->elf = elf_begin(fd, ELF_C_READ_MMAP_PRIVATE, NULL);
	ident = dwp->elf ? elf_getident(dwp->elf, NULL) : NULL;
	index = ident ? find_section(dwp, ".debug_cu_index") : NULL;
	if (index && index->d_buf) {
		dwp->index = index->d_buf;
		dwp->nr_index_bytes = index->d_size;
		dwp->is_big = ident[EI_DATA] == ELFDATA2MSB;
		if (read_head(dwp))
			return dwp;
	}
	opr_dwp_close(dwp);
	return NULL;
}

int opr_dwp_fd(const struct opr_dwp *dwp)
{
	return dwp->fd;
}

void opr_dwp_close(struct opr_dwp *dwp)
{
	if (!dwp)
		return;
	elf_end(dwp->elf);
	close(dwp->fd);
	free(dwp);
}

/* ---- one unit ---- */

/* 1 + the number of its row; 0: none. */
static uint32_t row_of(const struct opr_dwp *dwp, uint64_t dwo_id)
{
	for (uint32_t i = 0; i < dwp->nr_slots; i++)
		if (number_at(dwp, INDEX_HEAD + 8ull * i, 8) == dwo_id)
			return (uint32_t)number_at(dwp, INDEX_HEAD + 8ull * dwp->nr_slots + 4ull * i, 4);
	return 0;
}

struct part {
	const char *name;
	void *bytes;
	size_t nr_bytes;
};

/* The unit's part of each section, and all strings. Returns their number; 0: damaged. */
static size_t find_parts(const struct opr_dwp *dwp, uint32_t row, struct part *parts)
{
	uint64_t columns = INDEX_HEAD + 12ull * dwp->nr_slots, line = 4ull * dwp->nr_columns;
	const char *const *names = dwp->version == 2 ? names_2 : names_5;
	size_t nr_names = dwp->version == 2 ? op_array_size(names_2) : op_array_size(names_5), nr_parts = 0;
	Elf_Data *data = find_section(dwp, ".debug_str.dwo");

	if (data && data->d_buf)
		parts[nr_parts++] = (struct part){ ".debug_str.dwo", data->d_buf, data->d_size };
	for (uint32_t i = 0; i < dwp->nr_columns; i++) {
		uint64_t id = number_at(dwp, columns + 4ull * i, 4);
		uint64_t offset = number_at(dwp, columns + line * row + 4ull * i, 4);
		uint64_t nr_bytes = number_at(dwp, columns + line * (row + (uint64_t)dwp->nr_units) + 4ull * i, 4);

		if (id >= nr_names || !names[id])
			continue;
		data = find_section(dwp, names[id]);
		if (!data || !data->d_buf || offset > data->d_size || nr_bytes > data->d_size - offset)
			return 0;
		parts[nr_parts++] = (struct part){ names[id], (uint8_t *)data->d_buf + offset, nr_bytes };
	}
	return nr_parts;
}

static bool add_section(Elf *out, const char *names, const struct part *part, unsigned int type)
{
	Elf_Scn *section = elf_newscn(out);
	Elf_Data *data = section ? elf_newdata(section) : NULL;
	GElf_Shdr header;

	if (!data || !gelf_getshdr(section, &header))
		return false;
	*data = (Elf_Data){
		.d_buf = part->bytes, .d_size = part->nr_bytes, .d_type = ELF_T_BYTE, .d_align = 1, .d_version = EV_CURRENT
	};
	for (const char *name = names + 1; *name; name += strlen(name) + 1)
		if (!strcmp(name, part->name))
			header.sh_name = (GElf_Word)(name - names);
	header.sh_type = type;
	return gelf_update_shdr(section, &header);
}

static bool write_parts(const struct opr_dwp *dwp, int fd, const struct part *parts, size_t nr_parts)
{
	static const char names[] = "\0.shstrtab\0.debug_str.dwo\0.debug_info.dwo\0.debug_abbrev.dwo\0.debug_line.dwo\0"
				    ".debug_str_offsets.dwo\0.debug_rnglists.dwo\0";
	struct part table = { ".shstrtab", (void *)(uintptr_t)names, sizeof(names) };
	Elf *out = elf_begin(fd, ELF_C_WRITE, NULL);
	GElf_Ehdr header, old;
	bool sound =
		out && gelf_getehdr(dwp->elf, &old) && gelf_newehdr(out, gelf_getclass(dwp->elf)) && gelf_getehdr(out, &header);

	for (size_t i = 0; i < nr_parts && sound; i++)
		sound = add_section(out, names, &parts[i], SHT_PROGBITS);
	sound = sound && add_section(out, names, &table, SHT_STRTAB);
	if (sound) {
		header.e_ident[EI_DATA] = old.e_ident[EI_DATA];
		header.e_type = ET_REL;
		header.e_machine = old.e_machine;
		header.e_version = EV_CURRENT;
		header.e_shstrndx = (GElf_Half)(nr_parts + 1);
		sound = gelf_update_ehdr(out, &header) && elf_update(out, ELF_C_WRITE) >= 0;
	}
	elf_end(out);
	return sound;
}

int opr_dwp_unit(struct opr_dwp *dwp, uint64_t dwo_id)
{
	uint32_t row = row_of(dwp, dwo_id);
	struct part parts[NR_COLUMNS_MAX + 1];
	size_t nr_parts;
	int fd;

	if (!row || row > dwp->nr_units)
		return -ENOENT;
	nr_parts = find_parts(dwp, row, parts);
	if (!nr_parts)
		return -EBADMSG;
	for (size_t i = 0; i < nr_parts; i++)
		dwp->nr_written += parts[i].nr_bytes;
	if (dwp->nr_written > WRITTEN_MAX)
		return -EFBIG;
	fd = op_sys_memfd_create("opd-dwo", MFD_CLOEXEC);
	if (fd < 0 || write_parts(dwp, fd, parts, nr_parts))
		return fd;
	close(fd);
	return -EBADMSG;
}
