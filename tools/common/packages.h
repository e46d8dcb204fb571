/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The Debian packages with the debug files of installed files, and where they are. */
#ifndef OPR_PACKAGES_H
#define OPR_PACKAGES_H

#include "libop/base/compiler.h"

#define OPR_PACKAGES_LISTS "/var/lib/dpkg/info" /* one list of files for each package */

/*
 * Searches many files at once in the lists of packages in a directory. Paths are absolute; NULL
 * paths are skipped. ret_packages[i] becomes the name of the debug package, freed by the caller;
 * NULL: no package has the file, or there is no dpkg. 0 or -ENOMEM.
 */
int opr_packages_find(const char *lists, const char *const *paths, size_t nr_paths, char **ret_packages)
	OP_NONNULL OP_MUST_CHECK;

/*
 * The line of the package sources that has the packages NAME-dbgsym of this host's release. Freed
 * by the caller; NULL: not known.
 */
char *opr_packages_debug_archive(void) OP_MUST_CHECK;

/* The same of the release that a text in the form of os-release(5) describes. */
char *opr_packages_debug_archive_of(const char *os_release) OP_NONNULL OP_MUST_CHECK;

#endif
