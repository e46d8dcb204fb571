/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Ruby: the execution context of a thread is a variable of the thread (TLS) of libruby, and has the
 * stack of control frames, which grows down. interpreters.bpf.h includes this file.
 *
 * Frames of functions of C are left out: native frames stand there. A frame that is FINISH was
 * called by C: a loop of the interpreter ends there.
 */

#define RUBY_STEPS      1024 /* frames of a walk, with those that are left out */
#define RUBY_DTV        8 /* in glibc's struct pthread of x86-64: variables, by library */
#define RUBY_LIBRARIES  4096

/* vm_core.h */
#define RUBY_FRAME_FINISH 0x20
#define RUBY_FRAME_C      0x80

/* ruby/internal/value_type.h, core/rstring.h and core/rarray.h */
#define RUBY_TYPE_MASK    0x1f
#define RUBY_STRING       5
#define RUBY_ARRAY        7
#define RUBY_IS_NOT_SHORT 0x2000 /* a string: its characters are elsewhere; an array: here */

struct ruby_walk {
	struct interpreter_scratch *scratch;
	const struct opd_ruby_layout *layout;
	__u64 frame, end_frame;
	__u32 nr, end;
};

/* slot: where the dynamic linker wrote the number of the library. */
static __always_inline __u64 find_ruby(const struct opd_ruby_layout *layout, __u64 slot, __u64 pointer)
{
#if defined(__TARGET_ARCH_x86)
	__u64 library = read_word(slot), block;

	if (!library || library > RUBY_LIBRARIES)
		return 0;
	block = read_word(read_word(pointer + RUBY_DTV) + library * 16);
	return block && ~block ? read_word(block + layout->context) : 0; /* ~0: not made yet */
#else
	return 0;
#endif
}

static __always_inline __u32 count_bits(__u64 word)
{
	word -= word >> 1 & 0x5555555555555555ull;
	word = (word & 0x3333333333333333ull) + (word >> 2 & 0x3333333333333333ull);
	word = (word + (word >> 4)) & 0x0f0f0f0f0f0f0f0full;
	return word * 0x0101010101010101ull >> 56;
}

/*
 * Which entry of the table of lines an instruction has. Ruby keeps the first instruction of each
 * entry as a set of bits, with counts: numbers of 7 bits for the first 54 instructions, 9 in a
 * word; then blocks of 512 bits, with the count before the block, 7 counts of 9 bits before its
 * words, and 8 words.
 */
static __always_inline __u32 ruby_entry(__u64 table, __u32 instruction)
{
	__u32 part, word, count;
	__u64 block;

	if (instruction < 54)
		return (read_word(table + instruction / 9 * 8) >> instruction % 9 * 7 & 0x7f) - 1;
	instruction -= 54;
	block = table + 48 + instruction / 512 * 80;
	part = instruction % 512;
	word = part / 64;
	count = read_number(block);
	if (word)
		count += read_word(block + 8) >> (word - 1) * 9 & 0x1ff;
	return count + count_bits(read_word(block + 16 + word * 8) << (63 - part % 64)) - 1;
}

static __always_inline __u32 ruby_line(const struct opd_ruby_layout *layout, __u64 body, __u64 pc)
{
	__u64 instruction = (pc - read_word(body + layout->instructions)) / 8, entries = read_word(body + layout->entries);
	__u32 nr = read_number(body + layout->nr_entries), entry = 0;

	/* pc is behind the instruction that runs */
	instruction -= instruction > 0;
	if (!pc || !nr || instruction >= 1u << 24)
		return 0;
	if (nr > 1)
		entry = ruby_entry(read_word(body + layout->table), (__u32)instruction);
	return entry < nr ? read_number(entries + (__u64)entry * 12) : 0;
}

