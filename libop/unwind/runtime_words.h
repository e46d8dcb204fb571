/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What a row table tells of an image that has a runtime: its words, each a symbol of .dynsym or
 * .symtab. Who reads the runtime (pipeline/runtimes) knows what they mean.
 *
 * ADDRESS: where the symbol is, from the place on where position 0 of the file would be mapped with
 * the first segment of code. CONTENT: the number that the file has there, of at most 8 bytes.
 * SIZE: the bytes of the symbol. TLS: a variable of a thread, from the image's first one on;
 * TLS_SLOT: the address where the dynamic linker writes the number of the image, for that variable.
 *
 * Numbers are in files: a new word comes at the end.
 */
#ifndef OP_RUNTIME_WORDS_H
#define OP_RUNTIME_WORDS_H

#include "libop/unwind/node_words.h"

#define OP_PYTHON_COOKIE      0x7970677562656478ull /* "xdebugpy" */
#define OP_PYTHON_OFFSETS_MAX 96u

/* clang-format off */
#define OP_RUNTIME_WORDS(X) \
	X(PYTHON_RUNTIME, "_PyRuntime",               ADDRESS) \
	X(PYTHON_LOOP,    "_PyEval_EvalFrameDefault", ADDRESS) \
	X(PYTHON_VERSION, "Py_Version",               CONTENT) /* from 3.11 on: PY_VERSION_HEX */ \
	X(PYTHON_3_10,    "Py_NewRef",                ADDRESS) /* is new in 3.10 */ \
	X(PYTHON_3_9,     "PyObject_CallNoArgs",      ADDRESS) /* is new in 3.9 */ \
	X(PERL,           "PL_curinterp",             ADDRESS) \
	X(PERL_KEY,       "PL_thr_key",               ADDRESS) \
	X(PERL_LOOP,      "Perl_runops_standard",     ADDRESS) \
	X(PERL_VERSION,   "PL_version",               CONTENT) /* 36 of 5.36 */ \
	X(PERL_BYTES,     "PL_interp_size",           CONTENT) \
	X(PHP,            "executor_globals",         ADDRESS) /* not with threads */ \
	X(PHP_BYTES,      "executor_globals",         SIZE) \
	X(PHP_LOOP,       "execute_ex",               ADDRESS) \
	X(PHP_8_2,        "php_random_algo_mt19937",  ADDRESS) /* is new in 8.2 */ \
	X(PHP_THREADS,    "executor_globals_offset",  ADDRESS) \
	X(RUBY_CONTEXT,   "ruby_current_ec",          TLS) \
	X(RUBY_LIBRARY,   "ruby_current_ec",          TLS_SLOT) \
	X(RUBY_LOOP,      "rb_vm_exec",               ADDRESS) \
	X(RUBY_VERSION,   "ruby_version",             CONTENT) /* its characters: "3.1.2" */ \
	X(MUSL,           "__init_libc",              ADDRESS) /* or 1: it needs musl */
/* clang-format on */

enum op_runtime_word {
	OP_WORD_none,
#define X(name, symbol, how) OP_WORD_##name,
	OP_RUNTIME_WORDS(X)
#undef X
		/* V8's are all CONTENT, of symbols of 4 bytes */
		OP_WORD_before_node = 127,
#define X(name, symbol) OP_WORD_node_##name,
	OP_NODE_WORDS(X)
#undef X
		OP_NR_SYMBOL_WORDS,
	/* from 3.13 on: the words with which _PyRuntime begins, if the first is the cookie */
	OP_WORD_PYTHON_OFFSETS = 256,
	OP_NR_RUNTIME_WORDS = OP_WORD_PYTHON_OFFSETS + OP_PYTHON_OFFSETS_MAX,
};

#endif
