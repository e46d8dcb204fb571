/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/session/jit_object_check.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libop/base/file.h"
#include "libop/odb/file_image.h"
#include "libop/base/seal.h"

/*
 * Every writer puts the section headers last: they are in the file, and the last one is not all
 * zeros.
 */
static int check_end(int fd, const Elf64_Ehdr *header, uint64_t nr_bytes)
{
	uint64_t sections_end = header->e_shoff + (uint64_t)header->e_shnum * sizeof(Elf64_Shdr);
	uint8_t tail[sizeof(Elf64_Shdr)];
	size_t nr_read = 0, nr_zeros = 0;
	int err;

	if (header->e_shoff > nr_bytes || sections_end > nr_bytes || header->e_shentsize != sizeof(Elf64_Shdr) || !header->e_shnum)
		return -EBADMSG;
	err = op_file_read_at(fd, tail, sizeof(tail), (off_t)(nr_bytes - sizeof(tail)), &nr_read);
	while (nr_zeros < nr_read && !tail[nr_zeros])
		nr_zeros++;
	return err ? err : nr_zeros < sizeof(tail) ? 0 : -EBADMSG;
}

static int check_unsealed(int fd, uint64_t nr_bytes)
{
	Elf64_Ehdr header;
	size_t nr_read = 0;
	int err = op_file_read_at(fd, &header, sizeof(header), 0, &nr_read);

	if (err)
		return err;
	if (nr_read < sizeof(header) || memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64)
		return -EBADMSG;
	return check_end(fd, &header, nr_bytes);
}

int op_jit_object_check(int dir_fd, const char *path)
{
	struct stat st;
	int fd = op_odb_open_regular(dir_fd, path, O_RDONLY, &st), err;

	if (fd < 0)
		return fd;
	err = op_seal_check(fd);
	if (err == -EBADMSG && !op_seal_is_there(fd))
		err = check_unsealed(fd, (uint64_t)st.st_size);
	close(fd);
	return err;
}
