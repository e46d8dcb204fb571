/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/fetch/mapped_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "libop/base/atomic.h"
#include "libop/base/htable.h"
#include "libop/base/parse.h"
#include "tools/common/child.h"

#define PIDS_OF_FILE	 3    /* one of them may end before the file is copied */
#define FILES_OF_PROCESS 2048 /* so that one process does not fill the list */
#define LIST_BYTES_MAX	 (64u << 20)
#define PROC_PATH_BYTES	 128
#define COPY_BYTES	 (1u << 20)
#define DELETED		 " (deleted)" /* behind the path of a removed file, proc_pid_maps(5) */

/* ---- the list ---- */

struct known_file {
	struct op_hlink link;
	uint64_t device, inode;
	unsigned int nr_pids;
	int32_t last_pid;
};

struct list {
	FILE *out;
	struct opr_look_state *state;
	struct op_htable known;
	size_t nr_bytes, nr_files; /* written; of this process */
};

static void beat(struct opr_look_state *state)
{
	op_store_relaxed(&state->beats, state->beats + 1);
}

/* Whether a file of a process is to be written: it has not been written for several others. */
static bool is_news(struct list *list, const struct opr_mapping *mapping)
{
	uint64_t hash = op_hash_add(op_hash_u64(mapping->inode), mapping->device);
	struct known_file *file = NULL;

	for (struct op_hlink *link = op_htable_first(&list->known, hash); link && !file; link = op_htable_next(link)) {
		struct known_file *known = op_container_of(link, struct known_file, link);

		if (known->inode == mapping->inode && known->device == mapping->device)
			file = known;
	}
	if (!file) {
		file = calloc(1, sizeof(*file));
		if (!file || op_htable_insert(&list->known, &file->link, hash) < 0) {
			free(file);
			return false;
		}
		file->device = mapping->device;
		file->inode = mapping->inode;
	}
	if (file->last_pid == mapping->pid || file->nr_pids == PIDS_OF_FILE)
		return false;
	file->last_pid = mapping->pid;
	file->nr_pids++;
	return true;
}

/* A line of /proc/PID/maps: "START-END rwxp OFFSET MAJOR:MINOR INODE   PATH\n". */
static void take_line(struct list *list, const char *line, size_t length)
{
	struct opr_mapping mapping = { .pid = list->state->pid };
	unsigned int major_number, minor_number;
	char flags[5] = "";
	int at = 0;

	if (length && line[length - 1] == '\n')
		length--;
	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %*x %x:%x %" SCNu64 " %n", &mapping.start, &mapping.end, flags, &major_number,
		   &minor_number, &mapping.inode, &at) != 6 ||
	    flags[2] != 'x' || !mapping.inode || !at || line[at] != '/')
		return;
	if (length - (size_t)at > strlen(DELETED) && !memcmp(line + length - strlen(DELETED), DELETED, strlen(DELETED)))
		length -= strlen(DELETED);
	mapping.device = makedev(major_number, minor_number);
	mapping.path_bytes = (uint32_t)op_min_u64(length - (size_t)at, PATH_MAX);
	if (list->nr_files >= FILES_OF_PROCESS || list->nr_bytes >= LIST_BYTES_MAX || !is_news(list, &mapping))
		return;
	fwrite(&mapping, sizeof(mapping), 1, list->out);
	fwrite(line + at, 1, mapping.path_bytes, list->out);
	list->nr_bytes += sizeof(mapping) + mapping.path_bytes;
	list->nr_files++;
}

static void list_process(struct list *list, int32_t pid, char **line, size_t *capacity)
{
	char path[PROC_PATH_BYTES];
	ssize_t length;
	FILE *maps;

	op_store_relaxed(&list->state->pid, pid);
	beat(list->state);
	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	maps = fopen(path, "re");
	if (!maps)
		return;
	list->nr_files = 0;
	while ((length = getline(line, capacity, maps)) > 0) {
		take_line(list, *line, (size_t)length);
		beat(list->state);
	}
	fclose(maps);
	fflush(list->out); /* if the next process hangs, this much is there */
}

/* The processes are listed by number, so that another child can go on behind one that hangs. */
int opr_mapped_files_list(FILE *out, void *arg)
{
	const struct opr_list_request *request = arg;
	struct list list = { .out = out, .state = request->state };
	int32_t after = request->state->pid;
	size_t capacity = 0;
	struct dirent *entry;
	char *line = NULL;
	uint64_t pid;
	DIR *proc;

	opr_child_let_go(fileno(out), -1);
	proc = opendir("/proc");
	if (!proc)
		return -errno;
	while ((entry = readdir(proc)))
		if (!op_parse_u64(entry->d_name, 1, INT32_MAX, &pid) && (int32_t)pid > after)
			list_process(&list, (int32_t)pid, &line, &capacity);
	return 0;
}

