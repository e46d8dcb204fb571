/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Shared by the targets for JIT files: a file that grows between reads, and a check of all
 * functions that were kept.
 */
#ifndef FUZZ_JIT_H
#define FUZZ_JIT_H

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "pipeline/jit/address_map.h"
#include "pipeline/jit/object.h"
#include "pipeline/jit/perf_map.h"

static inline void check(bool holds)
{
	if (!holds)
		abort();
}

static inline int new_file(void)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	check(fd >= 0);
	return fd;
}

static inline void append(int fd, const uint8_t *bytes, size_t nr_bytes)
{
	check(write(fd, bytes, nr_bytes) == (ssize_t)nr_bytes);
}

/* The limits hold, every function can be found, and its name can be shown. */
static inline void check_map(struct opd_jit_map *map)
{
	uint64_t offset;

	check(map->nr_bytes <= OPD_JIT_PROCESS_MAX_BYTES && map->nr_bytes == map->counters[OP_JIT_bytes]);
	for (size_t i = 0; i < map->functions.nr_rows; i++) {
		const struct opd_jit_function *function = &map->functions.rows[i];
		const char *name = function->name;

		if (!name)
			continue; /* the function was forgotten */
		check(function->bytes && function->bytes <= OPD_JIT_FUNCTION_MAX_BYTES && *name);
		for (; *name; name++)
			check((unsigned char)*name >= ' ');
		check(opd_jit_map_find(map, function->start + function->bytes / 2, UINT64_MAX, &offset));
		check(offset < OPD_JIT_RANGE_BYTES);
	}
}

static char object_dir[] = "/tmp/fuzz-jit.XXXXXX";

static inline void remove_object_dir(void)
{
	rmdir(object_dir);
}

/* The object of what was kept can be written. */
static inline void check_object(const struct opd_jit_map *map, const struct opd_jitdump *dump)
{
	static int dir_fd = -1;
	struct op_odb_pending *pending;
	uint64_t dir_bytes;

	if (dir_fd < 0) {
		check(mkdtemp(object_dir) && !atexit(remove_object_dir));
		dir_fd = open(object_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	}
	check(!opd_jit_object_write(dir_fd, "jo", "tmp", map, dump, &dir_bytes, &pending));
	check(!unlinkat(dir_fd, "jo", 0));
}

#endif
