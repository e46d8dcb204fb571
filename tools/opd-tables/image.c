/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/opd-tables/image.h"

#include <errno.h>
#include <gelf.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "libop/base/grow.h"
#include "tools/opd-tables/cfi.h"
#include "tools/opd-tables/go.h"

#define SEGMENTS_MAX 64u

static int map_file(struct opt_image *image, int fd)
{
	struct stat st;
	void *map;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_size < (off_t)sizeof(Elf64_Ehdr))
		return -ENOEXEC;
	/* libelf may write to it when it unpacks a section */
	map = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	if (map == MAP_FAILED)
		return -errno;
	image->bytes = map;
	image->nr_bytes = (size_t)st.st_size;
	return 0;
}

static int read_segments(struct opt_image *image)
{
	size_t nr_headers, capacity = 0;
	GElf_Phdr header;

	if (elf_getphdrnum(image->elf, &nr_headers) < 0)
		return -ENOEXEC;
	for (size_t i = 0; i < nr_headers; i++) {
		bool is_there = gelf_getphdr(image->elf, (int)i, &header);

		if (is_there && header.p_type == PT_NOTE && header.p_offset < image->nr_bytes &&
		    header.p_filesz <= image->nr_bytes - header.p_offset && !image->build_id.nr_bytes &&
		    !op_build_id_in_notes(image->bytes + header.p_offset, header.p_filesz, &image->build_id))
			image->build_id.nr_bytes = 0;
		image->is_program |= is_there && header.p_type == PT_INTERP;
		if (!is_there || header.p_type != PT_LOAD || !(header.p_flags & PF_X) || image->nr_segments == SEGMENTS_MAX)
			continue;
		if (!op_grow(&image->segments, &capacity, image->nr_segments + 1))
			return -ENOMEM;
		image->segments[image->nr_segments++] = (struct opt_segment){ header.p_vaddr, header.p_filesz, header.p_offset };
	}
	return 0;
}

int opt_image_open(struct opt_image *image, int fd)
{
	GElf_Ehdr header;
	int err;

	*image = (struct opt_image){ 0 };
	err = map_file(image, fd);
	if (err)
		return err;
	if (elf_version(EV_CURRENT) == EV_NONE)
		return -ENOEXEC;
	image->elf = elf_memory((char *)(uintptr_t)image->bytes, image->nr_bytes); // NOLINT(performance-no-int-to-ptr)
	if (!image->elf || elf_kind(image->elf) != ELF_K_ELF || !gelf_getehdr(image->elf, &header) ||
	    gelf_getclass(image->elf) != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB ||
	    (header.e_machine != EM_X86_64 && header.e_machine != EM_AARCH64) || header.e_type == ET_REL)
		return -ENOEXEC;
	image->machine = header.e_machine;
	image->entry = header.e_entry;
	image->is_program = header.e_type == ET_EXEC;
	return read_segments(image);
}

/* ---- where the frame information is ---- */

static const char *section_name(const struct opt_image *image, const GElf_Shdr *header)
{
	size_t names;
	const char *name = elf_getshdrstrndx(image->elf, &names) < 0 ? NULL : elf_strptr(image->elf, names, header->sh_name);

	return name ? name : "";
}

static Elf_Scn *find_section(const struct opt_image *image, const char *name, GElf_Shdr *ret_header)
{
	Elf_Scn *section = NULL;

	while ((section = elf_nextscn(image->elf, section)))
		if (gelf_getshdr(section, ret_header) && !strcmp(section_name(image, ret_header), name))
			return section;
	return NULL;
}

static uint64_t address_of(const struct opt_image *image, const char *name)
{
	GElf_Shdr header;

	return find_section(image, name, &header) ? header.sh_addr : 0;
}

