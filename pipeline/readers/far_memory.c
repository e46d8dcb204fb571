/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pipeline/readers/far_memory.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libop/base/sys.h"

#define PROGRAM_HEADERS_MAX 64u
#define DYNAMIC_MAX         256u  /* entries */
#define CHAIN_MAX           1024u /* symbols of one bucket */
#define STATUS_BYTES        1024u /* of /proc/PID/status, up to its groups */

static ssize_t read_process(void *arg, uint64_t address, void *to, size_t nr_bytes)
{
	int fd = (int)(intptr_t)arg;

	if (address > INT64_MAX - nr_bytes)
		return -EFAULT;
	return op_sys_pread(fd, to, nr_bytes, (off_t)address);
}

int opd_far_memory_who(uint32_t pid, uint64_t *ret_who)
{
	char path[32], status[STATUS_BYTES];
	const char *users, *groups;
	uint32_t user, group;
	ssize_t nr;
	int fd;

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/status", pid);
	fd = op_sys_openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
	if (fd < 0)
		return fd;
	nr = op_sys_read(fd, status, sizeof(status) - 1);
	close(fd);
	if (nr < 0)
		return (int)nr;
	status[nr] = '\0';
	users = strstr(status, "\nUid:\t");
	groups = strstr(status, "\nGid:\t");
	if (!users || !groups || sscanf(users, "\nUid:%*u%" SCNu32, &user) != 1 ||
	    sscanf(groups, "\nGid:%*u%" SCNu32, &group) != 1)
		return -ESRCH;
	*ret_who = (uint64_t)user << 32 | group;
	return 0;
}

/* The look at the user comes after the memory is open: execve changes both under one lock. */
int opd_far_memory_open_fd(uint32_t pid, uint64_t who)
{
	uint64_t who_now;
	char path[32];
	int fd, err;

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/mem", pid);
	fd = op_sys_openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
	if (fd < 0)
		return fd;
	err = opd_far_memory_who(pid, &who_now);
	if (!err && who_now == who)
		return fd;
	close(fd);
	return err ? err : -ESTALE;
}

int opd_far_memory_open(uint32_t pid, uint64_t who, uint32_t nr_pages, struct opd_far_memory **ret_memory)
{
	struct opd_far_memory *memory;
	int fd = opd_far_memory_open_fd(pid, who);

	if (fd < 0)
		return fd;
	memory = malloc(sizeof(*memory));
	if (!memory) {
		close(fd);
		return -ENOMEM;
	}
	memory->read = read_process;
	memory->arg = (void *)(intptr_t)fd;
	memory->nr_pages_left = nr_pages;
	memory->nr_pages = 0;
	memset(memory->slots, 0, sizeof(memory->slots));
	*ret_memory = memory;
	return 0;
}

void opd_far_memory_close(struct opd_far_memory *memory)
{
	if (memory)
		close((int)(intptr_t)memory->arg);
	free(memory);
}

/* The slot of a page, after it was read. */
static int find_page(struct opd_far_memory *memory, uint64_t page, size_t *ret_slot)
{
	size_t slot = page % OPD_FAR_SLOTS;
	ssize_t nr;

	*ret_slot = slot;
	if (memory->slots[slot].page == page + 1)
		return 0;
	if (!memory->nr_pages_left)
		return -EDQUOT;
	memory->nr_pages_left--;
	memory->nr_pages++;
	memory->slots[slot].page = 0;
	nr = memory->read(memory->arg, page * OPD_FAR_PAGE_BYTES, memory->bytes[slot], OPD_FAR_PAGE_BYTES);
	if (nr <= 0)
		return -EFAULT;
	memory->slots[slot].page = page + 1;
	memory->slots[slot].nr_bytes = (uint32_t)nr;
	return 0;
}

int opd_far_memory_read(struct opd_far_memory *memory, uint64_t address, void *to, size_t nr_bytes)
{
	uint8_t *at = to;

	if (address > UINT64_MAX - nr_bytes)
		return -EFAULT;
	while (nr_bytes) {
		size_t in_page = (size_t)(address % OPD_FAR_PAGE_BYTES), slot;
		size_t part = op_min_u64(nr_bytes, OPD_FAR_PAGE_BYTES - in_page);
		int err = find_page(memory, address / OPD_FAR_PAGE_BYTES, &slot);

		if (err)
			return err;
		if (in_page + part > memory->slots[slot].nr_bytes)
			return -EFAULT;
		memcpy(at, memory->bytes[slot] + in_page, part);
		address += part;
		at += part;
		nr_bytes -= part;
	}
	return 0;
}

int opd_far_memory_string(struct opd_far_memory *memory, uint64_t address, char *to, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		int err = opd_far_memory_read(memory, address + i, to + i, 1);

		if (err)
			return err;
		if (!to[i])
			return 0;
	}
	return -EBADMSG;
}

/* ---- images ---- */

int opd_far_memory_image(uint32_t pid, uint64_t address, uint64_t *ret_start)
{
	struct {
		uint64_t start, inode;
		unsigned int major, minor;
	} first = { 0 };
	char path[32], line[OPD_FAR_STRING_MAX + 128];
	FILE *maps;
	int err = -ENOENT;

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/maps", pid);
	maps = fopen(path, "re");
	if (!maps)
		return -errno;
	while (err == -ENOENT && fgets(line, sizeof(line), maps)) {
		uint64_t start, end, offset, inode;
		unsigned int major, minor;

		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*4s %" SCNx64 " %x:%x %" SCNu64, &start, &end, &offset, &major, &minor,
			   &inode) != 6 ||
		    !inode)
			continue;
		if (!offset) {
			first.start = start;
			first.inode = inode;
			first.major = major;
			first.minor = minor;
		}
		if (start <= address && address < end)
			err = first.inode == inode && first.major == major && first.minor == minor ? 0 : -ENODATA;
	}
	fclose(maps);
	if (!err)
		*ret_start = first.start;
	return err;
}

