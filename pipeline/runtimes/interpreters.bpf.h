/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Reads the functions that a runtime runs, when a sample or a wait of its thread is recorded.
 * pipeline/waits/program.bpf.c includes this file, and calls write_runtime_notes before it writes.
 *
 * Memory of programs is hostile: each pointer is only read, through a helper that may fail, loops
 * have bounds, and lengths are cut. What is wrong ends the reading, and the note says so.
 *
 * A program finds its runtime by its executable, or by the file that is mapped where it runs. The
 * entry in interpreter_processes may be that of an earlier program with the same number; then the
 * time when it began, or its number of execve, is another one, and the process is looked at again.
 */

#include "libop/stacks/runtimes.h"

#define FMODE_BACKING 0x2000000u
#define PAGE_SHIFT    12
#define NS_PER_S      1000000000ull
#define SPECIFIC      1296 /* in glibc's struct pthread of x86-64: blocks of pthread_getspecific */
#define KEYS_OF_BLOCK 32
#define KEYS_MAX      1024
#define THREAD_BYTES  8192 /* of struct pthread, at most: on arm64 below the thread pointer */

#define FRAME_BYTES   128 /* of a frame that is read at once; a power of two */
#define NAME_ROOM     (OPD_INTERPRETER_NAME_BYTES + OPD_INTERPRETER_FILE_BYTES + OPD_INTERPRETER_TABLE_BYTES)
#define FRAMES_ROOM   256

#define COMPACT_BIT 5 /* of the state of a string */
#define ASCII_BIT   6

/* A view of struct task_struct (CO-RE: what follows ___ is no part of the name). */
struct task_struct___program {
	struct task_struct___program *group_leader;
	__u64 start_time, self_exec_id;
} __attribute__((preserve_access_index));

/* ---- maps ---- */

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, OPD_INTERPRETER_IMAGES_MAX);
	__type(key, struct opd_interpreter_file);
	__type(value, struct opd_interpreter_image);
} interpreter_images SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, OPD_INTERPRETER_PROCESSES_MAX);
	__type(key, __u32);
	__type(value, struct opd_interpreter_process);
} interpreter_processes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct opd_interpreter_control);
} interpreter_control SEC(".maps");

struct interpreter_scratch {
	struct {
		struct opd_frames_note head;
		struct opd_interpreter_frame frames[FRAMES_ROOM];
	} stack;
	struct {
		struct opd_name_note head;
		__u8 bytes[NAME_ROOM];
	} name;
	__u64 objects[FRAMES_ROOM]; /* of each frame of the stack: the object that has its name */
	__u8 frame[FRAME_BYTES + sizeof(__u64)];
	__u64 words[16]; /* the begin of a text */
	__u32 is_busy; /* an interrupt came while the notes are made */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct interpreter_scratch);
} interpreter_scratches SEC(".maps");

/* Names that this CPU has written, by their hash. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, OPD_INTERPRETER_SEEN);
	__type(key, __u32);
	__type(value, __u32);
} interpreter_seen SEC(".maps");

/* ---- which runtime ---- */

struct found_file {
	struct opd_interpreter_file file;
	__u64 start; /* where position 0 of the file would be */
	struct opd_interpreter_file backing;
};

static __always_inline void name_file(struct opd_interpreter_file *name, struct inode *inode)
{
	name->inode = BPF_CORE_READ(inode, i_ino);
	name->device = BPF_CORE_READ(inode, i_sb, s_dev);
}

/*
 * The file of a mapping. Of a file of overlayfs, some kernels map the one below, and records of
 * mappings say either.
 */
static long take_mapping(struct task_struct *task, struct vm_area_struct *area, void *context)
{
	struct found_file *found = context;
	struct file *file = BPF_CORE_READ(area, vm_file);

	if (!file)
		return 0;
	found->start = BPF_CORE_READ(area, vm_start) - (BPF_CORE_READ(area, vm_pgoff) << PAGE_SHIFT);
	name_file(&found->file, BPF_CORE_READ(file, f_inode));
	found->backing = found->file;
	if (bpf_core_type_exists(struct backing_file) && BPF_CORE_READ(file, f_mode) & FMODE_BACKING)
		name_file(&found->file, BPF_CORE_READ((struct backing_file *)file, user_path.dentry, d_inode));
	return 0;
}

