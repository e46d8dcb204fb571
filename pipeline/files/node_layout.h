/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the reader of V8's heap knows of it (node_heap.h), and what becomes of what it reads. */
#ifndef OPD_NODE_LAYOUT_H
#define OPD_NODE_LAYOUT_H

#include "libop/base/compiler.h"
#include "libop/unwind/node_words.h"

/* V8's words: offsets are from the start of an object, types are those of its map. */
struct opd_node_layout {
#define X(name, symbol) int32_t name;
	OP_NODE_WORDS(X)
#undef X
};

enum opd_node_outcome {
	OPD_NODE_NAMED,
	OPD_NODE_SAME,   /* the fingerprint is as before */
	/* code of V8's own, or of a regular expression: it has a name at most as native code */
	OPD_NODE_NATIVE,
	OPD_NODE_MOVED,  /* nothing proves whose frame it is */
	OPD_NODE_FAULT,  /* memory could not be read, or an object is not what it should be */
	OPD_NODE_LIMIT,  /* a limit was reached */
};

/* From this offset of the bytecode on a function is in this line. */
struct opd_node_line {
	uint32_t offset, line;
};

/* How the process's memory is read. False: it is not there. */
typedef bool (*opd_node_memory)(void *arg, uint64_t address, void *to, size_t nr_bytes);

#endif
