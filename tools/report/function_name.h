/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The parts of demangled names of functions. */
#ifndef OPR_FUNCTION_NAME_H
#define OPR_FUNCTION_NAME_H

#include "libop/base/compiler.h"

/*
 * Whether `word` is the name, or its end behind a "::" or a return type; parameters, and then
 * arguments of templates, may be missing: "checksum", "Disk::checksum" and "checksum(int)" stand
 * for "void fs::Disk<4>::checksum(int)".
 */
bool opr_function_has_base(const char *name, const char *word) OP_NONNULL;

/* Copies the last part without parameters and arguments of templates: "checksum". */
void opr_function_base(const char *name, char *ret_base, size_t nr_bytes) OP_NONNULL;

#endif
