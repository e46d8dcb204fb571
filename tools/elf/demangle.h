/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Readable names of C++, Rust and D symbols. */
#ifndef OPR_DEMANGLE_H
#define OPR_DEMANGLE_H

#include "libop/base/text.h"

enum opr_demangle { OPR_DEMANGLE_NONE, OPR_DEMANGLE_NORMAL, OPR_DEMANGLE_SMART, OPR_NR_DEMANGLE };

#define OPR_DEMANGLED_BYTES_MAX 16384u /* the longest name of libLLVM has 4,272 */

/*
 * Replaces the contents of `text` with the readable form of a name. A name that is longer than the
 * limit, or takes too much time, is shown without its parameters. False: the name is not mangled,
 * or is over the limits without its parameters, too, or `how` is OPR_DEMANGLE_NONE. The caller
 * checks text->failed; the result may be empty.
 */
bool opr_demangle(struct op_text *text, const char *name, enum opr_demangle how) OP_NONNULL OP_MUST_CHECK;

/* Shortens a demangled C++ name, as to std::vector<int>. Freed by the caller. */
char *opr_demangle_simplify(const char *name) OP_NONNULL OP_MUST_CHECK;

/*
 * Takes characters out of the arguments of templates, from their middle, until a name has
 * max_bytes: "std::map<shop::K...>::find". What is outside of the arguments stays, so the result
 * may still be longer. Freed by the caller; NULL: no memory.
 */
char *opr_demangle_elide(const char *name, size_t max_bytes) OP_NONNULL OP_MUST_CHECK;

/* Bytes that opr_demangle_elide went over in this thread, for the test of its bound. */
extern _Thread_local uint64_t opr_demangle_elide_steps;

/* For option_table.h: the value of --demangle; `field` is an enum opr_demangle. */
int opr_take_demangle(void *field, const char *value);

#endif
