/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * PHP without threads: executor_globals has the data of the innermost call, and each has that of
 * its caller. interpreters.bpf.h includes this file.
 *
 * Functions of C have calls too, so their names stand between those of the program. A call that is
 * TOP was made by C: a loop of the interpreter begins with it.
 */

#define PHP_STEPS 1024 /* calls of a walk, with those that are of no function */

/* zend_compile.h */
#define PHP_USER      2
#define PHP_EVAL      4
#define PHP_CALL_CODE 0x10000u /* of a file, or of a text */
#define PHP_CALL_TOP  0x20000u

/* What a frame is, in its check: code of the file that PHP was started with, or of another one. */
#define PHP_MAIN    2u
#define PHP_INCLUDE 4u

struct php_walk {
	struct interpreter_scratch *scratch;
	const struct opd_php_layout *layout;
	__u64 call;
	__u64 opline; /* of the innermost call, in a register; 0: the call has it */
	__u32 nr, end;
};

/* The register counts if what it has is an operation of the function. */
static __always_inline __u32 php_line(struct php_walk *walk, __u64 function, __u64 opline)
{
	const struct opd_php_layout *layout = walk->layout;
	__u64 offset = walk->opline - read_word(function + layout->operations);

	if (walk->opline && offset < (__u64)read_number(function + layout->nr_operations) * layout->operation_bytes &&
	    !(offset % layout->operation_bytes))
		opline = walk->opline;
	walk->opline = 0;
	return opline ? read_number(opline + layout->line) : 0;
}

static long walk_php_call(__u32 step, void *context)
{
	struct php_walk *walk = context;
	const struct opd_php_layout *layout = walk->layout;
	struct interpreter_scratch *scratch = walk->scratch;
	struct opd_interpreter_frame *frame;
	__u64 function, words[2];
	__u32 info, kind;

	if (!walk->call)
		return 1;
	walk->end = OPD_READ_FAULT;
	if (bpf_probe_read_user(scratch->frame, bounded(layout->call_bytes, FRAME_BYTES), (void *)walk->call))
		return 1;
	walk->call = field_of(scratch, layout->previous);
	function = field_of(scratch, layout->function);
	if (!function) {
		walk->end = OPD_READ_COMPLETE;
		return 0;
	}
	if (walk->nr >= OPD_INTERPRETER_FRAMES_MAX) {
		walk->end = OPD_READ_DEEP;
		return 1;
	}
	if (bpf_probe_read_user(words, sizeof(words), (void *)(function + layout->name)))
		return 1;
	info = (__u32)field_of(scratch, layout->info);
	frame = &scratch->stack.frames[walk->nr & (FRAMES_ROOM - 1)];
	scratch->objects[walk->nr & (FRAMES_ROOM - 1)] = function;
	kind = read_number(function) & 0xff;
	frame->code = function;
	frame->position = 0;
	frame->check = hash_words(words, 2) & ~7u;
	if (kind == PHP_USER || kind == PHP_EVAL) {
		/* closures of one function have the same operations */
		frame->code = read_word(function + layout->operations);
		frame->position = php_line(walk, function, field_of(scratch, layout->opline));
		if (info & PHP_CALL_CODE)
			frame->check |= info & PHP_CALL_TOP ? PHP_MAIN : PHP_INCLUDE;
		if (info & PHP_CALL_TOP)
			frame->check |= OPD_INTERPRETER_IS_ENTRY;
	}
	walk->opline = 0;
	walk->nr++;
	walk->end = OPD_READ_COMPLETE;
	return 0;
}

/* globals: executor_globals. */
static __noinline void walk_php(struct interpreter_scratch *scratch, const struct opd_php_layout *layout, __u64 globals,
				     __u64 opline)
{
	struct php_walk walk = { .scratch = scratch, .layout = layout, .opline = opline, .end = OPD_READ_NONE };

	if (globals)
		walk.call = read_word(globals + layout->current);
	bpf_loop(PHP_STEPS, walk_php_call, &walk, 0);
	if (walk.end == OPD_READ_COMPLETE && walk.call)
		walk.end = OPD_READ_DEEP;
	if (walk.end == OPD_READ_COMPLETE && !walk.nr)
		walk.end = OPD_READ_NONE;
	scratch->stack.head.end = walk.end;
	scratch->stack.head.nr_frames = walk.nr;
}

/* ---- names ---- */

/* A zend_string ends with a NUL. */
static __always_inline __u32 read_php_string(const struct opd_php_layout *layout, __u64 string, __u8 *to, __u32 most)
{
	return string ? read_text(string + layout->text, to, most) : 0;
}

/* Class::function */
static __always_inline bool make_php_name(const struct opd_php_layout *layout, struct interpreter_scratch *scratch, __u64 function,
					  __u32 check)
{
	__u64 name = read_word(function + layout->name), class = read_word(function + layout->scope);
	struct opd_name_note *head = &scratch->name.head;
	__u32 kind = read_number(function) & 0xff, nr = 0;
	__u8 *to = scratch->name.bytes;

	head->first_line = head->file_bytes = head->table_bytes = head->name_width = head->file_width = 0;
	if (name) {
		if (class)
			nr = read_php_string(layout, read_word(class + layout->class_name), to, OPD_INTERPRETER_NAME_BYTES / 2 - 2);
		nr &= OPD_INTERPRETER_NAME_BYTES / 2 - 1;
		if (nr) {
			to[nr] = to[nr + 1] = ':';
			nr += 2;
		}
		nr += read_php_string(layout, name, to + nr, OPD_INTERPRETER_NAME_BYTES / 2 - 2);
	} else if (check & PHP_INCLUDE) {
		nr = 9;
		__builtin_memcpy(to, "{include}", 9);
	} else {
		nr = 6;
		__builtin_memcpy(to, "{main}", 6);
	}
	nr &= OPD_INTERPRETER_NAME_BYTES - 1;
	if (!nr)
		return false;
	head->name_bytes = nr;
	if (kind == PHP_USER || kind == PHP_EVAL) {
		head->first_line = read_number(function + layout->first_line);
		head->file_bytes = read_php_string(layout, read_word(function + layout->file), to + nr, OPD_INTERPRETER_FILE_BYTES);
	}
	return true;
}
