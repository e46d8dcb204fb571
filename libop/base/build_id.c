/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/base/build_id.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "libop/base/sys.h"

#define NOTES_BYTES_MAX 16384u /* those of a kernel have a few hundred */
#define OWNER		"GNU"

/* The fields of a note begin at multiples of four. */
static uint64_t aligned(uint32_t nr_bytes)
{
	return ((uint64_t)nr_bytes + 3) & ~UINT64_C(3);
}

static bool is_build_id(const Elf64_Nhdr *note, const uint8_t *name)
{
	return note->n_type == NT_GNU_BUILD_ID && note->n_namesz == sizeof(OWNER) && !memcmp(name, OWNER, sizeof(OWNER)) &&
	       note->n_descsz > 0 && note->n_descsz <= OP_BUILD_ID_BYTES_MAX;
}

static bool find(const void *notes, size_t nr_bytes, bool swapped, struct op_build_id *ret_id)
{
	const uint8_t *at = notes;
	Elf64_Nhdr note;

	while (nr_bytes >= sizeof(note)) {
		uint64_t name_bytes, bytes;

		memcpy(&note, at, sizeof(note));
		if (swapped)
			note = (Elf64_Nhdr){ __builtin_bswap32(note.n_namesz), __builtin_bswap32(note.n_descsz),
					     __builtin_bswap32(note.n_type) };
		name_bytes = aligned(note.n_namesz);
		bytes = sizeof(note) + name_bytes + aligned(note.n_descsz);
		if (sizeof(note) + name_bytes + note.n_descsz > nr_bytes)
			return false;
		if (is_build_id(&note, at + sizeof(note))) {
			*ret_id = (struct op_build_id){ .nr_bytes = (uint8_t)note.n_descsz };
			memcpy(ret_id->bytes, at + sizeof(note) + name_bytes, note.n_descsz);
			return true;
		}
		if (bytes > nr_bytes)
			return false;
		at += bytes;
		nr_bytes -= bytes;
	}
	return false;
}

bool op_build_id_in_notes(const void *notes, size_t nr_bytes, struct op_build_id *ret_id)
{
	return find(notes, nr_bytes, false, ret_id) || find(notes, nr_bytes, true, ret_id);
}

int op_build_id_of_notes_file(const char *path, struct op_build_id *ret_id)
{
	int fd = op_sys_openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
	uint8_t notes[NOTES_BYTES_MAX];
	size_t nr_bytes = 0;
	ssize_t nr;

	if (fd < 0)
		return fd;
	while ((nr = op_sys_read(fd, notes + nr_bytes, sizeof(notes) - nr_bytes)) > 0)
		nr_bytes += (size_t)nr;
	close(fd);
	if (nr < 0)
		return (int)nr;
	return op_build_id_in_notes(notes, nr_bytes, ret_id) ? 0 : -ENODATA;
}

void op_build_id_format(const uint8_t *build_id, size_t nr_bytes, char digits[OP_BUILD_ID_DIGITS])
{
	digits[0] = '\0';
	for (size_t i = 0; i < nr_bytes && i < OP_BUILD_ID_BYTES_MAX; i++)
		snprintf(digits + 2 * i, 3, "%02x", build_id[i]);
}