static __always_inline bool is_runtime_at(struct task_struct *task, __u64 address, struct opd_interpreter_process *ret_process)
{
	struct found_file found = {};
	struct opd_interpreter_image *image;

	if (!address || bpf_find_vma(task, address, take_mapping, &found, 0) || !found.file.inode)
		return false;
	image = bpf_map_lookup_elem(&interpreter_images, &found.file);
	if (!image) {
		found.file = found.backing;
		image = bpf_map_lookup_elem(&interpreter_images, &found.file);
	}
	if (!image)
		return false;
	ret_process->file = found.file;
	ret_process->address = found.start + image->address;
	return true;
}

/* ---- memory ---- */

/*
 * A number below a power of two. The compiler knows bounds that the verifier of 6.1 loses, and
 * would leave the mask out.
 */
static __always_inline __u32 bounded(__u32 number, __u32 limit)
{
	asm volatile("" : "+r"(number));
	return number & (limit - 1);
}

static __always_inline __u64 read_word(__u64 address)
{
	__u64 word = 0;

	bpf_probe_read_user(&word, sizeof(word), (void *)address);
	return word;
}

static __always_inline __u64 thread_pointer(struct task_struct *task)
{
#if defined(__TARGET_ARCH_x86)
	return BPF_CORE_READ(task, thread.fsbase);
#else
	return BPF_CORE_READ(task, thread.uw.tp_value);
#endif
}

/* What pthread_getspecific would give; 0: nothing, or not known. */
static __always_inline __u64 thread_specific(__u64 pointer, __u32 key)
{
#if defined(__TARGET_ARCH_x86)
	__u64 block;

	if (key >= KEYS_MAX)
		return 0;
	block = read_word(pointer + SPECIFIC + key / KEYS_OF_BLOCK * sizeof(block));
	return block ? read_word(block + key % KEYS_OF_BLOCK * 16 + 8) : 0;
#else
	return 0;
#endif
}

static __always_inline __u64 field_of(const struct interpreter_scratch *scratch, __u32 offset)
{
	__u64 word;

	__builtin_memcpy(&word, scratch->frame + (offset & (FRAME_BYTES - 1)), sizeof(word));
	return word;
}

/* A fingerprint. */
static __always_inline __u32 hash_words(const __u64 *words, int nr)
{
	__u64 hash = 0;

	for (int i = 0; i < nr; i++)
		hash = (hash ^ words[i]) * 0x9e3779b97f4a7c15ull;
	return (__u32)(hash >> 32);
}

/* ---- Python ---- */

/* Whether the state is that of the thread whose struct pthread is here. */
static __always_inline bool is_state_of(const struct opd_python_layout *layout, __u64 state, __u64 pointer)
{
	__u64 id = state ? read_word(state + layout->thread_id) : 0;

#if defined(__TARGET_ARCH_x86)
	return id && id == pointer;
#else
	return id && id < pointer && pointer - id < THREAD_BYTES;
#endif
}

struct thread_search {
	const struct opd_python_layout *layout;
	__u64 state, pointer;
};

static long look_at_thread(__u32 index, void *context)
{
	struct thread_search *search = context;

	if (!search->state || is_state_of(search->layout, search->state, search->pointer))
		return 1;
	search->state = read_word(search->state + search->layout->next);
	return 0;
}

/* The state of this thread; 0: it has none, or this is no such Python. */
static __always_inline __u64 find_thread_state(const struct opd_python_layout *layout, __u64 runtime, __u64 pointer)
{
	struct thread_search search = { .layout = layout, .pointer = pointer };
	__u64 state = thread_specific(pointer, (__u32)read_word(runtime + layout->key));

	if (is_state_of(layout, state, pointer))
		return state;
	/* another C library, or no such key: the list of the first interpreter */
	if (!layout->interpreters)
		return 0;
	search.state = read_word(read_word(runtime + layout->interpreters) + layout->threads);
	bpf_loop(OPD_INTERPRETER_THREADS_MAX, look_at_thread, &search, 0);
	return is_state_of(layout, search.state, pointer) ? search.state : 0;
}

