/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * usage: mutants IMAGE [NUMBER]: damaged copies of an ELF file through the code of opd-tables, and
 * walks over the tables that come out. Each table must be one that opd accepts. It is built with
 * the sanitizers where the rest is: so it runs in one process, without the sandbox of opd-tables.
 */
#include <elf.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "libop/base/sys.h"
#include "tests/unwind/hostile_walk.h"
#include "tools/opd-tables/table.h"

struct range {
	uint64_t at, nr_bytes;
};

static uint8_t *read_whole(const char *path, size_t *ret_nr_bytes)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	off_t nr_bytes = fd < 0 ? -1 : lseek(fd, 0, SEEK_END);
	uint8_t *bytes = nr_bytes > 0 ? malloc((size_t)nr_bytes) : NULL;

	if (!bytes || pread(fd, bytes, (size_t)nr_bytes, 0) != nr_bytes)
		return NULL;
	close(fd);
	*ret_nr_bytes = (size_t)nr_bytes;
	return bytes;
}

/* Of 64 bits and little-endian: as opd-tables wants it. */
static bool is_for_tables(const uint8_t *bytes, size_t nr_bytes)
{
	return nr_bytes > sizeof(Elf64_Ehdr) && !memcmp(bytes, ELFMAG, SELFMAG) && bytes[EI_CLASS] == ELFCLASS64 &&
	       bytes[EI_DATA] == ELFDATA2LSB;
}

/* The section with this name; the file is a good one. */
static struct range find_section(const uint8_t *bytes, const char *name)
{
	const Elf64_Ehdr *header = (const void *)bytes;
	const Elf64_Shdr *sections = (const void *)(bytes + le64toh(header->e_shoff));
	const char *names = (const char *)bytes + le64toh(sections[le16toh(header->e_shstrndx)].sh_offset);

	for (size_t i = 0; i < le16toh(header->e_shnum); i++)
		if (!strcmp(names + le32toh(sections[i].sh_name), name))
			return (struct range){ le64toh(sections[i].sh_offset), le64toh(sections[i].sh_size) };
	return (struct range){ 0, 0 };
}

/* Few bytes mostly: an entry that is all wrong is refused at its begin. */
static void damage(uint8_t *bytes, struct range range, uint64_t *state)
{
	static const uint8_t values[] = { 0, 1, 0x7f, 0x80, 0xff };
	static const unsigned int amounts[] = { 1, 1, 2, 8, 64 };
	unsigned int nr = amounts[hostile_random(state) % op_array_size(amounts)];

	for (unsigned int i = 0; i < nr && range.nr_bytes; i++) {
		uint64_t number = hostile_random(state);

		bytes[range.at + (number >> 8) % range.nr_bytes] =
			number % 6 < op_array_size(values) ? values[number % 6] : (uint8_t)(number >> 56);
	}
}

/* True: there is a table. A table that opd refuses ends the program. */
static bool make_and_walk(const uint8_t *image, size_t nr_bytes, uint64_t seed)
{
	int image_fd = memfd_create("image", MFD_CLOEXEC), table_fd = memfd_create("table", MFD_CLOEXEC), err;
	struct op_row_table table;
	size_t nr_table_bytes;
	char *names = NULL;
	void *map;

	if (image_fd < 0 || table_fd < 0 || op_sys_write_all(image_fd, image, nr_bytes))
		exit(2);
	err = opt_table_make(image_fd, table_fd, false);
	close(image_fd);
	nr_table_bytes = (size_t)lseek(table_fd, 0, SEEK_END);
	map = err ? MAP_FAILED : mmap(NULL, nr_table_bytes, PROT_READ, MAP_SHARED, table_fd, 0);
	close(table_fd);
	if (map == MAP_FAILED)
		return false;
	if (op_row_table_open(&table, map, nr_table_bytes)) {
		fprintf(stderr, "opd would refuse the table of mutant %llu\n", (unsigned long long)seed);
		exit(1);
	}
	hostile_walks(&table, seed * 0x9e3779b97f4a7c15u);
	if (!op_row_table_names(&table, &names))
		free(names);
	munmap(map, nr_table_bytes);
	return true;
}

int main(int argc, char **argv)
{
	unsigned long nr_mutants = argc > 2 ? strtoul(argv[2], NULL, 10) : 500, nr_tables = 0;
	size_t nr_bytes = 0;
	uint8_t *good = argc > 1 ? read_whole(argv[1], &nr_bytes) : NULL, *bad = good ? malloc(nr_bytes) : NULL;
	struct range frames, symbols, header = { 0, 64 + 10 * sizeof(Elf64_Phdr) };
	uint64_t state = 20;

	if (!bad || !is_for_tables(good, nr_bytes)) {
		fprintf(stderr, "usage: mutants IMAGE [NUMBER]; IMAGE is an ELF file of 64 bits, little-endian\n");
		return 2;
	}
	frames = find_section(good, ".eh_frame");
	symbols = find_section(good, ".dynsym");
	if (!frames.nr_bytes || !make_and_walk(good, nr_bytes, 0))
		return 2;
	for (unsigned long i = 1; i <= nr_mutants; i++) {
		memcpy(bad, good, nr_bytes);
		damage(bad, frames, &state);
		if (i % 5 == 0)
			damage(bad, header, &state);
		if (i % 5 == 1)
			damage(bad, symbols, &state);
		nr_tables += make_and_walk(bad, i % 50 ? nr_bytes : hostile_random(&state) % nr_bytes, i);
	}
	printf("%lu mutants, %lu tables, %u walks over each\n", nr_mutants, nr_tables, HOSTILE_WALKS);
	free(good);
	free(bad);
	return nr_tables < nr_mutants / 4;
}
