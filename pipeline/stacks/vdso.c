/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pipeline/stacks/vdso.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "libop/base/sys.h"

/* False: there is none. */
static bool find(uintptr_t *ret_start, uintptr_t *ret_end)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	unsigned long long start, end;
	size_t capacity = 0;
	bool found = false;
	char *line = NULL;

	while (maps && !found && getline(&line, &capacity, maps) > 0)
		found = strstr(line, " " OPD_VDSO_NAME "\n") && sscanf(line, "%llx-%llx", &start, &end) == 2;
	free(line);
	if (maps)
		fclose(maps);
	if (found) {
		*ret_start = (uintptr_t)start;
		*ret_end = (uintptr_t)end;
	}
	return found;
}

int opd_vdso_copy(void)
{
	uintptr_t start, end;
	int fd, err;

	if (!find(&start, &end))
		return -ENOENT;
	fd = op_sys_memfd_create("opd-vdso", MFD_CLOEXEC);
	if (fd < 0)
		return fd;
	err = op_sys_write_all(fd, (const void *)start, end - start); // NOLINT(performance-no-int-to-ptr)
	if (!err)
		return fd;
	close(fd);
	return err;
}