/* A number for what the code object has: another one in its place has another one. */
static __always_inline bool hash_code(const struct opd_python_layout *layout, __u64 code, __u32 *ret_hash)
{
	__u64 words[4];

	if (bpf_probe_read_user(words, sizeof(words), (void *)(code + layout->file)))
		return false;
	*ret_hash = hash_words(words, 4) & ~OPD_INTERPRETER_IS_ENTRY;
	return true;
}

static __always_inline __u32 position_of(const struct opd_python_layout *layout, __u64 code, __u64 instruction)
{
	__u64 position;

	if (layout->instruction_how)
		return (__u32)instruction * layout->instruction_how;
	position = instruction - code - layout->first_instruction;
	return position < 0x80000000ull ? (__u32)position : 0;
}

struct python_walk {
	struct interpreter_scratch *scratch;
	const struct opd_python_layout *layout;
	__u64 frame;
	__u32 nr, end;
};

static __always_inline void mark_entry(struct python_walk *walk)
{
	if (walk->nr)
		walk->scratch->stack.frames[(walk->nr - 1) & (FRAMES_ROOM - 1)].check |= OPD_INTERPRETER_IS_ENTRY;
}

/* Objects are aligned; the lowest bits may say how a reference is counted. */
static __always_inline __u64 to_pointer(__u64 reference)
{
	return reference & ~7ull;
}

static long walk_python_frame(__u32 index, void *context)
{
	struct python_walk *walk = context;
	const struct opd_python_layout *layout = walk->layout;
	struct interpreter_scratch *scratch = walk->scratch;
	struct opd_interpreter_frame *frame;
	__u64 code, next;
	__u8 owner;

	if (!walk->frame)
		return 1;
	walk->end = OPD_READ_FAULT;
	if (bpf_probe_read_user(scratch->frame, bounded(layout->frame_bytes, FRAME_BYTES), (void *)walk->frame))
		return 1;
	owner = (__u8)field_of(scratch, layout->owner);
	next = field_of(scratch, layout->previous);
	if (layout->owner_how == OPD_PYTHON_OWNER_SHIM && owner >= 3) {
		mark_entry(walk);
	} else {
		if (walk->nr >= OPD_INTERPRETER_FRAMES_MAX) {
			walk->end = OPD_READ_DEEP;
			return 1;
		}
		code = to_pointer(field_of(scratch, layout->code));
		frame = &scratch->stack.frames[walk->nr & (FRAMES_ROOM - 1)];
		if (!hash_code(layout, code, &frame->check))
			return 1;
		scratch->objects[walk->nr & (FRAMES_ROOM - 1)] = code;
		frame->code = code;
		frame->position = position_of(layout, code, field_of(scratch, layout->instruction));
		walk->nr++;
		if (layout->owner_how == OPD_PYTHON_OWNER_NONE || (layout->owner_how == OPD_PYTHON_OWNER_ENTRY && owner))
			mark_entry(walk);
	}
	walk->end = OPD_READ_COMPLETE;
	walk->frame = next;
	return 0;
}

/* ---- names ---- */

struct python_string {
	__u64 length;
	__u64 hash;
	__u32 state;
};

/*
 * Reads the characters of a string to a place of `bytes`, at most `most` - 1 bytes of them; `most`
 * is a power of two. Returns how many.
 */
static __always_inline __u32 read_string(const struct opd_python_layout *layout, __u64 address, __u8 *to, __u32 most,
					 __u8 *ret_width)
{
	struct python_string string;
	__u32 width, nr;

	*ret_width = 0;
	if (bpf_probe_read_user(&string, sizeof(string), (void *)(address + 16)) || !(string.state >> COMPACT_BIT & 1))
		return 0;
	width = string.state >> 2 & 7;
	if ((width != 1 && width != 2 && width != 4) || string.length >= 1u << 30)
		return 0;
	nr = (__u32)string.length * width;
	if (nr > most - 4)
		nr = most - 4;
	nr = bounded(nr, most);
	if (!(string.state >> ASCII_BIT & 1))
		*ret_width = (__u8)width;
	if (bpf_probe_read_user(to, nr, (void *)(address + (*ret_width ? layout->compact : layout->ascii))))
		return 0;
	return nr;
}

