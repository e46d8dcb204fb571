/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pipeline/runtimes/runtimes.h"

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
#include "pipeline/runtimes/python.h"

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

struct image {
	uint64_t cookie;
	enum op_runtime runtime;
	enum opd_python_lines lines;
	uint64_t loop_start, loop_end;
};

struct opd_runtimes {
	struct opd_runtime_names *names;
	struct op_htable functions;
	size_t functions_bytes;
	uint64_t seed;
	struct image images[OPD_RUNTIME_IMAGES_MAX];
	uint32_t nr_images;
	bool is_wanted[OP_NR_RUNTIMES];
	uint64_t last_seen; /* the cookie of the image that was seen last */
	int images_fd; /* -1: no program reads runtimes */
	struct opd_runtime_control *control;
	struct opd_runtime_counts counts[OP_NR_RUNTIMES];
};

/* ---- functions ---- */

static void free_function(struct op_hlink *link, void *arg OP_UNUSED)
{
	free(op_container_of(link, struct function, link));
}

static void forget_functions(struct opd_runtimes *runtimes)
{
	op_htable_visit(&runtimes->functions, free_function, NULL);
	op_htable_free(&runtimes->functions);
	runtimes->functions = (struct op_htable){ 0 };
	runtimes->functions_bytes = 0;
	if (runtimes->control)
		runtimes->control->generation++; /* the program writes the names again */
}

static uint64_t hash_of(const struct opd_runtimes *runtimes, uint32_t tgid, uint64_t code, uint32_t check)
{
	return op_hash_u64(op_hash_u64(runtimes->seed ^ code) ^ ((uint64_t)tgid << 32 | check));
}

static struct function *find_function(const struct opd_runtimes *runtimes, uint32_t tgid, uint64_t code, uint32_t check)
{
	uint64_t hash = hash_of(runtimes, tgid, code, check);

	for (struct op_hlink *link = op_htable_first(&runtimes->functions, hash); link; link = op_htable_next(link)) {
		struct function *function = op_container_of(link, struct function, link);

		if (function->tgid == tgid && function->code == code && function->check == check)
			return function;
	}
	return NULL;
}

static uint32_t name_function(struct opd_runtimes *runtimes, enum op_runtime runtime, const struct opd_name_note *note,
			      const uint8_t *bytes)
{
	struct op_text name = { 0 }, file = { 0 };
	uint32_t number = 0;

	opd_python_add_string(&name, bytes, note->name_bytes, note->name_width);
	opd_python_add_string(&file, bytes + note->name_bytes, note->file_bytes, note->file_width);
	if (!name.failed && !file.failed)
		number = opd_runtime_names_add(runtimes->names, runtime, op_text_get(&file), op_text_get(&name), note->first_line);
	op_text_free(&name);
	op_text_free(&file);
	return number;
}

void opd_runtimes_take_name(struct opd_runtimes *runtimes, uint32_t tgid, const void *note, size_t nr_bytes)
{
	const uint8_t *bytes = (const uint8_t *)note + sizeof(struct opd_name_note);
	struct opd_name_note head;
	struct function *function;
	size_t nr_strings;

	if (nr_bytes < sizeof(head))
		return;
	memcpy(&head, note, sizeof(head));
	nr_strings = (size_t)head.name_bytes + head.file_bytes;
	if (nr_bytes - sizeof(head) < nr_strings + head.table_bytes || head.image >= runtimes->nr_images ||
	    find_function(runtimes, tgid, head.code, head.check))
		return;
	if (runtimes->functions_bytes + sizeof(*function) + head.table_bytes > FUNCTIONS_BYTES)
		forget_functions(runtimes);
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
		.name = name_function(runtimes, runtimes->images[head.image].runtime, &head, bytes),
	};
	memcpy(function->table, bytes + nr_strings, head.table_bytes);
	if (!function->name ||
	    op_htable_insert(&runtimes->functions, &function->link, hash_of(runtimes, tgid, head.code, head.check))) {
		free(function);
		return;
	}
	runtimes->functions_bytes += sizeof(*function) + head.table_bytes;
}

