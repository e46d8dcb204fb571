/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/elf/dwarf_file.h"

#include <dwarf.h>
#include <elfutils/libdwelf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <unistd.h>
#include <zstd.h>

#include "libop/base/grow.h"
#include "libop/base/sys.h"
#include "libop/base/text.h"
#include "tools/common/log.h"
#include "tools/elf/open_file.h"

#define DEBUG_DIR          "/usr/lib/debug"
#define UNPACKED_BYTES_MAX (2ull << 30)
#ifndef ELFCOMPRESS_ZSTD
#define ELFCOMPRESS_ZSTD 2
#endif

void opr_dwarf_note(struct opr_dwarf *file)
{
	int error = dwarf_errno();

	if (error && !file->fault[0])
		snprintf(file->fault, sizeof(file->fault), "%s", dwarf_errmsg(error));
}

/* ---- files ---- */

/* A file that this one names. A descriptor or -errno; -EPERM: it may not speak for this one. */
static int open_named(const struct opr_dwarf *file, const char *path)
{
	struct stat st;
	int fd = opr_open_regular(path, &st);

	if (fd < 0 || opr_may_speak_for(&st, &file->st))
		return fd;
	close(fd);
	opr_verbose(OPR_TOPIC_bfd, "%s is of another user", path);
	return -EPERM;
}

static void add_dir_of(struct op_text *text, const char *path)
{
	const char *slash = strrchr(path, '/');

	op_text_add_bytes(text, path, slash ? (size_t)(slash + 1 - path) : 0);
}

/* ---- the alternate debug file of dwz(1) ---- */

static bool has_build_id(Elf *elf, const void *build_id, size_t nr_bytes)
{
	const void *other;
	ssize_t nr_other = dwelf_elf_gnu_build_id(elf, &other);

	return nr_other > 0 && (size_t)nr_other == nr_bytes && !memcmp(other, build_id, nr_bytes);
}

/* NULL: it is not there, or is another file. */
static Dwarf *open_alt(struct opr_dwarf *file, const char *path, const void *build_id, size_t nr_bytes)
{
	Dwarf *alt = NULL;

	file->alt_fd = open_named(file, path);
	if (file->alt_fd < 0)
		return NULL;
	alt = dwarf_begin(file->alt_fd, DWARF_C_READ);
	if (alt && has_build_id(dwarf_getelf(alt), build_id, nr_bytes))
		return alt;
	dwarf_end(alt);
	close(file->alt_fd);
	file->alt_fd = -1;
	return NULL;
}

/* libdw would look for it, too, and open what it finds. */
static void find_alt(struct opr_dwarf *file, const char *root)
{
	const char *name;
	const void *build_id;
	ssize_t nr_bytes = dwelf_dwarf_gnu_debugaltlink(file->dwarf, &name, &build_id);
	struct op_text path = { 0 }, digits = { 0 };

	if (nr_bytes <= 0)
		return;
	for (ssize_t i = 0; i < nr_bytes; i++)
		op_text_printf(&digits, "%02x", ((const unsigned char *)build_id)[i]);
	for (size_t place = 0; place < 3 && !file->alt; place++) {
		op_text_truncate(&path, 0);
		if (place == 0 && digits.length > 2)
			op_text_printf(&path, "%s" DEBUG_DIR "/.build-id/%.2s/%s.debug", root ?: "", digits.data, digits.data + 2);
		if (place == 1 && name[0] == '/')
			op_text_add(&path, root ?: "");
		if (place >= 1 && name[0] != '/')
			add_dir_of(&path, file->path);
		if (place >= 1)
			op_text_add(&path, name);
		if (path.length && !path.failed)
			file->alt = open_alt(file, path.data, build_id, (size_t)nr_bytes);
	}
	if (file->alt) {
		dwarf_setalt(file->dwarf, file->alt);
		opr_verbose(OPR_TOPIC_bfd, "alternate debug file %s", path.data);
	} else if (!file->fault[0]) {
		snprintf(file->fault, sizeof(file->fault), "its alternate debug file %s is missing", name);
	}
	op_text_free(&path);
	op_text_free(&digits);
}

/* ---- sections that are packed with zstd, which libelf unpacks from version 0.189 on ---- */

static bool keep_buffer(struct opr_dwarf *file, void *buffer)
{
	if (!buffer || !op_grow(&file->buffers, &file->capacity, file->nr_buffers + 1)) {
		free(buffer);
		return false;
	}
	file->buffers[file->nr_buffers++] = buffer;
	return true;
}