static __always_inline __u32 read_bytes(__u64 address, __u8 *to)
{
	__u64 size = read_word(address + 16);
	__u32 nr = OPD_INTERPRETER_TABLE_BYTES - 1;

	if (size < nr)
		nr = (__u32)size;
	nr = bounded(nr, OPD_INTERPRETER_TABLE_BYTES);

	return bpf_probe_read_user(to, nr, (void *)(address + 32)) ? 0 : nr;
}

static __always_inline bool make_python_name(const struct opd_python_layout *layout, struct interpreter_scratch *scratch,
					     __u64 code)
{
	struct opd_name_note *head = &scratch->name.head;
	__u32 name_bytes, file_bytes;
	__u8 *to = scratch->name.bytes;

	if (bpf_probe_read_user(&head->first_line, sizeof(head->first_line), (void *)(code + layout->first_line)))
		return false;
	name_bytes = bounded(read_string(layout, read_word(code + layout->name), to, OPD_INTERPRETER_NAME_BYTES,
					 &head->name_width),
			     OPD_INTERPRETER_NAME_BYTES);
	to += name_bytes;
	file_bytes = bounded(read_string(layout, read_word(code + layout->file), to, OPD_INTERPRETER_FILE_BYTES,
					 &head->file_width),
			     OPD_INTERPRETER_FILE_BYTES);
	to += file_bytes;
	if (!name_bytes)
		return false;
	head->name_bytes = name_bytes;
	head->file_bytes = file_bytes;
	head->table_bytes = bounded(read_bytes(read_word(code + layout->table), to), OPD_INTERPRETER_TABLE_BYTES);
	return true;
}

/* Reads a string that ends with a NUL, at most `most` - 1 bytes of it, and returns how many. */
static __always_inline __u32 read_text(__u64 address, __u8 *to, __u32 most)
{
	long nr = bpf_probe_read_user_str(to, most, (void *)address);

	return nr > 0 ? bounded((__u32)(nr - 1), OPD_INTERPRETER_FILE_BYTES) : 0;
}

static __always_inline __u32 read_number(__u64 address)
{
	__u32 number = 0;

	bpf_probe_read_user(&number, sizeof(number), (void *)address);
	return number;
}

#include "pipeline/runtimes/perl.bpf.h"
#include "pipeline/runtimes/php.bpf.h"
#include "pipeline/runtimes/ruby.bpf.h"

/* The name of a frame of the stack. False: it cannot be read. */
static __always_inline bool make_name(const struct opd_interpreter_image *image, struct interpreter_scratch *scratch, __u64 object,
				      __u32 check)
{
	switch (image->runtime) {
	case OP_RUNTIME_python:
		return make_python_name(&image->python, scratch, object);
	case OP_RUNTIME_perl:
		return make_perl_name(&image->perl, scratch, object, check);
	case OP_RUNTIME_php:
		return make_php_name(&image->php, scratch, object, check);
	case OP_RUNTIME_ruby:
		return make_ruby_name(&image->ruby, scratch, object);
	default:
		return false;
	}
}

struct naming {
	void *context;
	struct interpreter_scratch *scratch;
	const struct opd_interpreter_image *image;
	__u32 salt; /* of the process, and of what opd knows */
};

