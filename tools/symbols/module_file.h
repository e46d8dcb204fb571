/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Files of kernel modules: "fuse.ko", and "fuse.ko.gz", "fuse.ko.xz" and "fuse.ko.zst", as distributions have them. */
#ifndef OPR_MODULE_FILE_H
#define OPR_MODULE_FILE_H

#include "libop/base/compiler.h"

#define OPR_MODULE_BYTES_MAX (256u << 20) /* of one that is unpacked */

/* True for what follows the module's name in the name of its file. */
bool opr_is_module_suffix(const char *suffix) OP_NONNULL;

/* True when the file of this name is a compressed module. Its name alone says so. */
bool opr_module_is_packed(const char *path) OP_NONNULL;

/*
 * Unpacks a file that is one: all streams of it (members of gzip, frames of zstd) up to what begins none. A descriptor of a file in memory, at its beginning; -EBADMSG: the file is damaged or cut off; -EFBIG: more comes out of it than
 * OPR_MODULE_BYTES_MAX; -ENOMEM, also when its format asks for too much; another -errno.
 */
int opr_module_unpack(const char *path) OP_NONNULL OP_MUST_CHECK;

#endif
