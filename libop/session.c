/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/mem.h"
#include "libop/session.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libop/dcookie.h"
#include "libop/file.h"
#include "libop/lock.h"
#include "libop/odb.h"
#include "libop/session_ledger.h"
#include "libop/session_close.h"
#include "libop/sys.h"
#include "libop/text.h"

static const char *const sample_dirs[] = { "{root}", "{kern}" };
static const char *const session_dirs[] = {
	"{root}", "{kern}", "stats", OP_SESSION_LEDGER, OP_CGROUP_DIR, OP_MEM_DIR, OP_DCOOKIE_FILE, OP_SESSION_CLOSING,
};

#define HELD_DIRS     3 /* the last on the way down stay open, so that what lies in them is opened by its name alone */
#define ENTRIES_BYTES 32768

/*
 * A walk over a tree, with a bounded number of descriptors however deep the tree is. Each directory is read to its end before what lies in it is gone into, and stands in
 * the list before that.
 */
struct walk {
	int dir_fd;
	char **dirs;
	size_t nr_dirs, capacity;
	/* One entry that is no directory; type is of DT_*, and may be DT_LNK. 0 or -errno, which ends the walk. */
	int (*visit)(struct walk *walk, const char *path, unsigned char type);
	struct op_session_list *list;
	struct op_session_cgroups *cgroups; /* when given, sample_dirs are visited and not gone into */
	size_t list_capacity;
	char *entries; /* of the directory that is being read */
	char *bad_path;
	uint64_t disk_bytes, nr_files;
	int here; /* the directory that is being read */
	struct {
		unsigned int depth; /* the top has 1; 0: nothing is held */
		int fd;
	} held[HELD_DIRS]; /* by depth, modulo the number */
	int (*tell)(const char *path, unsigned char type, void *arg);
	void *tell_arg;
	bool tells_dirs; /* `visit` is called for directories, too, before they are read */
	bool keep_going; /* an error is noted in first_error and does not end the walk */
	int first_error;
	char *first_path; /* where that was */
	const struct op_session_misfits *misfits; /* when given, what cannot be read is told and does not end the walk */
};

static void free_walk(struct walk *walk)
{
	for (size_t i = 0; i < walk->nr_dirs; i++)
		free(walk->dirs[i]);
	free(walk->dirs);
	free(walk->entries);
	free(walk->bad_path);
	free(walk->first_path);
}

/* Takes `path` over, also when it fails. */
static int push_dir(struct walk *walk, char *path)
{
	if (walk->nr_dirs == walk->capacity) {
		size_t capacity = walk->capacity ? 2 * walk->capacity : 64;
		char **dirs = reallocarray(walk->dirs, capacity, sizeof(*dirs));

		if (!dirs) {
			free(path);
			return -ENOMEM;
		}
		walk->dirs = dirs;
		walk->capacity = capacity;
	}
	walk->dirs[walk->nr_dirs++] = path;
	return 0;
}