static void unpack_section(struct opr_dwarf *file, Elf_Scn *section, GElf_Shdr *header)
{
	Elf_Data *data = elf_getdata(section, NULL);
	size_t head = gelf_getclass(file->elf) == ELFCLASS64 ? sizeof(Elf64_Chdr) : sizeof(Elf32_Chdr), nr_bytes;
	GElf_Chdr packed;
	void *bytes;

	if (!gelf_getchdr(section, &packed) || packed.ch_type != ELFCOMPRESS_ZSTD || !data || data->d_size < head ||
	    packed.ch_size > UNPACKED_BYTES_MAX)
		return;
	bytes = malloc(packed.ch_size + 1);
	if (!keep_buffer(file, bytes))
		return;
	nr_bytes = ZSTD_decompress(bytes, packed.ch_size, (const char *)data->d_buf + head, data->d_size - head);
	if (ZSTD_isError(nr_bytes) || nr_bytes != packed.ch_size) {
		snprintf(file->fault, sizeof(file->fault), "a section is packed with zstd, and damaged");
		return;
	}
	header->sh_flags &= ~(GElf_Xword)SHF_COMPRESSED;
	header->sh_size = nr_bytes;
	if (!gelf_update_shdr(section, header))
		return;
	data->d_buf = bytes;
	data->d_size = nr_bytes;
}

static void unpack_sections(struct opr_dwarf *file)
{
	GElf_Shdr header;

	for (Elf_Scn *section = elf_nextscn(file->elf, NULL); section; section = elf_nextscn(file->elf, section))
		if (gelf_getshdr(section, &header) && header.sh_flags & SHF_COMPRESSED)
			unpack_section(file, section, &header);
}

/* ---- packages ---- */

static Elf_Data *section_data(Elf *elf, const char *name, const char *packed_name)
{
	size_t names;
	GElf_Shdr header;

	if (elf_getshdrstrndx(elf, &names) < 0)
		return NULL;
	for (Elf_Scn *section = elf_nextscn(elf, NULL); section; section = elf_nextscn(elf, section)) {
		const char *found = gelf_getshdr(section, &header) ? elf_strptr(elf, names, header.sh_name) : NULL;

		if (!found || (strcmp(found, name) != 0 && strcmp(found, packed_name) != 0))
			continue;
		if (header.sh_flags & SHF_COMPRESSED)
			(void)!elf_compress(section, 0, 0);
		return elf_getdata(section, NULL);
	}
	return NULL;
}

/*
 * libdw finds the .dwo file of a unit by its path only. So .debug_str in memory gets one string
 * more, the path of a descriptor, and units get it as the name of their file. That is the part of
 * a package, or the .dwo file that was opened and checked here. Units with a .dwo file need
 * .debug_addr; the file has more strings before libdw looks at it.
 */
static void add_unit_path(struct opr_dwarf *file)
{
	Elf_Data *strings = section_data(file->elf, ".debug_str", ".debug_str");
	struct op_text path = { 0 };
	char *longer;

	if (!section_data(file->elf, ".debug_addr", ".debug_addr") || !strings || !strings->d_buf)
		return;
	file->unit_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	op_text_printf(&path, "/proc/self/fd/%d", file->unit_fd);
	longer = file->unit_fd < 0 || path.failed ? NULL : malloc(strings->d_size + path.length + 2);
	if (longer && keep_buffer(file, longer)) {
		memcpy(longer, strings->d_buf, strings->d_size);
		longer[strings->d_size] = '\0';
		memcpy(longer + strings->d_size + 1, path.data, path.length + 1);
		file->unit_name = strings->d_size + 1;
		strings->d_buf = longer;
		strings->d_size += path.length + 2;
	}
	op_text_free(&path);
}

static void open_package(struct opr_dwarf *file)
{
	struct op_text path = { 0 };
	int fd;

	op_text_printf(&path, "%s.dwp", file->path);
	fd = path.failed ? -1 : open_named(file, path.data);
	file->dwp = fd < 0 ? NULL : opr_dwp_open(fd);
	op_text_free(&path);
}

static uint64_t number_at(const struct opr_dwarf *file, const uint8_t *at, size_t nr_bytes)
{
	bool is_big = elf_getident(file->elf, NULL)[EI_DATA] == ELFDATA2MSB;
	uint64_t number = 0;

	for (size_t i = 0; i < nr_bytes; i++)
		number |= (uint64_t)at[i] << 8 * (is_big ? nr_bytes - 1 - i : i);
	return number;
}

