/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The Debian packages with the debug files of installed files. */
#ifndef OPR_PACKAGES_H
#define OPR_PACKAGES_H

#include "libop/base/compiler.h"

/*
 * Asks dpkg-query for many files at once. Paths are absolute; NULL paths are skipped.
 * ret_packages[i] becomes the name of the debug package, freed by the caller; NULL: no package has
 * the file, or there is no dpkg. 0 or -ENOMEM.
 */
int opr_packages_find(const char *const *paths, size_t nr_paths, char **ret_packages) OP_NONNULL OP_MUST_CHECK;

/* The debug package for a line of `dpkg-query -S`; NULL: none. *ret_path points into the line. */
char *opr_packages_parse(char *line, const char **ret_path) OP_NONNULL OP_MUST_CHECK;

#endif
