/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/code/core_file.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "libop/base/sys.h"

#define SEGMENTS_MAX 4096
#define OWN_PROGRAM  "/proc/self/exe"

static bool is_core(const Elf64_Ehdr *header)
{
	const unsigned char data = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB;

	return !memcmp(header->e_ident, ELFMAG, SELFMAG) && header->e_ident[EI_CLASS] == ELFCLASS64 &&
	       header->e_ident[EI_DATA] == data && header->e_type == ET_CORE && header->e_phentsize == sizeof(Elf64_Phdr) &&
	       header->e_phnum <= SEGMENTS_MAX;
}

static int read_all(int fd, void *buffer, size_t nr_bytes, uint64_t position)
{
	ssize_t got = position <= INT64_MAX ? pread(fd, buffer, nr_bytes, (off_t)position) : -1;

	if (got < 0)
		return position <= INT64_MAX ? -errno : -ENOEXEC;
	return (size_t)got == nr_bytes ? 0 : -ENOEXEC;
}

static int read_segments(struct opr_core *core, const Elf64_Ehdr *header)
{
	int err = 0;

	core->segments = calloc(header->e_phnum + 1u, sizeof(*core->segments));
	if (!core->segments)
		return -ENOMEM;
	for (size_t i = 0; i < header->e_phnum && !err; i++) {
		Elf64_Phdr program;

		err = read_all(core->fd, &program, sizeof(program), header->e_phoff + i * sizeof(program));
		if (!err && program.p_type == PT_LOAD)
			core->segments[core->nr_segments++] =
				(struct opr_core_segment){ program.p_vaddr, program.p_filesz, program.p_offset };
	}
	return err;
}

/* The machine (EM_*) of this program; EM_NONE: it cannot be read. */
static uint16_t own_machine(void)
{
	int fd = open(OWN_PROGRAM, O_RDONLY | O_CLOEXEC);
	Elf64_Ehdr header = { .e_machine = EM_NONE };

	if (fd < 0)
		return EM_NONE;
	if (read_all(fd, &header, sizeof(header), 0))
		header.e_machine = EM_NONE;
	close(fd);
	return header.e_machine;
}

int opr_core_open(struct opr_core *core, const char *path)
{
	Elf64_Ehdr header;
	int err;

	*core = (struct opr_core){ .fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) };
	if (core->fd < 0)
		return -errno;
	err = read_all(core->fd, &header, sizeof(header), 0);
	if (err)
		return err;
	core->machine = header.e_machine;
	return is_core(&header) && header.e_machine == own_machine() ? read_segments(core, &header) : -ENOEXEC;
}

static const struct opr_core_segment *find_segment(const struct opr_core *core, uint64_t vma)
{
	for (size_t i = 0; i < core->nr_segments; i++)
		if (vma >= core->segments[i].vma && vma - core->segments[i].vma < core->segments[i].bytes)
			return &core->segments[i];
	return NULL;
}

int opr_core_read(const struct opr_core *core, uint64_t vma, uint64_t nr_bytes, uint8_t **ret_bytes, size_t *ret_nr_bytes)
{
	const struct opr_core_segment *segment = find_segment(core, vma);
	size_t wanted = segment ? (size_t)op_min_u64(nr_bytes, segment->bytes - (vma - segment->vma)) : 0;
	uint8_t *bytes;
	int err;

	if (!wanted)
		return -EFAULT;
	bytes = malloc(wanted);
	if (!bytes)
		return -ENOMEM;
	err = read_all(core->fd, bytes, wanted, segment->position + (vma - segment->vma));
	if (err) {
		free(bytes);
		return err;
	}
	*ret_bytes = bytes;
	*ret_nr_bytes = wanted;
	return 0;
}

int opr_core_save(const struct opr_core *core, uint64_t start, uint64_t end, int fd)
{
	struct {
		Elf64_Ehdr header;
		Elf64_Phdr program;
	} head = {
		.header = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64,
					 __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB, EV_CURRENT },
			    .e_type = ET_CORE,
			    .e_machine = core->machine,
			    .e_version = EV_CURRENT,
			    .e_phoff = sizeof(head.header),
			    .e_ehsize = sizeof(head.header),
			    .e_phentsize = sizeof(head.program),
			    .e_phnum = 1 },
		.program = { .p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_offset = sizeof(head), .p_vaddr = start, .p_align = 1 },
	};
	uint8_t *bytes = NULL;
	size_t nr_bytes = 0;
	int err = end - start > OPR_CORE_SAVE_MAX ? -EFBIG : opr_core_read(core, start, end - start, &bytes, &nr_bytes);

	if (err)
		return err;
	head.program.p_filesz = head.program.p_memsz = nr_bytes;
	err = op_sys_write_all(fd, &head, sizeof(head));
	if (!err)
		err = op_sys_write_all(fd, bytes, nr_bytes);
	free(bytes);
	return err;
}

void opr_core_close(struct opr_core *core)
{
	if (core->fd >= 0)
		close(core->fd);
	free(core->segments);
	*core = (struct opr_core){ .fd = -1 };
}