static void set_number(const struct opr_dwarf *file, uint8_t *at, uint64_t number, size_t nr_bytes)
{
	bool is_big = elf_getident(file->elf, NULL)[EI_DATA] == ELFDATA2MSB;

	for (size_t i = 0; i < nr_bytes; i++)
		at[i] = (uint8_t)(number >> 8 * (is_big ? nr_bytes - 1 - i : i));
}

/* Where the place of a string in .debug_str is written. NULL: the form has none. */
static uint8_t *find_offset(struct opr_dwarf *file, Dwarf_Die *unit, Dwarf_Attribute *name, size_t nr_bytes)
{
	Elf_Data *offsets = section_data(file->elf, ".debug_str_offsets", ".debug_str_offsets");
	unsigned int form = dwarf_whatform(name);
	Dwarf_Word base = 2 * nr_bytes, index;
	Dwarf_Attribute start;

	if (form == DW_FORM_strp)
		return name->valp;
	if (form < DW_FORM_strx1 || form > DW_FORM_strx4 || !offsets || !offsets->d_buf)
		return NULL;
	if (dwarf_attr(unit, DW_AT_str_offsets_base, &start) && dwarf_formudata(&start, &base))
		return NULL;
	index = number_at(file, name->valp, form - DW_FORM_strx1 + 1);
	if (base > offsets->d_size || index >= (offsets->d_size - base) / nr_bytes)
		return NULL;
	return (uint8_t *)offsets->d_buf + base + index * nr_bytes;
}

/* ---- opening ---- */

static int find_no_debuginfo(Dwfl_Module *module OP_UNUSED, void **data OP_UNUSED, const char *name OP_UNUSED,
			     Dwarf_Addr base OP_UNUSED, const char *file OP_UNUSED, const char *link OP_UNUSED,
			     GElf_Word crc OP_UNUSED, char **ret_file OP_UNUSED)
{
	return -1;
}

/* Where libdwfl has put .text. Samples of a module are relative to it. */
static uint64_t address_of_text(Elf *elf)
{
	size_t names;
	GElf_Shdr header;

	if (elf_getshdrstrndx(elf, &names) < 0)
		return 0;
	for (Elf_Scn *section = elf_nextscn(elf, NULL); section; section = elf_nextscn(elf, section)) {
		const char *name = gelf_getshdr(section, &header) ? elf_strptr(elf, names, header.sh_name) : NULL;

		if (name && !strcmp(name, ".text"))
			return header.sh_addr;
	}
	return 0;
}

/*
 * The debugging information of a relocatable file has relocations, which libdwfl applies to the
 * sections in memory. Its own Dwarf has read the strings, to which add_unit_path adds one.
 */
static void open_relocatable(struct opr_dwarf *file)
{
	static const Dwfl_Callbacks callbacks = { .find_debuginfo = find_no_debuginfo,
						  .section_address = dwfl_offline_section_address };
	Dwfl_Module *module;
	Dwarf_Addr bias;

	file->dwfl = dwfl_begin(&callbacks);
	module = file->dwfl ? dwfl_report_offline(file->dwfl, "image", file->path, file->fd) : NULL;
	if (!module)
		return;
	file->fd = -1; /* libdwfl has it */
	dwfl_report_end(file->dwfl, NULL, NULL);
	if (dwfl_module_getdwarf(module, &bias))
		file->elf = dwfl_module_getelf(module, &bias);
	else
		snprintf(file->fault, sizeof(file->fault), "%s", dwfl_errmsg(-1));
	if (file->elf)
		file->text = address_of_text(file->elf);
}

int opr_dwarf_open(bfd *abfd, const char *root, struct opr_dwarf **ret_file)
{
	struct opr_dwarf *file = calloc(1, sizeof(*file));
	GElf_Ehdr header;

	if (!file)
		return -ENOMEM;
	*file = (struct opr_dwarf){
		.path = strdup(bfd_get_filename(abfd)), .root = root, .st = *opr_bfd_stat(abfd),
		.fd = -1, .alt_fd = -1, .unit_fd = -1
	};
	if (!file->path) {
		opr_dwarf_close(file);
		return -ENOMEM;
	}
	elf_version(EV_CURRENT);
	file->fd = op_sys_fcntl(opr_bfd_fd(abfd), F_DUPFD_CLOEXEC, 0);
	file->elf = file->fd < 0 ? NULL : elf_begin(file->fd, ELF_C_READ_MMAP_PRIVATE, NULL);
	if (!file->elf || !gelf_getehdr(file->elf, &header)) {
		opr_dwarf_close(file);
		return -ENOEXEC;
	}
	if (header.e_type == ET_REL) {
		elf_end(file->elf);
		file->elf = NULL;
		open_relocatable(file);
	} else {
		unpack_sections(file);
	}
	if (file->elf) {
		open_package(file);
		add_unit_path(file);
		file->dwarf = dwarf_begin_elf(file->elf, DWARF_C_READ, NULL);
		if (!file->dwarf)
			opr_dwarf_note(file);
	}
	if (file->dwarf)
		find_alt(file, root);
	*ret_file = file;
	return 0;
}

