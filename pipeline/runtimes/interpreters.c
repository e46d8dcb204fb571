/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pipeline/runtimes/interpreters.h"

#include <errno.h>
#include <linux/bpf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "libop/base/clock.h"
#include "libop/base/htable.h"
#include "libop/base/log.h"
#include "libop/base/sys.h"
#include "libop/unwind/runtime_words.h"
#include "pipeline/runtimes/perl.h"
#include "pipeline/runtimes/php.h"
#include "pipeline/runtimes/python.h"
#include "pipeline/runtimes/ruby.h"

#define FUNCTIONS_BYTES (8u << 20) /* of functions that are known; then all are forgotten */

/* A function of a process, as a note has named it. */
struct function {
	struct op_hlink link;
	uint32_t tgid, check;
	uint64_t code;
	uint32_t image;
	uint32_t name, first_line;
	uint32_t table_bytes;
	uint8_t table[]; /* of lines */
};

struct process {
	struct op_hlink link; /* by number */
	uint32_t tgid;
};

struct image {
	uint64_t cookie;
	enum op_runtime runtime;
	enum opd_python_lines lines;
	uint64_t loop_start, loop_end;
};

struct opd_interpreters {
	struct opd_runtime_names *names;
	struct op_htable functions;
	size_t functions_bytes;
	uint64_t seed;
	struct image images[OPD_INTERPRETER_IMAGES_MAX];
	uint32_t nr_images;
	uint64_t wanted; /* a bit for each enum op_runtime */
	uint64_t last_seen; /* the cookie of the image that was seen last */
	int images_fd; /* -1: no program reads runtimes */
	struct opd_interpreter_control *control;
	struct op_htable processes;
	uint64_t stats[OP_NR_RUNTIMES][OP_NR_RUNTIME_STATS];
};

/* ---- functions ---- */

static void free_function(struct op_hlink *link, void *arg OP_UNUSED)
{
	free(op_container_of(link, struct function, link));
}

static void forget_functions(struct opd_interpreters *interpreters)
{
	op_htable_visit(&interpreters->functions, free_function, NULL);
	op_htable_free(&interpreters->functions);
	interpreters->functions = (struct op_htable){ 0 };
	interpreters->functions_bytes = 0;
	if (interpreters->control)
		interpreters->control->generation++; /* the program writes the names again */
}

static uint64_t hash_of(const struct opd_interpreters *interpreters, uint32_t tgid, uint64_t code, uint32_t check)
{
	return op_hash_u64(op_hash_u64(interpreters->seed ^ code) ^ ((uint64_t)tgid << 32 | check));
}

static struct function *find_function(const struct opd_interpreters *interpreters, uint32_t tgid, uint64_t code, uint32_t check)
{
	uint64_t hash = hash_of(interpreters, tgid, code, check);

	for (struct op_hlink *link = op_htable_first(&interpreters->functions, hash); link; link = op_htable_next(link)) {
		struct function *function = op_container_of(link, struct function, link);

		if (function->tgid == tgid && function->code == code && function->check == check)
			return function;
	}
	return NULL;
}

/* The others than Python have UTF-8, in bytes that are no more to be trusted. */
static void add_string(struct op_text *to, enum op_runtime runtime, const uint8_t *bytes, size_t nr_bytes, uint32_t width)
{
	if (runtime == OP_RUNTIME_python)
		opd_python_add_string(to, bytes, nr_bytes, width);
	else
		for (size_t i = 0; i < nr_bytes; i++)
			op_text_add_char(to, bytes[i] ? (char)bytes[i] : '?');
}

static uint32_t name_function(struct opd_interpreters *interpreters, enum op_runtime runtime, const struct opd_name_note *note,
			      const uint8_t *bytes)
{
	struct op_text name = { 0 }, file = { 0 };
	uint32_t number = 0;

	add_string(&name, runtime, bytes, note->name_bytes, note->name_width);
	add_string(&file, runtime, bytes + note->name_bytes, note->file_bytes, note->file_width);
	/* Perl numbers the texts that it compiles, which are no other functions for that */
	if (runtime == OP_RUNTIME_perl && !strncmp(op_text_get(&file), "(eval ", strlen("(eval "))) {
		op_text_truncate(&file, 0);
		op_text_add(&file, "(eval)");
	}
	if (!name.failed && !file.failed)
		number = opd_runtime_names_add(interpreters->names, runtime, op_text_get(&file), op_text_get(&name),
					       note->first_line);
	op_text_free(&name);
	op_text_free(&file);
	return number;
}

