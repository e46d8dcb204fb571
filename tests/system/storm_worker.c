// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * What a storm is made of: small and static, so that it begins and ends quickly.
 *
 *   storm_worker PAGES SPINS   touches PAGES new pages in touch_pages, goes SPINS times round a
 *                              loop in spin_here, ends
 *   storm_worker sleep MAPS    maps its own code MAPS times more, writes a byte to its output,
 *                              sleeps until its input ends; then touches 8
 *                              new pages in touch_pages
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "tests/system/storm_touch.h"

#define WAKE_PAGES 8

__attribute__((noinline)) static uint64_t spin_here(uint64_t steps, uint64_t x)
{
	for (; steps; steps--) {
		x = x * 6364136223846793005u + 1442695040888963407u;
		__asm__ volatile("" : "+r"(x));
	}
	return x;
}

/* Maps every second page of a reserved range, so that the kernel cannot merge the mappings. */
static int map_code(size_t nr_maps)
{
	size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), err = fd < 0;
	char *memory = mmap(NULL, 2 * nr_maps * page_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (nr_maps && memory == MAP_FAILED)
		return -1;
	for (size_t i = 0; i < nr_maps && !err; i++)
		err = mmap(memory + 2 * i * page_bytes, page_bytes, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, fd, 0) ==
		      MAP_FAILED;
	return err ? -1 : close(fd);
}

static int sleep_on(size_t nr_maps)
{
	char byte = 1;

	if (map_code(nr_maps) < 0 || write(STDOUT_FILENO, &byte, 1) != 1)
		return 1;
	if (read(STDIN_FILENO, &byte, 1) != 0)
		return 1;
	return touch_new_pages(WAKE_PAGES) < 0;
}

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	if (!strcmp(argv[1], "sleep"))
		return sleep_on(strtoul(argv[2], NULL, 10));
	if (touch_new_pages(strtoul(argv[1], NULL, 10)) < 0)
		return 1;
	return !spin_here(strtoul(argv[2], NULL, 10), 1);
}
