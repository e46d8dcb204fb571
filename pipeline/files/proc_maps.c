/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pipeline/files/proc_maps.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "libop/base/sys.h"

#define PF_KTHREAD     0x00200000u /* linux/sched.h */
#define PROC_BYTES     1024        /* of /proc/PID/comm and stat */
#define TEXT_MAX_BYTES (8u << 20) /* a process with more mappings is known as far as this goes */

/* ---- in the looker ---- */

/* All files of an answer are those of one process, whoever gets its number meanwhile. */
struct proc {
	int fd;     /* of /proc/PID */
	int tid_fd; /* of the thread whose maps these are; fd when that is the main thread */
	uint32_t tid;
	FILE *maps; /* NULL: none */
};

static FILE *open_file(int dir_fd, const char *name)
{
	int fd = op_sys_openat(dir_fd, name, O_RDONLY | O_CLOEXEC, 0);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "r");

	if (fd >= 0 && !file)
		close(fd);
	return file;
}

static bool has_line(FILE *maps)
{
	int first = fgetc(maps);

	return first != EOF && ungetc(first, maps) != EOF;
}

static void close_proc(const struct proc *proc)
{
	if (proc->maps)
		fclose(proc->maps);
	if (proc->tid_fd != proc->fd)
		close(proc->tid_fd);
	close(proc->fd);
}

