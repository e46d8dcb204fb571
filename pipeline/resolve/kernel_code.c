/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pipeline/resolve/kernel_code.h"

#include <errno.h>
#include <limits.h>
#include <linux/bpf.h>
#include <unistd.h>

#include "libop/base/grow.h"
#include "libop/base/parse.h"
#include "libop/base/sys.h"

#define FUNCTIONS_MAX 4096u /* of a BPF program; the verifier takes 256 */

/* ---- /proc/kallsyms ---- */

static FILE *open_list(const char *proc_path)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/kallsyms", proc_path);
	return fopen(path, "re");
}

static bool is_made(const struct op_kallsyms_line *line)
{
	static const char *const owners[] = { "bpf", "__builtin__ftrace", "__builtin__kprobes" };

	if (!line->module || !line->address)
		return false;
	for (size_t i = 0; i < op_array_size(owners); i++)
		if (!strcmp(line->module, owners[i]))
			return true;
	return false;
}

static int add_made(struct opd_kallsyms *kallsyms, const struct op_kallsyms_line *line)
{
	struct opd_kallsym made = { .start = line->address };

	if (!op_grow(&kallsyms->made, &kallsyms->capacity, kallsyms->nr_made + 1))
		return -ENOMEM;
	made.name = strdup(line->name);
	if (!made.name)
		return -ENOMEM;
	kallsyms->made[kallsyms->nr_made++] = made;
	kallsyms->has_bpf |= !strcmp(line->module, "bpf");
	return 0;
}

/*
 * load_elf_binary replaces the memory, by begin_new_exec (flush_old_exec before Linux 5.8), and
 * sets the registers at its end. The compiler may split a function; its parts have a suffix.
 */
static bool is_memory_end(const char *name, bool *ret_is_exec)
{
	static const struct {
		const char *name;
		bool is_exec;
	} functions[] = { { "load_elf_binary", true }, { "begin_new_exec", true }, { "flush_old_exec", true },
			  { "do_exit", false },        { "exit_mmap", false } };

	for (size_t i = 0; i < op_array_size(functions); i++) {
		size_t length = strlen(functions[i].name);

		*ret_is_exec = functions[i].is_exec;
		if (!strncmp(name, functions[i].name, length) && (!name[length] || name[length] == '.'))
			return true;
	}
	return false;
}

/* The list is in the order of the addresses, so a function ends at the next line. */
static void take_memory_end(struct opd_kallsyms *kallsyms, const struct op_kallsyms_line *line)
{
	struct opd_memory_end *last = kallsyms->nr_memory_ends ? &kallsyms->memory_ends[kallsyms->nr_memory_ends - 1] : NULL;
	bool is_exec;

	if (last && !last->end && line->address > last->start)
		last->end = line->address;
	if (line->address && kallsyms->nr_memory_ends < OPD_MEMORY_ENDS_MAX && is_memory_end(line->name, &is_exec))
		kallsyms->memory_ends[kallsyms->nr_memory_ends++] =
			(struct opd_memory_end){ .start = line->address, .is_exec = is_exec };
}

static int take_lines(struct opd_kallsyms *kallsyms, FILE *file)
{
	uint64_t text = 0, stext = 0, etext = 0;
	size_t capacity = 0;
	char *text_line = NULL;
	int err = 0;

	while (!err && getline(&text_line, &capacity, file) > 0) {
		struct op_kallsyms_line line;

		if (!op_kallsyms_parse(text_line, &line))
			continue;
		if (!line.module)
			take_memory_end(kallsyms, &line);
		if (is_made(&line))
			err = add_made(kallsyms, &line);
		else if (line.module)
			continue;
		else if (!strcmp(line.name, "_text"))
			text = line.address;
		else if (!strcmp(line.name, "_stext"))
			stext = line.address;
		else if (!strcmp(line.name, "_etext"))
			etext = line.address;
	}
	free(text_line);
	if (!text)
		text = stext;
	if (text && text < etext) {
		kallsyms->text_start = text;
		kallsyms->text_end = etext;
	}
	return err;
}

static int compare_starts(const void *left, const void *right)
{
	const struct opd_kallsym *a = left, *b = right;

	return a->start < b->start ? -1 : a->start > b->start;
}

