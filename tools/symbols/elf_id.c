/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/symbols/elf_id.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/symbols/image_identity.h"

#define PROGRAMS_MAX   128
#define NOTE_BYTES_MAX 65536
#define FIRST_BYTES    4096
#define OWNER          "GNU" /* with its NUL byte */

/* A file and what it begins with, where linkers put all that is looked for. */
struct object {
	int fd;
	size_t nr_first;
	uint8_t first[FIRST_BYTES];
};

static bool read_at(const struct object *object, void *buffer, size_t nr_bytes, uint64_t position)
{
	if (position < object->nr_first && nr_bytes <= object->nr_first - position) {
		memcpy(buffer, object->first + position, nr_bytes);
		return true;
	}
	return position <= INT64_MAX && pread(object->fd, buffer, nr_bytes, (off_t)position) == (ssize_t)nr_bytes;
}

static size_t aligned(size_t nr_bytes)
{
	return (nr_bytes + 3) & ~(size_t)3;
}

static bool find_id(const uint8_t *notes, size_t nr_bytes, char digits[2 * OP_BUILD_ID_BYTES_MAX + 1])
{
	Elf64_Nhdr note;

	for (size_t at = 0; nr_bytes - at >= sizeof(note);) {
		size_t left = nr_bytes - at - sizeof(note);
		const uint8_t *name = notes + at + sizeof(note);

		memcpy(&note, notes + at, sizeof(note));
		if (note.n_namesz > left || aligned(note.n_namesz) > left || note.n_descsz > left - aligned(note.n_namesz))
			return false;
		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == sizeof(OWNER) && !memcmp(name, OWNER, sizeof(OWNER)) &&
		    note.n_descsz && note.n_descsz <= OP_BUILD_ID_BYTES_MAX) {
			opr_format_build_id(name + aligned(note.n_namesz), note.n_descsz, digits);
			return true;
		}
		if (aligned(note.n_descsz) > left - aligned(note.n_namesz))
			return false;
		at += sizeof(note) + aligned(note.n_namesz) + aligned(note.n_descsz);
	}
	return false;
}

static int find_in_segment(const struct object *object, const Elf64_Phdr *program, char digits[2 * OP_BUILD_ID_BYTES_MAX + 1])
{
	uint8_t *notes;
	int err = -ENODATA;

	if (program->p_type != PT_NOTE || program->p_filesz > NOTE_BYTES_MAX)
		return -ENODATA;
	notes = malloc(program->p_filesz + 1);
	if (!notes)
		return -ENOMEM;
	if (read_at(object, notes, program->p_filesz, program->p_offset) && find_id(notes, program->p_filesz, digits))
		err = 0;
	free(notes);
	return err;
}

static int find_in_file(const struct object *object, char digits[2 * OP_BUILD_ID_BYTES_MAX + 1])
{
	const unsigned char data = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB;
	Elf64_Ehdr header;
	int err = -ENODATA;

	if (!read_at(object, &header, sizeof(header), 0) || memcmp(header.e_ident, ELFMAG, SELFMAG) ||
	    header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != data || header.e_phentsize != sizeof(Elf64_Phdr))
		return -ENODATA;
	for (size_t i = 0; i < header.e_phnum && i < PROGRAMS_MAX && err == -ENODATA; i++) {
		Elf64_Phdr program;

		if (header.e_phoff > INT64_MAX || !read_at(object, &program, sizeof(program), header.e_phoff + i * sizeof(program)))
			break;
		err = find_in_segment(object, &program, digits);
	}
	return err;
}

static int find_in_object(int fd, char digits[2 * OP_BUILD_ID_BYTES_MAX + 1])
{
	struct object object = { .fd = fd };
	ssize_t got = pread(fd, object.first, sizeof(object.first), 0);

	if (got < 0)
		return -errno;
	object.nr_first = (size_t)got;
	return find_in_file(&object, digits);
}

int opr_elf_build_id(const char *path, char digits[2 * OP_BUILD_ID_BYTES_MAX + 1], struct stat *ret_st)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), err;

	if (fd < 0)
		return -errno;
	err = fstat(fd, ret_st) < 0 ? -errno : S_ISREG(ret_st->st_mode) ? find_in_object(fd, digits) : -ENODATA;
	close(fd);
	return err;
}