static long name_frame(__u32 index, void *context)
{
	struct naming *naming = context;
	struct interpreter_scratch *scratch = naming->scratch;
	const struct opd_interpreter_frame *frame = &scratch->stack.frames[index & (FRAMES_ROOM - 1)];
	struct opd_name_note *head = &scratch->name.head;
	__u64 hash = (frame->code ^ (frame->check & ~OPD_INTERPRETER_IS_ENTRY)) * 0x9e3779b97f4a7c15ull;
	__u32 short_hash = (__u32)(hash >> 32) ^ naming->salt, slot = short_hash & (OPD_INTERPRETER_SEEN - 1), nr_bytes;
	__u32 *seen = bpf_map_lookup_elem(&interpreter_seen, &slot);

	if (!seen || *seen == short_hash ||
	    !make_name(naming->image, scratch, scratch->objects[index & (FRAMES_ROOM - 1)], frame->check))
		return 0;
	head->kind = OPD_NOTE_NAME;
	head->image = naming->image->number;
	head->code = frame->code;
	head->check = frame->check & ~OPD_INTERPRETER_IS_ENTRY;
	nr_bytes = bounded(head->name_bytes, OPD_INTERPRETER_NAME_BYTES) + bounded(head->file_bytes, OPD_INTERPRETER_FILE_BYTES) +
		   bounded(head->table_bytes, OPD_INTERPRETER_TABLE_BYTES);
	/* it is written again with the next sample when there was no room */
	if (!bpf_perf_event_output(naming->context, &notes, BPF_F_CURRENT_CPU, &scratch->name, sizeof(*head) + nr_bytes))
		*seen = short_hash;
	return 0;
}

/* ---- notes ---- */

/* Fills the frames of a thread whose state is here. */
static __noinline void walk_python(struct interpreter_scratch *scratch, const struct opd_interpreter_image *image, __u64 state)
{
	struct python_walk walk = { .scratch = scratch, .layout = &image->python, .end = OPD_READ_NONE };

	if (state)
		walk.frame = read_word(state + image->python.frame);
	if (image->python.has_cframe && walk.frame)
		walk.frame = read_word(walk.frame + image->python.cframe);
	bpf_loop(2 * OPD_INTERPRETER_FRAMES_MAX, walk_python_frame, &walk, 0);
	if (walk.end == OPD_READ_COMPLETE && walk.frame)
		walk.end = OPD_READ_DEEP;
	if (walk.end == OPD_READ_COMPLETE && !walk.nr)
		walk.end = OPD_READ_NONE;
	if (walk.end == OPD_READ_COMPLETE)
		mark_entry(&walk);
	scratch->stack.head.end = walk.end;
	scratch->stack.head.nr_frames = walk.nr;
}

/* In the loop of PHP a register has the operation that runs; calls have it when they call. */
static __always_inline __u64 php_opline(struct task_struct *task, __u64 start, const struct opd_interpreter_image *image)
{
#if defined(__TARGET_ARCH_x86)
	struct pt_regs *registers = (struct pt_regs *)bpf_task_pt_regs(task);
	__u64 position = BPF_CORE_READ(registers, ip) - start;

	return position >= image->loop_start && position < image->loop_end ? BPF_CORE_READ(registers, r15) : 0;
#else
	return 0;
#endif
}

static __always_inline void write_notes_of(void *context, struct task_struct *task, struct interpreter_scratch *scratch,
					   const struct opd_interpreter_image *image, __u64 state)
{
	struct naming naming = { .context = context, .scratch = scratch, .image = image };
	struct opd_frames_note *head = &scratch->stack.head;
	struct opd_interpreter_control *wanted;
	__u32 zero = 0, nr;

	wanted = bpf_map_lookup_elem(&interpreter_control, &zero);
	if (!wanted)
		return;
	switch (image->runtime) {
	case OP_RUNTIME_perl:
		walk_perl(scratch, &image->perl, state, task->pid == task->tgid);
		break;
	case OP_RUNTIME_php:
		walk_php(scratch, &image->php, state, php_opline(task, state - image->address, image));
		break;
	case OP_RUNTIME_ruby:
		walk_ruby(scratch, &image->ruby, state);
		break;
	default:
		walk_python(scratch, image, state);
		break;
	}
	naming.salt = (__u32)task->tgid * 0x9e3779b1u ^ wanted->generation * 0x85ebca6bu;
	nr = bounded(head->nr_frames, FRAMES_ROOM);
	bpf_loop(nr, name_frame, &naming, 0);
	head->kind = OPD_NOTE_FRAMES;
	head->image = image->number;
	bpf_perf_event_output(context, &notes, BPF_F_CURRENT_CPU, &scratch->stack,
			      sizeof(*head) + nr * sizeof(struct opd_interpreter_frame));
}

