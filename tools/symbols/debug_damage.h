/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What is wrong with debugging information, in the words of libbfd where it says something. For processes of their own (tools/common/child.h), but for opr_debug_warn; texts are valid until the next call.
 */
#ifndef OPR_DEBUG_DAMAGE_H
#define OPR_DEBUG_DAMAGE_H

#include <bfd.h>

#include "libop/base/compiler.h"

struct opr_lines;

/* libbfd says nothing to the user from now on. */
void opr_debug_hush(void);

/* Keeps the first that libbfd says from now on. */
void opr_debug_listen(void);

/*
 * What is wrong with debugging information in which lines were looked for since opr_debug_listen; NULL: nothing that is known. libbfd does not say that it cannot follow the units of .debug_info, so
 * when no line was found (`found` false) their heads are looked at. Source: DWARF 5, section 7.5.1.
 */
const char *opr_debug_damage(bfd *abfd, bool found) OP_NONNULL OP_MUST_CHECK;

/* The same after looking for the lines of some addresses, as far as that is not much work. */
const char *opr_debug_probe(bfd *abfd) OP_NONNULL OP_MUST_CHECK;

/* Tells the user, in the process where that is done. */
void opr_debug_warn(const char *path, const char *damage) OP_NONNULL;

#endif
