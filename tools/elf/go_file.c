/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/elf/go_file.h"

#include <sys/mman.h>
#include <sys/stat.h>

void opr_go_file_open(struct opr_go_file *go, int fd)
{
	struct stat st;
	void *map;

	*go = (struct opr_go_file){ 0 };
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size <= 0 || (uint64_t)st.st_size > SIZE_MAX)
		return;
	map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (map == MAP_FAILED)
		return;
	go->bytes = map;
	go->nr_bytes = (uint64_t)st.st_size;
	if (!opr_go_find(go->bytes, go->nr_bytes, &go->table))
		opr_go_file_close(go);
}

void opr_go_file_close(struct opr_go_file *go)
{
	if (go->bytes)
		munmap((void *)(uintptr_t)go->bytes, (size_t)go->nr_bytes); // NOLINT(performance-no-int-to-ptr)
	*go = (struct opr_go_file){ 0 };
}
