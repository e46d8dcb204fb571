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

static int open_maps(uint32_t tid, FILE **ret_file)
{
	char path[64];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%u/maps", tid);
	file = fopen(path, "re");
	if (!file)
		return errno == ENOMEM ? -ENOMEM : -ENOENT;
	*ret_file = file;
	return 0;
}

static bool has_line(FILE *maps)
{
	int first = fgetc(maps);

	return first != EOF && ungetc(first, maps) != EOF;
}

/* A thread other than the main thread that has maps; 0: none. */
static uint32_t open_maps_of_thread(uint32_t pid, FILE **ret_file)
{
	char path[64];
	struct dirent *entry;
	uint32_t found = 0;
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%u/task", pid);
	tasks = opendir(path);
	while (tasks && !found && (entry = readdir(tasks))) {
		uint32_t tid = isdigit((unsigned char)entry->d_name[0]) ? (uint32_t)strtoul(entry->d_name, NULL, 10) : pid;

		if (tid == pid || open_maps(tid, ret_file) < 0)
			continue;
		if (has_line(*ret_file))
			found = tid;
		else
			fclose(*ret_file);
	}
	if (tasks)
		closedir(tasks);
	return found;
}

/*
 * The maps of a process are empty or missing once its main thread has ended; another thread has
 * them. The file is opened once, because opening costs most of a look at a few lines.
 */
static int open_maps_of_process(uint32_t pid, uint32_t *ret_tid, FILE **ret_file)
{
	FILE *of_thread;
	uint32_t tid;
	int err = open_maps(pid, ret_file);

	*ret_tid = pid;
	if (!err && has_line(*ret_file))
		return 0;
	tid = open_maps_of_thread(pid, &of_thread);
	if (!tid)
		return err;
	if (!err)
		fclose(*ret_file);
	*ret_file = of_thread;
	*ret_tid = tid;
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

static ssize_t read_proc(uint32_t pid, const char *name, char *text, size_t nr_bytes)
{
	char path[64];
	int fd;
	ssize_t nr;

	snprintf(path, sizeof(path), "/proc/%u/%s", pid, name);
	fd = op_sys_openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
	nr = fd < 0 ? fd : op_sys_read(fd, text, nr_bytes - 1);
	if (fd >= 0)
		close(fd);
	text[nr > 0 ? nr : 0] = '\0';
	return nr;
}

/* The name may have any byte, also newlines; the kernel adds one. */
static void read_comm(uint32_t pid, char comm[OPD_COMM_BYTES])
{
	char text[PROC_BYTES];
	ssize_t nr = read_proc(pid, "comm", text, sizeof(text));

	if (nr > 0 && text[nr - 1] == '\n')
		text[nr - 1] = '\0';
	snprintf(comm, OPD_COMM_BYTES, "%.*s", (int)OPD_COMM_BYTES - 1, text);
}

/*
 * PF_KTHREAD in the flags, field 9 of /proc/PID/stat (proc(5)). Field 2, the name, may contain
 * anything; the last bracket ends it. Threads that the kernel runs for a process (io_uring, vhost)
 * do not have the flag.
 */
static bool is_kernel_thread(uint32_t pid)
{
	char text[PROC_BYTES];
	const char *at = read_proc(pid, "stat", text, sizeof(text)) > 0 ? strrchr(text, ')') : NULL;

	for (int field = 2; field < 9 && at; field++)
		at = strchr(at + 1, ' ');
	return at && strtoul(at + 1, NULL, 10) & PF_KTHREAD;
}

static void add_place(struct opd_proc_maps *maps, uint32_t pid)
{
	struct opd_place place;
	char path[64], exe[PATH_MAX];
	ssize_t length;

	maps->has_place = opd_place_read(maps->tid, &place);
	if (maps->has_place) {
		maps->mnt_ns = place.mnt_ns;
		maps->user_ns = place.user_ns;
		op_text_add(&maps->text, place.root);
	}
	op_text_add_char(&maps->text, '\0');
	maps->exe_at = (uint32_t)maps->text.length;
	snprintf(path, sizeof(path), "/proc/%u/exe", maps->tid);
	length = readlink(path, exe, sizeof(exe) - 1);
	if (length > 0)
		op_text_add_bytes(&maps->text, exe, (size_t)length);
	op_text_add_char(&maps->text, '\0');
	read_comm(pid, maps->comm);
	maps->is_kernel_thread = length <= 0 && is_kernel_thread(pid);
}

int opd_proc_maps_read(const struct opd_proc_wanted *wanted, struct opd_proc_maps *ret_maps)
{
	struct opd_proc_maps maps = { .tid = wanted->pid };
	FILE *file;
	int err = wanted->any_thread ? open_maps_of_process(wanted->pid, &maps.tid, &file) : open_maps(wanted->pid, &file);

	if (err)
		return err;
	if (wanted->with_place)
		add_place(&maps, wanted->pid);
	maps.maps_at = (uint32_t)maps.text.length;
	add_lines(file, wanted->until, &maps.text);
	op_text_add_char(&maps.text, '\0');
	fclose(file);
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