void opd_interpreters_take_name(struct opd_interpreters *interpreters, uint32_t tgid, const void *note, size_t nr_bytes)
{
	const uint8_t *bytes = (const uint8_t *)note + sizeof(struct opd_name_note);
	struct opd_name_note head;
	struct function *function;
	size_t nr_strings;

	if (nr_bytes < sizeof(head))
		return;
	memcpy(&head, note, sizeof(head));
	nr_strings = (size_t)head.name_bytes + head.file_bytes;
	if (nr_bytes - sizeof(head) < nr_strings + head.table_bytes || head.image >= interpreters->nr_images ||
	    find_function(interpreters, tgid, head.code, head.check))
		return;
	if (interpreters->functions_bytes + sizeof(*function) + head.table_bytes > FUNCTIONS_BYTES)
		forget_functions(interpreters);
	function = malloc(sizeof(*function) + head.table_bytes);
	if (!function)
		return;
	*function = (struct function){
		.tgid = tgid,
		.check = head.check,
		.code = head.code,
		.image = head.image,
		.first_line = head.first_line,
		.table_bytes = head.table_bytes,
		.name = name_function(interpreters, interpreters->images[head.image].runtime, &head, bytes),
	};
	memcpy(function->table, bytes + nr_strings, head.table_bytes);
	if (!function->name ||
	    op_htable_insert(&interpreters->functions, &function->link, hash_of(interpreters, tgid, head.code, head.check))) {
		free(function);
		return;
	}
	interpreters->functions_bytes += sizeof(*function) + head.table_bytes;
}

/* ---- frames ---- */

/* False: the frame has no name. */
static bool take_call(struct opd_interpreters *interpreters, uint32_t tgid, const struct image *image,
		      const struct opd_interpreter_frame *frame, struct opd_interpreter_call *call)
{
	const struct function *function = find_function(interpreters, tgid, frame->code, frame->check & ~OPD_INTERPRETER_IS_ENTRY);

	call->is_entry = frame->check & OPD_INTERPRETER_IS_ENTRY;
	if (function) {
		call->name = function->name;
		call->line = frame->position;
		if (image->runtime == OP_RUNTIME_python)
			call->line = opd_python_line(image->lines, function->table, function->table_bytes, function->first_line,
						     frame->position);
		return true;
	}
	call->name = opd_runtime_names_add(interpreters->names, image->runtime, "", "[not readable]", 0);
	return false;
}

/* False: there was no memory. */
static bool have_names(const struct opd_interpreter_stack *stack)
{
	for (uint32_t i = 0; i < stack->nr_frames; i++)
		if (!stack->calls[i].name)
			return false;
	return true;
}

static void free_process(struct op_hlink *link, void *arg OP_UNUSED)
{
	free(op_container_of(link, struct process, link));
}

static void remove_process(struct op_hlink *link, void *table)
{
	op_htable_remove(table, link);
	free_process(link, NULL);
}

/* True for the first sample of a process. The table is emptied at times: numbers come again. */
static bool is_new_process(struct opd_interpreters *interpreters, uint32_t tgid)
{
	uint64_t hash = op_hash_u64(tgid);
	struct process *process;

	for (struct op_hlink *link = op_htable_first(&interpreters->processes, hash); link; link = op_htable_next(link))
		if (op_container_of(link, struct process, link)->tgid == tgid)
			return false;
	if (interpreters->processes.nr_entries >= OPD_INTERPRETER_PROCESSES_MAX)
		op_htable_visit(&interpreters->processes, remove_process, &interpreters->processes);
	process = calloc(1, sizeof(*process));
	if (!process)
		return false;
	process->tgid = tgid;
	if (op_htable_insert(&interpreters->processes, &process->link, hash))
		free(process);
	return true;
}

static void count_stack(struct opd_interpreters *interpreters, enum op_runtime runtime, uint32_t tgid, uint32_t end, bool is_named)
{
	static const enum op_runtime_stat stats[OPD_READ_NR_ENDS] = {
		[OPD_READ_COMPLETE] = OP_RUNTIME_STAT_complete,
		[OPD_READ_NONE] = OP_RUNTIME_STAT_none,
		[OPD_READ_FAULT] = OP_RUNTIME_STAT_fault,
		[OPD_READ_DEEP] = OP_RUNTIME_STAT_deep,
	};
	uint64_t *counts = interpreters->stats[runtime];

	counts[OP_RUNTIME_STAT_samples]++;
	counts[end == OPD_READ_COMPLETE && !is_named ? OP_RUNTIME_STAT_unnamed : stats[end]]++;
	counts[OP_RUNTIME_STAT_processes] += is_new_process(interpreters, tgid);
}