static bool find_frame_section(const struct opt_image *image, const char *name, struct opr_frames *frames)
{
	GElf_Shdr header;
	Elf_Scn *section = find_section(image, name, &header);
	const Elf_Data *data;

	if (!section || header.sh_type == SHT_NOBITS)
		return false;
	if (header.sh_flags & SHF_COMPRESSED && elf_compress(section, 0, 0) < 0)
		return false;
	data = elf_rawdata(section, NULL);
	if (!data || !data->d_buf)
		return false;
	frames->bytes = data->d_buf;
	frames->nr_bytes = data->d_size;
	frames->address = header.sh_addr;
	return true;
}

/*
 * A file without section headers: PT_GNU_EH_FRAME leads to .eh_frame_hdr, which begins with its
 * version, three encodings and a pointer to .eh_frame, for which linkers use four bytes, relative
 * to themselves. Nothing says how long .eh_frame is; it ends with its segment, or with an entry
 * that makes no sense.
 */
static bool find_by_segment(const struct opt_image *image, struct opr_frames *frames)
{
	static const uint8_t version_and_encoding[] = { 1, 0x1b };
	size_t nr_headers;
	GElf_Phdr header;
	uint64_t address = 0;
	int32_t relative;

	if (elf_getphdrnum(image->elf, &nr_headers) < 0)
		return false;
	for (size_t i = 0; i < nr_headers && !address; i++) {
		if (!gelf_getphdr(image->elf, (int)i, &header) || header.p_type != PT_GNU_EH_FRAME || header.p_filesz < 8 ||
		    header.p_offset > image->nr_bytes || image->nr_bytes - header.p_offset < 8 ||
		    memcmp(image->bytes + header.p_offset, version_and_encoding, sizeof(version_and_encoding)) != 0)
			continue;
		memcpy(&relative, image->bytes + header.p_offset + 4, sizeof(relative));
		address = header.p_vaddr + 4 + (uint64_t)(int64_t)(int32_t)le32toh((uint32_t)relative);
	}
	for (size_t i = 0; i < nr_headers && address; i++) {
		if (!gelf_getphdr(image->elf, (int)i, &header) || header.p_type != PT_LOAD || address < header.p_vaddr ||
		    address - header.p_vaddr >= header.p_filesz || header.p_offset > image->nr_bytes ||
		    header.p_filesz > image->nr_bytes - header.p_offset)
			continue;
		frames->bytes = (const uint8_t *)image->bytes + header.p_offset + (address - header.p_vaddr);
		frames->nr_bytes = header.p_filesz - (address - header.p_vaddr);
		frames->address = address;
		return true;
	}
	return false;
}

/*
 * Often nothing describes the code that a signal handler returns to: on arm64, in musl, in Go.
 * Unwinders know it by its two instructions, which load the number of rt_sigreturn and call the
 * kernel. sp is then at the registers of the interrupted code: struct rt_sigframe of
 * arch/x86/include/asm/sigframe.h, and of arch/arm64/kernel/signal.c. The row ends one byte or
 * instruction later: pc is there in the system call.
 */
static const struct signal_code {
	uint16_t machine;
	uint8_t nr_bytes, step; /* of the code; what it is aligned to */
	uint8_t code[9];
	struct op_row_rule rule;
} signal_codes[] = {
#define RULE(sp, sp_at, pc_at, fp_at)                                                                                       \
	{                                                                                                                   \
		OP_CFA_DEREF,     sp,    OP_VALUE_AT_REG, sp,    OP_VALUE_AT_REG, sp, OP_ROW_IS_SIGNAL,                     \
		OP_VALUE_UNKNOWN, sp_at, 0,               pc_at, fp_at,           0                                         \
	}
	/* mov $15, %rax; or %eax; syscall */
	{ EM_X86_64, 9, 1, { 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05 }, RULE(7, 160, 168, 120) },
	{ EM_X86_64, 7, 1, { 0xb8, 0x0f, 0, 0, 0, 0x0f, 0x05 }, RULE(7, 160, 168, 120) },
	/* mov x8, #139; svc #0 */
	{ EM_AARCH64, 8, 4, { 0x68, 0x11, 0x80, 0xd2, 0x01, 0, 0, 0xd4 }, RULE(31, 560, 568, 544) },
#undef RULE
};