int opr_dwarf_open_image(bfd *image, const char *path, const char *name, const char *root, struct opr_dwarf **ret_file)
{
	bfd *debug = NULL, *chosen = NULL;
	int err = 0;

	*ret_file = NULL;
	if (opr_bfd_has_debug_info(image))
		chosen = image;
	else
		debug = opr_bfd_open_debug_file(image, path, name, root);
	if (debug && opr_bfd_has_debug_info(debug))
		chosen = debug;
	if (chosen)
		err = opr_dwarf_open(chosen, root, ret_file);
	if (debug)
		bfd_close(debug);
	return err;
}

void opr_dwarf_close(struct opr_dwarf *file)
{
	if (!file)
		return;
	dwarf_end(file->dwarf);
	if (file->dwfl)
		dwfl_end(file->dwfl);
	else
		elf_end(file->elf);
	dwarf_end(file->alt);
	if (file->alt_fd >= 0)
		close(file->alt_fd);
	if (file->fd >= 0)
		close(file->fd);
	opr_dwp_close(file->dwp);
	if (file->unit_fd >= 0)
		close(file->unit_fd);
	for (size_t i = 0; i < file->nr_buffers; i++)
		free(file->buffers[i]);
	free(file->buffers);
	free(file->path);
	free(file);
}

/* ---- .dwo files ---- */

static const char *string_of(Dwarf_Die *die, unsigned int name, unsigned int old_name)
{
	Dwarf_Attribute attribute;

	if (!dwarf_attr(die, name, &attribute) && !dwarf_attr(die, old_name, &attribute))
		return NULL;
	return dwarf_formstring(&attribute);
}

static bool unit_id(Dwarf_Die *unit, uint64_t *ret_id, uint8_t *ret_offset_bytes)
{
	return !dwarf_cu_info(unit->cu, NULL, NULL, NULL, NULL, ret_id, NULL, ret_offset_bytes);
}

/*
 * The places of a .dwo file: below the root without its "." and "..", beside the file, at its
 * recorded path.
 */
enum dwo_place { DWO_BELOW_ROOT, DWO_BESIDE, DWO_RECORDED, NR_DWO_PLACES };

static void add_recorded(struct op_text *text, const char *dir, const char *name)
{
	if (name[0] != '/' && dir)
		op_text_printf(text, "%s/", dir);
	op_text_add(text, name);
}

bool opr_add_plain_path(struct op_text *text, const char *path)
{
	size_t begin = text->length;
	bool is_below = true;

	for (size_t length; *path; path += length) {
		path += strspn(path, "/");
		length = strcspn(path, "/");
		if (!length || (length == 1 && path[0] == '.'))
			continue;
		if (length == 2 && path[0] == '.' && path[1] == '.') {
			const char *last = text->length > begin ? strrchr(text->data + begin, '/') : NULL;

			is_below &= last != NULL;
			op_text_truncate(text, last ? (size_t)(last - text->data) : begin);
			continue;
		}
		op_text_add_char(text, '/');
		op_text_add_bytes(text, path, length);
	}
	return is_below;
}

static int open_dwo_at(const struct opr_dwarf *file, const char *dir, const char *name, enum dwo_place place)
{
	struct op_text path = { 0 }, recorded = { 0 };
	size_t nr_root = file->root ? strlen(file->root) : 0;
	bool is_below = file->root && !strncmp(file->path, file->root, nr_root);
	int fd = -ENOENT;

	add_recorded(&recorded, place == DWO_BESIDE ? NULL : dir, name);
	if (op_text_get(&recorded)[0] != '/')
		add_dir_of(&path, file->path + (place == DWO_BELOW_ROOT && is_below ? nr_root : 0));
	op_text_add(&path, op_text_get(&recorded));
	if (path.failed || recorded.failed) {
		fd = -ENOMEM;
	} else if (place != DWO_BELOW_ROOT) {
		fd = open_named(file, path.data);
	} else if (file->root && (is_below || recorded.data[0] == '/')) {
		op_text_truncate(&recorded, 0);
		op_text_add(&recorded, file->root);
		opr_add_plain_path(&recorded, path.data);
		fd = recorded.failed ? -ENOMEM : open_named(file, recorded.data);
	}
	op_text_free(&path);
	op_text_free(&recorded);
	return fd;
}

