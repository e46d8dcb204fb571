/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Names of C++, Rust and D as their programmers wrote them. */
#ifndef OPR_DEMANGLE_H
#define OPR_DEMANGLE_H

#include "libop/base/text.h"
#include "tools/symbols/symbols.h"

/* The readable form, freed by the caller; NULL: the name is none that was made by a compiler, or is to stay as it is. */
char *opr_demangle(const char *name, enum opr_demangle how) OP_NONNULL OP_MUST_CHECK;

/* The same into a text in the place of what it has, for who has many names. False: there is none. The text is to be looked at for `failed`, its bytes are `length`. */
bool opr_demangle_into(struct op_text *text, const char *name, enum opr_demangle how) OP_NONNULL OP_MUST_CHECK;

/* A demangled C++ name with the library's own spelling made short: std::string, std::vector<int> without its allocator. Freed by the caller. */
char *opr_demangle_simplify(const char *name) OP_NONNULL OP_MUST_CHECK;

#endif
