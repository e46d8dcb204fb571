/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Functions of an image that is gone, from the row table that opd made while it ran (opd-table(5)).
 * The table is checked as a whole before it is used, so this needs no child process.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libop/base/seal.h"
#include "libop/unwind/row_table.h"
#include "tools/symbols/symbol_sources.h"

#define SEAL_BYTES 16u

/* ---- the file ---- */

/* The only table of a user's file with this build-id. -ENOENT: none, or several. */
static int open_of_user(int dir_fd, const char *digits)
{
	DIR *dir = fdopendir(dir_fd);
	const struct dirent *entry;
	size_t length = strlen(digits);
	int fd = -ENOENT, nr = 0;

	if (!dir) {
		close(dir_fd);
		return -ENOENT;
	}
	while ((entry = readdir(dir))) {
		if (strncmp(entry->d_name, digits, length) != 0 || entry->d_name[length] != '.' || strstr(entry->d_name, ".tmp"))
			continue;
		if (fd >= 0)
			close(fd);
		fd = nr++ ? -ENOENT : openat(dirfd(dir), entry->d_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	}
	closedir(dir);
	return fd < 0 ? -ENOENT : fd;
}

/* opd keeps those of root's files and those of users apart. */
int opr_table_open(const char *table_dir, const char *digits)
{
	char path[PATH_MAX];
	int dir_fd, fd;

	if (strlen(digits) < 3 || (size_t)snprintf(path, sizeof(path), "%s/%.2s", table_dir, digits) >= sizeof(path))
		return -ENOENT;
	dir_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir_fd < 0)
		return -ENOENT;
	fd = openat(dir_fd, digits, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return open_of_user(dir_fd, digits);
	close(dir_fd);
	return fd;
}

/* ---- its functions ---- */

static int add_functions(struct opr_symbols *symbols, const struct op_row_table *table, const char *names)
{
	int err = 0;

	for (size_t i = 0; i < table->nr_functions && !err; i++) {
		const struct op_row_function *function = &table->functions[i];
		uint32_t start = le32toh(function->start), name = le32toh(function->name);
		char unnamed[32];

		snprintf(unnamed, sizeof(unnamed), "[0x%x]", start);
		err = opr_symbols_add(symbols, &(struct opr_symbol){
						       .start = start,
						       .size = le32toh(function->nr_bytes),
						       .vma = start,
						       .name = names && name != OP_ROW_NO_NAME ? names + name : unnamed,
						       .is_sized = true,
						       .is_unnamed = !names || name == OP_ROW_NO_NAME,
					       });
	}
	return err;
}

static int read_functions(struct opr_symbols *symbols, const struct op_row_table *table, enum opr_demangle demangle)
{
	const struct op_row_function *last = table->nr_functions ? &table->functions[table->nr_functions - 1] : NULL;
	char *names = NULL;
	int err = op_row_table_names(table, &names);

	if (err == -ENODATA)
		err = 0;
	if (!err)
		err = add_functions(symbols, table, names);
	if (!err && last)
		err = opr_symbols_finish(symbols, (uint64_t)le32toh(last->start) + le32toh(last->nr_bytes));
	free(names);
	return err ? err : opr_symbols_demangle(symbols, demangle);
}

static bool is_of(const struct op_row_table *table, const char *digits)
{
	char own[OP_BUILD_ID_DIGITS];

	op_build_id_format(table->header->build_id, table->header->build_id_bytes, own);
	return !strcmp(own, digits);
}

int opr_symbols_read_table(struct opr_symbols *symbols, const char *table_dir, const char *build_id, enum opr_demangle demangle)
{
	int fd = opr_table_open(table_dir, build_id), err;
	struct op_row_table table;
	struct stat st;
	size_t nr_bytes;
	void *map;

	if (fd < 0)
		return fd;
	err = op_seal_check(fd);
	if (!err && fstat(fd, &st) < 0)
		err = -errno;
	if (err) {
		close(fd);
		return err;
	}
	nr_bytes = (size_t)st.st_size - SEAL_BYTES;
	map = nr_bytes ? mmap(NULL, nr_bytes, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
	close(fd);
	if (map == MAP_FAILED)
		return -EBADMSG;
	err = op_row_table_open(&table, map, nr_bytes);
	if (!err)
		err = is_of(&table, build_id) ? read_functions(symbols, &table, demangle) : -EBADMSG;
	munmap(map, nr_bytes);
	return err;
}