/* What the walk begins with: of this thread; 0: it runs nothing of the runtime. */
static __always_inline __u64 find_state(struct task_struct *task, const struct opd_interpreter_image *image, __u64 address)
{
	__u64 pointer = thread_pointer(task);

	switch (image->runtime) {
	case OP_RUNTIME_python:
		return find_thread_state(&image->python, address, pointer);
	case OP_RUNTIME_perl:
		return find_perl(&image->perl, address, pointer, task->pid == task->tgid);
	case OP_RUNTIME_php:
		/* without threads one of them runs PHP */
		return task->pid == task->tgid ? address : 0;
	case OP_RUNTIME_ruby:
		return find_ruby(&image->ruby, address, pointer);
	default:
		return 0;
	}
}

/*
 * Looks where the process has a runtime: in its executable, else in the file that is mapped where
 * the thread runs. With interrupts off the kernel gives a lock back by an interrupt of its own,
 * which costs microseconds, and a second search for a mapping would fail until then.
 */
static __always_inline bool look_at_process(struct task_struct *task, struct opd_interpreter_process *process)
{
	struct file *executable = BPF_CORE_READ(task, mm, exe_file);
	struct opd_interpreter_file file = {};

	if (executable)
		name_file(&file, BPF_CORE_READ(executable, f_inode));
	if (bpf_map_lookup_elem(&interpreter_images, &file))
		return is_runtime_at(task, BPF_CORE_READ(task, mm, start_code), process);
	return is_runtime_at(task, instruction_pointer(task), process);
}

/*
 * The runtime of a process. *ret_state: of find_state. A process in which none was found is looked
 * at again after an eighth of the time since the first look, a second at most.
 */
static __noinline struct opd_interpreter_image *find_runtime(struct task_struct *task, __u32 nr_images, __u64 *ret_state)
{
	struct task_struct___program *program = (void *)task;
	__u64 started_ns = BPF_CORE_READ(program, group_leader, start_time), nr_execs = BPF_CORE_READ(program, self_exec_id);
	struct opd_interpreter_process *known, process = {};
	struct opd_interpreter_image *image = NULL;
	__u64 now_ns = bpf_ktime_get_ns(), wait_ns;
	__u32 tgid = task->tgid;

	known = bpf_map_lookup_elem(&interpreter_processes, &tgid);
	if (known && known->started_ns == started_ns && known->nr_execs == nr_execs) {
		process = *known;
		if (process.file.inode)
			image = bpf_map_lookup_elem(&interpreter_images, &process.file);
		*ret_state = image ? find_state(task, image, process.address) : 0;
		if (*ret_state || (process.nr_images == nr_images && now_ns < process.look_again_ns))
			return image;
	} else {
		process.started_ns = started_ns;
		process.nr_execs = nr_execs;
		process.since_ns = now_ns;
	}
	if (look_at_process(task, &process))
		image = bpf_map_lookup_elem(&interpreter_images, &process.file);
	wait_ns = (now_ns - process.since_ns) / 8;
	process.look_again_ns = now_ns + (wait_ns < NS_PER_S ? wait_ns : NS_PER_S);
	process.nr_images = nr_images;
	bpf_map_update_elem(&interpreter_processes, &tgid, &process, BPF_ANY);
	*ret_state = image ? find_state(task, image, process.address) : 0;
	return image;
}

static __always_inline void write_runtime_notes(void *context)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct interpreter_scratch *scratch;
	struct opd_interpreter_control *wanted;
	struct opd_interpreter_image *image;
	__u64 state = 0;
	__u32 zero = 0;

	wanted = bpf_map_lookup_elem(&interpreter_control, &zero);
	if (!wanted || !wanted->nr_images || task->flags & PF_KTHREAD || !task->mm)
		return;
	image = find_runtime(task, wanted->nr_images, &state);
	scratch = image ? bpf_map_lookup_elem(&interpreter_scratches, &zero) : NULL;
	if (!scratch || __sync_lock_test_and_set(&scratch->is_busy, 1))
		return;
	write_notes_of(context, task, scratch, image, state);
	scratch->is_busy = 0;
}
