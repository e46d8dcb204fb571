/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Notes: what a program in the kernel writes right before a sample of the same thread, as
 * PERF_SAMPLE_RAW of an event of its own (opd_capture_run_before_stacks). The first word says what
 * a note is about. The program of the kernel includes this file, too.
 */
#ifndef OPD_NOTE_RECORD_H
#define OPD_NOTE_RECORD_H

#include <linux/types.h>

#define OPD_NOTE_STACK  1 /* struct opd_stack_note */
#define OPD_NOTE_NAME   2 /* struct opd_name_note (pipeline/runtimes/shared.h) */
#define OPD_NOTE_FRAMES 3 /* struct opd_frames_note */

/*
 * More of the stack than the kernel copied: it copies so many bytes, and stops at a page that is
 * not present, such as one in a large array of which little was used. Such pages are left out, and
 * read as zeros. A stack of more than OPD_DEEP_CHUNK bytes has several notes, one behind the other.
 * One without bytes says how large the stack is.
 */
#define OPD_DEEP_CHUNK 8192u
#define OPD_DEEP_STACK_MAX (60u * 1024) /* bytes of a stack, with those that the kernel copied */

struct opd_stack_note {
	__u32 kind;
	__u32 nr_bytes; /* they stand behind */
	__u64 sp;	/* of the sample; the copy of the kernel begins there */
	__u32 offset;	/* of the bytes, from sp on */
	__u32 after;	/* what is from this offset up to them is not present */
	__u32 distance; /* from sp to the top of the stack; 0: unknown */
	__u32 spare;
};

#endif
