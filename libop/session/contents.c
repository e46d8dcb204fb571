/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/session/contents.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libop/base/file.h"
#include "libop/base/sys.h"
#include "libop/odb/mangle.h"
#include "libop/session/close.h"
#include "libop/session/dcookie.h"
#include "libop/session/ledger_file.h"
#include "libop/session/list.h"
#include "libop/session/memory_view.h"
#include "libop/session/walk.h"

static const char *const session_parts[] = {
	"{root}", "{kern}", "stats", OP_SESSION_LEDGER, OP_CGROUP_DIR, OP_MEM_DIR, OP_DCOOKIE_FILE, OP_SESSION_CLOSING,
};

/* ---- remove ---- */

/* By name in the open directory: nobody can lead this elsewhere with a link. */
static int remove_entry(struct op_walk *walk, const struct op_walk_entry *entry)
{
	op_walk_note_error(walk, entry->path, op_sys_unlinkat(entry->parent_fd, entry->name, 0));
	return 0;
}

/* Removes a file, or a tree as far as its directories. */
static void remove_tree(struct op_walk *walk, const char *path)
{
	int err = op_file_remove_below(walk->dir_fd, path, 0);

	if (err == -EISDIR || err == -EPERM)
		err = op_walk_tree(walk, path);
	op_walk_note_error(walk, path, err);
}

/* The directories that the walk found, the deepest first. */
static void remove_dirs(struct op_walk *walk)
{
	for (const struct op_walk_dir *dir = walk->last; dir; dir = dir->before)
		op_walk_note_error(walk, dir->path, op_file_remove_below(walk->dir_fd, dir->path, AT_REMOVEDIR));
}

int op_session_remove(int dir_fd, const char *path)
{
	struct op_walk walk = { .dir_fd = dir_fd, .visit = remove_entry, .keeps_going = true };
	int err;

	remove_tree(&walk, path);
	remove_dirs(&walk);
	err = walk.first_error;
	op_walk_free(&walk);
	return err;
}

int op_session_clear(int dir_fd, char **ret_path)
{
	struct op_walk walk = { .dir_fd = dir_fd, .visit = remove_entry, .keeps_going = true };
	int err;

	for (size_t i = 0; i < op_array_size(session_parts); i++)
		remove_tree(&walk, session_parts[i]);
	remove_dirs(&walk);
	err = walk.first_error;
	if (err && ret_path) {
		*ret_path = walk.first_path;
		walk.first_path = NULL;
	}
	op_walk_free(&walk);
	return err;
}

bool op_session_has_parts(int dir_fd)
{
	for (size_t i = 0; i < op_array_size(session_parts); i++)
		if (!faccessat(dir_fd, session_parts[i], F_OK, AT_SYMLINK_NOFOLLOW))
			return true;
	return false;
}

/* ---- size ---- */

struct weighing {
	int dir_fd;
	uint64_t nr_bytes;
};

static int add_bytes(const char *path, unsigned char type OP_UNUSED, void *arg)
{
	struct weighing *weighing = arg;
	struct stat st;

	if (!fstatat(weighing->dir_fd, path, &st, AT_SYMLINK_NOFOLLOW))
		weighing->nr_bytes += (uint64_t)st.st_blocks * 512;
	return 0;
}

int op_session_disk_bytes(int dir_fd, const char *path, uint64_t *ret_bytes)
{
	struct weighing weighing = { .dir_fd = dir_fd };
	int err = op_session_walk_all(dir_fd, path, add_bytes, &weighing);

	if (!err)
		*ret_bytes = weighing.nr_bytes;
	return err;
}

static int count_file(const char *path, unsigned char type, void *arg)
{
	*(uint64_t *)arg += type == DT_REG && !op_session_is_jit_object(path);
	return 0;
}

int op_session_count_files(int dir_fd, uint64_t *ret_nr_files)
{
	static const char *const tops[] = { "{root}", "{kern}", OP_CGROUP_DIR, OP_MEM_DIR };
	uint64_t nr_files = 0;
	int err = 0;

	for (size_t i = 0; i < op_array_size(tops) && !err; i++)
		err = op_session_walk(dir_fd, tops[i], count_file, &nr_files);
	if (!err)
		*ret_nr_files = nr_files;
	return err;
}
