/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * From a mapping, as the kernel reports it, to the dcookie of its image. Files are not opened; stat
 * is enough.
 *
 * Sync thread only.
 */
#ifndef OPD_IMAGE_H
#define OPD_IMAGE_H

#include <sys/types.h>

#include "libop/base/build_id.h"
#include "libop/base/compiler.h"
#include "libop/session/dcookie.h"
#include "pipeline/files/build_ids.h"
#include "pipeline/files/locate.h"

/*
 * True for memory that may hold a copy of a program's text. Programs make copies to have their text
 * in huge pages.
 */
bool opd_image_may_be_text_copy(const char *name) OP_NONNULL;

/*
 * The cookie of a mapping; OP_DCOOKIE_NONE: no memory. Of a file: *ret_is_file is set, and offsets
 * count from the start of the file. Of memory without a file: the cookie stands for the label alone
 * ([vdso], anon), because most regions never have a sample. opd_image_of_region makes a cookie for
 * a region.
 */
uint64_t opd_image_of_mapping(struct op_dcookie_table *table, const struct opd_mapped *mapped,
			      bool *ret_is_file) OP_NONNULL OP_MUST_CHECK;

/*
 * True when no file is looked at for the image of a mapping, so that its mount view may be an older
 * one of the process: a file with this name in both views is the same file.
 */
bool opd_image_is_cached(const struct opd_mapped *mapped) OP_NONNULL OP_MUST_CHECK;

/* The cookie of one region of one process. OP_DCOOKIE_NONE: no memory. */
uint64_t opd_image_of_region(struct op_dcookie_table *table, uint64_t label_cookie, uint32_t pid, uint64_t start,
			     uint64_t end) OP_NONNULL OP_MUST_CHECK;

/*
 * The cookie of a part of the kernel. `name` is a module, or, with a slash, a file (vmlinux,
 * /proc/kallsyms). Another build-id under the same name is another image; without build-id, another
 * mtime of the file is. OP_DCOOKIE_NONE: no memory.
 */
uint64_t opd_image_of_kernel(struct op_dcookie_table *table, const char *name,
			     const struct op_build_id *build_id) OP_NONNULL OP_MUST_CHECK;

/*
 * Pseudo-images make samples visible that have no image: the process is unknown (NO_PROCESS),
 * nothing is mapped there (NO_MAPPING), a virtual machine of this host ran (GUEST_...), the record
 * does not tell the mode (NO_MODE), or the session has its maximum of images (TOO_MANY_IMAGES, see
 * op_dcookie_limit).
 */
#define OPD_PSEUDO_IMAGES(X)                                                                                                       \
	X(NO_PROCESS, "no-process")                                                                                                \
	X(NO_MAPPING, "no-mapping")                                                                                                \
	X(GUEST_KERNEL, "guest-kernel")                                                                                            \
	X(GUEST_USER, "guest-user")                                                                                                \
	X(HYPERVISOR, "hypervisor")                                                                                                \
	X(NO_MODE, "no-mode")                                                                                                      \
	X(TOO_MANY_IMAGES, "too-many-images")

enum opd_pseudo {
#define X(id, name) OPD_PSEUDO_##id,
	OPD_PSEUDO_IMAGES(X)
#undef X
		OPD_NR_PSEUDO,
};

/* The cookie of a pseudo-image. OP_DCOOKIE_NONE: no memory. */
uint64_t opd_image_pseudo(struct op_dcookie_table *table, enum opd_pseudo which) OP_NONNULL OP_MUST_CHECK;

#endif