struct opd_interpreter_stack *opd_interpreters_take_frames(struct opd_interpreters *interpreters, uint32_t tgid,
							   const void *note, size_t nr_bytes)
{
	const struct opd_interpreter_frame *frames = (const void *)((const uint8_t *)note + sizeof(struct opd_frames_note));
	struct opd_interpreter_stack *stack;
	const struct image *image;
	struct opd_frames_note head;
	bool is_named = true;

	if (nr_bytes < sizeof(head))
		return NULL;
	memcpy(&head, note, sizeof(head));
	if (head.image >= interpreters->nr_images || head.end >= OPD_READ_NR_ENDS ||
	    head.nr_frames > (nr_bytes - sizeof(head)) / sizeof(*frames))
		return NULL;
	image = &interpreters->images[head.image];
	/* one more, for the frames that could not be read */
	stack = calloc(1, sizeof(*stack) + (head.nr_frames + 1) * sizeof(*stack->calls));
	if (!stack)
		return NULL;
	stack->cookie = image->cookie;
	stack->loop_start = image->loop_start;
	stack->loop_end = image->loop_end;
	for (uint32_t i = 0; i < head.nr_frames; i++) {
		struct opd_interpreter_frame frame;

		memcpy(&frame, &frames[i], sizeof(frame));
		is_named &= take_call(interpreters, tgid, image, &frame, &stack->calls[i]);
	}
	stack->nr_frames = head.nr_frames;
	if (head.end == OPD_READ_FAULT || head.end == OPD_READ_DEEP)
		stack->calls[stack->nr_frames++] = (struct opd_interpreter_call){
			.name = opd_runtime_names_add(interpreters->names, image->runtime, "",
						      head.end == OPD_READ_DEEP ? "[too deep]" : "[not readable]", 0),
			.is_entry = true,
		};
	count_stack(interpreters, image->runtime, tgid, head.end, is_named);
	if (stack->nr_frames && have_names(stack))
		return stack;
	free(stack);
	return NULL;
}

struct opd_interpreter_stack *opd_interpreter_stack_copy(const struct opd_interpreter_stack *stack)
{
	size_t nr_bytes = stack ? sizeof(*stack) + stack->nr_frames * sizeof(*stack->calls) : 0;
	struct opd_interpreter_stack *copy = stack ? malloc(nr_bytes) : NULL;

	return copy ? memcpy(copy, stack, nr_bytes) : NULL;
}

/* ---- images ---- */

static int tell_program(const struct opd_interpreters *interpreters, const struct op_image_id *id,
			const struct opd_interpreter_image *image)
{
	struct opd_interpreter_file file = { .inode = id->inode, .device = major(id->device) << 20 | minor(id->device) };
	union bpf_attr attr = {
		.map_fd = (uint32_t)interpreters->images_fd,
		.key = (uintptr_t)&file,
		.value = (uintptr_t)image,
	};
	int err = op_sys_bpf(BPF_MAP_UPDATE_ELEM, &attr, sizeof(attr));

	if (!err)
		interpreters->control->nr_images++;
	return err;
}

/* The words that each runtime needs: its data, and its loop. */
static const struct {
	enum op_runtime_word data, loop;
} words_of[OP_NR_RUNTIMES] = {
	[OP_RUNTIME_python] = { OP_WORD_PYTHON_RUNTIME, OP_WORD_PYTHON_LOOP },
	[OP_RUNTIME_perl] = { OP_WORD_PERL, OP_WORD_PERL_LOOP },
	[OP_RUNTIME_php] = { OP_WORD_PHP, OP_WORD_PHP_LOOP },
	[OP_RUNTIME_ruby] = { OP_WORD_RUBY_LIBRARY, OP_WORD_RUBY_LOOP },
};

static enum op_runtime runtime_of(const struct op_row_table *table, uint64_t *ret_address)
{
	uint64_t loop;

