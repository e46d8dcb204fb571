/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/session/memory_view.h"
#include "libop/session/layout.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libop/session/dcookie.h"
#include "libop/base/file.h"
#include "libop/base/lock.h"
#include "libop/odb/odb.h"
#include "libop/session/ledger_file.h"
#include "libop/session/close.h"
#include "libop/session/walk.h"
#include "libop/base/sys.h"
#include "libop/base/text.h"

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

/* ---- visit and size ---- */

static int tell_entry(struct op_walk *walk, const char *path, unsigned char type)
{
	return walk->tell(path, type, walk->tell_arg);
}

int op_session_walk(int dir_fd, const char *top, int (*visit)(const char *path, unsigned char type, void *arg), void *arg)
{
	struct op_walk walk = { .dir_fd = dir_fd, .visit = tell_entry, .tell = visit, .tell_arg = arg };
	int err = op_walk_tree(&walk, top);

	op_walk_free(&walk);
	return err;
}

int op_session_walk_sound(int dir_fd, const char *top, int (*visit)(const char *path, unsigned char type, void *arg), void *arg,
			  const struct op_session_misfits *misfits)
{
	struct op_walk walk = { .dir_fd = dir_fd, .visit = tell_entry, .tell = visit, .tell_arg = arg, .misfits = misfits };
	int err = op_walk_tree(&walk, top);

	op_walk_free(&walk);
	return err;
}

int op_session_walk_all(int dir_fd, const char *top, int (*visit)(const char *path, unsigned char type, void *arg), void *arg)
{
	struct op_walk walk = { .dir_fd = dir_fd, .visit = tell_entry, .tell = visit, .tell_arg = arg, .tells_dirs = true };
	int err = op_walk_tree(&walk, top);

	op_walk_free(&walk);
	return err;
}

int op_session_visit_dir(int dir_fd, const char *path, int (*visit)(const char *name, void *arg), void *arg)
{
	int fd = op_sys_openat(dir_fd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0), err = 0;
	struct dirent *entry;
	DIR *dir;

	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	dir = fdopendir(fd);
	if (!dir) {
		close(fd);
		return -ENOMEM;
	}
	while (!err && (entry = readdir(dir)))
		if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, ".."))
			err = visit(entry->d_name, arg);
	closedir(dir);
	return err;
}

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

int op_session_open_current(int session_fd)
{
	return op_sys_openat(session_fd, OP_SESSION_CURRENT, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
}

bool op_session_has_parts(int dir_fd)
{
	for (size_t i = 0; i < op_array_size(session_dirs); i++)
		if (!faccessat(dir_fd, session_dirs[i], F_OK, AT_SYMLINK_NOFOLLOW))
			return true;
	return false;
}

/* ---- the lock ---- */

bool op_session_is_locked_at(int session_fd)
{
	int fd = op_sys_openat(session_fd, OP_SESSION_LOCK, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0);
	bool locked;

	if (fd < 0)
		return fd == -EACCES;
	locked = flock(fd, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK;
	close(fd);
	return locked;
}

bool op_session_is_locked(const char *session_dir)
{
	int fd = op_sys_openat(AT_FDCWD, session_dir, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
	bool locked = fd >= 0 && op_session_is_locked_at(fd);

	if (fd >= 0)
		close(fd);
	return locked;
}

bool op_session_is_unclean_at(int session_fd)
{
	return !faccessat(session_fd, OP_SESSION_LOCK, F_OK, AT_SYMLINK_NOFOLLOW) ||
	       !faccessat(session_fd, OP_SESSION_UNCLEAN, F_OK, AT_SYMLINK_NOFOLLOW);
}

int op_session_leave_unclean(int session_fd)
{
	int fd = op_sys_openat(session_fd, OP_SESSION_UNCLEAN, O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0644);

	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}

int op_session_take_lock(int session_fd, bool *ret_was_there)
{
	return op_lock_take(session_fd, OP_SESSION_LOCK, ret_was_there);
}

int op_session_lock(int session_fd)
{
	bool was_there;
	int fd = op_session_take_lock(session_fd, &was_there), err;

	err = fd >= 0 && was_there ? op_session_leave_unclean(session_fd) : 0;
	if (!err)
		return fd;
	close(fd);
	return err;
}

void op_session_unlock(int session_fd, int lock_fd)
{
	op_sys_unlinkat(session_fd, OP_SESSION_LOCK, 0);
	close(lock_fd);
}

static const char *const profiling_words[] = { "off\n", "on\n" };

bool op_session_wants_profiling(int session_fd, bool preset)
{
	char *text;
	bool wanted = preset;

	if (op_file_read_own(session_fd, OP_SESSION_PROFILING, 16, &text, NULL) < 0)
		return preset;
	for (size_t on = 0; on < op_array_size(profiling_words); on++)
		if (!strcmp(text, profiling_words[on]))
			wanted = on;
	free(text);
	return wanted;
}

int op_session_want_profiling(int session_fd, bool on)
{
	return op_file_publish(session_fd, OP_SESSION_PROFILING, profiling_words[on], 0644);
}

int op_session_pause_once(int session_fd)
{
	return op_file_publish(session_fd, OP_SESSION_PAUSED, "", 0644);
}

int op_session_take_pause(int session_fd)
{
	return op_sys_unlinkat(session_fd, OP_SESSION_PAUSED, 0);
}