static unsigned char type_of(int dir_fd, const struct dirent64 *entry)
{
	struct stat st;

	if (entry->d_type != DT_UNKNOWN)
		return entry->d_type;
	if (fstatat(dir_fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return DT_UNKNOWN;
	return S_ISDIR(st.st_mode) ? DT_DIR : S_ISREG(st.st_mode) ? DT_REG : S_ISLNK(st.st_mode) ? DT_LNK : DT_FIFO;
}

static bool is_sample_dir(const char *name)
{
	for (size_t i = 0; i < op_array_size(sample_dirs); i++)
		if (!strcmp(name, sample_dirs[i]))
			return true;
	return false;
}

static int visit_entry(struct walk *walk, const char *dir, const struct dirent64 *entry)
{
	struct op_text path = { 0 };
	unsigned char type;
	char *string;
	int err;

	if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
		return 0;
	type = type_of(walk->here, entry);
	if (type == DT_UNKNOWN)
		return 0;
	op_text_add(&path, dir);
	op_text_add_char(&path, '/');
	op_text_add(&path, entry->d_name);
	string = op_text_steal(&path);
	if (!string)
		return -ENOMEM;
	if (type == DT_DIR && !(walk->cgroups && is_sample_dir(entry->d_name)))
		return push_dir(walk, string);
	err = walk->visit(walk, string, type);
	free(string);
	return err;
}

static void let_go(struct walk *walk, unsigned int depth)
{
	if (!walk->held[depth % HELD_DIRS].depth)
		return;
	close(walk->held[depth % HELD_DIRS].fd);
	walk->held[depth % HELD_DIRS].depth = 0;
}

/* By its name in its parent while that is held; without descriptors nothing is. */
static int open_dir(struct walk *walk, const char *path, unsigned int depth)
{
	int fd;

	if (strlen(path) >= PATH_MAX)
		return -ENAMETOOLONG;
	if (depth > 1 && walk->held[(depth - 1) % HELD_DIRS].depth == depth - 1) {
		fd = op_sys_openat(walk->held[(depth - 1) % HELD_DIRS].fd, strrchr(path, '/') + 1,
				   O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0);
		if (fd != -EMFILE && fd != -ENFILE)
			return fd;
		for (unsigned int i = 0; i < HELD_DIRS; i++)
			let_go(walk, i);
	}
	return op_file_open_below(walk->dir_fd, path, O_RDONLY | O_DIRECTORY, 0);
}

/* After an error with what is at `path`: 0 when the walk goes on without it, else the error. */
static int pass_over(const struct walk *walk, const char *path, int err)
{
	if (!walk->misfits || err == -ENOMEM || err == -EMFILE || err == -ENFILE)
		return err;
	walk->misfits->tell(path, err, walk->misfits->arg);
	return 0;
}

static int read_dir(struct walk *walk, const char *path, int fd)
{
	ssize_t nr_bytes;
	int err = 0;

	if (!walk->entries)
		walk->entries = malloc(ENTRIES_BYTES);
	if (!walk->entries)
		return -ENOMEM;
	walk->here = fd;
	while (!err && (nr_bytes = op_sys_getdents(fd, walk->entries, ENTRIES_BYTES))) {
		if (nr_bytes < 0)
			return pass_over(walk, path, (int)nr_bytes);
		for (ssize_t at = 0; !err && at < nr_bytes;) {
			const struct dirent64 *entry = (const void *)(walk->entries + at);

			err = visit_entry(walk, path, entry);
			at += entry->d_reclen;
		}
	}
	return err;
}

static void note_error(struct walk *walk, const char *path, int err)
{
	if (err >= 0 || err == -ENOENT || walk->first_error)
		return;
	walk->first_error = err;
	walk->first_path = strdup(path);
}

/* Opens a directory of the list, reads it and holds it; one that is gone is none. */
static int walk_dir(struct walk *walk, const char *path, unsigned int depth)
{
	int err = walk->tells_dirs ? walk->visit(walk, path, DT_DIR) : 0, fd;

	if (err < 0)
		return err;
	fd = open_dir(walk, path, depth);
	if (fd < 0)
		return fd == -ENOENT ? 0 : pass_over(walk, path, fd);
	let_go(walk, depth);
	walk->held[depth % HELD_DIRS].depth = depth;
	walk->held[depth % HELD_DIRS].fd = fd;
	return read_dir(walk, path, fd);
}

/* An image may have the name of a sample file, and then so has a directory; but there is one in it. */
static void tell_of_directory(const struct walk *walk, const char *path)
{
	struct op_sample_name name;
	char *storage;

	if (op_unmangle(path, &name, &storage, NULL) < 0)
		return;
	free(storage);
	walk->misfits->tell(path, -EISDIR, walk->misfits->arg);
}

/* A path has no more than PATH_MAX bytes, which is the end of going deeper. */
static int walk_below(struct walk *walk, size_t index, unsigned int depth)
{
	const char *path = walk->dirs[index];
	size_t next = walk->nr_dirs, end, nr_before = walk->list ? walk->list->nr_files : 0;
	int err = walk_dir(walk, path, depth);

	if (err < 0 && !walk->bad_path)
		walk->bad_path = strdup(path);
	if (walk->keep_going) {
		note_error(walk, path, err);
		err = 0;
	}
	for (end = walk->nr_dirs; !err && next < end; next++)
		err = walk_below(walk, next, depth + 1);
	if (!err && walk->misfits && walk->list && walk->list->nr_files == nr_before)
		tell_of_directory(walk, walk->dirs[index]);
	if (walk->held[depth % HELD_DIRS].depth == depth)
		let_go(walk, depth);
	return err;
}

static int walk_tree(struct walk *walk, const char *top)
{
	char *path = strdup(top);
	int err = path ? push_dir(walk, path) : -ENOMEM;

	return err ? err : walk_below(walk, walk->nr_dirs - 1, 1);
}

/* ---- the list of sample files ---- */

bool op_session_is_jit_object(const char *path)
{
	size_t length = strlen(path);

	return length > 3 && !strcmp(path + length - 3, ".jo");
}

static int add_file(struct walk *walk, const char *path)
{
	struct op_session_list *list = walk->list;
	struct op_session_file file = { 0 }, *files;
	int err;

	if (list->nr_files == walk->list_capacity) {
		size_t capacity = walk->list_capacity ? 2 * walk->list_capacity : 64;

		files = reallocarray(list->files, capacity, sizeof(*files));
		if (!files)
			return -ENOMEM;
		list->files = files;
		walk->list_capacity = capacity;
	}
	err = op_unmangle(path, &file.name, &file.storage, NULL);
	if (err < 0)
		return err;
	file.path = strdup(path);
	if (!file.path) {
		free(file.storage);
		return -ENOMEM;
	}
	list->files[list->nr_files++] = file;
	return 0;
}

/* What a link leads to: DT_REG, DT_DIR, DT_FIFO for what is neither; -errno: nothing that can be seen. */
static int type_behind(int dir_fd, const char *path)
{
	struct stat st;

	if (fstatat(dir_fd, path, &st, 0) < 0)
		return -errno;
	return S_ISREG(st.st_mode) ? DT_REG : S_ISDIR(st.st_mode) ? DT_DIR : DT_FIFO;
}

static int list_entry(struct walk *walk, const char *path, unsigned char type)
{
	int err, found = type;

	if (op_session_is_jit_object(path))
		return 0;
	if (type == DT_LNK)
		found = type_behind(walk->dir_fd, path);
	if (found < 0 || found == DT_DIR)
		return walk->misfits ? pass_over(walk, path, found < 0 ? found : -ELOOP) : 0;
	err = found == DT_REG ? add_file(walk, path) : -EINVAL;
	if (err && walk->misfits)
		return pass_over(walk, path, err == -EINVAL && found == DT_REG ? -EBADMSG : err);
	if (err != -EINVAL)
		return err;
	walk->bad_path = strdup(path);
	return walk->bad_path ? -EBADMSG : -ENOMEM;
}

static int compare_files(const void *a, const void *b)
{
	const struct op_session_file *left = a, *right = b;

	return strcmp(left->path, right->path);
}

static int list_files(struct walk *walk, struct op_session_list *ret_list, char **ret_bad_path)
{
	struct op_session_list *list = walk->list;
	int err = 0;

	for (size_t i = 0; i < op_array_size(sample_dirs) && !err; i++)
		err = walk_tree(walk, sample_dirs[i]);
	if (err < 0 && ret_bad_path) {
		*ret_bad_path = walk->bad_path;
		walk->bad_path = NULL;
	}
	free_walk(walk);
	if (err < 0) {
		op_session_list_free(list);
		return err;
	}
	if (list->nr_files)
		qsort(list->files, list->nr_files, sizeof(*list->files), compare_files);
	*ret_list = *list;
	return 0;
}

int op_session_list(int dir_fd, struct op_session_list *ret_list, char **ret_bad_path)
{
	struct op_session_list list = { 0 };
	struct walk walk = { .dir_fd = dir_fd, .visit = list_entry, .list = &list };

	return list_files(&walk, ret_list, ret_bad_path);
}

int op_session_list_sound(int dir_fd, struct op_session_list *ret_list, const struct op_session_misfits *misfits)
{
	struct op_session_list list = { 0 };
	struct walk walk = { .dir_fd = dir_fd, .visit = list_entry, .list = &list, .misfits = misfits };

	return list_files(&walk, ret_list, NULL);
}

void op_session_list_free(struct op_session_list *list)
{
	if (!list)
		return;
	for (size_t i = 0; i < list->nr_files; i++) {
		free(list->files[i].path);
		free(list->files[i].storage);
	}
	free(list->files);
	*list = (struct op_session_list){ 0 };
}

/* ---- cgroups ---- */

/* `path` is that of a sample directory; a cgroup may have two of them. */
static int add_cgroup(struct walk *walk, const char *path, unsigned char type)
{
	struct op_session_cgroups *list = walk->cgroups;
	struct op_session_cgroup cgroup, *cgroups;
	size_t length = (size_t)(strrchr(path, '/') - path);
	size_t capacity = walk->list_capacity ? 2 * walk->list_capacity : 16;

	if (type != DT_DIR)
		return 0;
	if (list->nr_cgroups && strlen(list->cgroups[list->nr_cgroups - 1].directory) == length &&
	    !memcmp(list->cgroups[list->nr_cgroups - 1].directory, path, length))
		return 0;
	if (list->nr_cgroups == walk->list_capacity) {
		cgroups = reallocarray(list->cgroups, capacity, sizeof(*cgroups));
		if (!cgroups)
			return -ENOMEM;
		list->cgroups = cgroups;
		walk->list_capacity = capacity;
	}
	cgroup.directory = strndup(path, length);
	cgroup.path = cgroup.directory ? op_unmangle_cgroup(cgroup.directory + strlen(OP_CGROUP_DIR)) : NULL;
	if (!cgroup.path) {
		free(cgroup.directory);
		return -ENOMEM;
	}
	list->cgroups[list->nr_cgroups++] = cgroup;
	return 0;
}

static int compare_cgroups(const void *a, const void *b)
{
	const struct op_session_cgroup *left = a, *right = b;

	return strcmp(left->path, right->path);
}

static int list_cgroups(struct walk *walk, struct op_session_cgroups *ret_list)
{
	struct op_session_cgroups *list = walk->cgroups;
	int err = walk_tree(walk, OP_CGROUP_DIR);

	free_walk(walk);
	if (err < 0) {
		op_session_cgroups_free(list);
		return err;
	}
	if (list->nr_cgroups)
		qsort(list->cgroups, list->nr_cgroups, sizeof(*list->cgroups), compare_cgroups);
	*ret_list = *list;
	return 0;
}

int op_session_list_cgroups(int dir_fd, struct op_session_cgroups *ret_list)
{
	struct op_session_cgroups list = { 0 };
	struct walk walk = { .dir_fd = dir_fd, .visit = add_cgroup, .cgroups = &list };

	return list_cgroups(&walk, ret_list);
}

int op_session_list_cgroups_sound(int dir_fd, struct op_session_cgroups *ret_list, const struct op_session_misfits *misfits)
{
	struct op_session_cgroups list = { 0 };
	struct walk walk = { .dir_fd = dir_fd, .visit = add_cgroup, .cgroups = &list, .misfits = misfits };

	return list_cgroups(&walk, ret_list);
}

void op_session_cgroups_free(struct op_session_cgroups *list)
{
	if (!list)
		return;
	for (size_t i = 0; i < list->nr_cgroups; i++) {
		free(list->cgroups[i].directory);
		free(list->cgroups[i].path);
	}
	free(list->cgroups);
	*list = (struct op_session_cgroups){ 0 };
}

/* ---- remove ---- */

/* In the directory that is being read, whatever has its name by now. */
static int remove_entry(struct walk *walk, const char *path, unsigned char type OP_UNUSED)
{
	note_error(walk, path, op_sys_unlinkat(walk->here, strrchr(path, '/') + 1, 0));
	return 0;
}

/* What is a file, like the dcookie table; also a link or a file where a directory is expected. */
static bool remove_non_directory(struct walk *walk, const char *path)
{
	int err = op_file_remove_below(walk->dir_fd, path, 0);

	if (err == -EISDIR || err == -EPERM)
		return false;
	note_error(walk, path, err);
	return true;
}

/* The directories of a walk that has removed what was in them, the deepest first. */
static void remove_walked(struct walk *walk)
{
	while (walk->nr_dirs) {
		char *dir = walk->dirs[--walk->nr_dirs];

		note_error(walk, dir, op_file_remove_below(walk->dir_fd, dir, AT_REMOVEDIR));
		free(dir);
	}
}

int op_session_remove(int dir_fd, const char *path)
{
	struct walk walk = { .dir_fd = dir_fd, .visit = remove_entry, .keep_going = true };
	int err;

	if (!remove_non_directory(&walk, path))
		note_error(&walk, path, walk_tree(&walk, path));
	remove_walked(&walk);
	err = walk.first_error;
	free_walk(&walk);
	return err;
}

/* ---- visit and size ---- */

static int tell_entry(struct walk *walk, const char *path, unsigned char type)
{
	return walk->tell(path, type, walk->tell_arg);
}

int op_session_walk(int dir_fd, const char *top, int (*visit)(const char *path, unsigned char type, void *arg), void *arg)
{
	struct walk walk = { .dir_fd = dir_fd, .visit = tell_entry, .tell = visit, .tell_arg = arg };
	int err = walk_tree(&walk, top);

	free_walk(&walk);
	return err;
}

int op_session_walk_sound(int dir_fd, const char *top, int (*visit)(const char *path, unsigned char type, void *arg), void *arg,
			  const struct op_session_misfits *misfits)
{
	struct walk walk = { .dir_fd = dir_fd, .visit = tell_entry, .tell = visit, .tell_arg = arg, .misfits = misfits };
	int err = walk_tree(&walk, top);

	free_walk(&walk);
	return err;
}

int op_session_walk_all(int dir_fd, const char *top, int (*visit)(const char *path, unsigned char type, void *arg), void *arg)
{
	struct walk walk = { .dir_fd = dir_fd, .visit = tell_entry, .tell = visit, .tell_arg = arg, .tells_dirs = true };
	int err = walk_tree(&walk, top);

	free_walk(&walk);
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

static void add_bytes(struct walk *walk, const char *path)
{
	struct stat st;

	if (!fstatat(walk->dir_fd, path, &st, AT_SYMLINK_NOFOLLOW))
		walk->disk_bytes += (uint64_t)st.st_blocks * 512;
}

static int weigh_entry(struct walk *walk, const char *path, unsigned char type OP_UNUSED)
{
	add_bytes(walk, path);
	return 0;
}

int op_session_disk_bytes(int dir_fd, const char *path, uint64_t *ret_bytes)
{
	struct walk walk = { .dir_fd = dir_fd, .visit = weigh_entry };
	int err = walk_tree(&walk, path);

	for (size_t i = 0; i < walk.nr_dirs; i++)
		add_bytes(&walk, walk.dirs[i]);
	if (!err)
		*ret_bytes = walk.disk_bytes;
	free_walk(&walk);
	return err;
}

static int count_entry(struct walk *walk, const char *path, unsigned char type)
{
	walk->nr_files += type == DT_REG && !op_session_is_jit_object(path);
	return 0;
}

int op_session_count_files(int dir_fd, uint64_t *ret_nr_files)
{
	static const char *const tops[] = { "{root}", "{kern}", OP_CGROUP_DIR, OP_MEM_DIR };
	struct walk walk = { .dir_fd = dir_fd, .visit = count_entry };
	int err = 0;

	for (size_t i = 0; i < op_array_size(tops) && !err; i++)
		err = walk_tree(&walk, tops[i]);
	if (!err)
		*ret_nr_files = walk.nr_files;
	free_walk(&walk);
	return err;
}

/* ---- clear ---- */

int op_session_clear(int dir_fd, char **ret_path)
{
	struct walk walk = { .dir_fd = dir_fd, .visit = remove_entry, .keep_going = true };
	int err;

	for (size_t i = 0; i < op_array_size(session_dirs); i++) {
		if (remove_non_directory(&walk, session_dirs[i]))
			continue;
		note_error(&walk, session_dirs[i], walk_tree(&walk, session_dirs[i]));
	}
	remove_walked(&walk);
	err = walk.first_error;
	if (err && ret_path) {
		*ret_path = walk.first_path;
		walk.first_path = NULL;
	}
	free_walk(&walk);
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
