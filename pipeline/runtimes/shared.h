/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What the programs in the kernel that read runtimes (*.bpf.h) share with opd: their maps, and the
 * notes that they write before a sample (pipeline/drive/note_record.h).
 *
 *   map                    kind           key                   value
 *   interpreter_images     hash           opd_interpreter_file  opd_interpreter_image
 *   interpreter_processes  LRU hash       process               opd_interpreter_process
 *   interpreter_control    array, mapped  0                     opd_interpreter_control
 *
 * opd fills interpreter_images: which files have a runtime, and how it is read. The program finds
 * the processes that run one by itself.
 */
#ifndef OPD_INTERPRETERS_SHARED_H
#define OPD_INTERPRETERS_SHARED_H

#include <linux/types.h>

#define OPD_INTERPRETER_IMAGES_MAX    256
#define OPD_INTERPRETER_PROCESSES_MAX 4096
#define OPD_INTERPRETER_FRAMES_MAX    250 /* of a stack */
#define OPD_INTERPRETER_THREADS_MAX   256 /* looked at for one that its key does not find */
#define OPD_INTERPRETER_SEEN          4096 /* names that a CPU has written; a power of two */

/* A file, as records of mappings name it. */
struct opd_interpreter_file {
	__u64 inode;
	__u32 device; /* major << 20 | minor */
	__u32 spare;
};

/* Offsets in the structures of one version of Python: python.c says where they come from. */
struct opd_python_layout {
	__u32 key;                /* in _PyRuntime: the key of the thread state */
	__u32 interpreters;       /* the list of interpreters; 0: not known */
	__u32 threads;            /* in an interpreter: the list of threads */
	__u32 next, thread_id;    /* in the state of a thread */
	__u32 frame;              /* the innermost frame, or what has it: */
	__u32 has_cframe, cframe; /* then the frame is in there */
	__u32 frame_bytes; /* of a frame, as far as it is read */
	__u32 code, previous, instruction, owner; /* in a frame */
	__u32 owner_how;          /* OPD_PYTHON_OWNER_... */
	__u32 instruction_how;    /* 0: an address; else an index, in units of so many bytes */
	__u32 first_line, file, name, table, first_instruction; /* in a code object */
	__u32 ascii, compact;     /* in a string: its characters */
};

#define OPD_PYTHON_OWNER_NONE  0 /* each frame has a loop of its own */
#define OPD_PYTHON_OWNER_ENTRY 1 /* a byte: not 0 where a loop begins */
#define OPD_PYTHON_OWNER_SHIM  2 /* a byte: from 3 on it is no function: a loop ends before it */

/* Offsets in the structures of one version of Perl: perl.c says where they come from. */
struct opd_perl_layout {
	__s64 key; /* the key of the thread's interpreter, from PL_curinterp on */
	__u32 stack_info, cop, phase, script; /* in the interpreter */
	__u32 contexts, previous, nr_contexts; /* in a stack of contexts */
	__u32 context_bytes, old_cop, function, return_to, eval_cv; /* in a context */
	__u32 line, file; /* in a COP */
	__u32 op_type; /* in an operation */
	__u32 body, flags; /* in a value */
	/* in the body of a function */
	__u32 start, root, function_flags, name, stash, function_file;
	__u32 glob_name, glob_stash; /* in the body of a glob */
	/* in the body of a stash: its name, or several, and how many, 28 bytes on */
	__u32 stash_names;
	__u32 named_flag, next_state, require; /* a flag of functions, and types of operations */
};

/* Of PHP: php.c. */
struct opd_php_layout {
	__u32 current;                                            /* in executor_globals */
	__u32 call_bytes, opline, function, info, previous;       /* of a call */
	__u32 name, scope, operations, nr_operations, file, first_line; /* in a function */
	__u32 operation_bytes, line;                              /* of an operation */
	__u32 class_name;                                         /* in a class */
	__u32 text;                                               /* in a string */
};

/* Of Ruby: ruby.c. */
struct opd_ruby_layout {
	__u64 context;                         /* in libruby's variables of a thread */
	__u32 stack, stack_words, frame;       /* in a context */
	__u32 frame_bytes, pc, code, flags;    /* of a control frame; flags is an address of them */
	__u32 body;                            /* in the code of a function */
	__u32 instructions, path, label, first_line, entries, nr_entries, table; /* in its body */
	__u32 spare;
};

struct opd_interpreter_image {
	__u32 runtime; /* enum op_runtime (libop/stacks/runtime_name.h) */
	__u32 number;  /* opd's own; names it in notes */
	__u64 address; /* of the runtime's data, from where position 0 of the file is mapped */
	__u64 loop_start, loop_end; /* of the interpreter, in the same way */
	union {
		struct opd_python_layout python;
		struct opd_perl_layout perl;
		struct opd_php_layout php;
		struct opd_ruby_layout ruby;
	};
};

struct opd_interpreter_process {
	struct opd_interpreter_file file; /* inode 0: it has no runtime */
	__u64 address; /* of the runtime's data */
	__u64 started_ns;
	__u64 nr_execs; /* since then: with another of the two it is another program */
	__u64 since_ns, look_again_ns; /* the first look, and the next one */
	__u32 nr_images, spare; /* that were known then */
};

struct opd_interpreter_control {
	/* Another number each time that opd has forgotten names: they are written again. */
	__u32 generation;
	__u32 nr_images; /* 0: the program looks at no process */
};

/* How a reading of the frames ended. */
enum opd_read_end {
	OPD_READ_COMPLETE,
	OPD_READ_NONE,  /* the thread runs no function of the runtime */
	OPD_READ_FAULT, /* memory was not there, or is not as it should be */
	OPD_READ_DEEP,  /* more frames than OPD_INTERPRETER_FRAMES_MAX */
	OPD_READ_NR_ENDS,
};

/* A frame: a function, where it was in it, and what tells a function from another in its place. */
struct opd_interpreter_frame {
	__u64 code;
	__u32 position; /* the line itself, where the function has no table of lines */
	__u32 check; /* the lowest bit: OPD_INTERPRETER_IS_ENTRY; the others are a fingerprint */
};

#define OPD_INTERPRETER_IS_ENTRY 1u /* native code called it: a loop ends here */

/* OPD_NOTE_FRAMES: the frames stand behind, the innermost one first. */
struct opd_frames_note {
	__u32 kind;
	__u32 image; /* number */
	__u32 end;   /* enum opd_read_end */
	__u32 nr_frames;
};

#define OPD_INTERPRETER_NAME_BYTES  256 /* at most; powers of two */
#define OPD_INTERPRETER_FILE_BYTES  512
#define OPD_INTERPRETER_TABLE_BYTES 4096

/*
 * OPD_NOTE_NAME: comes before the first stack with the function. The bytes of the name, of the file
 * and of the table of lines stand behind each other.
 */
struct opd_name_note {
	__u32 kind;
	__u32 image;
	__u64 code;
	__u32 check;
	__u32 first_line;
	__u16 name_bytes, file_bytes, table_bytes;
	/* Python: bytes of a character, 1, 2 or 4; 0: ASCII. The others have UTF-8, and 0. */
	__u8 name_width, file_width;
};

#endif
