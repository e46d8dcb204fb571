/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "daemon/locate/proc_maps.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "libop/base/sys.h"

#define TEXT_MAX_BYTES (8u << 20) /* a process with more mappings is known as far as this goes */

/* Goes ahead of the text in the answer of a looker. */
struct head {
	uint32_t tid, has_place;
	uint64_t mnt_ns, user_ns;
	uint32_t exe_at, maps_at;
};

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

static void add_place(struct opd_proc_maps *maps)
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
}

int opd_proc_maps_read(const struct opd_proc_wanted *wanted, struct opd_proc_maps *ret_maps)
{
	struct opd_proc_maps maps = { .tid = wanted->pid };
	FILE *file;
	int err = wanted->any_thread ? open_maps_of_process(wanted->pid, &maps.tid, &file) : open_maps(wanted->pid, &file);

	if (err)
		return err;
	if (wanted->with_place)
		add_place(&maps);
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

int opd_proc_maps_answer(const struct opd_proc_wanted *wanted, struct op_text *answer)
{
	struct opd_proc_maps maps;
	int err = opd_proc_maps_read(wanted, &maps);
	struct head head;

	if (err)
		return err;
	head = (struct head){ maps.tid, maps.has_place, maps.mnt_ns, maps.user_ns, maps.exe_at, maps.maps_at };
	op_text_add_bytes(answer, &head, sizeof(head));
	op_text_add_bytes(answer, maps.text.data, maps.text.length);
	op_text_free(&maps.text);
	return 0;
}

/* ---- in opd ---- */

/* The text ends with a NUL, and its parts begin within it. */
static int take_answer(struct op_text *answer, struct opd_proc_maps *ret_maps)
{
	struct head head;
	size_t nr_bytes;

	if (answer->length <= sizeof(head))
		return -EBUSY;
	memcpy(&head, answer->data, sizeof(head));
	nr_bytes = answer->length - sizeof(head);
	if (answer->data[answer->length - 1] || head.exe_at >= nr_bytes || head.maps_at >= nr_bytes)
		return -EBUSY;
	memmove(answer->data, answer->data + sizeof(head), nr_bytes);
	answer->length = nr_bytes;
	*ret_maps = (struct opd_proc_maps){
		.tid = head.tid,
		.has_place = head.has_place,
		.mnt_ns = head.mnt_ns,
		.user_ns = head.user_ns,
		.exe_at = head.exe_at,
		.maps_at = head.maps_at,
		.text = *answer,
	};
	*answer = (struct op_text){ 0 };
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
