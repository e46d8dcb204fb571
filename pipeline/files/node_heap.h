/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The functions of JavaScript in the heap of V8, read by a looker (lookers.h) from the memory of a
 * process of Node.
 *
 * A frame has a function, but the collector moves functions, and a moment later something else may
 * be where it was. So the looker takes a function only with a proof that the frame runs it:
 *
 *   bytecode    the frame has the address of the bytecode; the function has the same bytecode
 *   code        the pc is in compiled code; that code says whose it is
 *   builtin     the function is one of V8's own
 *   shared      what all closures of the function share was read when the sample was taken, with a
 *               fingerprint
 *
 * V8 tells most of its layout (libop/unwind/node_words.h). What it does not tell is a table by
 * versions in node_heap.c, from the sources of Node 18.20 and 20.20: deps/v8/src/objects/. Other
 * versions are refused.
 *
 * The memory is hostile: each value is checked, and the number of reads is limited. Sync thread
 * only, except opd_node_answer and opd_node_read, which any thread may call.
 */
#ifndef OPD_NODE_HEAP_H
#define OPD_NODE_HEAP_H

#include "libop/base/compiler.h"
#include "libop/base/text.h"
#include "pipeline/files/node_layout.h"

struct opd_lookers;

#define OPD_NODE_WANTED_MAX 256u /* functions of one question */
#define OPD_NODE_SCRIPTS    4u
#define OPD_NODE_LINES_MAX  1024u
#define OPD_NODE_NAME_MAX   1024u /* bytes of a name, and of the path of a script */

/* A frame. Addresses are as in memory: an object's address plus 1. */
struct opd_node_wanted {
	uint64_t function;    /* of the frame; 0: none */
	uint64_t bytecode;    /* where the interpreter has its bytecode; 0: none */
	uint64_t pc;          /* in code that V8 made; 0: in code of the executable */
	uint64_t shared;      /* known already, or read at the sample; 0: none */
	uint64_t fingerprint; /* of `shared`: then the name is not read again */
	uint64_t feedback;    /* where baseline code has its feedback; 0: none */
	/* known ones, whose functions are looked at, too; 0: none */
	uint64_t scripts[OPD_NODE_SCRIPTS];
};

/* Name and path of the script follow, without a NUL, and struct opd_node_line of the bytecode. */
struct opd_node_found {
	uint32_t outcome;
	uint32_t line; /* where the function begins; 0: not known */
	uint64_t shared, fingerprint;
	uint64_t script;               /* 0: it has none, as V8's own functions */
	uint64_t bytecode;             /* the proof was this; 0: another one */
	uint64_t code_start, code_end; /* of compiled code; 0, 0: none */
	uint32_t nr_name_bytes, nr_file_bytes, nr_lines;
	uint32_t nr_reads, nr_read_bytes; /* what it cost */
};

/* False: a version whose layout is not known, or numbers that make no sense. */
bool opd_node_layout_is_known(const struct opd_node_layout *layout) OP_NONNULL OP_MUST_CHECK;

/* Reads functions; adds struct opd_node_found, name and path of each to `to`. */
void opd_node_read(const struct opd_node_layout *layout, const struct opd_node_wanted *wanted, size_t nr_wanted,
		   opd_node_memory memory, void *arg, struct op_text *to) OP_NONNULL_ARGS(1, 2, 4, 6);

/* A process whose memory is read. */
struct opd_node_process {
	uint32_t pid;
	uint64_t user_ns; /* its user namespace; 0: the host's, or unknown */
	uint64_t who;     /* opd_far_memory_who; another one is not read: -ESTALE */
};

/* Asks. 0 or -errno; the caller frees ret_answer. */
int opd_node_ask(struct opd_lookers *lookers, const struct opd_node_process *process, const struct opd_node_layout *layout,
		 const struct opd_node_wanted *wanted, size_t nr_wanted, struct op_text *ret_answer) OP_NONNULL OP_MUST_CHECK;

/*
 * The next function of an answer: from *at on, which moves. The texts are not terminated. False:
 * the answer has no further one.
 */
bool opd_node_next(const struct op_text *answer, size_t *at, struct opd_node_found *ret_found, const char **ret_name,
		   const char **ret_file, const char **ret_lines) OP_NONNULL OP_MUST_CHECK;

/* In the looker. */
int opd_node_answer(const char *question, size_t nr_bytes, struct op_text *answer) OP_NONNULL;

#endif