/* ---- the copy ---- */

/* A regular file, opened for reading; nothing else is opened. A descriptor or -errno. */
static int open_regular(int path_fd)
{
	char link[PROC_PATH_BYTES];
	struct stat st;
	int fd;

	if (fstat(path_fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -ENOENT;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", path_fd);
	fd = open(link, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	return fd < 0 ? -errno : fd;
}

/* Opens the file at a path as the process sees it: links end in its own root. */
static int open_below_root(const struct opr_mapping *mapping, const char *path)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
	char root[PROC_PATH_BYTES];
	int root_fd, fd;

	snprintf(root, sizeof(root), "/proc/%d/root", mapping->pid);
	root_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root_fd < 0)
		return -errno;
	fd = (int)syscall(SYS_openat2, root_fd, path, &how, sizeof(how));
	fd = fd < 0 ? -errno : fd;
	close(root_fd);
	return fd;
}

/*
 * The three ways to a mapped file, the surest first: the mapping itself, the program of the
 * process, the path in its root. Writes its path to `origin`. An O_PATH descriptor or -errno.
 */
static int open_mapped(const struct opr_copy_request *request, int way, char *origin, size_t size)
{
	const struct opr_mapping *mapping = request->mapping;
	const struct opr_living_wanted *wanted = request->wanted;
	struct stat st;
	char *path;
	int fd;

	if (way == 2) {
		path = strndup(wanted->path, wanted->path_length);
		if (!path)
			return -ENOMEM;
		fd = open_below_root(mapping, path);
		snprintf(origin, size, "/proc/%d/root%s", mapping->pid, path);
		free(path);
		return fd;
	}
	if (way == 0)
		snprintf(origin, size, "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, mapping->pid, mapping->start, mapping->end);
	else
		snprintf(origin, size, "/proc/%d/exe", mapping->pid);
	fd = open(origin, O_PATH | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0 || st.st_ino != mapping->inode) {
		close(fd);
		return -ENOENT;
	}
	return fd;
}

static bool is_zero(const char *bytes, size_t nr_bytes)
{
	return !*bytes && !memcmp(bytes, bytes + 1, nr_bytes - 1);
}

/* Copies the bytes and the times; blocks of zeros take no memory. */
static int copy_bytes(const struct opr_copy_request *request, int from)
{
	static char buffer[COPY_BYTES];
	uint64_t nr_bytes = 0;
	struct stat st;
	ssize_t got;

	while ((got = read(from, buffer, sizeof(buffer))) > 0) {
		beat(request->state);
		if (nr_bytes + (uint64_t)got > request->bytes_max)
			return -EFBIG;
		if (!is_zero(buffer, (size_t)got) && pwrite(request->fd, buffer, (size_t)got, (off_t)nr_bytes) != got)
			return -EIO;
		nr_bytes += (uint64_t)got;
	}
	if (got < 0 || ftruncate(request->fd, (off_t)nr_bytes) < 0)
		return -errno;
	if (!fstat(from, &st))
		futimens(request->fd, (const struct timespec[]){ st.st_atim, st.st_mtim });
	return 0;
}

static int copy_by(const struct opr_copy_request *request, int way, FILE *out)
{
	char origin[PROC_PATH_BYTES + PATH_MAX], link[PROC_PATH_BYTES];
	const struct opr_living_wanted *wanted = request->wanted;
	int path_fd = open_mapped(request, way, origin, sizeof(origin)), fd, err = -ENOENT;

	beat(request->state);
	if (path_fd < 0)
		return path_fd;
	fd = open_regular(path_fd);
	close(path_fd);
	if (fd < 0)
		return fd;
	beat(request->state);
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	if (wanted->is_it(link, wanted->arg)) {
		beat(request->state);
		err = copy_bytes(request, fd);
	} else if (way == 0) {
		err = -ESTALE; /* the mapping itself: no path leads to a better file */
	}
	close(fd);
	if (!err)
		fputs(origin, out);
	return err;
}

int opr_mapped_file_copy(FILE *out, void *arg)
{
	const struct opr_copy_request *request = arg;
	int err = -ENOENT;

	opr_child_let_go(fileno(out), request->fd);
	for (int way = 0; way <= 2; way++) {
		int tried = copy_by(request, way, out);

		if (!tried || tried == -EFBIG || tried == -ESTALE)
			return tried;
		if (tried != -ENOENT)
			err = tried;
	}
	return err;
}