/* Adds a row where the code ends at `last`. 0, also when that is other code, or -ENOMEM. */
static int add_signal_row(const struct opt_segment *segment, const uint8_t *bytes, uint64_t nr_bytes, const uint8_t *last,
			  const struct signal_code *code, struct opt_rows *rows)
{
	uint64_t offset = (uint64_t)(last - bytes) + 1 - code->nr_bytes, start = segment->address + offset;
	uint64_t end = segment->address + op_min_u64(offset + code->nr_bytes + code->step, nr_bytes);
	bool is_code;
	int err;

	if (last - bytes < code->nr_bytes - 1 || last[-1] != code->code[code->nr_bytes - 2] ||
	    memcmp(bytes + offset, code->code, code->nr_bytes) != 0 || offset % code->step)
		return 0;
	err = opt_rows_begin(rows, start, end, &is_code);
	return err || !is_code ? err : opt_rows_add(rows, start, &code->rule);
}

/*
 * All codes of a machine end with the same byte. memchr for it takes a third of the time of memmem.
 */
static int read_signal_rows(const struct opt_image *image, const struct opt_segment *segment, struct opt_rows *rows)
{
	uint64_t position = op_min_u64(segment->position, image->nr_bytes);
	uint64_t nr_bytes = op_min_u64(segment->nr_bytes, image->nr_bytes - position);
	const uint8_t *bytes = (const uint8_t *)image->bytes + position, *end = bytes + nr_bytes, *last = bytes;
	int last_byte = image->machine == EM_X86_64 ? 0x05 : 0xd4, err = 0;

	for (; !err && (last = memchr(last, last_byte, (size_t)(end - last))); last++)
		for (size_t i = 0; i < op_array_size(signal_codes) && !err; i++)
			if (signal_codes[i].machine == image->machine)
				err = add_signal_row(segment, bytes, nr_bytes, last, &signal_codes[i], rows);
	return err;
}

/* Whether something runs it by its entry: it is a program, or the dynamic linker. */
static bool is_run(const struct opt_image *image)
{
	static const char *const names[] = { "ld-", "ld64.", "ld.", "libc.musl-" };
	GElf_Shdr header;
	Elf_Scn *section = find_section(image, ".dynamic", &header);
	Elf_Data *data = section ? elf_getdata(section, NULL) : NULL;
	GElf_Dyn entry;

	if (image->is_program)
		return true;
	for (int i = 0; data && gelf_getdyn(data, i, &entry) && entry.d_tag != DT_NULL; i++) {
		const char *name = entry.d_tag == DT_SONAME ? elf_strptr(image->elf, header.sh_link, entry.d_un.d_val) : NULL;

		if (entry.d_tag == DT_FLAGS_1 && entry.d_un.d_val & DF_1_PIE)
			return true;
		for (size_t j = 0; name && j < op_array_size(names); j++)
			if (!strncmp(name, names[j], strlen(names[j])))
				return true;
	}
	return false;
}

/*
 * The kernel jumps to the entry of a program and of the dynamic linker: nothing calls it. Often it
 * has no frame information, as _start of ld.so and of musl. Libraries may have a number there that
 * means nothing. `rows` has all other rows. 0 or -ENOMEM.
 */