	for (enum op_runtime i = OP_RUNTIME_none + 1; i < OP_NR_RUNTIMES; i++) {
		if (!words_of[i].loop || !op_row_table_word(table, words_of[i].loop, &loop))
			continue;
		/* a build that is refused may not have it */
		op_row_table_word(table, words_of[i].data, ret_address);
		return i;
	}
	return OP_RUNTIME_none;
}

static bool set_layout(struct image *image, struct opd_interpreter_image *told, const struct op_row_table *table,
		       const char **ret_why)
{
	if (image->runtime == OP_RUNTIME_perl)
		return opd_perl_layout(table, &told->perl, ret_why);
	if (image->runtime == OP_RUNTIME_php)
		return opd_php_layout(table, &told->php, ret_why);
	if (image->runtime == OP_RUNTIME_ruby)
		return opd_ruby_layout(table, &told->ruby, ret_why);
	return opd_python_layout(table, &told->python, &image->lines, ret_why);
}

static void set_loop(struct image *image, const struct op_row_table *table)
{
	const struct op_row_function *loop;
	uint64_t start;

	if (!op_row_table_word(table, words_of[image->runtime].loop, &start))
		return;
	loop = op_row_table_function(table, start);
	image->loop_start = start;
	image->loop_end = start + (loop ? le32toh(loop->nr_bytes) : 0);
}

void opd_interpreters_see_image(struct opd_interpreters *interpreters, uint64_t cookie, const struct op_image_id *id,
			    const struct op_row_table *table)
{
	struct opd_interpreter_image told = { .number = interpreters->nr_images };
	struct image *image = &interpreters->images[told.number];
	const char *why = "it has no inode in records";
	enum op_runtime runtime;
	uint64_t address = 0;
	int err = -ENOTSUP;

	if (cookie == interpreters->last_seen || interpreters->images_fd < 0)
		return;
	interpreters->last_seen = cookie;
	for (uint32_t i = 0; i < interpreters->nr_images; i++)
		if (interpreters->images[i].cookie == cookie)
			return;
	runtime = runtime_of(table, &address);
	if (interpreters->nr_images == OPD_INTERPRETER_IMAGES_MAX || !(interpreters->wanted >> runtime & 1))
		return;
	told.runtime = runtime;
	told.address = address;
	interpreters->nr_images++;
	*image = (struct image){ .cookie = cookie, .runtime = runtime };
	set_loop(image, table);
	told.loop_start = image->loop_start;
	told.loop_end = image->loop_end;
	if (id->inode && set_layout(image, &told, table, &why)) {
		err = tell_program(interpreters, id, &told);
		why = strerror(-err);
	}
	if (err) {
		interpreters->stats[runtime][OP_RUNTIME_STAT_refused]++;
		op_log(OP_LOG_WARNING, "the functions of %s have no names: %s", id->name.name, why);
	}
}

void opd_interpreters_set_maps(struct opd_interpreters *interpreters, int images_fd, struct opd_interpreter_control *control)
{
	interpreters->images_fd = images_fd;
	interpreters->control = control;
}

/* ---- the rest ---- */

int opd_interpreters_new(uint64_t wanted, struct opd_runtime_names *names, struct opd_interpreters **ret_interpreters)
{
	struct opd_interpreters *interpreters = calloc(1, sizeof(*interpreters));

	if (!interpreters)
		return -ENOMEM;
	interpreters->images_fd = -1;
	interpreters->last_seen = OP_DCOOKIE_NONE;
	interpreters->seed = op_now_ns() ^ (uintptr_t)interpreters;
	interpreters->wanted = wanted;
	interpreters->names = names;
	*ret_interpreters = interpreters;
	return 0;
}

void opd_interpreters_free(struct opd_interpreters *interpreters)
{
	if (!interpreters)
		return;
	op_htable_visit(&interpreters->functions, free_function, NULL);
	op_htable_free(&interpreters->functions);
	op_htable_visit(&interpreters->processes, free_process, NULL);
	op_htable_free(&interpreters->processes);
	free(interpreters);
}

void opd_interpreters_add_counts(const struct opd_interpreters *interpreters, uint64_t stats[OP_NR_RUNTIMES][OP_NR_RUNTIME_STATS])
{
	for (size_t i = 0; i < OP_NR_RUNTIMES; i++)
		for (size_t k = 0; k < OP_NR_RUNTIME_STATS; k++)
			stats[i][k] += interpreters->stats[i][k];
}