/* ---- frames ---- */

/* False: the frame has no name. */
static bool take_call(struct opd_runtimes *runtimes, uint32_t tgid, const struct image *image,
		      const struct opd_runtime_frame *frame, struct opd_runtime_call *call)
{
	const struct function *function = find_function(runtimes, tgid, frame->code, frame->check & ~OPD_RUNTIME_IS_ENTRY);

	call->is_entry = frame->check & OPD_RUNTIME_IS_ENTRY;
	if (function) {
		call->name = function->name;
		call->line = opd_python_line(image->lines, function->table, function->table_bytes, function->first_line,
					     frame->position);
		return true;
	}
	call->name = opd_runtime_names_add(runtimes->names, image->runtime, "", "[not readable]", 0);
	return false;
}

static void count_stack(struct opd_runtime_counts *counts, uint32_t end, bool is_named)
{
	counts->samples++;
	counts->complete += end == OPD_RUNTIME_COMPLETE && is_named;
	counts->none += end == OPD_RUNTIME_NONE;
	counts->fault += end == OPD_RUNTIME_FAULT;
	counts->deep += end == OPD_RUNTIME_DEEP;
	counts->unnamed += !is_named;
}

struct opd_runtime_stack *opd_runtimes_take_frames(struct opd_runtimes *runtimes, uint32_t tgid, const void *note, size_t nr_bytes)
{
	const struct opd_runtime_frame *frames = (const void *)((const uint8_t *)note + sizeof(struct opd_frames_note));
	struct opd_runtime_stack *stack;
	const struct image *image;
	struct opd_frames_note head;
	bool is_named = true;

	if (nr_bytes < sizeof(head))
		return NULL;
	memcpy(&head, note, sizeof(head));
	if (head.image >= runtimes->nr_images || head.end >= OPD_RUNTIME_NR_ENDS ||
	    head.nr_frames > (nr_bytes - sizeof(head)) / sizeof(*frames))
		return NULL;
	image = &runtimes->images[head.image];
	/* one more, for the frames that could not be read */
	stack = calloc(1, sizeof(*stack) + (head.nr_frames + 1) * sizeof(*stack->calls));
	if (!stack)
		return NULL;
	stack->cookie = image->cookie;
	stack->loop_start = image->loop_start;
	stack->loop_end = image->loop_end;
	for (uint32_t i = 0; i < head.nr_frames; i++) {
		struct opd_runtime_frame frame;

		memcpy(&frame, &frames[i], sizeof(frame));
		is_named &= take_call(runtimes, tgid, image, &frame, &stack->calls[i]);
	}
	stack->nr_frames = head.nr_frames;
	if (head.end == OPD_RUNTIME_FAULT || head.end == OPD_RUNTIME_DEEP)
		stack->calls[stack->nr_frames++] = (struct opd_runtime_call){
			.name = opd_runtime_names_add(runtimes->names, image->runtime, "",
						      head.end == OPD_RUNTIME_DEEP ? "[too deep]" : "[not readable]", 0),
			.is_entry = true,
		};
	count_stack(&runtimes->counts[image->runtime], head.end, is_named);
	if (stack->nr_frames)
		return stack;
	free(stack);
	return NULL;
}

struct opd_runtime_stack *opd_runtime_stack_copy(const struct opd_runtime_stack *stack)
{
	size_t nr_bytes = stack ? sizeof(*stack) + stack->nr_frames * sizeof(*stack->calls) : 0;
	struct opd_runtime_stack *copy = stack ? malloc(nr_bytes) : NULL;

	return copy ? memcpy(copy, stack, nr_bytes) : NULL;
}

/* ---- images ---- */

static int tell_program(const struct opd_runtimes *runtimes, const struct op_image_id *id, const struct opd_runtime_image *image)
{
	struct opd_runtime_file file = { .inode = id->inode, .device = major(id->device) << 20 | minor(id->device) };
	union bpf_attr attr = {
		.map_fd = (uint32_t)runtimes->images_fd,
		.key = (uintptr_t)&file,
		.value = (uintptr_t)image,
	};

	return op_sys_bpf(BPF_MAP_UPDATE_ELEM, &attr, sizeof(attr));
}

