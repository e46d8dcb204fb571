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

static const char *const session_dirs[] = {
	"{root}", "{kern}", "stats", OP_SESSION_LEDGER, OP_CGROUP_DIR, OP_MEM_DIR, OP_DCOOKIE_FILE, OP_SESSION_CLOSING,
};

/* ---- remove ---- */

/* In the directory that is being read, whatever has its name by now. */
static int remove_entry(struct op_walk *walk, const char *path, unsigned char type OP_UNUSED)
{
	op_walk_note_error(walk, path, op_sys_unlinkat(walk->here, strrchr(path, '/') + 1, 0));
	return 0;
}

/* What is a file, like the dcookie table; also a link or a file where a directory is expected. */
static bool remove_non_directory(struct op_walk *walk, const char *path)
{
	int err = op_file_remove_below(walk->dir_fd, path, 0);

	if (err == -EISDIR || err == -EPERM)
		return false;
	op_walk_note_error(walk, path, err);
	return true;
}

/* The directories of a walk that has removed what was in them, the deepest first. */
static void remove_walked(struct op_walk *walk)
{
	while (walk->nr_dirs) {
		char *dir = walk->dirs[--walk->nr_dirs];

		op_walk_note_error(walk, dir, op_file_remove_below(walk->dir_fd, dir, AT_REMOVEDIR));
		free(dir);
	}
}

int op_session_remove(int dir_fd, const char *path)
{
	struct op_walk walk = { .dir_fd = dir_fd, .visit = remove_entry, .keep_going = true };
	int err;

	if (!remove_non_directory(&walk, path))
		op_walk_note_error(&walk, path, op_walk_tree(&walk, path));
	remove_walked(&walk);
	err = walk.first_error;
	op_walk_free(&walk);
	return err;
}

/* ---- size ---- */

static void add_bytes(struct op_walk *walk, const char *path)
{
	struct stat st;

	if (!fstatat(walk->dir_fd, path, &st, AT_SYMLINK_NOFOLLOW))
		walk->disk_bytes += (uint64_t)st.st_blocks * 512;
}

static int weigh_entry(struct op_walk *walk, const char *path, unsigned char type OP_UNUSED)
{
	add_bytes(walk, path);
	return 0;
}

int op_session_disk_bytes(int dir_fd, const char *path, uint64_t *ret_bytes)
{
	struct op_walk walk = { .dir_fd = dir_fd, .visit = weigh_entry };
	int err = op_walk_tree(&walk, path);

	for (size_t i = 0; i < walk.nr_dirs; i++)
		add_bytes(&walk, walk.dirs[i]);
	if (!err)
		*ret_bytes = walk.disk_bytes;
	op_walk_free(&walk);
	return err;
}

static int count_entry(struct op_walk *walk, const char *path, unsigned char type)
{
	walk->nr_files += type == DT_REG && !op_session_is_jit_object(path);
	return 0;
}

int op_session_count_files(int dir_fd, uint64_t *ret_nr_files)
{
	static const char *const tops[] = { "{root}", "{kern}", OP_CGROUP_DIR, OP_MEM_DIR };
	struct op_walk walk = { .dir_fd = dir_fd, .visit = count_entry };
	int err = 0;

	for (size_t i = 0; i < op_array_size(tops) && !err; i++)
		err = op_walk_tree(&walk, tops[i]);
	if (!err)
		*ret_nr_files = walk.nr_files;
	op_walk_free(&walk);
	return err;
}

/* ---- clear ---- */

int op_session_clear(int dir_fd, char **ret_path)
{
	struct op_walk walk = { .dir_fd = dir_fd, .visit = remove_entry, .keep_going = true };
	int err;

	for (size_t i = 0; i < op_array_size(session_dirs); i++) {
		if (remove_non_directory(&walk, session_dirs[i]))
			continue;
		op_walk_note_error(&walk, session_dirs[i], op_walk_tree(&walk, session_dirs[i]));
	}
	remove_walked(&walk);
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
	for (size_t i = 0; i < op_array_size(session_dirs); i++)
		if (!faccessat(dir_fd, session_dirs[i], F_OK, AT_SYMLINK_NOFOLLOW))
			return true;
	return false;
}
