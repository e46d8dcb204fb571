/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Perl: the stack of contexts of the thread's interpreter, and below it the stacks that sort,
 * overloading and others made theirs for. interpreters.bpf.h includes this file.
 *
 * A context of a sub says which COP (a statement) called it, so the line of a function is that of
 * the context inside of it; the innermost one has the interpreter's current COP. A sub that returns
 * to no operation was called by C: a loop of operations ends there.
 */

#define PERL_STEPS 1024 /* contexts of a walk: blocks and loops have one, too */

/* cop.h */
#define CONTEXT_TYPE   15
#define CONTEXT_SUB    9
#define CONTEXT_FORMAT 10
#define CONTEXT_EVAL   11
#define CONTEXT_TRY    0x40 /* no text is compiled: the block of an eval */
#define OP_TYPE_SHIFT  7    /* in blk_u16 of an eval */
#define OP_TYPE_MASK   511

#define PHASE_RUN 4 /* perl.h */

/* sv.h */
#define TYPE_MASK     0xff
#define TYPE_GLOB     9
#define TYPE_STASH    12
#define TYPE_FUNCTION 13

/* What a frame is: two bits of its check. Of all but functions the object is the file's name. */
#define PERL_FUNCTION 0u
#define PERL_MAIN     2u
#define PERL_EVAL     4u
#define PERL_REQUIRE  6u
#define PERL_KINDS    6u

struct perl_walk {
	struct interpreter_scratch *scratch;
	const struct opd_perl_layout *layout;
	__u64 stack_info, contexts, cop;
	__s32 index; /* of the next context */
	__u32 nr, end;
};

/* The thread's interpreter, which PL_curinterp is only of the thread that began. */
static __always_inline __u64 find_perl(const struct opd_perl_layout *layout, __u64 address, __u64 pointer, bool is_first_thread)
{
	__u64 interpreter = thread_specific(pointer, (__u32)read_word(address + layout->key));

	if (!interpreter && is_first_thread)
		interpreter = read_word(address);
	return interpreter && read_word(interpreter + layout->stack_info) ? interpreter : 0;
}

static __always_inline bool is_perl_value(const struct opd_perl_layout *layout, __u64 value, __u32 type)
{
	return value && (read_number(value + layout->flags) & TYPE_MASK) == type;
}

static __always_inline bool add_perl_frame(struct perl_walk *walk, __u64 code, __u64 object, __u32 check)
{
	struct opd_interpreter_frame *frame = &walk->scratch->stack.frames[walk->nr & (FRAMES_ROOM - 1)];

	if (walk->nr >= OPD_INTERPRETER_FRAMES_MAX) {
		walk->end = OPD_READ_DEEP;
		return false;
	}
	walk->scratch->objects[walk->nr & (FRAMES_ROOM - 1)] = object;
	frame->code = code;
	frame->position = read_number(walk->cop + walk->layout->line);
	frame->check = check;
	walk->nr++;
	return true;
}

/* Closures of one sub have the same operations. */
static __always_inline bool add_perl_function(struct perl_walk *walk, __u64 function, bool is_entry)
{
	const struct opd_perl_layout *layout = walk->layout;
	__u64 words[3], body;
	__u32 check;

	if (!is_perl_value(layout, function, TYPE_FUNCTION))
		return false;
	body = read_word(function + layout->body);
	words[0] = read_word(body + layout->stash);
	words[1] = read_word(body + layout->name);
	words[2] = read_word(body + layout->start);
	check = hash_words(words, 3) & ~(PERL_KINDS | OPD_INTERPRETER_IS_ENTRY);
	if (is_entry)
		check |= OPD_INTERPRETER_IS_ENTRY;
	return add_perl_frame(walk, read_word(body + layout->root), function, check);
}

/* Code of a file, which has the name of the file. */
static __always_inline bool add_perl_file(struct perl_walk *walk, __u64 code, __u64 file, __u32 kind)
{
	__u64 *words = walk->scratch->words;

	__builtin_memset(words, 0, sizeof(walk->scratch->words));
	if (bpf_probe_read_user_str(words, sizeof(walk->scratch->words), (void *)file) < 0)
		return false;
	return add_perl_frame(walk, code, file, (hash_words(words, 16) & ~(PERL_KINDS | OPD_INTERPRETER_IS_ENTRY)) | kind);
}

static __always_inline bool take_perl_stack(struct perl_walk *walk)
{
	const struct opd_perl_layout *layout = walk->layout;
	__s32 sizes[2]; /* the index of the last context, and of the last one that has room */

	if (bpf_probe_read_user(sizes, sizeof(sizes), (void *)(walk->stack_info + layout->nr_contexts)) || sizes[0] < -1 ||
	    sizes[0] > sizes[1])
		return false;
	walk->contexts = read_word(walk->stack_info + layout->contexts);
	walk->index = sizes[0];
	return true;
}

