// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * A disk that tests can hold, fill with errors and cut the power of. Loaded before the C library
 * (LD_PRELOAD) into a real daemon:
 *
 *   FAULTSHIM_CONTROL=FILE   lines that are looked at with every call:
 *                              hold                       fsync does not return while this is there
 *                              fail CALL ERRNO PART       CALL fails with the number ERRNO where
 *                              PART is in the path
 *                            What could not be synced is not tried again, as the kernel does: the
 *                            disk keeps what it had of that file, until all of it is written anew
 *                            from its beginning on
 *   FAULTSHIM_DISK=DIR       what fsync has brought to the disk: file-INODE, a copy, and dir-INODE,
 *                            "TYPE INODE NAME", a NUL behind
 *                            each, of a directory. What was not synced is not there.
 *   FAULTSHIM_LINK_MAX=N     symbolic links have no longer text than N bytes, as on XFS
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define HOLD_NS 20000000

static long real(const char *name)
{
	return (long)dlsym(RTLD_NEXT, name);
}

/* The text of the control file; empty when there is none. */
static void read_control(char *text, size_t nr_bytes)
{
	const char *path = getenv("FAULTSHIM_CONTROL");
	int (*open_real)(int, const char *, int, ...) = (int (*)(int, const char *, int, ...))real("openat");
	int fd = path ? open_real(AT_FDCWD, path, O_RDONLY | O_CLOEXEC) : -1;
	ssize_t nr = fd < 0 ? 0 : read(fd, text, nr_bytes - 1);

	text[nr > 0 ? nr : 0] = '\0';
	if (fd >= 0)
		close(fd);
}

/* The errno of a call, 0 when it may go on. */
static int failure(const char *call, const char *path)
{
	int saved = errno, number = 0;
	char text[4096], *rest = text, *line;

	read_control(text, sizeof(text));
	while (!number && (line = strsep(&rest, "\n"))) {
		char name[32], part[256] = "";
		int wanted;

		if (sscanf(line, "fail %31s %d %255s", name, &wanted, part) >= 2 && !strcmp(name, call) && strstr(path, part))
			number = wanted;
	}
	errno = saved;
	return number;
}

static int fails(const char *call, const char *path)
{
	int number = failure(call, path);

	if (number)
		errno = number;
	return number;
}

static void path_of(int fd, char *path, size_t nr_bytes)
{
	char link[64];
	ssize_t nr;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	nr = readlink(link, path, nr_bytes - 1);
	path[nr > 0 ? nr : 0] = '\0';
}

static void full_path(int dir_fd, const char *name, char *path, size_t nr_bytes)
{
	char directory[PATH_MAX];

	path_of(dir_fd, directory, sizeof(directory));
	snprintf(path, nr_bytes, "%s/%s", directory, name);
}

/* ---- the disk ---- */

static int create_on_disk(const char *kind, const struct stat *st, char *tmp, char *path)
{
	const char *disk = getenv("FAULTSHIM_DISK");
	int (*open_real)(int, const char *, int, ...) = (int (*)(int, const char *, int, ...))real("openat");

	if (!disk)
		return -1;
	snprintf(path, PATH_MAX, "%s/%s-%llu", disk, kind, (unsigned long long)st->st_ino);
	snprintf(tmp, PATH_MAX + 16, "%s.%d", path, (int)gettid());
	return open_real(AT_FDCWD, tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
}

static void copy_file(int fd, int to)
{
	char buffer[65536];
	off_t at = 0;
	ssize_t nr;

	while ((nr = pread(fd, buffer, sizeof(buffer), at)) > 0 && write(to, buffer, (size_t)nr) == nr)
		at += nr;
}

static void copy_directory(int fd, int to)
{
	int (*open_real)(int, const char *, int, ...) = (int (*)(int, const char *, int, ...))real("openat");
	DIR *dir = fdopendir(open_real(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));

	if (!dir)
		return;
	for (struct dirent *entry = readdir(dir); entry; entry = readdir(dir))
		if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, ".."))
			dprintf(to, "%c %llu %s%c", entry->d_type == DT_DIR ? 'd' : 'f', (unsigned long long)entry->d_ino,
				entry->d_name, '\0');
	closedir(dir);
}

static void path_of_lost(const struct stat *st, char *path)
{
	snprintf(path, PATH_MAX, "%s/lost-%llu", getenv("FAULTSHIM_DISK"), (unsigned long long)st->st_ino);
}

static int is_lost(const struct stat *st)
{
	char path[PATH_MAX];

	path_of_lost(st, path);
	return access(path, F_OK) == 0;
}