static long walk_ruby_frame(__u32 step, void *context)
{
	struct ruby_walk *walk = context;
	const struct opd_ruby_layout *layout = walk->layout;
	struct interpreter_scratch *scratch = walk->scratch;
	struct opd_interpreter_frame *frame;
	__u64 words[4], flags, code, body;

	if (walk->frame >= walk->end_frame)
		return 1;
	walk->end = OPD_READ_FAULT;
	if (bpf_probe_read_user(scratch->frame, bounded(layout->frame_bytes, FRAME_BYTES), (void *)walk->frame) ||
	    bpf_probe_read_user(&flags, sizeof(flags), (void *)field_of(scratch, layout->flags)))
		return 1;
	code = field_of(scratch, layout->code);
	if (!(flags & RUBY_FRAME_C) && code) {
		if (walk->nr >= OPD_INTERPRETER_FRAMES_MAX) {
			walk->end = OPD_READ_DEEP;
			return 1;
		}
		body = read_word(code + layout->body);
		if (bpf_probe_read_user(words, sizeof(words), (void *)(body + layout->path)))
			return 1;
		frame = &scratch->stack.frames[walk->nr & (FRAMES_ROOM - 1)];
		scratch->objects[walk->nr & (FRAMES_ROOM - 1)] = body;
		frame->code = body;
		frame->position = ruby_line(layout, body, field_of(scratch, layout->pc));
		frame->check = hash_words(words, 4) & ~OPD_INTERPRETER_IS_ENTRY;
		if (flags & RUBY_FRAME_FINISH)
			frame->check |= OPD_INTERPRETER_IS_ENTRY;
		walk->nr++;
	}
	walk->frame += layout->frame_bytes;
	walk->end = OPD_READ_COMPLETE;
	return 0;
}

static __noinline void walk_ruby(struct interpreter_scratch *scratch, const struct opd_ruby_layout *layout, __u64 context)
{
	struct ruby_walk walk = { .scratch = scratch, .layout = layout, .end = OPD_READ_NONE };
	__u64 stack = context ? read_word(context + layout->stack) : 0;

	if (stack) {
		walk.frame = read_word(context + layout->frame);
		/* the outermost one is there for the constant TOPLEVEL_BINDING: it does not run */
		walk.end_frame = stack + 8 * read_word(context + layout->stack_words) - layout->frame_bytes;
		if (walk.frame < stack || walk.frame > walk.end_frame + layout->frame_bytes)
			walk.end = OPD_READ_FAULT;
		else
			bpf_loop(RUBY_STEPS, walk_ruby_frame, &walk, 0);
	}
	if (walk.end == OPD_READ_COMPLETE && walk.frame < walk.end_frame)
		walk.end = OPD_READ_DEEP;
	if (walk.end == OPD_READ_COMPLETE && !walk.nr)
		walk.end = OPD_READ_NONE;
	scratch->stack.head.end = walk.end;
	scratch->stack.head.nr_frames = walk.nr;
}

/* ---- names ---- */

/* A string ends with a NUL as well. Those of 3.1 have at most 23 bytes in themselves. */
static __always_inline __u32 read_ruby_string(__u64 string, __u8 *to, __u32 most)
{
	__u64 flags = string && !(string & 7) ? read_word(string) : 0;

	if ((flags & RUBY_TYPE_MASK) != RUBY_STRING)
		return 0;
	return read_text(flags & RUBY_IS_NOT_SHORT ? read_word(string + 24) : string + 16, to, most);
}

/* A path, or an array of the path and the one without links, which a text does not have. */
static __always_inline __u32 read_ruby_path(__u64 path, __u8 *to)
{
	__u64 flags = path && !(path & 7) ? read_word(path) : 0, elements;
	__u32 nr;

	if ((flags & RUBY_TYPE_MASK) != RUBY_ARRAY)
		return read_ruby_string(path, to, OPD_INTERPRETER_FILE_BYTES);
	elements = flags & RUBY_IS_NOT_SHORT ? path + 16 : read_word(path + 32);
	nr = read_ruby_string(read_word(elements + 8), to, OPD_INTERPRETER_FILE_BYTES);
	return nr ? nr : read_ruby_string(read_word(elements), to, OPD_INTERPRETER_FILE_BYTES);
}

static __always_inline bool make_ruby_name(const struct opd_ruby_layout *layout, struct interpreter_scratch *scratch, __u64 body)
{
	struct opd_name_note *head = &scratch->name.head;
	__u8 *to = scratch->name.bytes;
	__u32 nr;

	head->table_bytes = head->name_width = head->file_width = 0;
	head->first_line = (__u32)(read_word(body + layout->first_line) >> 1); /* a small integer */
	nr = read_ruby_string(read_word(body + layout->label), to, OPD_INTERPRETER_NAME_BYTES) & (OPD_INTERPRETER_NAME_BYTES - 1);
	if (!nr)
		return false;
	head->name_bytes = nr;
	head->file_bytes = read_ruby_path(read_word(body + layout->path), to + nr);
	return true;
}