static void set_loop(struct image *image, const struct op_row_table *table)
{
	const struct op_row_function *loop;
	uint64_t start;

	if (!op_row_table_word(table, OP_WORD_PYTHON_LOOP, &start))
		return;
	loop = op_row_table_function(table, start);
	image->loop_start = start;
	image->loop_end = start + (loop ? le32toh(loop->nr_bytes) : 0);
}

void opd_runtimes_see_image(struct opd_runtimes *runtimes, uint64_t cookie, const struct op_image_id *id,
			    const struct op_row_table *table)
{
	struct opd_runtime_image told = { .runtime = OP_RUNTIME_python, .number = runtimes->nr_images };
	struct image image = { .cookie = cookie, .runtime = OP_RUNTIME_python };
	const char *why = "it has no inode in records";
	uint64_t address;
	int err = -ENOTSUP;

	if (cookie == runtimes->last_seen || runtimes->images_fd < 0)
		return;
	runtimes->last_seen = cookie;
	for (uint32_t i = 0; i < runtimes->nr_images; i++)
		if (runtimes->images[i].cookie == cookie)
			return;
	if (runtimes->nr_images == OPD_RUNTIME_IMAGES_MAX || !runtimes->is_wanted[image.runtime] ||
	    !op_row_table_word(table, OP_WORD_PYTHON_RUNTIME, &address))
		return;
	told.address = address;
	runtimes->images[runtimes->nr_images++] = image;
	set_loop(&runtimes->images[told.number], table);
	if (id->inode && opd_python_layout(table, &told.python, &runtimes->images[told.number].lines, &why)) {
		err = tell_program(runtimes, id, &told);
		why = strerror(-err);
	}
	if (err) {
		runtimes->counts[image.runtime].refused++;
		op_log(OP_LOG_WARNING, "the functions of %s have no names: %s", id->name.name, why);
	} else {
		runtimes->counts[image.runtime].images++;
	}
}

void opd_runtimes_set_maps(struct opd_runtimes *runtimes, int images_fd, struct opd_runtime_control *control)
{
	runtimes->images_fd = images_fd;
	runtimes->control = control;
}

/* ---- the rest ---- */

static bool has_word(const char *words, const char *word)
{
	size_t length = strlen(word);

	for (const char *at = words; (at = strstr(at, word)); at += length)
		if ((at == words || strchr(", ", at[-1])) && (!at[length] || strchr(", ", at[length])))
			return true;
	return false;
}

int opd_runtimes_new(const char *words, struct opd_runtimes **ret_runtimes)
{
	struct opd_runtimes *runtimes = calloc(1, sizeof(*runtimes));

	if (!runtimes)
		return -ENOMEM;
	runtimes->images_fd = -1;
	runtimes->last_seen = OP_DCOOKIE_NONE;
	runtimes->seed = op_now_ns() ^ (uintptr_t)runtimes;
	for (enum op_runtime i = OP_RUNTIME_none + 1; i < OP_NR_RUNTIMES; i++)
		runtimes->is_wanted[i] = !words || has_word(words, op_runtime_word(i));
	runtimes->names = opd_runtime_names_new();
	if (!runtimes->names) {
		free(runtimes);
		return -ENOMEM;
	}
	*ret_runtimes = runtimes;
	return 0;
}

void opd_runtimes_free(struct opd_runtimes *runtimes)
{
	if (!runtimes)
		return;
	op_htable_visit(&runtimes->functions, free_function, NULL);
	op_htable_free(&runtimes->functions);
	opd_runtime_names_free(runtimes->names);
	free(runtimes);
}

const struct opd_runtime_names *opd_runtimes_names(const struct opd_runtimes *runtimes)
{
	return runtimes->names;
}

const struct opd_runtime_counts *opd_runtimes_counts(const struct opd_runtimes *runtimes, enum op_runtime runtime)
{
	return &runtimes->counts[runtime];
}