static int read_entry_row(const struct opt_image *image, struct opt_rows *rows)
{
	enum { BYTES_MAX = 128 };
	const struct op_row_rule rule = {
		.cfa_how = OP_CFA_REG,
		.cfa_reg = image->machine == EM_X86_64 ? 7 : 31,
		.ra_how = OP_VALUE_UNDEFINED,
		.fp_how = OP_VALUE_UNKNOWN,
		.bx_how = OP_VALUE_UNKNOWN,
	};
	uint64_t nr_bytes = 0, entry = image->entry;
	bool is_code;
	int err;

	for (size_t i = 0; i < image->nr_segments; i++) {
		const struct opt_segment *segment = &image->segments[i];

		if (entry >= segment->address && entry - segment->address < segment->nr_bytes) {
			nr_bytes = op_min_u64(BYTES_MAX, segment->nr_bytes - (entry - segment->address));
			entry += segment->position - segment->address;
			break;
		}
	}
	for (size_t i = 0; i < rows->nr_ranges && nr_bytes; i++) {
		const struct opt_range *range = &rows->ranges[i];

		if (range->start <= entry && entry < range->end)
			return 0;
		if (range->start > entry)
			nr_bytes = op_min_u64(nr_bytes, range->start - entry);
	}
	if (!nr_bytes || !is_run(image))
		return 0;
	err = opt_rows_begin(rows, image->entry, image->entry + nr_bytes, &is_code);
	return err || !is_code ? err : opt_rows_add(rows, image->entry, &rule);
}

/*
 * On arm64 nothing describes the code that calls of other images go through. It leaves sp and lr
 * alone, but for its first entry, of 32 bytes: `stp x16, x30, [sp, #-16]!`, perhaps behind a
 * landing pad, makes room for two words there. 0 or -ENOMEM.
 */
static int read_plt_rows(const struct opt_image *image, struct opt_rows *rows)
{
	enum { INSTRUCTION = 4, FIRST_BYTES = 32, PUSHED = 16, SP = 31 };
	static const uint8_t push[INSTRUCTION] = { 0xf0, 0x7b, 0xbf, 0xa9 };
	struct op_row_rule rule = {
		.cfa_how = OP_CFA_REG,
		.cfa_reg = SP,
		.ra_how = OP_VALUE_SAME,
		.fp_how = OP_VALUE_SAME,
		.bx_how = OP_VALUE_UNKNOWN,
	};
	bool is_code = false, is_pushed = false;
	struct opr_frames plt = { 0 };
	int err;

	if (!find_frame_section(image, ".plt", &plt))
		return 0;
	err = opt_rows_begin(rows, plt.address, plt.address + plt.nr_bytes, &is_code);
	if (err || !is_code)
		return err;
	err = opt_rows_add(rows, plt.address, &rule);
	for (size_t at = 0; at < 2 * INSTRUCTION && at + FIRST_BYTES <= plt.nr_bytes && !is_pushed && !err; at += INSTRUCTION) {
		is_pushed = !memcmp(plt.bytes + at, push, sizeof(push));
		rule.cfa_offset = PUSHED;
		if (is_pushed)
			err = opt_rows_add(rows, plt.address + at + INSTRUCTION, &rule);
	}
	rule.cfa_offset = 0;
	return is_pushed && !err ? opt_rows_add(rows, plt.address + FIRST_BYTES, &rule) : err;
}

/*
 * True when none of these instructions of arm64 calls, changes sp, or is that of a signal frame.
 * Calls are bl, blr and its signed forms. sp changes by add and sub, and by loads and stores that
 * move their base (Arm Architecture Reference Manual, C4.1).
 */
static bool is_leaf(const uint8_t *code, uint64_t nr_bytes)
{
	enum { SP = 31, REGISTER = 31 };
	uint32_t word;

	for (uint64_t at = 0; at + sizeof(word) <= nr_bytes; at += sizeof(word)) {
		memcpy(&word, code + at, sizeof(word));
		word = le32toh(word);
		if ((word & 0xfc000000) == 0x94000000 || (word & 0xfeff0000) == 0xd63f0000 || word == 0xd2801168)
			return false;
		if ((word & REGISTER) == SP && ((word & 0x3f000000) == 0x11000000 || (word & 0x3fe00000) == 0x0b200000))
			return false;
		if ((word >> 5 & REGISTER) == SP && ((word & 0x3a800000) == 0x28800000 || (word & 0x3b200400) == 0x38000400))
			return false;
	}
	return true;
}