/* Takes the maps of a thread, if it has any. */
static bool take_thread(struct proc *proc, int tasks_fd, const char *name)
{
	int fd = op_sys_openat(tasks_fd, name, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
	FILE *maps = fd < 0 ? NULL : open_file(fd, "maps");

	if (!maps || !has_line(maps)) {
		if (maps)
			fclose(maps);
		if (fd >= 0)
			close(fd);
		return false;
	}
	if (proc->maps)
		fclose(proc->maps);
	proc->maps = maps;
	proc->tid_fd = fd;
	proc->tid = (uint32_t)strtoul(name, NULL, 10);
	return true;
}

/*
 * The maps of a process are empty or missing once its main thread has ended; another thread has
 * them.
 */
static void seek_thread(struct proc *proc)
{
	int fd = op_sys_openat(proc->fd, "task", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	DIR *tasks = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	bool found = false;

	if (fd >= 0 && !tasks)
		close(fd);
	while (tasks && !found && (entry = readdir(tasks)))
		found = isdigit((unsigned char)entry->d_name[0]) && strtoul(entry->d_name, NULL, 10) != proc->tid &&
			take_thread(proc, fd, entry->d_name);
	if (tasks)
		closedir(tasks);
}

/* The maps are opened once, because opening costs most of a look at a few lines. */
static int open_proc(const struct opd_proc_wanted *wanted, struct proc *ret_proc)
{
	struct proc proc = { .tid = wanted->pid };

	proc.fd = proc.tid_fd = opd_proc_open(wanted->pid);
	if (proc.fd < 0)
		return proc.fd == -ENOMEM ? -ENOMEM : -ENOENT;
	proc.maps = open_file(proc.fd, "maps");
	if (wanted->any_thread && (!proc.maps || !has_line(proc.maps)))
		seek_thread(&proc);
	if (!proc.maps) {
		close_proc(&proc);
		return -ENOENT;
	}
	*ret_proc = proc;
	return 0;
}

/* "start-end perms ...": *ret_is_file: it has a path. False: the line does not matter. */
static bool is_wanted(const char *line, uint64_t until, uint64_t *ret_start, bool *ret_is_file)
{
	char *at;
	uint64_t end;

	*ret_start = strtoull(line, &at, 16);
	end = *at == '-' ? strtoull(at + 1, &at, 16) : 0;
	*ret_is_file = strchr(at, '/');
	return *ret_is_file || (strlen(at) > 3 && at[3] == 'x') || (*ret_start < until && until <= end);
}

static void add_lines(FILE *maps, uint64_t until, struct op_text *text)
{
	char *line = NULL;
	size_t capacity = 0;
	bool is_last = false;

	while (!is_last && text->length < TEXT_MAX_BYTES && getline(&line, &capacity, maps) >= 0) {
		uint64_t start;
		bool is_file;

		if (!is_wanted(line, until, &start, &is_file))
			continue;
		op_text_add(text, line);
		is_last = is_file && start >= until;
	}
	free(line);
}

static ssize_t read_proc(int proc_fd, const char *name, char *text, size_t nr_bytes)
{
	int fd = op_sys_openat(proc_fd, name, O_RDONLY | O_CLOEXEC, 0);
	ssize_t nr = fd < 0 ? fd : op_sys_read(fd, text, nr_bytes - 1);

	if (fd >= 0)
		close(fd);
	text[nr > 0 ? nr : 0] = '\0';
	return nr;
}

/* The name may have any byte, also newlines; the kernel adds one. */
static void read_comm(int proc_fd, char comm[OPD_COMM_BYTES])
{
	char text[PROC_BYTES];
	ssize_t nr = read_proc(proc_fd, "comm", text, sizeof(text));

	if (nr > 0 && text[nr - 1] == '\n')
		text[nr - 1] = '\0';
	snprintf(comm, OPD_COMM_BYTES, "%.*s", (int)OPD_COMM_BYTES - 1, text);
}

/*
 * PF_KTHREAD in the flags, field 9 of /proc/PID/stat (proc(5)). Field 2, the name, may contain
 * anything; the last bracket ends it. Threads that the kernel runs for a process (io_uring, vhost)
 * do not have the flag.
 */
static bool is_kernel_thread(int proc_fd)
{
	char text[PROC_BYTES];
	const char *at = read_proc(proc_fd, "stat", text, sizeof(text)) > 0 ? strrchr(text, ')') : NULL;

	for (int field = 2; field < 9 && at; field++)
		at = strchr(at + 1, ' ');
	return at && strtoul(at + 1, NULL, 10) & PF_KTHREAD;
}

static void add_place(struct opd_proc_maps *maps, const struct proc *proc)
{
	struct opd_place place;
	char exe[PATH_MAX];
	ssize_t length;

	maps->has_place = opd_place_read_at(proc->tid_fd, &place);
	if (maps->has_place) {
		maps->mnt_ns = place.mnt_ns;
		maps->user_ns = place.user_ns;
		op_text_add(&maps->text, place.root);
	}
	op_text_add_char(&maps->text, '\0');
	maps->exe_at = (uint32_t)maps->text.length;
	length = op_sys_readlinkat(proc->tid_fd, "exe", exe, sizeof(exe) - 1);
	if (length > 0)
		op_text_add_bytes(&maps->text, exe, (size_t)length);
	op_text_add_char(&maps->text, '\0');
	read_comm(proc->fd, maps->comm);
	maps->is_kernel_thread = length <= 0 && is_kernel_thread(proc->fd);
}

int opd_proc_maps_read(const struct opd_proc_wanted *wanted, struct opd_proc_maps *ret_maps)
{
	struct opd_proc_maps maps = { 0 };
	struct proc proc;
	int err = open_proc(wanted, &proc);

	if (err)
		return err;
	maps.tid = proc.tid;
	if (wanted->with_place)
		add_place(&maps, &proc);
	maps.maps_at = (uint32_t)maps.text.length;
	add_lines(proc.maps, wanted->until, &maps.text);
	op_text_add_char(&maps.text, '\0');
	close_proc(&proc);
	if (maps.text.failed) {
		op_text_free(&maps.text);
		return -ENOMEM;
	}
	*ret_maps = maps;
	return 0;
}

/* The answer: the struct, and its text behind it. opd and its lookers are one program. */
int opd_proc_maps_answer(const struct opd_proc_wanted *wanted, struct op_text *answer)
{
	struct opd_proc_maps maps;
	int err = opd_proc_maps_read(wanted, &maps);
	struct op_text text;

	if (err)
		return err;
	text = maps.text;
	maps.text = (struct op_text){ 0 };
	op_text_add_bytes(answer, &maps, sizeof(maps));
	op_text_add_bytes(answer, text.data, text.length);
	op_text_free(&text);
	return 0;
}

/* ---- in opd ---- */

/* The text ends with a NUL, and its parts begin within it. */
static int take_answer(struct op_text *answer, struct opd_proc_maps *ret_maps)
{
	struct opd_proc_maps maps;
	size_t nr_bytes;

	if (answer->length <= sizeof(maps))
		return -EBUSY;
	memcpy(&maps, answer->data, sizeof(maps));
	nr_bytes = answer->length - sizeof(maps);
	if (answer->data[answer->length - 1] || maps.exe_at >= nr_bytes || maps.maps_at >= nr_bytes)
		return -EBUSY;
	memmove(answer->data, answer->data + sizeof(maps), nr_bytes);
	answer->length = nr_bytes;
	maps.text = *answer;
	maps.comm[sizeof(maps.comm) - 1] = '\0';
	*answer = (struct op_text){ 0 };
	*ret_maps = maps;
	return 0;
}

int opd_proc_maps_get(struct opd_lookers *lookers, const struct opd_mount_view *view, const struct opd_proc_wanted *wanted,
		      struct opd_proc_maps *ret_maps)
{
	struct opd_look_about about = opd_mount_view_about(view, wanted->pid);
	struct iovec part = { (void *)(uintptr_t)wanted, sizeof(*wanted) }; // NOLINT(performance-no-int-to-ptr)
	struct op_text answer = { 0 };
	uint32_t any = 0;
	int err;

	if (!lookers)
		return opd_proc_maps_read(wanted, ret_maps);
	if (op_sys_is_gone(wanted->pid))
		return -ENOENT;
	err = opd_look(lookers, &about, OPD_LOOK_MAPS, &part, 1, -1, &any, &answer);
	if (!err)
		err = take_answer(&answer, ret_maps);
	op_text_free(&answer);
	return err;
}

bool opd_proc_maps_place(const struct opd_proc_maps *maps, struct opd_place *ret_place)
{
	if (!maps->has_place || strlen(maps->text.data) >= sizeof(ret_place->root))
		return false;
	ret_place->mnt_ns = maps->mnt_ns;
	ret_place->user_ns = maps->user_ns;
	memcpy(ret_place->root, maps->text.data, strlen(maps->text.data) + 1);
	return true;
}

void opd_proc_maps_free(struct opd_proc_maps *maps)
{
	op_text_free(&maps->text);
}