struct dynamic {
	uint64_t symbols, strings, gnu_hash;
};

/* The dynamic linker has added the start to these addresses, or not. */
static uint64_t in_image(uint64_t start, uint64_t value)
{
	return value < start ? start + value : value;
}

static int read_dynamic(struct opd_far_memory *memory, uint64_t start, struct dynamic *ret_dynamic)
{
	uint64_t at = 0, first = UINT64_MAX;
	Elf64_Ehdr header;
	Elf64_Phdr program;
	Elf64_Dyn entry;
	int err = opd_far_memory_read(memory, start, &header, sizeof(header));

	if (err)
		return err;
	if (memcmp(header.e_ident, ELFMAG, SELFMAG) || header.e_ident[EI_CLASS] != ELFCLASS64 ||
	    header.e_phentsize != sizeof(program) || header.e_phnum > PROGRAM_HEADERS_MAX || header.e_phoff > OPD_FAR_PAGE_BYTES)
		return -ENOEXEC;
	for (unsigned int i = 0; i < header.e_phnum; i++) {
		err = opd_far_memory_read(memory, start + header.e_phoff + i * sizeof(program), &program, sizeof(program));
		if (err)
			return err;
		if (program.p_type == PT_LOAD && program.p_offset == 0)
			first = program.p_vaddr;
		if (program.p_type == PT_DYNAMIC)
			at = program.p_vaddr;
	}
	if (!at || first == UINT64_MAX)
		return -ENOEXEC;
	*ret_dynamic = (struct dynamic){ 0 };
	for (unsigned int i = 0; i < DYNAMIC_MAX; i++) {
		err = opd_far_memory_read(memory, start - first + at + i * sizeof(entry), &entry, sizeof(entry));
		if (err)
			return err;
		if (entry.d_tag == DT_NULL)
			return ret_dynamic->symbols && ret_dynamic->strings && ret_dynamic->gnu_hash ? 0 : -ENOEXEC;
		if (entry.d_tag == DT_SYMTAB)
			ret_dynamic->symbols = in_image(start, entry.d_un.d_ptr);
		else if (entry.d_tag == DT_STRTAB)
			ret_dynamic->strings = in_image(start, entry.d_un.d_ptr);
		else if (entry.d_tag == DT_GNU_HASH)
			ret_dynamic->gnu_hash = in_image(start, entry.d_un.d_ptr);
	}
	return -ENOEXEC;
}

static uint32_t gnu_hash_of(const char *name)
{
	uint32_t hash = 5381;

	for (; *name; name++)
		hash = hash * 33 + (uint8_t)*name;
	return hash;
}

/* The value of a symbol, if it has this name. -ENOENT: it has another one. */
static int read_symbol(struct opd_far_memory *memory, const struct dynamic *dynamic, uint32_t index, const char *name,
		       uint64_t *ret_value)
{
	char text[128];
	Elf64_Sym symbol;
	int err = opd_far_memory_read(memory, dynamic->symbols + sizeof(symbol) * (uint64_t)index, &symbol, sizeof(symbol));

	if (err)
		return err;
	err = opd_far_memory_string(memory, dynamic->strings + symbol.st_name, text, sizeof(text));
	if (err && err != -EBADMSG)
		return err;
	if (err || strcmp(text, name) || symbol.st_shndx == SHN_UNDEF)
		return -ENOENT;
	*ret_value = symbol.st_value;
	return 0;
}

/* The GNU hash section: four numbers, the filter, the buckets, and the hash of each symbol. */
int opd_far_memory_symbol(struct opd_far_memory *memory, uint64_t start, const char *name, uint64_t *ret_address)
{
	struct {
		uint32_t nr_buckets, first, nr_filter, shift;
	} head;
	struct dynamic dynamic;
	uint32_t hash = gnu_hash_of(name), index, found;
	uint64_t buckets, value = 0;
	int err = read_dynamic(memory, start, &dynamic);

	if (err)
		return err;
	err = opd_far_memory_read(memory, dynamic.gnu_hash, &head, sizeof(head));
	if (err)
		return err;
	if (!head.nr_buckets)
		return -ENOENT;
	buckets = dynamic.gnu_hash + sizeof(head) + 8ull * head.nr_filter;
	err = opd_far_memory_read(memory, buckets + 4ull * (hash % head.nr_buckets), &index, sizeof(index));
	if (err)
		return err;
	for (unsigned int i = 0; index >= head.first && i < CHAIN_MAX; i++, index++) {
		err = opd_far_memory_read(memory, buckets + 4ull * head.nr_buckets + 4ull * (index - head.first), &found,
					  sizeof(found));
		if (err)
			return err;
		if ((found | 1) == (hash | 1)) {
			err = read_symbol(memory, &dynamic, index, name, &value);
			if (err != -ENOENT) {
				*ret_address = start + value;
				return err;
			}
		}
		if (found & 1)
			break;
	}
	return -ENOENT;
}