/* Of a file whose writing has failed. */
static void lose(int fd)
{
	int (*open_real)(int, const char *, int, ...) = (int (*)(int, const char *, int, ...))real("openat");
	char path[PATH_MAX];
	struct stat st;

	if (!getenv("FAULTSHIM_DISK") || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return;
	path_of_lost(&st, path);
	close(open_real(AT_FDCWD, path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
}

/* How many bytes of a lost file were written anew, from its begin on and without a gap. */
static void write_lost(int fd, off_t offset, ssize_t nr_bytes)
{
	char lost[PATH_MAX];
	struct stat st, mark;

	if (!getenv("FAULTSHIM_DISK") || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return;
	path_of_lost(&st, lost);
	if (stat(lost, &mark) < 0 || offset > mark.st_size || offset + nr_bytes < mark.st_size)
		return;
	if (offset + nr_bytes < st.st_size)
		(void)!truncate(lost, offset + nr_bytes);
	else
		unlink(lost);
}

static void bring_to_disk(int fd)
{
	char path[PATH_MAX], tmp[PATH_MAX + 16];
	struct stat st;
	int to;

	if (fstat(fd, &st) < 0 || is_lost(&st))
		return;
	to = create_on_disk(S_ISDIR(st.st_mode) ? "dir" : "file", &st, tmp, path);
	if (to < 0)
		return;
	if (S_ISDIR(st.st_mode))
		copy_directory(fd, to);
	else
		copy_file(fd, to);
	close(to);
	rename(tmp, path);
}

static int is_held(void)
{
	char text[4096];

	read_control(text, sizeof(text));
	return strstr(text, "hold") != NULL;
}

int fsync(int fd)
{
	int (*fsync_real)(int) = (int (*)(int))real("fsync");
	const struct timespec moment = { .tv_nsec = HOLD_NS };
	char path[PATH_MAX];
	int number;

	while (is_held())
		nanosleep(&moment, NULL);
	path_of(fd, path, sizeof(path));
	number = failure("fsync", path);
	if (number) {
		lose(fd);
		errno = number;
		return -1;
	}
	bring_to_disk(fd);
	return fsync_real(fd);
}

/* Everything below the directory. */
static void visit_tree(int dir_fd, void (*visit)(int fd))
{
	int (*open_real)(int, const char *, int, ...) = (int (*)(int, const char *, int, ...))real("openat");
	DIR *dir = fdopendir(open_real(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));

	if (!dir)
		return;
	for (struct dirent *entry = readdir(dir); entry; entry = readdir(dir)) {
		int fd;

		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..") || entry->d_type == DT_LNK)
			continue;
		fd = open_real(dir_fd, entry->d_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
		if (fd < 0)
			continue;
		if (entry->d_type == DT_DIR)
			visit_tree(fd, visit);
		else
			visit(fd);
		close(fd);
	}
	closedir(dir);
	visit(dir_fd);
}

int syncfs(int fd)
{
	int (*syncfs_real)(int) = (int (*)(int))real("syncfs");
	char path[PATH_MAX];
	int number;

	path_of(fd, path, sizeof(path));
	while (is_held())
		nanosleep(&(const struct timespec){ .tv_nsec = HOLD_NS }, NULL);
	number = failure("fsync", path);
	if (!number)
		number = failure("syncfs", path);
	visit_tree(fd, number ? lose : bring_to_disk);
	if (number) {
		errno = number;
		return -1;
	}
	return syncfs_real(fd);
}

/* ---- calls that fail ---- */

int openat(int dir_fd, const char *name, int flags, ...)
{
	int (*open_real)(int, const char *, int, ...) = (int (*)(int, const char *, int, ...))real("openat");
	char path[2 * PATH_MAX];
	mode_t mode;
	va_list args;

	va_start(args, flags);
	mode = flags & O_CREAT ? va_arg(args, mode_t) : 0;
	va_end(args);
	full_path(dir_fd, name, path, sizeof(path));
	return fails("openat", path) ? -1 : open_real(dir_fd, name, flags, mode);
}

ssize_t write(int fd, const void *bytes, size_t nr_bytes)
{
	ssize_t (*write_real)(int, const void *, size_t) = (ssize_t(*)(int, const void *, size_t))real("write");
	char path[PATH_MAX];

	path_of(fd, path, sizeof(path));
	return fails("write", path) ? -1 : write_real(fd, bytes, nr_bytes);
}

ssize_t pwrite(int fd, const void *bytes, size_t nr_bytes, off_t offset)
{
	ssize_t (*pwrite_real)(int, const void *, size_t, off_t) = (ssize_t(*)(int, const void *, size_t, off_t))real("pwrite");
	ssize_t nr = pwrite_real(fd, bytes, nr_bytes, offset);
	int saved = errno;

	if (nr > 0)
		write_lost(fd, offset, nr);
	errno = saved;
	return nr;
}

int mkdirat(int dir_fd, const char *name, mode_t mode)
{
	int (*mkdir_real)(int, const char *, mode_t) = (int (*)(int, const char *, mode_t))real("mkdirat");
	char path[2 * PATH_MAX];

	full_path(dir_fd, name, path, sizeof(path));
	return fails("mkdirat", path) ? -1 : mkdir_real(dir_fd, name, mode);
}

int renameat(int old_dir_fd, const char *old_name, int new_dir_fd, const char *new_name)
{
	int (*rename_real)(int, const char *, int, const char *) = (int (*)(int, const char *, int, const char *))real("renameat");
	char path[2 * PATH_MAX];

	full_path(new_dir_fd, new_name, path, sizeof(path));
	return fails("renameat", path) ? -1 : rename_real(old_dir_fd, old_name, new_dir_fd, new_name);
}

int symlinkat(const char *text, int dir_fd, const char *name)
{
	int (*symlink_real)(const char *, int, const char *) = (int (*)(const char *, int, const char *))real("symlinkat");
	const char *longest = getenv("FAULTSHIM_LINK_MAX");

	if (longest && strlen(text) > strtoul(longest, NULL, 10)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	return symlink_real(text, dir_fd, name);
}

int fallocate(int fd, int mode, off_t offset, off_t nr_bytes)
{
	int (*fallocate_real)(int, int, off_t, off_t) = (int (*)(int, int, off_t, off_t))real("fallocate");
	char path[PATH_MAX];

	path_of(fd, path, sizeof(path));
	return fails("fallocate", path) ? -1 : fallocate_real(fd, mode, offset, nr_bytes);
}