int opd_kallsyms_read(const char *proc_path, struct opd_kallsyms *kallsyms)
{
	FILE *file = open_list(proc_path);
	int err;

	*kallsyms = (struct opd_kallsyms){ 0 };
	if (!file)
		return 0;
	err = take_lines(kallsyms, file);
	fclose(file);
	if (kallsyms->nr_made)
		qsort(kallsyms->made, kallsyms->nr_made, sizeof(*kallsyms->made), compare_starts);
	return err;
}

void opd_kallsyms_free(struct opd_kallsyms *kallsyms)
{
	for (size_t i = 0; i < kallsyms->nr_made; i++)
		free(kallsyms->made[i].name);
	free(kallsyms->made);
	*kallsyms = (struct opd_kallsyms){ 0 };
}

uint64_t opd_kallsyms_text(const char *proc_path)
{
	FILE *file = open_list(proc_path);
	struct op_kallsyms_line line = { 0 };
	size_t capacity = 0;
	char *text_line = NULL;
	bool found = false;

	while (file && !found && getline(&text_line, &capacity, file) > 0)
		found = op_kallsyms_parse(text_line, &line) && !line.module && !strcmp(line.name, "_text");
	free(text_line);
	if (file)
		fclose(file);
	return found ? line.address : 0;
}

/* ---- bpf(2) ---- */

static int get_info(int fd, struct bpf_prog_info *info)
{
	union bpf_attr attr = { 0 };

	attr.info.bpf_fd = (uint32_t)fd;
	attr.info.info_len = sizeof(*info);
	attr.info.info = (uintptr_t)info;
	return op_sys_bpf(BPF_OBJ_GET_INFO_BY_FD, &attr, sizeof(attr));
}

/* The kernel fills in as many as fit and returns how many there are. Hidden addresses are 0. */
static int take_functions(struct opd_bpf_code *code, int fd, uint32_t nr)
{
	uint64_t *starts = calloc(nr, sizeof(*starts));
	uint32_t *lengths = calloc(nr, sizeof(*lengths));
	struct bpf_prog_info info = {
		.nr_jited_ksyms = nr,
		.nr_jited_func_lens = nr,
		.jited_ksyms = (uintptr_t)starts,
		.jited_func_lens = (uintptr_t)lengths,
	};
	int err = 0;

	if (!starts || !lengths || !op_grow(&code->functions, &code->capacity, code->nr_functions + nr))
		err = -ENOMEM;
	if (!err && get_info(fd, &info) >= 0 && info.nr_jited_ksyms == nr && info.nr_jited_func_lens == nr)
		for (uint32_t i = 0; i < nr; i++)
			if (starts[i] && lengths[i])
				code->functions[code->nr_functions++] =
					(struct opd_bpf_function){ .start = starts[i], .nr_bytes = lengths[i] };
	free(starts);
	free(lengths);
	return err;
}

static int take_program(struct opd_bpf_code *code, uint32_t id)
{
	struct bpf_prog_info info = { 0 };
	union bpf_attr attr = { 0 };
	int fd, err = 0;

	attr.prog_id = id;
	fd = op_sys_bpf(BPF_PROG_GET_FD_BY_ID, &attr, sizeof(attr));
	if (fd < 0)
		return 0;
	if (get_info(fd, &info) >= 0 && info.nr_jited_ksyms && info.nr_jited_ksyms <= FUNCTIONS_MAX &&
	    info.nr_jited_func_lens == info.nr_jited_ksyms)
		err = take_functions(code, fd, info.nr_jited_ksyms);
	close(fd);
	return err;
}

int opd_bpf_code_read(struct opd_bpf_code *code)
{
	union bpf_attr attr = { 0 };
	int err = 0;

	*code = (struct opd_bpf_code){ 0 };
	while (!err && op_sys_bpf(BPF_PROG_GET_NEXT_ID, &attr, sizeof(attr)) >= 0) {
		uint32_t id = attr.next_id;

		err = take_program(code, id);
		attr = (union bpf_attr){ 0 };
		attr.start_id = id;
	}
	return err;
}

void opd_bpf_code_free(struct opd_bpf_code *code)
{
	free(code->functions);
	*code = (struct opd_bpf_code){ 0 };
}