/* Whether a .dwo file has the unit with that number: libdw gives no second chance. */
static bool has_unit(int fd, uint64_t wanted)
{
	Dwarf *dwarf = dwarf_begin(fd, DWARF_C_READ);
	Dwarf_CU *cu = NULL;
	Dwarf_Die die;
	uint8_t offset_bytes, type;
	uint64_t id;
	bool is_there = false;

	while (dwarf && !is_there && !dwarf_get_units(dwarf, cu, &cu, NULL, &type, &die, NULL))
		is_there = die.cu && type == DW_UT_split_compile && unit_id(&die, &id, &offset_bytes) && id == wanted;
	dwarf_end(dwarf);
	dwarf_errno(); /* an error is of that file */
	return is_there;
}

/* The first of its places that has the unit. A descriptor with *ret_place, or -errno. */
static int open_dwo(const struct opr_dwarf *file, const char *dir, const char *name, uint64_t id, enum dwo_place *ret_place)
{
	for (enum dwo_place place = 0; place < NR_DWO_PLACES; place++) {
		int fd = open_dwo_at(file, dir, name, place);

		if (fd >= 0 && has_unit(fd, id)) {
			*ret_place = place;
			return fd;
		}
		if (fd >= 0)
			close(fd);
	}
	return -ENOENT;
}

/* Makes the file that libdw opens for the unit that of the descriptor, which is closed. */
static bool set_unit_file(struct opr_dwarf *file, Dwarf_Die *unit, int fd, uint8_t offset_bytes)
{
	Dwarf_Attribute name;
	uint8_t *at = NULL;

	if (dwarf_attr(unit, DW_AT_dwo_name, &name) || dwarf_attr(unit, DW_AT_GNU_dwo_name, &name))
		at = find_offset(file, unit, &name, offset_bytes);
	if (at) {
		dup3(fd, file->unit_fd, O_CLOEXEC);
		set_number(file, at, file->unit_name, offset_bytes);
	}
	close(fd);
	return at;
}

bool opr_dwarf_split(struct opr_dwarf *file, Dwarf_Die *unit, Dwarf_Die *ret_split, char **ret_missing)
{
	const char *name = string_of(unit, DW_AT_dwo_name, DW_AT_GNU_dwo_name),
		   *dir = string_of(unit, DW_AT_comp_dir, DW_AT_comp_dir);
	struct op_text path = { 0 };
	enum dwo_place place;
	uint8_t offset_bytes;
	uint64_t id;
	int fd = -1;

	*ret_missing = NULL;
	*ret_split = (Dwarf_Die){ 0 };
	if (!name)
		return false;
	add_recorded(&path, dir, name);
	if (file->unit_name && unit_id(unit, &id, &offset_bytes)) {
		fd = file->dwp ? opr_dwp_unit(file->dwp, id) : -ENOENT;
		if (fd < 0)
			fd = open_dwo(file, dir, name, id, &place);
	}
	if (fd >= 0 && set_unit_file(file, unit, fd, offset_bytes) &&
	    !dwarf_cu_info(unit->cu, NULL, NULL, NULL, ret_split, NULL, NULL, NULL) && ret_split->addr) {
		op_text_free(&path);
		return true;
	}
	*ret_missing = op_text_steal(&path);
	return false;
}

/* ---- the files that it refers to ---- */

static void visit_dwo(struct opr_dwarf *file, Dwarf_Die *unit, opr_dwarf_file_fn *visit, void *arg)
{
	const char *name = string_of(unit, DW_AT_dwo_name, DW_AT_GNU_dwo_name),
		   *dir = string_of(unit, DW_AT_comp_dir, DW_AT_comp_dir);
	struct op_text recorded = { 0 };
	enum dwo_place place;
	uint8_t offset_bytes;
	uint64_t id;
	int fd = name && unit_id(unit, &id, &offset_bytes) ? open_dwo(file, dir, name, id, &place) : -ENOENT;

	if (fd < 0)
		return;
	add_recorded(&recorded, place == DWO_BESIDE ? NULL : dir, name);
	if (!recorded.failed)
		visit(fd, recorded.data[0] == '/' ? OPR_DWARF_AT_PATH : OPR_DWARF_BESIDE, recorded.data, arg);
	op_text_free(&recorded);
	close(fd);
}