static long walk_perl_context(__u32 step, void *context)
{
	struct perl_walk *walk = context;
	const struct opd_perl_layout *layout = walk->layout;
	struct interpreter_scratch *scratch = walk->scratch;
	__u32 type, operation;
	__u64 head, file;

	if (walk->index < 0) {
		walk->stack_info = read_word(walk->stack_info + layout->previous);
		if (!walk->stack_info)
			return 1;
		walk->end = OPD_READ_FAULT;
		if (!take_perl_stack(walk))
			return 1;
		walk->end = OPD_READ_COMPLETE;
		return 0;
	}
	walk->end = OPD_READ_FAULT;
	if (bpf_probe_read_user(scratch->frame, bounded(layout->context_bytes, FRAME_BYTES),
				(void *)(walk->contexts + (__u64)walk->index * layout->context_bytes)))
		return 1;
	head = field_of(scratch, 0);
	type = head & CONTEXT_TYPE;
	if (type == CONTEXT_SUB || type == CONTEXT_FORMAT) {
		if (!add_perl_function(walk, field_of(scratch, layout->function), !field_of(scratch, layout->return_to)))
			return 1;
		walk->cop = field_of(scratch, layout->old_cop);
	} else if (type == CONTEXT_EVAL && !(head & CONTEXT_TRY)) {
		operation = head >> (16 + OP_TYPE_SHIFT) & OP_TYPE_MASK;
		file = read_word(walk->cop + layout->file);
		if (!add_perl_file(walk, field_of(scratch, layout->eval_cv), file,
				   operation == layout->require || operation == layout->require + 1 ? PERL_REQUIRE : PERL_EVAL))
			return 1;
		walk->cop = field_of(scratch, layout->old_cop);
	}
	walk->end = OPD_READ_COMPLETE;
	walk->index--;
	return 0;
}

static __noinline void walk_perl(struct interpreter_scratch *scratch, const struct opd_perl_layout *layout, __u64 interpreter,
				      bool is_first_thread)
{
	struct perl_walk walk = { .scratch = scratch, .layout = layout, .end = OPD_READ_NONE };
	__u64 script;

	if (interpreter) {
		walk.stack_info = read_word(interpreter + layout->stack_info);
		walk.cop = read_word(interpreter + layout->cop);
		walk.end = take_perl_stack(&walk) ? OPD_READ_COMPLETE : OPD_READ_FAULT;
	}
	if (walk.end == OPD_READ_COMPLETE)
		bpf_loop(PERL_STEPS, walk_perl_context, &walk, 0);
	if (walk.end == OPD_READ_COMPLETE && walk.stack_info)
		walk.end = OPD_READ_DEEP;
	/* the others began in a sub */
	if (walk.end == OPD_READ_COMPLETE && is_first_thread && read_number(interpreter + layout->phase) == PHASE_RUN) {
		script = read_word(interpreter + layout->script);
		if (!add_perl_file(&walk, script, script, PERL_MAIN | OPD_INTERPRETER_IS_ENTRY) && walk.end == OPD_READ_COMPLETE)
			walk.end = OPD_READ_FAULT;
	}
	if (walk.end == OPD_READ_COMPLETE && !walk.nr)
		walk.end = OPD_READ_NONE;
	scratch->stack.head.end = walk.end;
	scratch->stack.head.nr_frames = walk.nr;
}

/* ---- names ---- */

/* A HEK: its hash, its length, and the characters, which end with a NUL. */
static __always_inline __u32 read_perl_key(__u64 key, __u8 *to, __u32 most)
{
	return key ? read_text(key + 8, to, most) : 0;
}

/* The name of a package: a key, or, when the next number is not 0, a list of them. */
static __always_inline __u64 key_of_stash(const struct opd_perl_layout *layout, __u64 stash)
{
	__u64 names, key;

	if (!is_perl_value(layout, stash, TYPE_STASH))
		return 0;
	names = read_word(stash + layout->body) + layout->stash_names;
	key = read_word(names);
	if (key && read_number(names + 28))
		key = read_word(key);
	return key;
}

/* Package::name, and the line of the first statement. Returns the bytes. */
static __always_inline __u32 read_perl_function(const struct opd_perl_layout *layout, struct opd_name_note *head, __u64 function,
						__u8 *to, __u64 *ret_file)
{
	__u64 body = read_word(function + layout->body), name = read_word(body + layout->name), start, stash;
	__u32 nr;

	if (read_number(body + layout->function_flags) & layout->named_flag) {
		stash = read_word(body + layout->stash);
	} else {
		if (!is_perl_value(layout, name, TYPE_GLOB))
			return 0;
		stash = read_word(read_word(name + layout->body) + layout->glob_stash);
		name = read_word(read_word(name + layout->body) + layout->glob_name);
	}
	start = read_word(body + layout->start);
	if (start && (read_number(start + layout->op_type) & OP_TYPE_MASK) == layout->next_state)
		head->first_line = read_number(start + layout->line);
	*ret_file = read_word(body + layout->function_file);
	nr = read_perl_key(key_of_stash(layout, stash), to, OPD_INTERPRETER_NAME_BYTES / 2) & (OPD_INTERPRETER_NAME_BYTES / 2 - 1);
	to += nr;
	if (nr) {
		to[0] = to[1] = ':';
		to += 2;
		nr += 2;
	}
	return nr + read_perl_key(name, to, OPD_INTERPRETER_NAME_BYTES / 2 - 2);
}

static __always_inline bool make_perl_name(const struct opd_perl_layout *layout, struct interpreter_scratch *scratch, __u64 object,
					   __u32 check)
{
	struct opd_name_note *head = &scratch->name.head;
	__u8 *to = scratch->name.bytes;
	__u64 file = object;
	__u32 nr;

	head->first_line = head->table_bytes = head->name_width = head->file_width = 0;
	switch (check & PERL_KINDS) {
	case PERL_FUNCTION:
		nr = read_perl_function(layout, head, object, to, &file);
		break;
	case PERL_MAIN:
		nr = 6;
		__builtin_memcpy(to, "(main)", 6);
		break;
	case PERL_EVAL:
		nr = 6;
		__builtin_memcpy(to, "(eval)", 6);
		break;
	default:
		nr = 9;
		__builtin_memcpy(to, "(require)", 9);
		break;
	}
	nr &= OPD_INTERPRETER_NAME_BYTES - 1;
	if (!nr)
		return false;
	head->name_bytes = nr;
	head->file_bytes = read_text(file, to + nr, OPD_INTERPRETER_FILE_BYTES);
	return true;
}