static int add_leaf(const struct opt_image *image, struct opt_rows *rows, uint64_t start, uint64_t nr_bytes)
{
	static const struct op_row_rule rule = {
		.cfa_how = OP_CFA_REG,
		.cfa_reg = 31,
		.ra_how = OP_VALUE_SAME,
		.fp_how = OP_VALUE_SAME,
		.bx_how = OP_VALUE_UNKNOWN,
	};
	bool is_code = false;
	int err;

	for (size_t i = 0; i < image->nr_segments; i++) {
		const struct opt_segment *segment = &image->segments[i];
		uint64_t offset = start - segment->address;

		if (offset >= segment->nr_bytes || nr_bytes > segment->nr_bytes - offset || segment->position > image->nr_bytes ||
		    offset + nr_bytes > image->nr_bytes - segment->position ||
		    !is_leaf((const uint8_t *)image->bytes + segment->position + offset, nr_bytes))
			continue;
		err = opt_rows_begin(rows, start, start + nr_bytes, &is_code);
		return err || !is_code ? err : opt_rows_add(rows, start, &rule);
	}
	return 0;
}

/*
 * The vdso of arm64 has no frame information. Its functions that call nothing and leave sp alone
 * have their return address in lr. 0 or -ENOMEM.
 */
static int read_leaf_rows(const struct opt_image *image, struct opt_rows *rows)
{
	GElf_Shdr header;
	Elf_Scn *section = find_section(image, ".dynsym", &header);
	Elf_Data *data = section ? elf_getdata(section, NULL) : NULL;
	GElf_Sym symbol;
	int err = 0;

	for (int i = 0; data && gelf_getsym(data, i, &symbol) && !err; i++)
		if (GELF_ST_TYPE(symbol.st_info) == STT_FUNC && symbol.st_shndx != SHN_UNDEF && symbol.st_size)
			err = add_leaf(image, rows, symbol.st_value, symbol.st_size);
	return err;
}

int opt_image_read_rows(const struct opt_image *image, struct opt_rows *rows, bool *ret_is_whole)
{
	struct opr_frames frames = {
		.is_eh_frame = true,
		.text = address_of(image, ".text"),
		.data = address_of(image, ".got"),
	};
	bool has_frames;
	int err = 0;

	rows->segments = image->segments;
	rows->nr_segments = image->nr_segments;
	/* before the others: of two that begin at one place the first one stays */
	for (size_t i = 0; i < image->nr_segments; i++) {
		err = read_signal_rows(image, &image->segments[i], rows);
		if (err)
			return err;
	}
	has_frames = find_frame_section(image, ".eh_frame", &frames) || find_by_segment(image, &frames);
	if (has_frames)
		err = opt_cfi_read(&frames, image->machine, rows, ret_is_whole);
	if (!err && image->has_go)
		err = opt_go_read_rows(&image->go, image->machine, rows, ret_is_whole);
	if (err)
		return err;
	frames.is_eh_frame = false;
	if (find_frame_section(image, ".debug_frame", &frames))
		err = opt_cfi_read(&frames, image->machine, rows, ret_is_whole);
	if (!err && image->machine == EM_AARCH64)
		err = read_plt_rows(image, rows) ?: (has_frames ? 0 : read_leaf_rows(image, rows));
	return err ? err : read_entry_row(image, rows);
}

void opt_image_close(struct opt_image *image)
{
	elf_end(image->elf);
	if (image->bytes)
		munmap((void *)(uintptr_t)image->bytes, image->nr_bytes); // NOLINT(performance-no-int-to-ptr)
	free(image->segments);
	*image = (struct opt_image){ 0 };
}