void opr_dwarf_visit_files(struct opr_dwarf *file, opr_dwarf_file_fn *visit, void *arg)
{
	Dwarf_CU *cu = NULL;
	Dwarf_Die die;

	if (file->alt) {
		struct op_text path = { 0 };
		const void *build_id;
		ssize_t nr_bytes = dwelf_elf_gnu_build_id(dwarf_getelf(file->alt), &build_id);

		op_text_add(&path, DEBUG_DIR "/.build-id/");
		for (ssize_t i = 0; i < nr_bytes; i++)
			op_text_printf(&path, i == 1 ? "/%02x" : "%02x", ((const unsigned char *)build_id)[i]);
		op_text_add(&path, ".debug");
		visit(file->alt_fd, OPR_DWARF_AT_PATH, op_text_get(&path), arg);
		op_text_free(&path);
	}
	if (file->dwp)
		visit(opr_dwp_fd(file->dwp), OPR_DWARF_WITH_SUFFIX, ".dwp", arg);
	while (file->dwarf && !dwarf_get_units(file->dwarf, cu, &cu, NULL, NULL, &die, NULL))
		if (die.cu)
			visit_dwo(file, &die, visit, arg);
}

/* ---- the headers of the units (DWARF 5, section 7.5.1) ---- */

struct units {
	const uint8_t *bytes;
	uint64_t nr_bytes, nr_abbrev_bytes;
	bool is_big;
};

static uint64_t unit_number(const struct units *units, const uint8_t *at, size_t nr_bytes)
{
	uint64_t number = 0;

	for (size_t i = 0; i < nr_bytes; i++)
		number |= (uint64_t)at[i] << 8 * (units->is_big ? nr_bytes - 1 - i : i);
	return number;
}

/* Moves *at to the next unit. What is wrong with this one; NULL: nothing. */
static const char *check_unit(const struct units *units, uint64_t *at)
{
	const uint8_t *unit = units->bytes + *at;
	uint64_t left = units->nr_bytes - *at, length, abbrev, first;
	unsigned int offset_bytes = 4, length_bytes = 4, version, kind;

	if (left < length_bytes)
		return "is cut";
	length = unit_number(units, unit, 4);
	if (length == UINT32_MAX && left >= 12) {
		length = unit_number(units, unit + 4, 8);
		length_bytes = 12;
		offset_bytes = 8;
	}
	if (length > left - length_bytes)
		return "goes beyond the end";
	*at += length_bytes + length;
	if (length < 4u + offset_bytes)
		return "is too short";
	version = (unsigned int)unit_number(units, unit + length_bytes, 2);
	if (version < 2 || version > 5)
		return "has a version that is not known";
	kind = version == 5 ? unit[length_bytes + 2] : 1;
	abbrev = length_bytes + (version == 5 ? 4 : 2);
	first = length_bytes + (version == 5 ? 4 : 3) + offset_bytes;
	abbrev = unit_number(units, unit + abbrev, offset_bytes);
	if (abbrev >= units->nr_abbrev_bytes)
		return "has no abbreviations";
	if (kind == 1 && (first >= length_bytes + length || !unit[first]))
		return "has no entry";
	return NULL;
}

const char *opr_dwarf_check_units(struct opr_dwarf *file)
{
	static char text[128];
	Elf_Data *info = file->elf ? section_data(file->elf, ".debug_info", ".zdebug_info") : NULL;
	Elf_Data *abbrev = file->elf ? section_data(file->elf, ".debug_abbrev", ".zdebug_abbrev") : NULL;
	const char *ident = file->elf ? elf_getident(file->elf, NULL) : NULL, *fault = NULL;
	struct units units = { .nr_abbrev_bytes = abbrev ? abbrev->d_size : 0 };
	uint64_t at = 0, next = 0;

	if (!info || !info->d_buf || !info->d_size || !ident)
		return "its .debug_info cannot be read";
	units.bytes = info->d_buf;
	units.nr_bytes = info->d_size;
	units.is_big = ident[EI_DATA] == ELFDATA2MSB;
	while (!fault && next < units.nr_bytes) {
		at = next;
		fault = check_unit(&units, &next);
	}
	if (!fault)
		return NULL;
	snprintf(text, sizeof(text), "the unit at 0x%" PRIx64 " of .debug_info %s", at, fault);
	return text;
}
